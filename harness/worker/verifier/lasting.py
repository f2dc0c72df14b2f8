"""Memory that outlives calls: which of its bytes hold what a call made of its inputs, so that no later call may read them.

Workspaces are stored to before they are read, tables are made of no input, locks are put back to what they were. What else is
carried from call to call lets an answer hang on the calls before: results that are kept, hashes to know them by, counts of calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from harness.worker.interpreter.past import INPUTS, NOTHING, STATE, Past
from harness.worker.serving.records import View

from .shadow import bytes_of

Bytes = NDArray[np.uint8]


@dataclass(slots=True)
class _Memory:
    """One storage."""

    size_bytes: int
    past: Past = field(default_factory=Past)
    stored: Bytes | None = None
    """Of each byte, of what the launch or copy was made that stored it last in this call (`past`); `None`: nothing stored any."""
    before: Bytes | None = None
    """What was there before anything made of inputs was stored, and where that is known."""
    known: Bytes | None = None
    by_kernels: bool = False
    at_first: tuple[int, Bytes | None, Bytes | None] = (NOTHING, None, None)
    """Level, what was left and contents when the call began."""

    def remember(self, where: Bytes, now: Bytes) -> None:
        """What is there now, where `where` is 1, is made of no input."""
        if self.before is None or self.known is None:
            self.before, self.known = now.copy(), np.zeros(self.size_bytes, dtype=np.uint8)
        elif self.before is self.at_first[2]:
            self.before = self.before.copy()
        chosen = where.view(np.bool_)
        np.copyto(self.before, now, where=chosen)
        np.copyto(self.known, 1, where=chosen)

    def mark(self, where: Bytes, level: int) -> None:
        """What was stored where `where` is 1 is made of what `level` says."""
        if self.stored is None:
            self.stored = np.zeros(self.size_bytes, dtype=np.uint8)
        np.copyto(self.stored, level, where=where.view(np.bool_))
        self.past.level = max(self.past.level, level)

    def begin(self, now: Bytes) -> None:
        """The next call begins, with the memory as it is now."""
        left = np.zeros(self.size_bytes, dtype=bool) if self.past.left is None else self.past.left != 0
        if self.stored is not None:
            known = np.zeros(self.size_bytes, dtype=bool) if self.known is None else self.known != 0
            same = known & (now == self.before)
            changed = known & ~same
            was = np.False_ if self.at_first[1] is None else self.at_first[1] != 0
            left |= (self.stored == INPUTS) & (~same | was)
            left |= (self.stored == STATE) & (changed | was)
        level = INPUTS if left.any() else STATE if self.by_kernels else NOTHING
        self.at_first = (level, left.astype(np.uint8) if left.any() else None, now)
        self.known = np.ones(self.size_bytes, dtype=np.uint8)
        self.rewind()

    def rewind(self) -> None:
        """The call begins, for the first time or once more."""
        level, left, self.before = self.at_first
        self.past.level, self.past.left = level, None if left is None else left.copy()
        self.stored = None


class Lasting:
    """All storages of a candidate."""

    def __init__(self) -> None:
        self._memory: dict[int, _Memory] = {}

    def add(self, number: int, size_bytes: int) -> Past:
        """A storage appears."""
        self._memory[number] = _Memory(size_bytes)
        return self._memory[number].past

    def forget(self, number: int) -> None:
        """A storage is gone."""
        self._memory.pop(number, None)

    def past(self, number: int) -> Past:
        """What is known of a storage."""
        return self._memory[number].past

    def begin(self, contents: Mapping[int, bytes]) -> None:
        """A call begins; these storages are there already, and hold this."""
        for number, data in contents.items():
            self._memory[number].begin(np.frombuffer(data, dtype=np.uint8))

    def rewind(self, numbers: Iterable[int]) -> None:
        """The same call begins once more; these storages were there when it began."""
        self._memory = {number: self._memory[number] for number in numbers}
        for memory in self._memory.values():
            memory.rewind()

    def hold(self, number: int, now: Bytes) -> None:
        """A storage holds this, which came from Python."""
        self._memory[number].remember(np.ones(now.size, dtype=np.uint8), now)

    def store(self, number: int, first_byte: int, written: Bytes, level: int, now: Bytes) -> None:
        """A launch stored the bytes from `first_byte` on for which `written` is 1, and has read what `level` says."""
        memory = self._memory[number]
        whole = written
        if written.size != memory.size_bytes:
            whole = np.zeros(memory.size_bytes, dtype=np.uint8)
            whole[first_byte : first_byte + written.size] = written
        memory.mark(whole, level)
        memory.by_kernels = True
        if level == NOTHING:
            memory.remember(whole, now)

    def write(self, view: View, item_bytes: int, sources: Iterable[View], now: Bytes) -> None:
        """A host operator wrote the elements of a view, from those of `sources`."""
        if 0 in view.shape:
            return
        memory = self._memory[view.storage]
        where = np.zeros(memory.size_bytes, dtype=np.uint8)
        bytes_of(torch.from_numpy(where), view, item_bytes).fill_(1)
        if memory.past.left is not None:
            np.copyto(memory.past.left, 0, where=where.view(np.bool_))
        level = max((self._memory[source.storage].past.level for source in sources), default=NOTHING)
        memory.mark(where, level)
        if level == NOTHING:
            memory.remember(where, now)

    def copy(self, view: View, item_bytes: int, source: View, source_bytes: int) -> None:
        """What an earlier call left in `source` is now in `view` too, broadcast as torch does; `write` comes first."""
        if 0 in view.shape or not self.is_left(source, source_bytes):
            return
        here, there = self._memory[view.storage].past, self._memory[source.storage].past
        assert there.left is not None
        if here.left is None:
            here.left = np.zeros(self._memory[view.storage].size_bytes, dtype=np.uint8)
        marks = bytes_of(torch.from_numpy(there.left), source, source_bytes).amax(dim=-1)
        found = bytes_of(torch.from_numpy(here.left), view, item_bytes)
        found[...] = marks.expand(view.shape).unsqueeze(-1)

    def is_left(self, view: View, item_bytes: int) -> bool:
        """Whether a view holds anything that an earlier call made of its inputs."""
        left = self._memory[view.storage].past.left
        if left is None or 0 in view.shape:
            return False
        return bool(bytes_of(torch.from_numpy(left), view, item_bytes).any())
