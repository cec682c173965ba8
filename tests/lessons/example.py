"""A lesson of two pages, to be changed by tests."""

LESSON = '''\
title = "A first lesson"
summary = "Two pages"
model = "copycat"

[[page]]
title = "One"
text = """
Hello {p(' red'):%} and
{token_count} tokens."""
look_at = "panel:attention"
scene = { prompt = "red fish blue bird red fish", run = 2 }

[[page]]
title = "Two"
text = "Braces {{x}}"
change = { layer = 1, sampling = { temperature = 2.0 } }
[page.question]
ask = "What comes next?"
choices = ["It is {chosen(1)}", "Another"]
answer = "when(rank(' blue') == 1, 1, 2)"
hides = "next-token"
explanation = "Because it came next before."
'''
SCENE = """\
model = "copycat"
prompt = "red fish blue bird red fish"
run = 2
"""
