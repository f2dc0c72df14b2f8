"""Answers beside the oracle's: what of a call is wrong, and how close all of them came to their tolerances."""

from __future__ import annotations

import torch

from harness.cases.judged_case import JudgedCase
from harness.wire.evaluation import ErrorReport, Margin, Mismatch
from suites.task import Output, QuantizationTolerance, Task, Tolerance
from suites.tolerances import dtype_of, tolerance_of

from . import bounds, call_checks
from .caller import Run
from .compare import Comparison, compare
from .problem import torch_dtype


class Answers:
    """Compares runs, and keeps what the comparisons said."""

    def __init__(self, task: Task, *, tf32: bool = False) -> None:
        self._task = task
        self._tf32 = tf32
        """Whether the device's matrix units round float32 to TF32."""
        self._margins: dict[tuple[str, str, str], Margin] = {}
        self._seen: dict[tuple[str, bytes], set[int]] = {}
        self._first: dict[tuple[str, int], bytes] = {}
        """The first right answer to the inputs at a place of a case."""
        self.elements = 0
        self.calls = 0

    @property
    def margins(self) -> tuple[Margin, ...]:
        """The closest of each case, output and measure, in the order in which they were first compared."""
        return tuple(self._margins.values())

    def unfit(self, run: Run) -> ErrorReport | None:
        """Why the run's values need not be looked at: structure first, then memory."""
        problem = call_checks.structure(run.returned, self._task)
        if problem:
            return ErrorReport(kind="structure", message=f"case {run.case.name}: {problem}")
        return call_checks.out_of_bounds(run, self._task)

    def mismatch(self, run: Run) -> Mismatch | None:
        """The first output that the oracle disagrees with."""
        for number, (output, expected) in enumerate(zip(self._task.outputs, run.given.expected, strict=True)):
            compared = compare_output(
                self._task,
                output,
                run.step.case,
                run.output(number),
                expected,
                sizes=run.given.problem.sizes(run.case),
                tf32=self._tf32,
            )
            for margin in compared.margins:
                self._keep(margin)
            self.elements += compared.elements
            if compared.mismatch is not None:
                return compared.mismatch
        self.calls += 1
        self._first.setdefault((run.case.name, run.step.place), run.answer)
        self._seen.setdefault((run.case.name, run.answer), set()).add(run.step.place)
        return None

    def was_right(self, run: Run) -> bool:
        """Whether the same inputs were answered rightly before."""
        return (run.case.name, run.step.place) in self._first

    def has_other_bits(self, run: Run) -> bool:
        """Whether the same inputs were answered by other bits before."""
        return self._first.get((run.case.name, run.step.place), run.answer) != run.answer

    def is_stale(self, run: Run) -> bool:
        """Whether the answer is, bit for bit, one that other inputs of the case got before."""
        return bool(self._seen.get((run.case.name, run.answer), set()) - {run.step.place})

    def _keep(self, margin: Margin) -> None:
        key = (margin.case, margin.output, margin.measure)
        known = self._margins.get(key)
        if known is None or margin.used > known.used:
            self._margins[key] = margin


def compare_output(
    task: Task,
    output: Output,
    case: JudgedCase,
    got: torch.Tensor,
    expected: torch.Tensor,
    *,
    sizes: dict[str, int],
    tf32: bool = False,
) -> Comparison:
    """Compares one output of a case, at these sizes, with the oracle's answer."""
    tolerance, quantization = judged_by(task, output, case)
    return compare(
        got,
        expected,
        case=case.name,
        output=output.name,
        dtype=torch_dtype(dtype_of(output, case.case)),
        tolerance=tolerance,
        quantization=quantization,
        terms=bounds.terms_of(tolerance, sizes),
        tf32=tf32,
    )


def judged_by(task: Task, output: Output, case: JudgedCase) -> tuple[Tolerance, QuantizationTolerance | None]:
    """What judges an output of a case: its tolerance, or metrics instead; in a quantization's probe, the probe's."""
    quantization = task.quantization
    if case.probe and quantization is not None and quantization.probe is not None:
        return quantization.probe, None
    return tolerance_of(task, output, case.case), quantization
