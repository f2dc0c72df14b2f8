"""A session's state: what `sessions.fold` makes of its events. Screens, the agents' loop and reports read nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from harness import Evaluation, Stage, Verdict

from .events import AttemptSwept, Message, Origin, Role, SessionStarted, SweepRung, Usage, WinnerMeasured
from .metrics import TimedTwice, timed_twice
from .names import split_attempt


class Words:
    """Text that grows piece by piece: adding costs what the piece costs, reading joins once.

    A plain string would be copied whole for each of a long reply's thousands of pieces.
    """

    __slots__ = ("_pieces",)

    def __init__(self, text: str = "") -> None:
        self._pieces = [text] if text else []

    def add(self, piece: str) -> None:
        """Put a piece at the end."""
        self._pieces.append(piece)

    def __str__(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Words) and str(self) == str(other)

    __hash__ = None  # type: ignore[assignment]  # it changes while it is read

    def __repr__(self) -> str:
        return f"Words({str(self)!r})"


class Confirmation(StrEnum):
    """What the exam cases say of a correct attempt."""

    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not confirmed"
    NOT_EXAMINED = "not examined"


@dataclass(slots=True)
class Decision:
    """The standing decision about an attempt."""

    accepted: bool
    why: str
    by: str
    wall: float


@dataclass(slots=True)
class CallState:
    """One call of a model, as far as it has come."""

    call: str
    attempt: str
    role: Role
    model: str
    messages: tuple[Message, ...]
    started_mono: float
    reasoning_words: Words = field(default_factory=Words)
    text_words: Words = field(default_factory=Words)
    finished: bool = False
    failed: str = ""
    """`reason: message` of a `CallFailed`."""
    retries: int = 0
    last_retry: str = ""
    stop_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    seconds: float | None = None
    temperature: float | None = None

    @property
    def too_long(self) -> bool:
        """Whether it failed because the prompt did not fit the model's context."""
        return self.failed.startswith("context_too_long:")

    @property
    def own_temperature(self) -> bool:
        """Whether the model refused a temperature and its default ruled; a recording does not know."""
        return self.finished and self.temperature is None and not self.model.startswith("recorded:")

    @property
    def reasoning(self) -> str:
        """What the model reasoned so far."""
        return str(self.reasoning_words)

    @property
    def text(self) -> str:
        """The reply so far."""
        return str(self.text_words)

    @property
    def live(self) -> bool:
        """Whether words may still come."""
        return not self.finished and not self.failed


@dataclass(slots=True)
class AttemptState:
    """One attempt: candidate, lineage, calls, evaluation."""

    attempt: str
    number: int
    origin: Origin
    base: str | None
    calls: list[CallState] = field(default_factory=list)
    source: str | None = None
    strategy: str = ""
    word: str = "wait"
    """What it does now, in the words of `InstanceState.word`; several attempts of an instance may be under way at once."""
    stage: str | None = None
    """The stage the judge is in, while it is in one."""
    stages: list[Stage] = field(default_factory=list)
    evaluation: Evaluation | None = None
    examining: str | None = None
    """The stage the judge is in on the exam cases, while it is in one."""
    sweep: AttemptSwept | None = None
    """What a sweep over its launch parameters found."""
    rungs: list[SweepRung] = field(default_factory=list)
    """What few samples said of the variants that the sweep named: estimates. Numbers come again where it was swept a second time,
    of the variants that were not judged yet."""
    exam: Evaluation | None = None
    """On the exam cases, at the instance's end; for people alone."""
    spread: list[WinnerMeasured] = field(default_factory=list)
    """What it took on each GPU of the session, at the instance's end; for people alone."""
    decision: Decision | None = None
    waiting: bool = False
    """For a person."""
    commit: str | None = None
    committed_seq: int = 0
    """Of the event that first told of a commit; 0 while there is none. An instance's branch is in this order."""
    started_wall: float = 0.0
    judged_wall: float = 0.0
    judged_seq: int = 0
    """When and in which place the verdict came; 0 while there is none."""

    @property
    def verdict(self) -> Verdict | None:
        """The judge's answer, once there is one."""
        return self.evaluation.verdict if self.evaluation else None

    @property
    def confirmation(self) -> Confirmation:
        """What the exam says; one without a verdict on the candidate is none."""
        exam = self.exam
        if exam is None or not exam.exam or not exam.verdict.counted:
            return Confirmation.NOT_EXAMINED
        return Confirmation.CONFIRMED if exam.verdict is Verdict.CORRECT else Confirmation.NOT_CONFIRMED

    @property
    def speedup_confirmed(self) -> float | None:
        """What timing it again for the exam gave, in fresh processes and on fresh values; `None` where that was not done."""
        if self.exam is None or self.confirmation is not Confirmation.CONFIRMED:
            return None
        return self.exam.speedup

    @property
    def timed_twice(self) -> TimedTwice | None:
        """What was found beside what was confirmed, over the same cases; `None` where that cannot be compared."""
        if self.evaluation is None or self.exam is None or self.speedup_confirmed is None:
            return None
        return timed_twice(self.evaluation, self.exam)

    @property
    def speedup(self) -> float | None:
        """The confirmed one, else the one that was found."""
        found = self.evaluation.speedup if self.evaluation else None
        return found if self.speedup_confirmed is None else self.speedup_confirmed

    @property
    def unexamined_because(self) -> str:
        """Why an exam that was tried gave no verdict on the candidate; empty where none was tried, or it gave one."""
        if self.exam is None or self.confirmation is not Confirmation.NOT_EXAMINED:
            return ""
        return self.exam.error.message if self.exam.error is not None else str(self.exam.verdict)

    @property
    def usage(self) -> Usage:
        """Tokens of its finished calls; a count that no provider gave is `None`."""
        used = [call.usage for call in self.calls if call.finished]
        return Usage(
            _sum_of_known([each.input_tokens for each in used]),
            _sum_of_known([each.output_tokens for each in used]),
            _sum_of_known([each.cached_tokens for each in used]),
            _sum_of_known([each.cache_write_tokens for each in used]),
        )

    @property
    def cost_usd(self) -> float | None:
        """Of its finished calls whose price is known; `None` while there is none."""
        priced = [call.cost_usd for call in self.calls if call.cost_usd is not None]
        return sum(priced) if priced else None


def _sum_of_known(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


@dataclass(slots=True)
class InstanceState:
    """One chain on one task."""

    key: str
    """`softmax#2`."""
    task: str
    instance: int
    word: str = "wait"
    """What it does now, by its latest attempt that does anything: `generate`, `optimize`, `reflect`, `tune`, a stage's name, `exam`, `wait` (for a slot), `person`,
    `done`, `failed`."""
    attempts: list[AttemptState] = field(default_factory=list)
    finished: str | None = None
    """Reason of an `InstanceFinished`."""
    message: str = ""
    best: str | None = None
    """Best judged attempt so far, by `sessions.winners`; while none is correct it is one that failed: see `solved`."""

    @property
    def solved(self) -> bool:
        """Whether an attempt is correct."""
        return any(attempt.verdict is Verdict.CORRECT for attempt in self.attempts)


@dataclass(slots=True)
class DeviceState:
    """Last sample of a device."""

    device: str
    description: str
    busy_with: tuple[str, ...]
    utilisation: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    temperature_c: float | None
    power_w: float | None
    clock_mhz: float | None
    waits_for: tuple[str, ...] = ()
    """Who holds it, in words, while a candidate waits for it."""
    quarantined: str = ""
    """Why it is judged on no more."""


@dataclass(slots=True)
class SessionState:
    """The fold of a session's events."""

    started: SessionStarted | None = None
    started_wall: float | None = None
    last_wall: float | None = None
    last_seq: int = 0
    instances: dict[str, InstanceState] = field(default_factory=dict)
    """By key `softmax#2`, in order of appearance."""
    devices: dict[str, DeviceState] = field(default_factory=dict)
    notices: list[tuple[str, str]] = field(default_factory=list)
    paused: str = ""
    """Why no GPU of the node is judged on for now."""
    """(level, message), oldest first."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """Sum over the calls whose price is known; `None` while there is none."""
    unpriced_calls: int = 0
    finished: bool = False
    stopped: str | None = None
    """Reason of an `EngineStopped` that nothing followed."""
    skipped_events: int = 0
    """Events of a type this version does not know, and lines it could not read."""

    def attempt(self, attempt: str) -> AttemptState:
        """The attempt of this name; `KeyError` when there is none."""
        try:
            name = split_attempt(attempt)
        except ValueError:
            raise KeyError(attempt) from None
        for known in reversed(self.instances[name.instance].attempts):
            if known.number == name.number:
                return known
        raise KeyError(attempt)

    def attempts(self) -> list[AttemptState]:
        """Every attempt, by instance in order of appearance, then by number."""
        return [attempt for instance in self.instances.values() for attempt in instance.attempts]
