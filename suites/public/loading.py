"""The object that every loader gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from suites.public.clone import Clone
from suites.public.instructions import Instruction
from suites.public.task import SuiteKind


@dataclass(frozen=True)
class Loading:
    """One clone to load."""

    clone: Clone
    companions: Mapping[SuiteKind, Path]
    """Folders of other clones: they give what this clone lacks."""
    instruction: Instruction
    notes: list[str] = field(default_factory=list)
    """Lines about what is missing or damaged; loaders add to them."""

    def note(self, text: str) -> None:
        """Add a line about the clone."""
        self.notes.append(f"{self.clone.name}: {text}")
