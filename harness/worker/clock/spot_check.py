"""Checks outputs of timed calls. Finds a kernel that computes correctly while it is judged and skips work while it is timed.

Values that no process has seen go into the timed tensors, and the calls are timed as usual. Then the clock asks for a random
part of each output, which the candidate cannot predict.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import msgspec
import numpy as np
import torch

from harness.wire.messages.guest import OutputData, Returned
from harness.wire.messages.timer import LEAST_IN_BLOCK, Fetch
from harness.wire.results.evaluation import ErrorReport, Mismatch
from harness.worker.kit import place
from harness.worker.oracle import integrity
from harness.worker.oracle.answers import compare_call, compare_output, judged_by
from harness.worker.oracle.caller import tensor_of
from harness.worker.oracle.comparison import mismatch_wording
from harness.worker.oracle.lines import GuestLied
from harness.worker.oracle.problem import torch_dtype
from harness.worker.oracle.vault import Given
from suites.task import Task
from suites.tolerances import dtype_of

from .case_inputs import CaseInputs
from .lines import TimerLine
from .timed_seat import TimedSeat

MOST_ELEMENTS = 1 << 20
"""Elements of one output to fetch at most."""
LEAST_SIZE = 0.5
"""Share of the output's root mean square that a part must have to be judged alone by the metrics of a quantization."""
WALL_S = 60.0


class SpotCheck:
    """Compares random parts of outputs with the oracle's outputs."""

    def __init__(self, task: Task, inputs: CaseInputs) -> None:
        self._task = task
        self._inputs = inputs
        self._random = random.SystemRandom()
        self.confirmed = 0
        """Calls with correct parts so far."""
        self.written_bytes: dict[str, int] = {}
        """Size of a call's outputs, by case."""

    def find_error(self, seat: TimedSeat, values: Given) -> ErrorReport | None:
        """Sample on new values in the same tensors; the error in the outputs, if any.

        The compared part of an output is put together from pieces of every call. Raises `GuestLied` for a lie.
        """
        link = seat.link
        self._inputs.renew(link, values)
        once = bool(self._task.in_place) or bool(seat.launches)  # a graph makes many calls at once
        seat.block(1 if once else LEAST_IN_BLOCK)
        made = seat.launches or (1 if once else LEAST_IN_BLOCK)
        try:
            return self._compare(link, values, self._random.sample(range(made), made))
        except GuestLied as lie:
            lie.side = link.side
            raise

    def _compare(self, link: TimerLine, values: Given, calls: Sequence[int]) -> ErrorReport | None:
        expected = values.expected
        parts = tuple(self._part(output.numel()) for output in expected)
        returned = link.ask(Fetch(calls=tuple(calls), parts=parts), Returned, wall_s=WALL_S)
        lead = f"case {values.case.case.name}, in a call that was timed: "
        outputs = self._task.outputs_of(values.case.case)
        problem = integrity.structure(returned, outputs) or _misshapen(returned.outputs, expected)
        if problem:
            return ErrorReport(kind="structure", message=lead + problem)
        if shared := integrity.aliased(lead, returned, self._task, outputs):
            return shared
        for number, (data, part) in enumerate(zip(returned.outputs, parts, strict=True)):
            mismatch = self._mismatch(values, number, data, part)
            if mismatch is not None:
                return mismatch_wording.mismatch(mismatch, "in a call that was timed")
        self.confirmed += len(calls)
        self.written_bytes[values.case.case.name] = sum(
            output.numel() * torch_dtype(data.dtype).itemsize
            for output, data in zip(expected, returned.outputs, strict=True)
        )
        return None

    def _part(self, elements: int) -> tuple[int, int]:
        count = min(elements, MOST_ELEMENTS)
        return self._random.randint(0, elements - count), count

    def _mismatch(
        self, values: Given, number: int, data: OutputData, part: tuple[int, int]
    ) -> Mismatch | None:
        case = values.case.case
        wanted = dtype_of(self._task.outputs_of(case)[number], case)
        start, count = part
        fetched = tensor_of(msgspec.structs.replace(data, shape=(count,)))
        if fetched.dtype != torch_dtype(wanted):
            raise GuestLied(f"an output of dtype {data.dtype} where calls before had {wanted}")
        return find_mismatch(self._task, values, number, place.here(fetched), start, tf32=place.has_tf32())


def find_mismatch(
    task: Task, values: Given, number: int, fetched: torch.Tensor, start: int, *, tf32: bool = False
) -> Mismatch | None:
    """Compare the elements of output `number` from `start` on with the oracle's.

    Tolerances depend on the whole output, so the part is inserted into the oracle's output. Metrics of a quantization are
    judged on the part alone: among right elements, a part of zeros can pass. They are judged on the whole output if the part's
    values are small beside it, because the metrics then allow larger errors.
    """
    case, truth = values.case.case, values.expected[number]
    output = task.outputs_of(case)[number]
    whole = truth.to(fetched.dtype, copy=True).flatten()
    whole[start : start + fetched.numel()] = fetched
    got = values.settled(number, whole.reshape(truth.shape))
    part, right = (tensor.flatten()[start : start + fetched.numel()] for tensor in (got, truth))
    _, quantization = judged_by(task, output, values.case)
    if quantization is None or _size(right) < LEAST_SIZE * _size(truth):
        return compare_call(task, values, number, whole.reshape(truth.shape), tf32=tf32).mismatch

    def noise_in_part() -> torch.Tensor | None:
        changes = values.noise(number)
        return None if changes is None else changes.flatten(1)[:, start : start + fetched.numel()]

    sizes = values.problem.sizes(case)
    mismatch = compare_output(
        task, output, values.case, part, right, sizes=sizes, tf32=tf32, noise=noise_in_part
    ).mismatch
    if mismatch is None:
        return None
    index = tuple(int(place) for place in np.unravel_index(start + mismatch.index[0], tuple(truth.shape)))
    shape = tuple(truth.shape)
    return msgspec.structs.replace(mismatch, index=index, shape=shape, expected_shape=shape, pattern=())


def _size(values: torch.Tensor) -> float:
    """The root mean square of the finite values; 0 if there are none."""
    finite = values.double()
    finite = finite[finite.isfinite()]
    return float(finite.square().mean().sqrt()) if finite.numel() else 0.0


def _misshapen(outputs: Sequence[OutputData], expected: Sequence[torch.Tensor]) -> str:
    for data, truth in zip(outputs, expected, strict=True):
        if tuple(data.shape) != tuple(truth.shape) or math.prod(data.shape) != truth.numel():
            return f"an output has the shape {list(data.shape)}, expected {list(truth.shape)}"
    return ""
