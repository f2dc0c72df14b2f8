"""
Outputs of calls that were timed: a kernel that is right when it is judged and lazy when it is timed shows here.

Values that no process has seen are put into the very tensors that were timed with, the calls are timed like all others,
and then a part of an output is asked for. Which part nobody could know before.
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
from harness.wire.timer_messages import Fetch
from harness.worker.kit import place
from harness.worker.oracle import bounds, call_checks, mismatch_wording
from harness.worker.oracle.answers import judged_by
from harness.worker.oracle.caller import tensor_of
from harness.worker.oracle.compare import compare
from harness.worker.oracle.guest_link import GuestLied
from harness.worker.oracle.vault import Given
from suites.task import Output, Task
from suites.tolerances import dtype_of

from .timer_link import TimerLink

MOST_ELEMENTS = 1 << 20
"""Of one output; the rest of it is not moved."""
WALL_S = 60.0


class SpotCheck:
    """Compares parts of outputs with the oracle's."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._random = random.SystemRandom()
        self.right = 0
        """Calls whose parts were right."""

    def wrong(self, link: TimerLink, given: Given, *, back: int) -> ErrorReport | None:
        """What is wrong with the call before the last `back` ones; the oracle's outputs for its inputs are `given`'s."""
        expected = given.expected
        parts = tuple(self._part(one.numel()) for one in expected)
        fetch = partial(Fetch, back=back, parts=parts)
        returned = link.ask(lambda nonce: fetch(nonce=nonce), Returned, wall_s=WALL_S)
        lead = f"case {given.case.case.name}, in a call that was timed: "
        problem = call_checks.structure(returned, self._task) or _misshapen(returned.outputs, expected)
        if problem:
            return ErrorReport(kind="structure", message=lead + problem)
        if shared := call_checks.aliased(lead, returned, self._task):
            return shared
        for output, data, truth, part in zip(
            self._task.outputs, returned.outputs, expected, parts, strict=True
        ):
            mismatch = self._mismatch(output, data, truth, part, given)
            if mismatch is not None:
                return mismatch_wording.mismatch(mismatch, "in a call that was timed")
        self.right += 1
        return None

    def _part(self, elements: int) -> tuple[int, int]:
        count = min(elements, MOST_ELEMENTS)
        return self._random.randint(0, elements - count), count

    def _mismatch(
        self, output: Output, data: OutputData, truth: torch.Tensor, part: tuple[int, int], given: Given
    ) -> Mismatch | None:
        """The part, in the midst of what the oracle says: tolerances and metrics are of whole outputs."""
        case = given.case.case
        start, count = part
        dtype = getattr(torch, dtype_of(output, case))
        told = tensor_of(msgspec.structs.replace(data, shape=(count,)))
        if told.dtype != dtype:
            raise GuestLied(
                f"an output of dtype {data.dtype} where calls before had {dtype_of(output, case)}"
            )
        whole = truth.to(dtype).flatten()
        whole[start : start + count] = place.here(told)
        tolerance, quantization = judged_by(self._task, output, given.case)
        return compare(
            whole.reshape(truth.shape),
            truth,
            case=case.name,
            output=output.name,
            dtype=dtype,
            tolerance=tolerance,
            quantization=quantization,
            terms=bounds.terms_of(tolerance, given.problem.sizes(case)),
            tf32=place.has_tf32(),
        ).mismatch


def _misshapen(outputs: Sequence[OutputData], expected: Sequence[torch.Tensor]) -> str:
    for data, truth in zip(outputs, expected, strict=True):
        if tuple(data.shape) != tuple(truth.shape) or math.prod(data.shape) != truth.numel():
            return f"an output has the shape {list(data.shape)}, expected {list(truth.shape)}"
    return ""
