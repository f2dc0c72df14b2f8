"""Characters of the cockpit in ASCII, for `--ascii`."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

SIGNS = str.maketrans(
    {
        **dict.fromkeys("─━╌┄╴╶▔▁", "-"),
        **dict.fromkeys("│┃▏▎▍▌▐▕▊▋", "|"),
        **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╯╰┏┓┗┛", "+"),
        **dict.fromkeys("▂▃", "."),
        **dict.fromkeys("▄▅", "="),
        **dict.fromkeys("▆▇█▀", "#"),
        "…": "~",
        "·": "-",
        "•": "*",
        "▴": "^",
        "▾": "v",
        "→": ">",
        "←": "<",
        "⏎": "E",
        "\u2013": "-",
        "\u00d7": "x",
        "≤": "<",
        "≥": ">",
        "\u2019": "'",
        "“": '"',
        "”": '"',
    }
)


class AsciiOnly(LineFilter):
    """Replaces each character, cell by cell, so that nothing moves."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the same line in ASCII."""
        return [
            segment
            if segment.control or segment.text.isascii()
            else segment._replace(text=to_ascii(segment.text))
            for segment in segments
        ]


def to_ascii(text: str) -> str:
    """Return text in ASCII, in as many cells as before; `?` for a character without a likeness."""
    drawn = text.translate(SIGNS)
    if drawn.isascii():
        return drawn
    return "".join(letter if letter.isascii() else "?" * cell_len(letter) for letter in drawn)
