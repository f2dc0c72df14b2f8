"""Judges the open cases after the first wrong one, to say what the failing cases have in common.

The verdict stands, so whatever goes wrong here only ends this search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from harness.cases.call_plan import Step
from harness.wire import limits
from harness.worker.kit import place
from harness.worker.oracle.answers import Answers
from harness.worker.oracle.blame import Stop
from harness.worker.oracle.caller import Run
from harness.worker.oracle.case_pattern import CaseOutcome, describe_cases, number_defaults
from harness.worker.oracle.problem import BadProblem
from harness.worker.oracle.vault import Given
from harness.worker.oracle.worker_line import CandidateRaised, GuestBroken, NoAnswer
from suites.task import Task


def judge_the_rest(
    task: Task,
    passed: Sequence[Run],
    steps: Iterable[Step],
    failed: Step,
    *,
    given: Callable[[Step], Given],
    call: Callable[[Step, float], Run],
) -> str:
    """Return the outcomes of the cases in words, after at most `limits.REST_S` more seconds.

    `passed` are the calls so far, `steps` all steps in order. `call` makes one call within so many seconds.
    """

    def outcome(step: Step, *, is_right: bool) -> CaseOutcome:
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
    judged = {failed.case.name, *(run.step.case.name for run in passed)}
    answers, deadline = Answers(task, tf32=place.has_tf32()), time.monotonic() + limits.REST_S
    for step in steps:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            break
        if step.case.hidden or step.case.name in judged:
            continue
        try:
            run = call(step, left_s)
            is_right = answers.unfit(run) is None and answers.mismatch(run) is None
        except CandidateRaised:
            is_right = False
        except (NoAnswer, GuestBroken, BadProblem, RuntimeError, Stop):
            break  # RuntimeError: the judge's device is full
        outcomes.append(outcome(step, is_right=is_right))
    return describe_cases(outcomes, defaults=number_defaults(task))
