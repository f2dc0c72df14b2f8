"""
Checks outputs of timed calls. Finds a kernel that computes correctly while it is judged and skips work while it is timed.

Values that no process has seen go into the timed tensors, and the calls are timed as usual. Then the clock asks for a random
part of each output, which the candidate cannot predict.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import partial

import msgspec
import torch

from harness.wire.evaluation import ErrorReport, Mismatch
from harness.wire.guest_messages import OutputData, Returned
from harness.wire.timer_messages import LEAST_IN_BLOCK, Fetch
from harness.worker.kit import place
from harness.worker.oracle import bounds, integrity, mismatch_wording
from harness.worker.oracle.answers import judged_by
from harness.worker.oracle.caller import tensor_of
from harness.worker.oracle.compare import compare
from harness.worker.oracle.guest_link import GuestLied
from harness.worker.oracle.vault import Given
from suites.task import Output, Task
from suites.tolerances import dtype_of

from .case_inputs import CaseInputs
from .timed_process import TimedProcess
from .timer_link import TimerFailed, TimerLink

MOST_ELEMENTS = 1 << 20
"""Elements of one output to fetch at most."""
WALL_S = 60.0


class SpotCheck:
    """Compares random parts of outputs with the oracle's outputs."""

    def __init__(self, task: Task, inputs: CaseInputs) -> None:
        self._task = task
        self._inputs = inputs
        self._random = random.SystemRandom()
        self.confirmed = 0
        """Calls with correct parts so far."""

    def find_error(self, process: TimedProcess, values: Given) -> ErrorReport | None:
        """Sample on new values in the same tensors; the error in the outputs, if any.

        The compared part of an output is put together from pieces of every call. Raises `TimerFailed` for a lie.
        """
        link = process.link
        self._inputs.renew(link, values)
        once = bool(self._task.in_place) or bool(process.launches)  # a graph makes many calls at once
        process.block(1 if once else LEAST_IN_BLOCK)
        made = process.launches or (1 if once else LEAST_IN_BLOCK)
        try:
            return self._compare(link, values, self._random.sample(range(made), made))
        except GuestLied as lie:
            raise TimerFailed(link.side, lie) from lie

    def _compare(self, link: TimerLink, values: Given, calls: Sequence[int]) -> ErrorReport | None:
        expected = values.expected
        parts = tuple(self._part(output.numel()) for output in expected)
        fetch = partial(Fetch, calls=tuple(calls), parts=parts)
        returned = link.ask(lambda nonce: fetch(nonce=nonce), Returned, wall_s=WALL_S)
        lead = f"case {values.case.case.name}, in a call that was timed: "
        outputs = self._task.outputs_of(values.case.case)
        problem = integrity.structure(returned, outputs) or _misshapen(returned.outputs, expected)
        if problem:
            return ErrorReport(kind="structure", message=lead + problem)
        if shared := integrity.aliased(lead, returned, self._task, outputs):
            return shared
        for output, data, truth, part in zip(outputs, returned.outputs, expected, parts, strict=True):
            mismatch = self._mismatch(output, data, truth, part, values)
            if mismatch is not None:
                return mismatch_wording.mismatch(mismatch, "in a call that was timed")
        self.confirmed += len(calls)
        return None

    def _part(self, elements: int) -> tuple[int, int]:
        count = min(elements, MOST_ELEMENTS)
        return self._random.randint(0, elements - count), count

    def _mismatch(
        self, output: Output, data: OutputData, truth: torch.Tensor, part: tuple[int, int], values: Given
    ) -> Mismatch | None:
        """Compare a part, inserted into the oracle's output: tolerances and metrics need whole outputs."""
        case = values.case.case
        start, count = part
        dtype = getattr(torch, dtype_of(output, case))
        fetched = tensor_of(msgspec.structs.replace(data, shape=(count,)))
        if fetched.dtype != dtype:
            raise GuestLied(
                f"an output of dtype {data.dtype} where calls before had {dtype_of(output, case)}"
            )
        whole = truth.to(dtype).flatten()
        whole[start : start + count] = place.here(fetched)
        tolerance, quantization = judged_by(self._task, output, values.case)
        return compare(
            whole.reshape(truth.shape),
            truth,
            case=case.name,
            output=output.name,
            dtype=dtype,
            tolerance=tolerance,
            quantization=quantization,
            terms=bounds.terms_of(tolerance, values.problem.sizes(case)),
            tf32=place.has_tf32(),
        ).mismatch


def _misshapen(outputs: Sequence[OutputData], expected: Sequence[torch.Tensor]) -> str:
    for data, truth in zip(outputs, expected, strict=True):
        if tuple(data.shape) != tuple(truth.shape) or math.prod(data.shape) != truth.numel():
            return f"an output has the shape {list(data.shape)}, expected {list(truth.shape)}"
    return ""
