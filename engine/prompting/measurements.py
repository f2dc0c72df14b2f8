"""All figures on the performance of one correct candidate, as a prompt shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness import Evaluation

from .figures import (
    EstimatedRow,
    TimedRow,
    achieved,
    device_words,
    estimated_rows,
    launch_bound_cases,
    launch_lines,
    timed_rows,
)
from .standouts import resource_lines, standouts

RESOURCE_LINES = 6


@dataclass(frozen=True, slots=True)
class Measurements:
    """All figures on the performance of one correct candidate."""

    summary: str
    """One line."""
    timed: Sequence[TimedRow]
    """Empty if nothing was timed."""
    device_state: str
    """Clock and power during timing; empty if unknown."""
    launches: Sequence[str]
    """Time by launch, one line per case with several launches."""
    estimated: Sequence[EstimatedRow]
    """Empty if the candidate was timed."""
    launch_bound: Sequence[str]
    """Cases without an estimate, because their launch takes longer than their kernels."""
    resources: Sequence[str]
    """One line per group of binaries with equal figures."""
    compile_errors: dict[str, str]
    """Why it does not compile, by target other than the first."""
    standouts: Sequence[str]
    """The figures that are worth acting on, one sentence each."""


def measurements(evaluation: Evaluation) -> Measurements:
    """Returns the figures on a correct candidate's performance."""
    timed = timed_rows(evaluation)
    return Measurements(
        summary=achieved(evaluation),
        timed=timed,
        device_state=device_words(evaluation),
        launches=launch_lines(evaluation),
        estimated=() if timed else estimated_rows(evaluation),
        launch_bound=() if timed else launch_bound_cases(evaluation),
        resources=resource_lines(evaluation, RESOURCE_LINES),
        compile_errors=evaluation.compile_errors,
        standouts=standouts(evaluation),
    )
