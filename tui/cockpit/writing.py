"""`O`: an attempt as files in the current folder."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from sessions.state.state import AttemptState
from tui.judgement import page


def write_attempt(attempt: AttemptState, folder: Path) -> list[Path]:
    """Write an attempt's kernel, and its evaluation as text, to new files; returns them.

    An existing file is never replaced. Raises `OSError` if the folder cannot be written.
    """
    stem = attempt.attempt.replace("#", "-").replace("/", "-")
    texts = {
        f"{stem}.py": attempt.source or "",
        f"{stem}.txt": page(attempt.evaluation) if attempt.evaluation is not None else "",
    }
    return [write_new(folder / name, text) for name, text in texts.items() if text]


def write_new(path: Path, text: str) -> Path:
    """Write a text to this file, or to one with a number before its suffix if it exists; returns the file."""
    for number in count(2):
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text if text.endswith("\n") else f"{text}\n")
        except FileExistsError:
            path = path.with_stem(f"{path.stem.rpartition('~')[0] or path.stem}~{number}")
        else:
            return path
    raise AssertionError("there is always a further number")
