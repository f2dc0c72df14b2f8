"""Compares the outputs of a trial's calls with the oracle's, and keeps the closest margin of each case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from harness.cases.judged_case import JudgedCase
from harness.wire.results.evaluation import ErrorReport, Finding, Margin, Mismatch
from harness.worker.kit.arena import Value
from harness.worker.oracle import integrity
from harness.worker.oracle.arithmetic import TF32_EPS
from harness.worker.oracle.comparison import bounds, mismatch_wording
from harness.worker.oracle.comparison.bounds import scale_factor, scale_pairs
from harness.worker.oracle.comparison.compare import OutputComparison, compare
from harness.worker.oracle.comparison.measure import (
    CALLS,
    CALLS_FOR_LEVELS,
    LEVEL_EPS,
    MORE_CALLS,
    ErrorMeasure,
)
from harness.worker.oracle.comparison.mismatch_wording import CaseError
from suites.task import Output, QuantizationTolerance, Task, Tolerance
from suites.tolerances import allowance_words, dtype_of, tolerance_of

from .caller import Run
from .problem import torch_dtype
from .vault import Given


class Answers:
    """Compares calls, and remembers their answers to find stale and unrepeatable ones."""

    def __init__(self, task: Task, *, tf32: bool = False) -> None:
        self._task = task
        self._tf32 = tf32
        """True if the device's matrix units round float32 to TF32."""
        self._margins: dict[tuple[str, str, str], Margin] = {}
        """The smallest margin, by case, output and measure."""
        self._seen: dict[tuple[str, bytes], set[int]] = {}
        """Places of the pool by case and right answer."""
        self._first: dict[tuple[str, int], bytes] = {}
        """The first right answer, by case and place of the pool."""
        self.weak: dict[str, Finding] = {}
        """Findings by output, for outputs that only an allowance of the task or TF32 makes right."""
        self.elements = 0
        """Elements that were compared."""
        self.calls = 0
        """Calls that were right."""

    @property
    def margins(self) -> tuple[Margin, ...]:
        """The smallest margin of each case, output and measure, in order of first comparison."""
        return tuple(self._margins.values())

    def mismatches(self, run: Run) -> tuple[Mismatch, ...]:
        """Compare all outputs of a call; return what is wrong, one entry for each wrong output.

        Keeps the closest margins, and the answer if it is right.
        """
        wrong = []
        outputs = [run.output(number) for number in range(len(run.given.expected))]
        for compared in compare_outputs(self._task, run.given, outputs, tf32=self._tf32):
            for margin in compared.margins:
                self._keep(margin)
            self.elements += compared.elements
            if compared.weak:
                self.weak.setdefault(
                    compared.margins[0].output, Finding("weak", compared.weak, run.case.name)
                )
            if compared.mismatch is not None:
                wrong.append(compared.mismatch)
        if not wrong:
            self.calls += 1
            self._first.setdefault((run.case.name, run.step.place), run.answer)
            self._seen.setdefault((run.case.name, run.answer), set()).add(run.step.place)
        return tuple(wrong)

    def errors(self, run: Run, when: str = "") -> tuple[CaseError, ...]:
        """Return every error of the call's outputs; `when` says more about the call, such as its sizes.

        After a wrong structure or a store out of bounds, values need no comparison.
        """
        returned, returns = run.returned, self._task.returns
        problem = integrity.plain_parts(returned, run.given.plain, returns) if returns else ""
        problem = problem or integrity.structure(returned, self._task.outputs_of(run.case))
        unfit = (
            ErrorReport(kind="structure", message=f"case {run.case.name}: {problem}")
            if problem
            else integrity.out_of_bounds(run, self._task)
        )
        if unfit is not None:
            return (CaseError(run.case.name, unfit),)
        undefined = run.returned.undefined_lanes
        errors = (mismatch_wording.mismatch(wrong, when, undefined) for wrong in self.mismatches(run))
        return tuple(CaseError(run.case.name, error) for error in errors)

    def was_right(self, run: Run) -> bool:
        """True if an earlier call with the same inputs was right."""
        return (run.case.name, run.step.place) in self._first

    def has_other_bits(self, run: Run) -> bool:
        """True if an earlier call with the same inputs gave different bits."""
        return self._first.get((run.case.name, run.step.place), run.answer) != run.answer

    def is_stale(self, run: Run) -> bool:
        """True if an earlier call of the case with different inputs gave exactly these bits."""
        return bool(self._seen.get((run.case.name, run.answer), set()) - {run.step.place})

    def _keep(self, margin: Margin) -> None:
        key = (margin.case, margin.output, margin.measure)
        closest = self._margins.get(key)
        if closest is None or margin.used > closest.used:
            self._margins[key] = margin


def compare_outputs(
    task: Task, given: Given, outputs: Sequence[torch.Tensor], *, tf32: bool = False
) -> list[OutputComparison]:
    """Compare all outputs of a call with the oracle's; return a comparison for each output, in their order.

    In a measured task, an 8-bit output and its scale may both differ by one factor: a kernel chooses its scales. Both are right
    then.
    """
    compare_with = partial(compare_call, task, given, tf32=tf32)
    compared = [compare_with(number, output) for number, output in enumerate(outputs)]
    if not task.is_measured or all(comparison.mismatch is None for comparison in compared):
        return compared
    for quantized, scale in scale_pairs(given.expected, outputs):
        factor = scale_factor(
            given.expected[quantized], given.expected[scale], outputs[quantized], outputs[scale]
        )
        if factor is not None:
            rescaled = compare_with(quantized, outputs[quantized], factor=factor)
            if rescaled.mismatch is None:
                compared[quantized] = rescaled
                compared[scale] = replace(compared[scale], mismatch=None, margins=())
    return compared


def compare_call(
    task: Task,
    given: Given,
    number: int,
    got: torch.Tensor,
    *,
    tf32: bool = False,
    factor: torch.Tensor | None = None,
) -> OutputComparison:
    """Compare output `number` of a call on these inputs with the oracle's, without elements that the oracle leaves open.

    `factor`: the kernel's scale of each element divided by the oracle's.
    """
    expected = given.expected[number]
    measure: Callable[..., ErrorMeasure] = partial(given.measure, number)
    if factor is not None:
        expected, measure = expected / factor, partial(_measure_rescaled, measure, factor)
    return compare_output(
        task,
        task.outputs_of(given.case.case)[number],
        given.case,
        given.settled(number, got),
        expected,
        sizes=given.problem.sizes(given.case.case),
        tf32=tf32,
        noise=partial(given.noise, number),
        measure=measure,
        inputs=given.inputs,
    )


def _measure_rescaled(
    measure: Callable[..., ErrorMeasure], factor: torch.Tensor, **options: Any
) -> ErrorMeasure:
    own = measure(**options)
    return replace(own, careful_error=own.careful_error / factor)


def compare_output(
    task: Task,
    output: Output,
    case: JudgedCase,
    got: torch.Tensor,
    expected: torch.Tensor,
    *,
    sizes: dict[str, int],
    tf32: bool = False,
    noise: Callable[[], torch.Tensor | None],
    measure: Callable[..., ErrorMeasure] | None = None,
    inputs: Mapping[str, Value] | None = None,
) -> OutputComparison:
    """Compare one output of a case with the oracle's. `noise` measures the oracle's own rounding, if that may decide.

    `measure` measures the errors of careful arithmetic (`Given.measure`).
    """
    tolerance, quantization = judged_by(task, output, case)
    compare_here = partial(
        compare,
        got,
        expected,
        case=case.name,
        output=output.name,
        dtype=torch_dtype(dtype_of(output, case.case)),
        tolerance=tolerance,
        quantization=quantization,
        terms=bounds.terms_of(tolerance, sizes),
        tf32=tf32,
        inputs=inputs,
    )
    if measure is not None and task.is_measured:
        calls: tuple[int, ...] = (CALLS, MORE_CALLS)
        if not got.is_floating_point():
            calls, measure = (CALLS_FOR_LEVELS,), partial(measure, least_eps=LEVEL_EPS)
        return _compare_by_measure(compare_here, measure, calls, tolerance, tf32=tf32)
    compared = compare_here()
    if compared.mismatch is None or not compared.is_near(tolerance, quantization):
        return compared
    changes = noise()
    return compared if changes is None else compare_here(changes=changes)


def _compare_by_measure(
    compare_here: Callable[..., OutputComparison],
    measure: Callable[..., ErrorMeasure],
    calls: Sequence[int],
    tolerance: Tolerance,
    *,
    tf32: bool,
) -> OutputComparison:
    """Compare with the measure alone; with TF32 or the task's allowance, what is right then is weak.

    `calls`: numbers of careful calls; the next number is taken if the output is wrong by the measure of the one before.
    """
    alone = Tolerance(measured=True)
    # Without calls the measure is narrower, and what it accepts needs none.
    compared = compare_here(tolerance=alone, measure=measure(calls=0))
    for count in calls:
        if compared.mismatch is not None:
            compared = compare_here(tolerance=alone, measure=measure(calls=count))
    wrong = compared.mismatch
    if wrong is None or not (wrong.off or tolerance.ulps):
        return compared
    off = wrong.off or f"largest error {wrong.largest_error}"
    words = {"TF32": (alone, TF32_EPS)} if tf32 else {}
    if tolerance != alone:
        words[f"the task allows {allowance_words(tolerance)}"] = tolerance, 0.0
    for why, (allowed, eps) in words.items():
        weak = compare_here(tolerance=allowed, measure=measure(calls=calls[0], least_eps=eps))
        if weak.mismatch is None:
            return replace(weak, weak=f"{why}: {off}")
    return compared


def judged_by(task: Task, output: Output, case: JudgedCase) -> tuple[Tolerance, QuantizationTolerance | None]:
    """Return the tolerance of an output (in the probe: its own), and the quantization metrics that replace it, if any."""
    quantization = task.quantization
    if case.probe and quantization is not None and quantization.probe is not None:
        return quantization.probe, None
    return tolerance_of(task, output, case.case), quantization
