"""Plain text output: tables that fit the terminal, safe text, durations and units."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from harness.wire.limits import memory_words
from tests.support.command_line import ROOT
from tui.facts.tables import Column
from tui.facts.vocabulary import duration, money
from tui.print.plain import emit, table


def test_numbers_are_right_aligned_and_names_are_never_cut() -> None:
    page = table([Column("name", keep=True), Column("n", right=True)], [("a" * 120, "5"), ("b", "1,234")])
    assert page.splitlines() == [
        "name" + " " * 116 + "      n",
        "a" * 120 + "      5",
        "b" + " " * 119 + "  1,234",
    ]


def test_printed_text_cannot_control_the_terminal(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    emit(table([Column("text")], [("red\x1b[31m\x07\u202e",)]))
    assert capsysbinary.readouterr().out == b"text\nred\\x1b[31m\\x07\\u202e\n"


def in_terminal(code: str, columns: int) -> list[str]:
    """Return the lines that `code` writes to a terminal of this width."""
    test_end, program_end = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "LINES": "24"}
    done = subprocess.run(
        [sys.executable, "-c", f"from tui.print.plain import *\n{code}"], stdout=program_end, cwd=ROOT,
        env=environ, check=True, timeout=60,
    )  # fmt: skip
    os.close(program_end)
    text = os.read(test_end, 1 << 16).decode()
    os.close(test_end)
    assert done.returncode == 0
    assert "\x1b" not in text
    return text.splitlines()


def test_long_words_are_wrapped_to_fit_the_table() -> None:
    columns = "[Column('name', keep=True), Column('words')]"
    lines = in_terminal(f"emit(table({columns}, [('softmax#1/2', 'word ' * 60)]))", 80)
    assert len(lines) == 6
    assert max(map(len, lines)) <= 80
    assert lines[1].startswith("softmax#1/2  word word")


def test_optional_columns_are_dropped_before_text_is_cut() -> None:
    columns = (
        "[Column('n', right=True), Column('spare', right=True, drop=2), Column('rather', right=True, drop=1)]"
    )
    rows = "[('1' * 30, '2' * 30, '3' * 30)]"
    assert in_terminal(f"emit(table({columns}, {rows}))", 70)[1] == "1" * 30 + "  " + "3" * 30
    assert in_terminal(f"emit(table({columns}, {rows}))", 40)[1] == "1" * 30
    assert (
        len(
            in_terminal(
                f"emit(table({columns[:-1]}, Column('k', keep=True)], [('1', '2', '3', '4' * 90)]))", 40
            )
        )
        > 1
    )


def test_column_of_unknown_values_can_be_hidden() -> None:
    columns = [Column("name"), Column("cost", right=True, if_known=True)]
    assert table(columns, [("a", "-"), ("b", "-")]) == "name\na\nb"
    assert table(columns, [("a", "-"), ("b", "$1.00")]).splitlines()[2] == "b     $1.00"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.42, "0.4 s"), (59.4, "59 s"), (59.7, "1 min 0 s"), (7500, "2 h 5 min"), (None, "-")],
)
def test_durations_have_readable_units(seconds: float | None, shown: str) -> None:
    assert duration(seconds) == shown


def test_sizes_and_amounts_have_units_and_unknown_is_a_dash() -> None:
    assert (memory_words(1536), memory_words(5 << 40), memory_words(None)) == ("1.5 KiB", "5 TiB", "-")
    assert (money(0.0), money(0.0123), money(12.3), money(None)) == ("$0.00", "$0.0123", "$12.30", "-")
