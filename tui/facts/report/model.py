"""The parts of a report as plain values. A value that was not measured is `None`, never 0."""

from __future__ import annotations

from dataclasses import dataclass

from harness import Outcome, Verdict
from harness.wire.latency import Bound
from sessions.events import Origin
from sessions.state.speed import Speed
from sessions.state.state import Confirmation
from sessions.state.tally import Tally
from tui.facts.evaluation.roofs import RoofShare
from tui.facts.spending import Spending

from .metrics import TaskMetrics


@dataclass(frozen=True, slots=True)
class Summary:
    """Facts about the whole session."""

    session: str
    title: str
    """A person's title of the session; empty if it has none."""
    state: str
    """`running`, `finished` or `stopped (reason)`."""
    method: str
    model: str
    against: str
    """Name of the timing baseline; empty if nothing was timed."""
    tasks: int
    solved: int
    """Tasks with a correct attempt."""
    confirmed: int | None
    """Tasks with a confirmed attempt; `None` if no exam ran."""
    accepted: int
    """Attempts that a person accepted."""
    rejected: int
    """Attempts that a person rejected."""
    waiting: int
    """Attempts that wait for a person."""
    tally: Tally
    spending: str
    """Tokens and money in words."""
    cost_usd: float | None
    device_s: float
    worked_s: float
    """Time in which an engine worked."""
    timing: str
    """`measured`, `no GPU` or `not measured yet`."""
    provenances: tuple[str, ...]
    """Hardware and software of the winners' times, in words; more than one if they are not compared with each other."""
    verification: str
    """Whether the session's GPUs were verified on their node; empty without a GPU, and in sessions of older versions."""


@dataclass(frozen=True, slots=True)
class Winner:
    """The best correct attempt of a task."""

    task: str
    attempt: str
    origin: Origin
    base: str | None
    strategy: str
    speed: Speed | None
    """From the exam if it timed the attempt again, else from the verdict."""
    no_speed: str
    """Why there is no speed; empty if there is one."""
    before_exam: Speed | None
    """Speed when the attempt was found, if the exam timed the same cases again."""
    confirmed: Confirmation
    accepted: bool
    accepted_instead: str
    """The attempt on the branch `accepted`, if that is a different attempt of the task; else empty."""
    waiting: bool
    findings: str
    """Findings in words; empty without any."""
    against: str
    device: str
    """Device and product: `0 MI300X`."""
    by_gpu: str
    """Speedup on each GPU: `0 1.42x, 1 1.40x`; empty if it was not measured on several."""
    roof: tuple[RoofShare, RoofShare] | None
    """The smallest and the largest share of the practical roof, of the cases that are not launch-bound."""
    commit: str | None
    branch: str
    accepted_file: str
    """The kernel's file on the branch `accepted`; empty if it is not there."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A person's current decision about an attempt."""

    attempt: str
    verdict: Verdict | None
    accepted: bool
    replaced_by: str
    """The attempt of the task that was accepted later, so that its kernel is on the branch `accepted` instead."""
    why: str
    by: str
    wall: float
    """Seconds since the epoch, UTC."""


@dataclass(frozen=True, slots=True)
class CaseTime:
    """One case of a winner on one device. Times are medians in microseconds."""

    attempt: str
    case: str
    device: str
    sizes: str
    baseline_us: float | None
    candidate_us: float | None
    baseline_short_us: float | None
    """The shortest time that can be timed exactly, if the baseline takes less."""
    candidate_short_us: float | None
    ratio: float | None
    bound: Bound
    interval: tuple[float, float] | None
    """95 %; `None` for a bound."""
    outcome: Outcome | None
    """`None` if it was not timed."""
    roof: RoofShare | None
    cache: str
    why: str
    """Why there is no speedup; empty if there is one."""


@dataclass(frozen=True, slots=True)
class Unsolved:
    """A task without a winner."""

    task: str
    closest: str
    """The attempt that came furthest; empty if none was judged."""
    why: str
    """The verdict and the error of that attempt."""
    ended: str
    """Why its instances ended; empty while one runs."""


@dataclass(frozen=True, slots=True)
class Change:
    """One attempt of an instance, compared with its base."""

    attempt: str
    origin: Origin
    base: str | None
    verdict: Verdict | None
    """`None` while it is in progress."""
    error: str
    speed: Speed | None
    gain: float | None
    """How much faster than its base: the ratio of their speeds, minus 1."""
    is_apart: bool
    """True if it is not compared with its base, because other hardware or software timed it."""
    slowdown: float | None
    """Estimate for an attempt without times: at most so many times the roofline's time."""
    added: int | None
    """Lines that the base lacks; `None` without a base."""
    removed: int | None
    strategy: str
    findings: str
    is_best: bool
    """True if it is the best of its instance."""


@dataclass(frozen=True, slots=True)
class StageCount:
    """A stage of the judge."""

    stage: str
    reached: int
    passed: int


@dataclass(frozen=True, slots=True)
class VerdictCount:
    """Attempts with one verdict and one class of error."""

    verdict: Verdict
    error: str
    """The error's class; empty for a correct attempt."""
    attempts: int
    share: float | None
    """Share of the judged attempts, 0 to 1; `None` for a verdict that counts nowhere."""
    example: str
    """The newest attempt of this class."""
    message: str
    """The first line of that attempt's error."""


@dataclass(frozen=True, slots=True)
class TaskCost:
    """The cost of a task's attempts."""

    task: str
    attempts: int
    to_first_correct: int | None
    """Judged attempts of the task up to its first correct one; `None` if it is not solved."""
    spent: Spending


@dataclass(frozen=True, slots=True)
class EstimatedCase:
    """Bounds of one case of a winner, from counted bytes and operations. Times are in microseconds."""

    attempt: str
    case: str
    sizes: str
    target: str
    low_us: float
    high_us: float
    limit: str


@dataclass(frozen=True, slots=True)
class SessionReport:
    """Everything that a report of a session says."""

    summary: Summary
    winners: tuple[Winner, ...]
    """Fastest first; winners without times come last, in the session's order."""
    unsolved: tuple[Unsolved, ...]
    decisions: tuple[Decided, ...]
    """In the order in which they were made."""
    cases: tuple[CaseTime, ...]
    changes: tuple[Change, ...]
    stages: tuple[StageCount, ...]
    verdicts: tuple[VerdictCount, ...]
    costs: tuple[TaskCost, ...]
    estimates: tuple[EstimatedCase, ...]
    """Bounds of the winners that were not timed."""
    metrics: tuple[TaskMetrics, ...]
    """One row for each task; with several tasks, the last row is over all."""

    def attempts_to_visit(self, kind: str) -> list[str]:
        """Return the attempts of one kind: `waiting` (winners that wait for a person), `best` of an instance, `failure`."""
        match kind:
            case "waiting":
                return [winner.attempt for winner in self.winners if winner.waiting]
            case "best":
                return [change.attempt for change in self.changes if change.is_best]
            case _:
                return [
                    change.attempt
                    for change in self.changes
                    if change.verdict is not None and change.verdict.is_failure
                ]
