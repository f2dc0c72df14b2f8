"""Which characters of a model's or a candidate's text a terminal may get."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from unicodedata import category

NOT_ASCII = re.compile(r"[^\n\x20-\x7e]")
UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0") | {
    chr(code) for code in range(0xE0100, 0xE01F0)
}
"""Letters and marks without a picture."""
JOINERS = frozenset("\u200c\u200d")
"""Format characters that scripts and emoji need."""


@lru_cache(4096)
def is_visible(char: str) -> bool:
    """True for a character that a person sees as it is.

    False for controls, format characters (also tags, and those that show text in another order than a compiler reads it),
    surrogates, private and unassigned characters.
    """
    return char in JOINERS or (category(char) not in UNSAFE and char not in INVISIBLE)


def replace_invisible(text: str, replacement: Callable[[str], str]) -> str:
    """Returns the text with each invisible character replaced, except line ends."""
    return NOT_ASCII.sub(lambda match: match[0] if is_visible(match[0]) else replacement(match[0]), text)
