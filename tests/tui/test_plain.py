from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from tests.tui.running import ROOT
from tui.plain import Column, duration, emit, money, size, table


def test_numbers_stand_on_the_right_and_names_are_never_cut() -> None:
    page = table([Column("name", keep=True), Column("n", right=True)], [("a" * 120, "5"), ("b", "1,234")])
    assert page.splitlines() == [
        "name" + " " * 116 + "      n",
        "a" * 120 + "      5",
        "b" + " " * 119 + "  1,234",
    ]


def test_what_candidates_print_cannot_steer_the_terminal(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    emit(table([Column("text")], [("red\x1b[31m\x07\u202e",)]))
    assert capsysbinary.readouterr().out == b"text\nred\\x1b[31m\\x07\\u202e\n"


def test_a_table_fits_a_terminal_of_80_columns() -> None:
    code = (
        "from tui.plain import *;"
        "emit(table([Column('name', keep=True), Column('words')], [('softmax#1/2', 'word ' * 60)]))"
    )
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    subprocess.run([sys.executable, "-c", code], stdout=theirs, cwd=ROOT, env=environ, check=True, timeout=60)
    os.close(theirs)
    lines = os.read(ours, 1 << 16).decode().splitlines()
    os.close(ours)
    assert len(lines) > 4
    assert max(map(len, lines)) <= 80
    assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.42, "0.4 s"), (59.4, "59 s"), (59.7, "1 min 0 s"), (7500, "2 h 5 min"), (None, "-")],
)
def test_durations(seconds: float | None, shown: str) -> None:
    assert duration(seconds) == shown


def test_units_and_unknowns() -> None:
    assert (size(1536), size(5 << 40), size(None)) == ("1.5 KiB", "5.0 TiB", "-")
    assert (money(0.0), money(0.0123), money(12.3), money(None)) == ("$0.00", "$0.0123", "$12.30", "-")
