"""The screen of a cockpit as text, for snapshots: first the characters, then the colours by their meaning."""

from __future__ import annotations

from rich.style import Style
from textual.app import App

from tui.cockpit.terminal.themes import palette

LETTERS = {
    "success": "g", "error": "r", "warning": "y", "primary": "b", "accent": "k", "secondary": "s",
    "wd-dim": "d", "wd-faint": "f", "wd-comment": "d", "foreground": " ",
}  # fmt: skip
"""g: better, r: wrong or failed, y: waits for a person, b: running, k: key, s: title, d and f: dim."""


def picture(app: App[object]) -> str:
    """Return the screen: its characters, then under `colours` a letter for each cell that is not in the plain colour."""
    width, height = app.size
    strips = app.screen._compositor.render_strips()
    letters = _letters(app)
    text, colours = [], []
    for strip in strips[:height]:
        line, shades = "", ""
        for segment in strip:
            line += segment.text
            shades += _letter(segment.style, letters) * len(segment.text)
        text.append(line[:width].rstrip())
        colours.append(shades[:width].rstrip())
    return "\n".join([*text, "-- colours", *colours])


def screen_text(app: App[object]) -> str:
    """Return the characters of the screen, for a failure of a test."""
    return picture(app).partition("\n-- colours")[0]


def _letters(app: App[object]) -> dict[str, str]:
    variables = app.get_css_variables()
    variables |= palette(variables, ansi=False)
    found: dict[str, str] = {}
    for name, letter in LETTERS.items():
        found.setdefault(variables[name].lower(), letter)
    return found


def _letter(style: Style | None, letters: dict[str, str]) -> str:
    if style is None or style.color is None or style.color.triplet is None:
        return " "
    return letters.get(style.color.triplet.hex.lower(), "o")
