"""No invisible character of a model or a candidate reaches the terminal, by any of the two ways of showing text."""

from __future__ import annotations

import sys
from unicodedata import category

import pytest

from tui.cockpit.draw.lines import clean
from tui.diagnostics import printable

HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def test_no_character_of_an_invisible_category_is_shown() -> None:
    hidden = [
        chr(code)
        for code in (*range(0x10000), *range(0x10000, sys.maxunicode, 257), *range(0xE0000, 0xE0080))
        if category(chr(code)) in HIDDEN and chr(code) not in "\n\r\t\u200c\u200d"
    ]
    assert "\U000e0041" in hidden
    text = "".join(hidden)
    assert set(clean(text)) == {"\ufffd"}
    assert printable(text).isascii()


@pytest.mark.parametrize("char", ["\U000e0100", "\u3164", "\u115f", "\u034f"])
def test_letter_without_a_picture_is_not_shown(char: str) -> None:
    assert clean(f"a{char}b") == "a\ufffdb"
    assert printable(f"a{char}b") == "a" + char.encode("unicode_escape").decode() + "b"


@pytest.mark.parametrize(
    "text",
    [
        "größer\u00a0als",
        "\U0001f468\u200d\U0001f52c\ufe0f",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "行列",
        "a\nb",
    ],
)
def test_text_of_people_stays(text: str) -> None:
    assert clean(text) == text
    assert printable(text) == text
