"""Protects kept results: an interrupted write costs its own line, and neither the lines before nor the line after it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from engine.predictions.results import ResultLines


class Row(msgspec.Struct):
    name: str
    value: int


def rows(file: Path) -> ResultLines[Row]:
    return ResultLines(file, Row, lambda row: row.name)


def test_results_around_a_line_that_was_cut_off_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "suite" / "rows.jsonl"
    rows(file).add(Row("a", 1))
    with file.open("ab") as torn:
        torn.write(b'{"name":"b","va')
    rows(file).add(Row("c", 3))
    again = rows(file)
    assert (again.find("a"), again.find("b"), again.find("c")) == (Row("a", 1), None, Row("c", 3))


def test_last_result_of_a_key_counts(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows(file).add(Row("a", 1))
    rows(file).add(Row("a", 2))
    assert rows(file).find("a") == Row("a", 2)
