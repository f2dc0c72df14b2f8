"""What host copies put together in one call: moving elements is the kernels' work, whatever a kernel does to them after."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from . import shadow

PART_COPIES = 64
"""Host copies into or out of parts of a storage, in one call: more of them move elements."""
MOVED_BYTES = 16
MOVED_PARTS = 256
"""What host copies put together is remembered in parts of so many bytes and more, and so many of them."""


class HostCopies:
    """Of one call."""

    def __init__(self, given: tuple[bytes, ...] = ()) -> None:
        """`given` are the inputs' elements: what a copy leaves as it was is not moved."""
        self._given = given
        self._moved: set[bytes] = set()
        self._copied_to: set[int] = set()
        self._parts = 0

    def add(self, number: int, *, part: bool) -> bool:
        """A host operator copied to a storage; whether there are too many by now that took or set a `part` of one."""
        self._copied_to.add(number)
        self._parts += part
        return self._parts > PART_COPIES

    def look(self, storages: Mapping[int, torch.UntypedStorage], shadows: shadow.Shadows) -> None:
        """What copies have put together by now, before a kernel may store it."""
        for number in self._copied_to:
            storage = storages.get(number)
            if storage is not None and len(self._moved) < MOVED_PARTS:
                kept = shadows.where(number, shadow.MOVED).numpy()
                self._moved.add(flat(storage).cpu().numpy()[kept].tobytes())
        self._copied_to = set()

    def held(self, output: bytes) -> bool:
        """Whether they held more than half of an output, in its order, before a kernel stored it."""
        found = 0
        for moved in self._moved:
            if (
                len(moved) >= MOVED_BYTES
                and not any(moved in given for given in self._given)
                and moved in output
            ):
                found += len(moved)
        return 2 * found > len(output)


def flat(storage: torch.UntypedStorage) -> torch.Tensor:
    """A storage's bytes, in place."""
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


def elements_of(tensor: torch.Tensor) -> bytes:
    """The bytes of a contiguous tensor's elements."""
    if tensor.numel() == 0:
        return b""
    return bytes(tensor.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
