"""Counts the bytes that a recorded call must move: what its reference reads of the arguments, and what it changes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from harness.wire.calls import operators
from harness.wire.calls.tensors import TensorSpec
from harness.wire.messages.script import RecordedOutput
from harness.worker.compiler.ttir_reads import arguments_read
from harness.worker.interpreter.traffic import Observation
from harness.worker.kit.arena import extent, span_bytes
from harness.worker.recording.expressions import tensors_of

from . import on_gpu

SECTOR_BYTES = 32
"""Least memory that GPUs write at once."""
NEGLIGIBLE = 0.1
"""Share of all bytes up to which it does not matter that a part is not known."""
_OVERWRITING = frozenset(
    {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_", "exponential_"}
)
"""Operators that write a tensor without reading it."""
_CHOOSING = ("index", "gather", "scatter", "embedding", "take", "masked_s", "nll_loss", "searchsorted")
"""Beginnings of names of operators that read a part of their first tensor, as other tensors say."""

_PRODUCTS = frozenset({
    "mm", "addmm", "bmm", "baddbmm", "addbmm", "_int_mm", "_scaled_mm", "convolution", "convolution_overrideable",
})  # fmt: skip
"""Operators that multiply matrices; attention too, by the beginning of its name."""
_ATTENTION = "scaled_dot_product"


class ReadBytes:
    """Bytes that a call reads of each watched tensor, each byte once; and whether it multiplies matrices."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        self._watched = [tensor for tensor in tensors if tensor.numel()]
        self._certain = [0] * len(self._watched)
        self._possible = [0] * len(self._watched)
        """Bytes that are read for certain, and bytes that may be, of each watched tensor."""
        self._is_clear = True
        """False after a launch with reads that are not known."""
        self._seen: set[tuple[object, ...]] = set()
        """Views that are counted already."""
        self.multiplies = False
        """The call multiplies matrices, so that its bytes may not be what takes its time."""

    @property
    def total(self) -> int | None:
        """Bytes that the call reads; `None` if they are not known."""
        certain, most = sum(self._certain), sum(map(max, self._certain, self._possible))
        return certain if self._is_clear and most - certain <= NEGLIGIBLE * certain else None

    def note(self, tensor: torch.Tensor, *, whole: bool = True) -> None:
        """Note a read of a tensor that may be a view of watched tensors; without `whole`, a read of any part of it."""
        if tensor.layout is not torch.strided or not tensor.numel():
            return
        counts = self._certain if whole else self._possible
        view = (whole, tensor.dtype, tuple(tensor.shape), *extent(tensor))
        if view in self._seen:
            return
        self._seen.add(view)
        for place in self._places(tensor):
            most = unique_bytes(self._watched[place])
            counts[place] = min(most, counts[place] + unique_bytes(tensor))

    def note_operator(
        self, func: Any, name: str, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> None:
        """Note the tensors that an operator of torch reads; views, allocations and tensors that it overwrites are not read.

        Of an operator that chooses elements, such as `index_select`, the first tensor may be read in part.
        """
        if func.is_view or name in operators.ALLOCATING | operators.FILLING | operators.LOOKING:
            return
        self.multiplies |= name in _PRODUCTS or _ATTENTION in name
        parameters = {parameter.name: parameter for parameter in func._schema.arguments}
        values = dict(zip(parameters, arguments, strict=False)) | dict(named)
        chooses = name.lstrip("_").startswith(_CHOOSING)
        for parameter, value in values.items():
            alias = parameters[parameter].alias_info
            is_written = alias is not None and alias.is_write
            if not (is_written and (name in _OVERWRITING or parameter == "out")):
                for _, tensor in tensors_of(value):
                    self.note(tensor, whole=not chooses)
            chooses = False

    def note_launch(self, ttir: str, arguments: Mapping[str, Any]) -> None:
        """Note what a launch of a compiled kernel reads, by the text of its Triton IR and its arguments by name.

        A launch with reads that the text does not show makes the count of the whole call unknown.
        """
        self.multiplies |= "tt.dot" in ttir
        read = arguments_read(ttir)
        if read is None or not all(name in arguments for name in read):
            self._is_clear = False
            return
        for name, whole in read.items():
            value = arguments[name]
            tensor = getattr(value, "base", value)  # of a tensor descriptor
            if isinstance(tensor, torch.Tensor):
                self.note(tensor, whole=whole)
            else:
                self._is_clear = False

    def note_interpreted(self, observation: Observation) -> None:
        """Note what kernels read in the interpreter, which counts bytes."""
        self.multiplies |= observation.dot_flops > 0
        for place, tensor in enumerate(self._watched):
            count = min(unique_bytes(tensor), observation.read_bytes(tensor))
            self._certain[place] = min(unique_bytes(tensor), self._certain[place] + count)

    def _places(self, tensor: torch.Tensor) -> Iterator[int]:
        """Yield the places of the watched tensors with memory that a tensor overlaps."""
        start, end = extent(tensor)
        for place, watched in enumerate(self._watched):
            first, last = extent(watched)
            if start < last and first < end:
                yield place


@contextmanager
def reads_of_kernels(observation: Any, reads: ReadBytes | None) -> Iterator[None]:
    """Note what the kernels read that the block launches. `observation` watches them."""
    if reads is None:
        yield
    elif isinstance(observation, on_gpu.LaunchCount):
        with on_gpu.noted_launches(reads.note_launch):
            yield
    else:
        yield
        reads.note_interpreted(observation)


def moved_bytes(
    reads: ReadBytes | None, before: Mapping[str, TensorSpec], outputs: Sequence[RecordedOutput]
) -> int | None:
    """Return the bytes that a call reads, returns and changes; `None` if it is not known what it reads."""
    read = reads.total if reads is not None else None
    if read is None:
        return None
    return read + sum(
        changed_bytes(before[output.name].data, output.tensor.data)
        if output.is_input
        else len(output.tensor.data)
        for output in outputs
    )


def changed_bytes(before: bytes, after: bytes) -> int:
    """Return the bytes of the sectors that differ. A kernel that changes a part of a cache must write that part alone."""
    differs = np.frombuffer(before, np.uint8) != np.frombuffer(after, np.uint8)
    differs = np.pad(differs, (0, -differs.size % SECTOR_BYTES))
    sectors = int(np.count_nonzero(differs.reshape(-1, SECTOR_BYTES).any(axis=1)))
    return min(len(after), sectors * SECTOR_BYTES)


def unique_bytes(tensor: torch.Tensor) -> int:
    """Return the bytes of a tensor's elements, those of expanded axes once."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    count = math.prod(size for size, stride in sizes if stride) * tensor.element_size()
    return min(count, span_bytes(tensor))
