"""What Python read of a call's inputs, and whether a replay that keeps it still proves who computed the answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from harness import limits
from harness.worker.serving.records import HostRead, Record, View, fits
from suites.task import QuantizationTolerance, Task, Tolerance
from suites.tolerances import dtype_of

from . import bounds
from .answers import judged_by
from .problem import Inputs, torch_dtype
from .vault import Given

FEW = 16
"""Fractions that Python may read of a call's inputs, however few there are: scales, thresholds, an element that is looked at."""
SHARE = 64
"""Else one in so many."""


def reads_inputs(record: Record) -> bool:
    """Whether Python read an element of an input."""
    return any(True for _ in _reads(record))


def with_elements_read(record: Record, called: Given, other: Given) -> Given:
    """`other` with the elements that Python read of `called`, so that host code would go the same way."""
    kept = dict(other.inputs)
    for name, view in _reads(record):
        source, target = called.inputs.get(name), kept.get(name)
        if isinstance(source, torch.Tensor) and isinstance(target, torch.Tensor):
            if target is other.inputs[name]:
                copied = _copied(target)
                kept |= {same: copied for same, value in other.inputs.items() if value is target}
                target = copied
            _copy(view, source, target)
    return Given(other.problem, other.case, kept)


def leaves_the_work(record: Record, task: Task, called: Given, others: Sequence[tuple[Given, Given]]) -> bool:
    """
    Whether the call's answer had to be worked out from what Python did not read.

    `others` are other inputs with what Python read of `called`, and without. What it read may be part of every launch argument,
    so replays with it prove nothing of an element of the outputs whose answer stays the same with it and changes without;
    and little where Python read much of the numbers that are to be computed with.
    """
    read, there = _fractions(record, called.inputs)
    if read > max(FEW, there // SHARE):
        return False
    for number, judged in enumerate(_judged(task, called)):
        before = called.expected[number]
        changes = torch.stack([_differ(before, free.expected[number], judged) for _, free in others]).any(0)
        tried = torch.stack([_differ(before, kept.expected[number], judged) for kept, _ in others]).any(0)
        # Where answers are few, as of a comparison, some stay the same by chance.
        if int((changes & ~tried).sum()) > 2 * int((~changes).sum()):
            return False
    return True


def _reads(record: Record) -> Iterator[tuple[str, View]]:
    """Name of the input and elements, of each reading that an honest record can hold."""
    names = {number: name for name, number in record.inputs.items()}
    for step in record.steps:
        if not isinstance(step, HostRead) or math.prod(step.view.shape) > limits.HOST_ELEMENTS:
            continue
        if step.view.storage in names:
            yield names[step.view.storage], step.view


def _fractions(record: Record, inputs: Inputs) -> tuple[int, int]:
    """How many fractions Python read, and how many there are; of all numbers, where whole ones are the more.

    Few whole numbers beside fractions are lengths, offsets and places, which host code may go by.
    """
    tensors = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    floating = {name: value for name, value in tensors.items() if value.is_floating_point()}
    fractions = sum(value.numel() for value in floating.values())
    whole = sum(value.numel() for value in tensors.values()) - fractions
    counted = floating if fractions >= whole else tensors
    marks = {
        name: torch.zeros(value.untyped_storage().nbytes(), dtype=torch.uint8)
        for name, value in counted.items()
    }
    for name, view in _reads(record):
        item_bytes = torch_dtype(view.dtype).itemsize
        if name in marks and fits(view, item_bytes, marks[name].numel()):
            _bytes(marks[name], view.shape, view.strides, view.offset, item_bytes).fill_(1)
    read = sum(
        int(
            _bytes(
                marks[name], value.shape, value.stride(), int(value.storage_offset()), value.element_size()
            )
            .amax(dim=-1)
            .sum()
        )
        for name, value in counted.items()
        if value.numel()
    )
    return read, sum(value.numel() for value in counted.values())


@dataclass(frozen=True, slots=True)
class _Judged:
    """How an output is judged."""

    dtype: torch.dtype
    tolerance: Tolerance
    quantization: QuantizationTolerance | None
    terms: int


def _judged(task: Task, given: Given) -> Iterator[_Judged]:
    case = given.case.case
    for output in task.outputs:
        tolerance, quantization = judged_by(task, output, given.case)
        terms = bounds.terms_of(tolerance, case.cpu)
        yield _Judged(torch_dtype(dtype_of(output, case)), tolerance, quantization, terms)


def _differ(one: torch.Tensor, other: torch.Tensor, judged: _Judged) -> torch.Tensor:
    """Of each element, whether the answer `one` would be noticed where `other` is right."""
    if not judged.dtype.is_floating_point:
        return one != other
    left, right = one.double(), other.double()
    if judged.quantization is None:
        bound = bounds.allowed(right, judged.dtype, judged.tolerance, terms=judged.terms)
    else:
        bound = judged.quantization.rmse_max * right[right.isfinite()].square().mean().sqrt()
    same = (left == right) | (left.isnan() & right.isnan()) | ((left - right).abs() <= bound)
    return ~same


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in a storage of its own that is laid out alike."""
    storage: torch.UntypedStorage = tensor.untyped_storage().clone()  # type: ignore[no-untyped-call]
    empty = torch.empty(0, dtype=tensor.dtype)
    return empty.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())


def _copy(view: View, source: torch.Tensor, target: torch.Tensor) -> None:
    dtype = torch_dtype(view.dtype)
    size_bytes = min(source.untyped_storage().nbytes(), target.untyped_storage().nbytes())
    if not fits(view, dtype.itemsize, size_bytes):
        return
    parts = [
        torch.empty(0, dtype=dtype).set_(one.untyped_storage(), view.offset, view.shape, view.strides)
        for one in (source, target)
    ]
    parts[1].copy_(parts[0])


def _bytes(
    marks: torch.Tensor, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, item_bytes: int
) -> torch.Tensor:
    """The bytes of a tensor's elements, those of an element along the last axis."""
    return marks.as_strided(
        (*shape, item_bytes), (*(stride * item_bytes for stride in strides), 1), offset * item_bytes
    )
