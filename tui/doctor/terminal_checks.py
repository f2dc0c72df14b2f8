"""Section of doctor about the terminal: size, colours, encoding, tmux and SSH."""

from __future__ import annotations

import locale
import shutil
import sys
from collections.abc import Iterator, Mapping

from tui.print.plain import colours

from .doctor_findings import DoctorFinding, State, note, ok, warning

SMALLEST = (80, 24)
"""Columns and lines below which parts of the screens are cut."""


def terminal(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Yield whether the cockpit can be opened here, and how to improve it."""
    kind = environ.get("TERM", "")
    both = sys.stdin is not None and sys.stdin.isatty() and sys.stdout is not None and sys.stdout.isatty()
    if not both or kind in ("", "dumb"):
        why = "standard input or output is not a terminal" if not both else f"TERM is {kind or 'not set'}"
        yield note("cockpit", why, "runs are headless, replay and attach print plain text")
    else:
        yield from _screen(kind, environ)
    encoding = locale.getpreferredencoding(False)
    if encoding.lower().replace("-", "") != "utf8":
        yield warning("encoding", encoding, "lines and symbols will look wrong; set LANG to a UTF-8 locale")
    if environ.get("TMUX"):
        yield note(
            "tmux",
            "inside tmux",
            "copying needs `set -g set-clipboard on`; `set -s escape-time 10` makes escape quick",
        )
    elif environ.get("STY"):
        yield note("screen", "inside GNU screen", "colours are few there; tmux shows more")
    if environ.get("SSH_CONNECTION"):
        yield note("ssh", "logged in over SSH", "on a slow line `ssh -C` makes the screens 10 times smaller")


def _screen(kind: str, environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    size = shutil.get_terminal_size()
    small = size.columns < SMALLEST[0] or size.lines < SMALLEST[1]
    yield DoctorFinding(
        "cockpit",
        State.WARNING if small else State.OK,
        f"TERM {kind}, {size.columns} columns by {size.lines} lines",
        f"below {SMALLEST[0]} by {SMALLEST[1]} parts of the screens are cut" if small else "",
    )
    if environ.get("NO_COLOR"):
        yield note("colours", "NO_COLOR is set", "the cockpit draws without colours")
    elif (number := colours(environ)) > 256:
        yield ok("colours", "16 million")
    elif number == 256:
        yield ok("colours", "256", "COLORTERM=truecolor gives more, where the terminal can")
    else:
        yield note("colours", "16", "TERM=xterm-256color or tmux-256color gives more")
