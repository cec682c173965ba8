"""What the set-up scripts tell whoever started them."""


class SetupError(Exception):
    """Something the user has to know or do, in one sentence."""


def say(text):
    """A line at once, also where the output is a file."""
    print(text, flush=True)
