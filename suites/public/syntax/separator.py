"""Splits files that hold a reference and its test: TritonBench, ROCm Triton Benchmark, KernelBench-X."""

from __future__ import annotations

from pathlib import Path

from suites.public.task import Part

SEPARATOR = "#" * 146


def split_file(path: Path) -> tuple[Part, Part] | None:
    """Return the reference and the test of a file; `None` if it does not have exactly one separator line.

    Raises `OSError` or `UnicodeDecodeError` if the file cannot be read.
    """
    lines = path.read_text(encoding="utf-8").split("\n")
    places = [number for number, line in enumerate(lines) if line.strip() == SEPARATOR]
    if len(places) != 1:
        return None
    place = places[0]
    reference = Part(path, "\n".join(lines[:place]))
    return reference, Part(path, "\n".join(lines[place + 1 :]), place + 2)
