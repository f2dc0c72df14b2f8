"""Protects the walk of docs/architecture.md: each file that it names exists, and holds the function that follows it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILE = r"`((?:engine|harness|sessions|suites|tui)/[^`\n]*)`(?: `([A-Za-z_.]+)`)?"


def test_each_file_and_function_of_the_walk_exists() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    walk = page.partition("Twelve steps")[2].partition("\n## ")[0]
    places = re.findall(FILE, walk)
    assert len(places) > 20
    for path, name in places:
        assert (ROOT / path).exists(), path
        assert not name or name in names_of(ROOT / path), f"{path} has no {name}"


def names_of(file: Path) -> set[str]:
    """Return the functions and classes of a module, and methods as `Class.method`."""
    names = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{member.name}" for member in node.body if hasattr(member, "name")}
    return names
