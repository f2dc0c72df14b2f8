"""Where each byte of memory came from, beside the memory itself: what a replay knows that no value shows."""

from __future__ import annotations

import torch

from harness.wire.records import View

UNWRITTEN = 0
HOST = 1
"""Contents that entered from Python, or that an import left."""
MOVED = 2
"""Copied from an input by host operators, without passing a kernel."""
FILLED = 3
OPERATED = 4
"""Computed by an operator that the task allows."""
ORIGINAL = 5
STORED = 6
NAMES = {
    UNWRITTEN: "unwritten", HOST: "host", MOVED: "moved", FILLED: "filled", OPERATED: "operated", ORIGINAL: "original",
    STORED: "stored",
}  # fmt: skip


class Shadows:
    """A mark a byte of each storage. An element has the lowest mark of its bytes."""

    def __init__(self) -> None:
        self._marks: dict[int, torch.Tensor] = {}

    def add(self, storage: int, size_bytes: int, mark: int) -> None:
        """A storage appears, all of it marked alike."""
        self._marks[storage] = torch.full((size_bytes,), mark, dtype=torch.uint8)

    def store(self, storage: int, first_byte: int, written: torch.Tensor) -> None:
        """A kernel stored the bytes from `first_byte` on for which `written` is not zero."""
        here = self._marks[storage][first_byte : first_byte + written.numel()]
        here[written != 0] = STORED

    def fill(self, view: View, item_bytes: int, mark: int) -> None:
        """Every element of a view has this mark now."""
        if 0 not in view.shape:
            bytes_of(self._marks[view.storage], view, item_bytes).fill_(mark)

    def copy(self, target: View, target_bytes: int, source: View, source_bytes: int) -> None:
        """A host operator copied `source` to `target`, broadcast as torch does."""
        if 0 in target.shape:
            return
        marks = self.elements(source, source_bytes)
        marks = torch.where(marks == ORIGINAL, MOVED, marks)
        found = bytes_of(self._marks[target.storage], target, target_bytes)
        found[...] = marks.expand(target.shape).unsqueeze(-1)

    def elements(self, view: View, item_bytes: int) -> torch.Tensor:
        """The mark of each element of a view."""
        if 0 in view.shape:
            return torch.empty(view.shape, dtype=torch.uint8)
        return bytes_of(self._marks[view.storage], view, item_bytes).amin(dim=-1)

    def count(self, view: View, item_bytes: int) -> dict[str, int]:
        """How many elements have which mark, by its name."""
        found = torch.bincount(self.elements(view, item_bytes).reshape(-1), minlength=len(NAMES)).tolist()
        return {name: found[mark] for mark, name in NAMES.items() if found[mark]}

    def has(self, storage: int, mark: int) -> bool:
        """Whether any byte of a storage has a mark."""
        return bool((self._marks[storage] == mark).any())


def bytes_of(marks: torch.Tensor, view: View, item_bytes: int) -> torch.Tensor:
    """Of marks for all bytes of a storage those of a view, the bytes of an element along the last axis."""
    return marks.as_strided(
        (*view.shape, item_bytes),
        (*(stride * item_bytes for stride in view.strides), 1),
        view.offset * item_bytes,
    )
