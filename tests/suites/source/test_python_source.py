"""Parser of Python text: safe in threads, and silent about warnings of the text."""

from __future__ import annotations

import gc
import re
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from suites.source.python_source import parse_literal, parse_python, source_lines

SOURCE = "def add(x, y):\n    return [x + y * (a - b) for a, b in zip(x, y)]\n" * 20
PARSER = re.compile(r"\bast\.(parse|PyCF_ONLY_AST)\b")


@pytest.fixture
def switching_collections() -> Iterator[None]:
    """Collect garbage at nearly each allocation, and switch threads in each collection."""

    def switch(phase: str, info: dict[str, int]) -> None:
        time.sleep(0)

    thresholds = gc.get_threshold()
    gc.callbacks.append(switch)
    gc.set_threshold(10)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(switch)


def test_threads_parse_at_the_same_time(switching_collections: None) -> None:
    with ThreadPoolExecutor(4) as pool:
        trees = list(pool.map(parse_python, [SOURCE] * 16))
        values = list(pool.map(parse_literal, ["[1, (2, 3), {4: -5.0}]"] * 64))
    assert {len(tree.body) for tree in trees} == {20}
    assert values == [[1, (2, 3), {4: -5.0}]] * 64


def test_warnings_of_the_text_are_ignored() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parse_python("path = 'C:\\d'").body


@pytest.mark.parametrize("room", ["suites", "harness", "sessions", "engine", "tui"])
def test_code_of_the_parent_process_parses_nowhere_else(room: str) -> None:
    root = Path(__file__).parents[3]
    files = set((root / room).rglob("*.py")) - set((root / "harness" / "worker").rglob("*.py"))
    parsers = [file for file in files if PARSER.search(file.read_text(encoding="utf-8"))]
    assert [file.name for file in parsers] == (["python_source.py"] if room == "suites" else [])


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_lines_are_numbered_as_python_numbers_them(end: str) -> None:
    source = end.join(["'''a\x0cb", "\u2028 \x85'''", "", "x = 1", "y = 2", ""])
    lines = source_lines(source)
    assert len(lines) == 5
    for node in parse_python(source).body[1:]:
        assert lines[node.lineno - 1].startswith("xy"[node.lineno - 4])


def test_text_without_lines_has_none() -> None:
    assert source_lines("") == []
    assert source_lines("\n") == [""]
