"""Sentences and names that may hold anything, made to fit a line, a bar or a terminal.

What a file, a model or a library puts into them has no bound: one word of 150,000 letters would
make a label as wide.
"""

from __future__ import annotations

import re

from explorer.figures.text.characters import elide, printable

NAME = 60  # letters of a name on a button, in a menu or a title
_WORD = 60  # letters of one word in a bar of the window
_MOST = 800  # letters of a sentence


def name(text: str, most: int = NAME) -> str:
    """A name in one short line, cut in the middle: both ends tell names apart."""
    return elide(printable(text), most)


def fitting(text: str, word: int = _WORD, most: int = _MOST, keep: str = "") -> str:
    """Text of which no word is longer than `word` letters, and the whole not than `most`.

    Whatever would act is a mark, but for the characters in `keep`.
    """
    text = elide(text, 4 * most)  # before anything looks at every letter
    short = re.sub(rf"\S{{{word + 1},}}", lambda m: elide(m[0], word), printable(text, keep))
    return elide(short, most)
