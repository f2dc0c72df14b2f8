"""The command line of a benchmark with few words."""

from __future__ import annotations

import sys


def arguments(doc: str | None) -> list[str]:
    """Return the words of the command line; with `-h` or `--help`, print the benchmark's docstring and exit."""
    words = sys.argv[1:]
    if {"-h", "--help"} & set(words):
        print(doc)  # noqa: T201
        sys.exit()
    return words
