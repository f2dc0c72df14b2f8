"""The object that every loader gets, and readers of the JSON files and descriptions of a clone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from suites.public.clone import Clone
from suites.public.task import Part, PublicTask, SuiteKind

Row = TypeVar("Row")


@dataclass(frozen=True)
class Loading:
    """One clone to load."""

    clone: Clone
    companions: Mapping[SuiteKind, Path]
    """Folders of other clones: they give what this clone lacks."""
    notes: list[str] = field(default_factory=list)
    """Lines about what is missing or damaged; loaders add to them."""

    def note(self, text: str) -> None:
        """Add a line about the clone."""
        self.notes.append(f"{self.clone.name}: {text}")


class DescribedRow(msgspec.Struct):
    """The keys of a task that the lists of TritonBench-T and KernelBench-X share."""

    file: str
    func_inputs: str = ""
    description: str = ""
    math: str = ""
    other: str = ""
    difficulty: int | None = None

    @property
    def instruction(self) -> str:
        """The description as headed paragraphs, as TritonBench-T writes them; empty paragraphs are left out."""
        texts = {
            "Functional description": self.description,
            "Wrapper entry information": self.func_inputs,
            "Math": self.math,
            "Other": self.other,
        }
        return "\n".join(f"{heading}: {text.strip()}" for heading, text in texts.items() if text.strip())


def with_performance(task: PublicTask, folder: str) -> PublicTask:
    """Return the task with the source of its inputs for timing, from this folder of its clone; without, if there is none."""
    path = task.folder / folder / f"{Path(task.file).stem}_perf.py"
    try:
        return msgspec.structs.replace(task, performance=Part(path, path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError):
        return task


def read_rows(loading: Loading, path: Path, row: type[Row]) -> list[Row]:
    """Return the objects of a JSON array. If it cannot be read, return none and add a note."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[row])  # type: ignore[valid-type]
    except FileNotFoundError:
        loading.note(f"{path} is missing")
    except (OSError, msgspec.DecodeError) as error:
        loading.note(f"{path} cannot be read: {error}")
    return []


def first_sentence(text: str, most: int = 90) -> str:
    """Return the first sentence of a text on one line, cut after `most` characters."""
    line = " ".join(text.split())
    sentence = line.partition(". ")[0].removesuffix(".")
    return sentence if len(sentence) <= most else sentence[: most - 1].rstrip() + "…"
