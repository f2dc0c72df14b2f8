"""Figures beside the verdicts: exams of winners, times of baselines and winners, profiles, sweeps."""

from __future__ import annotations

import msgspec

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
    """An attempt was judged and timed again on one GPU, after `MeasureAsked`.

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
    """`seq` of the `ProfileAsked` that it answers."""

    @property
    def failure(self) -> str:
        """The problem in one line that names its subject."""
        subject = f"the baseline of {self.attempt}" if self.of_baseline else self.attempt
        return f"{subject} has no new profile: {self.problem}"


class SweepStarted(Event, frozen=True, kw_only=True, tag="sweep_started"):
    """A sweep of an attempt's launch parameters began: variants are compiled or timed with few samples, not judged."""

    attempt: AttemptKey


class SweptVariant(msgspec.Struct, frozen=True):
    """A variant that a sweep proposes for judging."""

    changes: tuple[str, ...]
    """One entry for each difference to the attempt's candidate, for example `num_warps 4 to 8`."""
    source: str
    better: bool
    """True if it ranks above the attempt's candidate by `AttemptSwept.ranked_by`, and needs each of its changes for
    that."""


class AttemptSwept(DurableEvent, frozen=True, kw_only=True, tag="attempt_swept"):
    """A sweep of an attempt's launch parameters ended. It is not repeated."""

    attempt: AttemptKey
    target: str
    """The compile target."""
    tried: int
    """Number of compiled variants."""
    pruned: dict[str, int] = msgspec.field(default_factory=dict)
    """Number of dropped variants by reason in words."""
    ranked_by: str = ""
    """The ranking in words; says if any of it was measured."""
    variants: tuple[SweptVariant, ...] = ()
    """At most as many variants as may be judged. Variants that look better come first; each group is best first."""
    seconds: float = 0.0


class RungEntry(msgspec.Struct, frozen=True):
    """The result of a rung for one variant."""

    changes: tuple[str, ...]
    """Identifies the variant; see `SweptVariant`."""
    verdict: str
    """Verdict of the interpreter, and of the outputs that were compared while timing."""
    estimate: float | None = None
    """Time of the attempt's candidate over the variant's time, from few samples: an estimate, not a latency. `None`:
    unknown."""
    samples: int = 0
    by_case: dict[str, float] = {}
    """The same estimate of each case that has one, with `--by case`."""
    why: str = ""
    """Why it is not correct, or why there is no verdict."""
    kept: bool = False
    """True if it continues to the next rung or to the judge."""


class SweepRung(DurableEvent, frozen=True, kw_only=True, tag="sweep_rung"):
    """A rung of a sweep ended: the times of its variants were estimated, and the better ones continue."""

    attempt: AttemptKey
    """The attempt that was swept; the ratios are relative to its time."""
    rung: int
    """1, 2, ...; each rung takes several times the samples of the last one."""
    pairs: int
    """Processes on each side."""
    entries: tuple[RungEntry, ...]
    """Best first."""
    seconds: float = 0.0
    device_s: float = 0.0
    """Seconds in which the judge held devices for its variants."""
