"""What lies in storages, and which of them an address is in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch

from harness.wire.records import LOWEST_ADDRESS, Address

NUMPY = torch.Tensor.numpy
"""Before the guest counts who reads: what the recorder reads is not the candidate's doing. Called past torch's modes only,
which would look the method up again."""
WORDS = (torch.int64, torch.uint64)
"""Types of elements that may be addresses."""


DEVICE: Callable[[torch.UntypedStorage], torch.device] = torch.UntypedStorage.device.__get__
"""Where a storage lies, whatever it says in a guest."""


def hide_who_made_them() -> None:
    """From here on storages do not tell those of the judge, which torch did not allocate, from others. Once a process."""
    kind: Any = torch.UntypedStorage
    kind.resizable = lambda storage: True  # noqa: ARG005 -- stands in for a method


def addresses(data: bytes, find: Callable[[int], Address | None]) -> tuple[tuple[int, Address], ...]:
    """The words that are addresses of other memory, by their place in bytes."""
    found = []
    for place, word in enumerate(np.frombuffer(data[: len(data) & -8], dtype=np.int64).tolist()):
        address = find(word) if word >= LOWEST_ADDRESS else None
        if address is not None:
            found.append((place * 8, address))
    return tuple(found)


def holder(address: int, storages: Iterable[torch.UntypedStorage]) -> torch.UntypedStorage | None:
    """The first storage that an integer is an address in."""
    for storage in storages:
        start = storage.data_ptr()
        if start and start <= address < start + max(storage.nbytes(), 1):
            return storage
    return None


def plain_tensors(found: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors among any objects that have memory."""
    for one in found:
        # By type: `isinstance` would ask proxies for their class, and some answer with a warning.
        if issubclass(type(one), torch.Tensor) and one.layout is torch.strided and not one.is_meta:
            yield one


def stored(storage: torch.UntypedStorage) -> bytes:
    """What a storage holds."""
    with torch._C.DisableTorchFunction():
        flat: torch.Tensor = torch.empty(0, dtype=torch.uint8).set_(storage)
        return bytes(NUMPY(flat).tobytes())
