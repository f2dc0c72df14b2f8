"""Colours: two themes of our own, and the palette's colours worked out from any theme."""

from __future__ import annotations

from collections.abc import Mapping

from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from tui.diagnostics import Complaint

DARK = Theme(
    name="wavedeck",
    primary="#7aa2d6",
    secondary="#8fb8c9",
    accent="#c8a96a",
    warning="#d9b05b",
    error="#e0736c",
    success="#86bd7c",
    foreground="#d3d7de",
    background="#14171c",
    surface="#191d23",
    panel="#242a33",
    dark=True,
)
LIGHT = Theme(
    name="wavedeck-light",
    primary="#22579b",
    secondary="#276b7f",
    accent="#875c00",
    warning="#8f5e00",
    error="#b3261e",
    success="#2d6b22",
    foreground="#1f2328",
    background="#fbfbfa",
    surface="#f4f4f1",
    panel="#e4e5e1",
    dark=False,
)
ANSI = {
    "wd-dim": "ansi_default",
    "wd-faint": "ansi_bright_black",
    "wd-add": "ansi_default",
    "wd-del": "ansi_default",
    "wd-add-strong": "ansi_default",
    "wd-del-strong": "ansi_default",
    "wd-cursor": "ansi_default",
    "wd-selected": "ansi_default",
    "wd-error-line": "ansi_default",
    "wd-comment": "ansi_default",
    "wd-add-text": "ansi_green",
    "wd-del-text": "ansi_red",
    "wd-dim-style": "dim",
    "wd-strong-style": "reverse",
    "wd-cursor-style": "reverse",
    "wd-match": "ansi_default",
    "wd-match-text": "ansi_default",
    "wd-match-style": "reverse bold",
}
"""With the terminal's own colours nothing can be mixed: dim, bold and reverse tell things apart."""


def check_theme(theme: str) -> None:
    """Raise `Complaint` for a theme that does not exist."""
    names = sorted({DARK.name, LIGHT.name, *BUILTIN_THEMES})
    if theme not in names:
        raise Complaint(f"unknown theme {theme!r}; themes are {', '.join(names)}")


def palette(variables: Mapping[str, str], *, ansi: bool) -> dict[str, str]:
    """The palette's variables, from a theme's own."""
    if ansi:
        return dict(ANSI)
    background = Color.parse(variables["background"])
    foreground = Color.parse(variables["foreground"])

    def mixed(color: Color, share: float) -> str:
        return background.blend(color, share).hex6

    good, bad = Color.parse(variables["success"]), Color.parse(variables["error"])
    return {
        "wd-dim": mixed(foreground, 0.6),
        "wd-faint": mixed(foreground, 0.3),
        "wd-add": mixed(good, 0.16),
        "wd-del": mixed(bad, 0.18),
        "wd-add-strong": mixed(good, 0.38),
        "wd-del-strong": mixed(bad, 0.42),
        "wd-cursor": mixed(Color.parse(variables["primary"]), 0.26),
        "wd-selected": mixed(Color.parse(variables["primary"]), 0.5),
        "wd-error-line": mixed(bad, 0.22),
        "wd-comment": mixed(foreground, 0.52),
        "wd-add-text": foreground.hex6,
        "wd-del-text": foreground.hex6,
        "wd-dim-style": "none",
        "wd-strong-style": "none",
        "wd-cursor-style": "none",
        "wd-match": mixed(Color.parse(variables["warning"]), 0.45),
        "wd-match-text": foreground.hex6,
        "wd-match-style": "none",
    }
