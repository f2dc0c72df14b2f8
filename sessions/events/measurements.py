"""Figures beside the verdicts: exams of winners, times of baselines and winners, profiles."""

from __future__ import annotations

from harness.wire.results.kernel_counts import Profile
from sessions.names import AttemptKey, TaskName

from .base import DurableEvent, Event, JudgedEvent


class WinnerExamined(JudgedEvent, frozen=True, kw_only=True, tag="winner_examined"):
    """At the end of an instance, its winner was judged on the exam cases.

    No prompt of any instance ever contains any of it.
    """

    attempt: AttemptKey


RECORDING = "record"


class BaselineStageStarted(Event, frozen=True, kw_only=True, tag="baseline_stage"):
    """The judge began a step before a task's first prompt, which waits for its end."""

    task: TaskName
    stage: str
    """A stage in which it judges the timing baseline, see `StageStarted`; `RECORDING`: it records a benchmark's test."""


class BaselineMeasured(JudgedEvent, frozen=True, kw_only=True, tag="baseline_measured"):
    """The timing baseline of a task was judged like a candidate, for the first prompt."""

    task: TaskName


class WinnerMeasured(JudgedEvent, frozen=True, kw_only=True, tag="winner_measured"):
    """An attempt was judged and timed again on one GPU: a winner with `spread`, or after `MeasureAsked`.

    On the open cases; never part of a prompt.
    """

    attempt: AttemptKey
    device: str


class ProfileTaken(DurableEvent, frozen=True, kw_only=True, tag="profile_taken"):
    """An attempt, or the timing baseline of its task, ran under a profiler, after `ProfileAsked`."""

    attempt: AttemptKey
    of_baseline: bool = False
    profile: Profile | None = None
    problem: str = ""
    """Why there is no profile, and what to do."""
    case: str = ""
    """The open case of the profile that was tried."""
    device_s: float = 0.0
    """Seconds in which a device was held for it."""
    asked: int = 0
    """`seq` of the `ProfileAsked` that it answers; 0 in old sessions, if no person asked."""

    @property
    def failure(self) -> str:
        """The problem in one line that names its subject."""
        subject = f"the baseline of {self.attempt}" if self.of_baseline else self.attempt
        return f"{subject} has no new profile: {self.problem}"
