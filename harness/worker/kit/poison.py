"""Fills fresh memory with values that make a wrong result visible if a kernel reads memory before it is written."""

from __future__ import annotations

from enum import IntEnum
from functools import cache

import torch

INTEGER = 0x5A
PERIOD = 4096
"""Elements after which `Poison.RESULTS` repeats."""


class Poison(IntEnum):
    """Kind of value that fills fresh memory during a call.

    A kernel that computes only where it finds NaN fails in calls with a different kind.
    """

    NAN = 0
    """NaN; large integers."""
    LARGE = 1
    """A quarter of the largest finite value."""
    RESULTS = 2
    """Values like the results of an earlier call: from a normal distribution; integers from 0 to 7."""


KINDS = (Poison.NAN, Poison.LARGE, Poison.NAN, Poison.RESULTS)
"""A random number of each call selects the kind. NaN is twice as frequent because it shows in the most results."""


def poison(tensor: torch.Tensor, kind: Poison = Poison.NAN) -> None:
    """Fill the tensor with poison; for an integer dtype, fill its whole storage."""
    if tensor.numel() == 0:
        return
    has_nan = tensor.is_floating_point() or tensor.is_complex()
    if kind is Poison.RESULTS:
        _look_like_results(tensor)
    elif has_nan and kind is Poison.LARGE:
        tensor.fill_(torch.finfo(tensor.dtype).max / 4)
    elif has_nan:
        tensor.fill_(float("nan"))
    else:
        # The storage, because a tensor without dimensions or with gaps cannot be viewed as bytes.
        memory = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
        byte = 0x7F if kind is Poison.LARGE else INTEGER
        memory.fill_(byte if tensor.dtype is not torch.bool else 1)


def open_elements(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor | None:
    """Which elements of a result depend on the kind of poison: they differ by more than the order of sums can explain.

    If there are any, elements that are NaN with both kinds may do so too. `None` if there are none.
    """
    if first.shape != second.shape:
        return torch.ones_like(first, dtype=torch.bool)
    if not first.is_floating_point():
        apart = first != second
        return apart if bool(apart.any()) else None
    pair = first.double(), second.double()
    if torch.allclose(*pair, rtol=0.1, atol=0.1, equal_nan=True):
        return None
    return ~torch.isclose(*pair, rtol=0.1, atol=0.1)


def _look_like_results(tensor: torch.Tensor) -> None:
    """Fill the whole storage of a tensor with values that look like results, see `Poison.RESULTS`."""
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
