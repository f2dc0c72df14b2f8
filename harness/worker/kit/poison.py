"""Poison for memory that nobody wrote: reading it shows in the result."""

from __future__ import annotations

from enum import IntEnum
from functools import cache

import torch

INTEGER = 0x5A
LEAST, MOST = 0x3C, 0x77
"""Bytes between them make finite numbers of every type that are not small, repeated."""
PERIOD = 4096
"""Elements after which values that look like results repeat."""


class Poison(IntEnum):
    """
    What fresh memory holds in a call.

    A kernel that computes only where it finds NaN is wrong in calls with another kind.
    """

    NAN = 0
    """NaN; large integers."""
    LARGE = 1
    """A quarter of the largest finite value."""
    RESULTS = 2
    """Values that look like results of a call before: normal ones; integers from 0 to 7."""


KINDS = (Poison.NAN, Poison.LARGE, Poison.NAN, Poison.RESULTS)
"""By a number that is drawn for each call. NaN shows in more results than the others, so it is twice as frequent."""


def poison(tensor: torch.Tensor, kind: Poison = Poison.NAN) -> None:
    """Fill the tensor, and of whole numbers its whole storage, with poison of a kind."""
    if tensor.numel() == 0:
        return
    fraction = tensor.is_floating_point() or tensor.is_complex()
    if kind is Poison.RESULTS:
        _look_like_results(tensor)
    elif fraction and kind is Poison.LARGE:
        tensor.fill_(torch.finfo(tensor.dtype).max / 4)
    elif fraction:
        tensor.fill_(float("nan"))
    else:
        # By the storage: bytes of a tensor without dimensions, or with other strides, cannot be viewed.
        memory = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
        byte = 0x7F if kind is Poison.LARGE else INTEGER
        memory.fill_(byte if tensor.dtype is not torch.bool else 1)


def _look_like_results(tensor: torch.Tensor) -> None:
    size = tensor.untyped_storage().nbytes() // tensor.element_size()
    memory = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(
        tensor.untyped_storage(), 0, (size,), (1,)
    )
    values = _results(tensor.dtype, tensor.device)
    whole = size // PERIOD * PERIOD
    memory[:whole].view(-1, PERIOD).copy_(values.expand(size // PERIOD, PERIOD))
    memory[whole:].copy_(values[: size - whole])


@cache
def _results(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(PERIOD, generator=generator).to(device=device, dtype=dtype)
    return torch.randint(8, (PERIOD,), generator=generator).to(device=device, dtype=dtype)


def other(memory: torch.Tensor, device: int) -> None:
    """What such memory holds on another device, of many: zeros on some, on the rest one byte throughout that makes finite numbers."""
    byte = 0 if device % 4 == 0 else LEAST + device // 4 % (MOST - LEAST + 1)
    whole = torch.empty(0, dtype=torch.uint8, device=memory.device).set_(memory.untyped_storage())
    whole.fill_(byte if memory.dtype is not torch.bool else byte & 1)
