"""Judges the cases after the first wrong one, to name all that fail and to say what they have in common.

The verdict stands, so whatever goes wrong here only ends this search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from harness.cases.call_plan import Step
from harness.wire.messages.guest import GPU_FAULT, OUT_OF_MEMORY
from harness.worker.kit import place
from harness.worker.oracle.answers import Answers
from harness.worker.oracle.blame import CandidateStopped, blame
from harness.worker.oracle.caller import Run
from harness.worker.oracle.comparison.case_pattern import CaseOutcome, describe_cases, number_defaults
from harness.worker.oracle.comparison.mismatch_wording import CaseError
from harness.worker.oracle.lines import CandidateRaised, GuestBroken, NoAnswer
from harness.worker.oracle.problem import BadProblem
from harness.worker.oracle.vault import Given
from suites.task import Task


def judge_the_rest(
    task: Task,
    passed: Sequence[Run],
    steps: Iterable[Step],
    failed: Step,
    *,
    rest_s: float,
    given: Callable[[Step], Given],
    call: Callable[[Step, float], Run],
) -> tuple[tuple[CaseError, ...], str]:
    """Return the failures of the cases after `failed`, and the outcomes of all cases in words.

    `passed` are the calls so far, `steps` all steps in order. `call` makes one call within so many seconds; the calls end
    after `rest_s`. Hidden cases are judged only if all open ones are right.
    """

    def outcome(step: Step, *, is_right: bool) -> CaseOutcome:
        """Return what a pattern may use of a case: its sizes and plain numbers."""
        if task.script is not None:  # calls of a script have numbers, and no sizes that a pattern could name
            return CaseOutcome(step.case, {}, {}, is_right)
        inputs = given(step)
        scalars = {
            name: float(value)
            for name, value in inputs.inputs.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        return CaseOutcome(step.case, inputs.problem.sizes(step.case.case), scalars, is_right)

    outcomes = [outcome(run.step, is_right=True) for run in passed]
    outcomes.append(outcome(failed, is_right=False))
    failures: list[CaseError] = []
    judged = {failed.case.name, *(run.step.case.name for run in passed)}
    rest = [
        step
        for step in steps
        if step.case.name not in judged and (failed.case.hidden or not step.case.hidden)
    ]
    answers, deadline = Answers(task, tf32=place.has_tf32()), time.monotonic() + rest_s
    for step in rest:
        left_s, name = deadline - time.monotonic(), step.case.name
        try:
            if left_s <= 0:
                break
            of_case = answers.errors(call(step, left_s), step.case.sizes)
        except CandidateRaised as raised:
            if raised.failure.kind in (GPU_FAULT, OUT_OF_MEMORY):
                break
            of_case = (CaseError(name, blame(raised, name, f"case {name}: ", gpu=place.is_gpu())),)
        except (NoAnswer, GuestBroken, BadProblem, RuntimeError, CandidateStopped):
            break  # RuntimeError: the judge's device is full
        failures += of_case
        outcomes.append(outcome(step, is_right=not of_case))
    not_judged = len(passed) + 1 + len(rest) - len(outcomes)
    sizes = "" if place.is_gpu() or task.script is not None else " at cpu sizes"
    words = describe_cases(outcomes, defaults=number_defaults(task), not_judged=not_judged, sizes=sizes)
    return tuple(failures), words
