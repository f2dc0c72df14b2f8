"""Compares the rows of a large batch with the same rows in a call of their own, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import torch

from harness.cases.call_plan import Step
from harness.cases.judged_case import JudgedCase
from harness.cases.size_axes import ranges_of
from harness.wire.calls.tensors import Scalar, TensorSpec
from harness.wire.results.served_calls import BatchRows
from harness.worker.kit.arena import Value
from harness.worker.oracle.caller import Run
from harness.worker.oracle.problem import BadProblem, Inputs, Problem
from harness.worker.oracle.vault import Given
from suites.task import Case, Task

_CLOSE = 1e-5
"""Share of an output's largest value. If the oracle's answers for some rows differ by more, its rows depend on each other."""
_NO_MEMORY = "too little memory"
_NO_BATCH = "no size of the task's cases is a batch, whose rows the reference computes one by one"


class _NoBatch(Exception):
    """The axis is no batch."""


class _Part(NamedTuple):
    """Some rows of a case's inputs along one axis, as a case of their own."""

    step: Step
    values: Given
    axis: str
    rows: int
    """Size of the axis in the part."""
    all_rows: int
    """Size of the axis in the whole case."""
    first: int
    """Place of the part's first row in the whole case."""


def compare_batch_rows(
    task: Task,
    problem: Problem,
    steps: Sequence[Step],
    values_of: Callable[[Step], Given],
    call: Callable[[Step, Given], Run],
) -> tuple[BatchRows, ...]:
    """Call cases of `steps` with all rows and with few of them: of each dtype the largest case that can be split.

    An axis is a batch if the task allows the smaller size and each input changes along one dimension at most. The oracle's answer
    for the rows alone must equal its rows for the whole batch.
    """
    if task.script is not None:
        return (BatchRows(why_not="the calls of a recorded task cannot be split"),)
    compared: dict[str, BatchRows] = {}
    why_not = _NO_BATCH
    for step in sorted(steps, key=lambda step: -math.prod(step.case.case.cpu.values())):
        case = step.case.case
        whole = values_of(step)
        try:
            part = None if case.dtype in compared else next(_parts(task, problem, step, whole), None)
        except torch.OutOfMemoryError:
            why_not = _NO_MEMORY
            continue
        if part is None:
            continue
        many, few = call(step, whole), call(part.step, part.values)
        same = all(
            _same_bits(many.output(number), few.output(number), part) for number in range(len(whole.expected))
        )
        compared[case.dtype] = BatchRows(case.name, part.axis, part.rows, part.all_rows, same_bits=same)
    return tuple(compared.values()) or (BatchRows(why_not=why_not),)


def _parts(task: Task, problem: Problem, step: Step, whole: Given) -> Iterator[_Part]:
    """Yield a part of a case for each axis that is a batch: the fewest rows that a kernel must accept, from the middle.

    An axis is left out if its rows depend on each other, or if the task's code refuses the smaller size.
    """
    case = step.case.case
    for axis, size in case.cpu.items():
        rows = _least(task, case, axis)
        if not 0 < rows < size:
            continue
        sizes = case.cpu | {axis: rows}
        few = msgspec.structs.replace(case, name=f"{case.name}, {axis}={rows}", cpu=sizes, gpu=sizes)
        first = (size - rows) // 2
        try:
            part = _split(problem, few, whole, size, rows, first)
        except (_NoBatch, BadProblem):
            continue
        yield _Part(Step(part.case, step.place), part, axis, rows, size, first)


def _least(task: Task, case: Case, axis: str) -> int:
    """Return the smallest size that a kernel must accept beside the other sizes of the case."""
    allowed = ranges_of(task)[axis]
    if allowed.vary:
        return -(-max(allowed.low, 1) // allowed.step) * allowed.step
    cases = [shown for shown in task.open_cases if {**shown.cpu, axis: case.cpu[axis]} == case.cpu]
    return min((shown.cpu[axis] for shown in cases), default=case.cpu[axis])


def _split(problem: Problem, few: Case, whole: Given, size: int, rows: int, first: int) -> Given:
    """Return the inputs of the rows alone with the oracle's answer. Raises `_NoBatch`."""
    (arguments,) = problem.specifications((few,)).values()
    if list(arguments) != list(whole.inputs):
        raise _NoBatch
    inputs: Inputs = {
        name: _part_of(whole.inputs[name], wanted, size, rows, first) for name, wanted in arguments.items()
    }
    drawn = problem.inputs(few, 0, "batch rows")
    if any(_names_other_rows(value, drawn[name], rows) for name, value in inputs.items()):
        raise _NoBatch
    alone, plain = problem.oracle(few, inputs), problem.plain
    for expected, answer in zip(whole.expected, alone, strict=True):
        dimension = _dimension(expected.shape, answer.shape, size, rows)
        if not _are_close(expected.narrow(dimension, first, rows), answer):
            raise _NoBatch
    return Given(problem, JudgedCase(few), inputs, alone, plain)


def _part_of(value: Value, wanted: TensorSpec | Scalar, size: int, rows: int, first: int) -> Value:
    """Return the rows of an input, or the input if the batch does not change it. Raises `_NoBatch`."""
    if isinstance(value, torch.Tensor) and isinstance(wanted, TensorSpec):
        if wanted.shape == tuple(value.shape):
            return value
        dimension = _dimension(value.shape, wanted.shape, size, rows)
        return value.narrow(dimension, first, rows).contiguous().clone()
    if isinstance(value, torch.Tensor) or isinstance(wanted, TensorSpec):
        raise _NoBatch
    if wanted != value and (value, wanted) != (size, rows):
        raise _NoBatch
    return wanted


def _names_other_rows(part: Value, drawn: Value, rows: int) -> bool:
    """Return True if integers of a part count or index more rows than it has, as those that are `drawn` for it do not.

    Offsets of sequences, lengths, permutations and block tables do. A kernel that is its own reference would then write beyond
    its tensors.
    """
    if not (isinstance(part, torch.Tensor) and isinstance(drawn, torch.Tensor)):
        return False
    if part.dtype not in (torch.int32, torch.int64) or not part.numel():
        return False
    return any(
        int(drawn_size) <= rows <= int(size) and int(drawn_size) < int(size)
        for drawn_size, size in ((drawn.max(), part.max()), (drawn.sum(), part.sum()))
    )


def _dimension(many: Sequence[int], few: Sequence[int], size: int, rows: int) -> int:
    """Return the only dimension in which two shapes differ: `many` has `size` there, `few` has `rows`.

    Raises `_NoBatch` if the shapes differ in anything else, or not at all.
    """
    if len(many) == len(few):
        differing = [place for place, sizes in enumerate(zip(many, few, strict=True)) if sizes[0] != sizes[1]]
        if len(differing) == 1 and (many[differing[0]], few[differing[0]]) == (size, rows):
            return differing[0]
    raise _NoBatch


def _are_close(rows: torch.Tensor, alone: torch.Tensor) -> bool:
    """True if the oracle's answer for rows alone is the same as for the batch: floats may differ by `_CLOSE`."""
    if not alone.is_floating_point():
        return torch.equal(rows, alone)
    finite = alone[alone.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    return torch.allclose(rows.double(), alone.double(), rtol=_CLOSE, atol=_CLOSE * largest, equal_nan=True)


def _same_bits(many: torch.Tensor, few: torch.Tensor, part: _Part) -> bool:
    """True if an output of the call with few rows has the same bits as these rows in the output of the call with all rows.

    Also false if the shapes do not differ in the number of rows alone. The oracle's outputs do, see `_split`, so a shape of the
    candidate is wrong then.
    """
    try:
        dimension = _dimension(many.shape, few.shape, part.all_rows, part.rows)
    except _NoBatch:
        return False
    rows = many.narrow(dimension, part.first, part.rows)
    return torch.equal(_bytes(rows), _bytes(few))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().flatten().view(torch.uint8)
