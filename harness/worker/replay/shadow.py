"""Marks for each byte of a replay's memory that say where its value came from."""

from __future__ import annotations

import torch

from harness.wire.calls.records import View

UNWRITTEN = 0
HOST = 1
"""From Python, or from before the call."""
MOVED = 2
"""Copied from an input by host operators, past the kernels."""
FILLED = 3
OPERATED = 4
"""Computed by an operator that the task allows."""
ORIGINAL = 5
"""An input of the call."""
STORED = 6
"""Stored by a kernel."""
NAMES = {
    UNWRITTEN: "unwritten", HOST: "host", MOVED: "moved", FILLED: "filled", OPERATED: "operated", ORIGINAL: "original",
    STORED: "stored",
}  # fmt: skip


class Shadows:
    """One mark per byte of each storage. The mark of an element is the lowest mark of its bytes."""

    def __init__(self) -> None:
        self._marks: dict[int, torch.Tensor] = {}

    def add(self, storage: int, size_bytes: int, mark: int) -> None:
        """Add a storage with the same mark for all of its bytes."""
        self._marks[storage] = torch.full((size_bytes,), mark, dtype=torch.uint8)

    def store(self, storage: int, first_byte: int, written: torch.Tensor) -> None:
        """Mark the bytes after `first_byte` that a kernel stored: those with `written` not 0."""
        marks = self._marks[storage][first_byte : first_byte + written.numel()]
        marks[written != 0] = STORED

    def fill(self, view: View, item_bytes: int, mark: int) -> None:
        """Mark all elements of a view."""
        if 0 not in view.shape:
            bytes_of(self._marks[view.storage], view, item_bytes).fill_(mark)

    def copy(self, target: View, target_bytes: int, source: View, source_bytes: int) -> None:
        """Copy marks as a host operator copied `source` to `target`, with broadcasting."""
        if 0 in target.shape:
            return
        marks = self.elements(source, source_bytes)
        marks = torch.where(marks == ORIGINAL, MOVED, marks)
        target_marks = bytes_of(self._marks[target.storage], target, target_bytes)
        target_marks[...] = marks.expand(target.shape).unsqueeze(-1)

    def elements(self, view: View, item_bytes: int) -> torch.Tensor:
        """The mark of each element of a view."""
        if 0 in view.shape:
            return torch.empty(view.shape, dtype=torch.uint8)
        return bytes_of(self._marks[view.storage], view, item_bytes).amin(dim=-1)

    def count(self, view: View, item_bytes: int) -> dict[str, int]:
        """Number of elements with each mark, by the name of the mark."""
        counts = torch.bincount(self.elements(view, item_bytes).reshape(-1), minlength=len(NAMES)).tolist()
        return {name: counts[mark] for mark, name in NAMES.items() if counts[mark]}

    def has(self, storage: int, mark: int) -> bool:
        """Whether any byte of a storage has a mark."""
        return bool((self._marks[storage] == mark).any())


def bytes_of(marks: torch.Tensor, view: View, item_bytes: int) -> torch.Tensor:
    """The marks of a view's bytes, the bytes of each element along the last axis; `marks` are those of the whole storage."""
    return marks.as_strided(
        (*view.shape, item_bytes),
        (*(stride * item_bytes for stride in view.strides), 1),
        view.offset * item_bytes,
    )
