"""A session's state: what `fold` makes of its events. Screens, the agents' loop and reports read nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness import Evaluation, Stage, Verdict

from .events import Message, Origin, Role, SessionStarted, Usage


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
    reasoning: str = ""
    text: str = ""
    finished: bool = False
    failed: str = ""
    """`reason: message` of a `CallFailed`."""
    retries: int = 0
    last_retry: str = ""
    stop_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    seconds: float | None = None


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
    stage: str | None = None
    """The stage the judge is in, while it is in one."""
    stages: list[Stage] = field(default_factory=list)
    evaluation: Evaluation | None = None
    decision: Decision | None = None
    waiting: bool = False
    """For a person."""
    commit: str | None = None
    started_wall: float = 0.0

    @property
    def verdict(self) -> Verdict | None:
        """The judge's answer, once there is one."""
        return self.evaluation.verdict if self.evaluation else None


@dataclass(slots=True)
class InstanceState:
    """One chain on one task."""

    key: str
    """`softmax#2`."""
    task: str
    instance: int
    word: str = "wait"
    """What it does now: `generate`, `optimize`, `reflect`, a stage's name, `wait` (for a slot), `person`, `done`, `failed`."""
    attempts: list[AttemptState] = field(default_factory=list)
    finished: str | None = None
    """Reason of an `InstanceFinished`."""
    message: str = ""
    best: str | None = None
    """Best attempt so far, by `sessions.metrics.rank`."""


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
        key, _, number = attempt.rpartition("/")
        for known in self.instances[key].attempts:
            if known.number == int(number):
                return known
        raise KeyError(attempt)
