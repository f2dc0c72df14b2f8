"""The state of a session: `sessions.state.folding` builds it from events; screens, agents and reports read only this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, TypeVar

import msgspec

from harness import Evaluation, Stage, Verdict
from harness.wire.device import is_cpu
from harness.wire.results.kernel_counts import Profile
from harness.wire.results.provenance import same_provenance
from sessions.events import (
    AGENT_PROGRAM,
    GIVEN,
    RECORDING,
    AttemptSwept,
    CallFinished,
    CallStarted,
    CandidateProposed,
    CandidateSent,
    DecisionMade,
    DeviceUser,
    EndReason,
    Event,
    InstanceForked,
    MeasureAsked,
    Message,
    Origin,
    PersonCommand,
    ProfileAsked,
    ProfileTaken,
    Role,
    ServedModel,
    SessionExtended,
    SweepRung,
    Usage,
    WinnerMeasured,
)
from sessions.journal.reader import JournalReader, KeptEvent, keep
from sessions.names import instance_key, short_task, split_attempt, stage_word
from sessions.settings import SessionDescription

from .judged import JudgedFacts
from .speed import Speed

E = TypeVar("E", bound=Event)

EXTENDABLE = frozenset(
    {EndReason.ITERATIONS, EndReason.SPEEDUP_REACHED, EndReason.AT_ROOF, EndReason.NO_GAIN}
)
"""Reasons after which more iterations open an instance again."""
CURABLE = frozenset({EndReason.MODEL_FAILED, EndReason.INFRA_ERROR})
"""Reasons after which a resume continues an instance: a new key, a model or judge that works again."""


class Words:
    """Text that grows by pieces: adding is cheap, and reading joins the pieces once.

    A string would be copied completely for each of the thousands of pieces of a long reply.
    """

    __slots__ = ("_pieces",)

    def __init__(self, text: str = "") -> None:
        self._pieces = [text] if text else []

    def add(self, piece: str) -> None:
        """Append a piece."""
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
    """The result of the exam of a correct attempt."""

    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "failed exam"
    NOT_EXAMINED = "not examined"


def without_trailing_space(source: str) -> str:
    """Returns a source without the spaces and empty lines that change nothing in it."""
    return "\n".join(line.rstrip() for line in source.split("\n")).rstrip()


class Spend(NamedTuple):
    """Tokens and USD."""

    tokens: int = 0
    usd: float = 0.0

    def plus(self, addend: Spend) -> Spend:
        """Returns the sum of both."""
        return Spend(self.tokens + addend.tokens, self.usd + addend.usd)


NOTHING = Spend()


@dataclass(slots=True)
class CallState:
    """One call of a model, finished or in progress."""

    call: str
    attempt: str
    role: Role
    model: str
    started: KeptEvent[CallStarted] | None = None
    """Has the prompt; `None` if the journal lost it."""
    streamed: dict[str, Words] = field(default_factory=dict)
    """Text so far by `ReplyPiece.kind`; empty once the reply is complete."""
    reply: KeptEvent[CallFinished] | None = None
    failed: str = ""
    """`reason: message` of a `CallFailed`, or `reason, cause: message`."""
    too_long: bool = False
    """It failed because the prompt did not fit the model's context."""
    retries: int = 0
    last_retry: str = ""
    """`reason: message` of the last `CallRetried`."""
    retry_reason: str = ""
    refused_wall: float = 0.0
    """When the first of the refusals came after which no text has arrived."""
    retry_wall: float = 0.0
    """When the next try starts."""
    stop_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    most: Spend = NOTHING
    """See `CallStarted.most_tokens`."""
    seconds: float | None = None
    temperature: float | None = None
    served: ServedModel | None = None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The prompt, as it was sent."""
        return self.started.event.messages if self.started is not None else ()

    @property
    def finished(self) -> bool:
        """True if the reply is complete."""
        return self.reply is not None

    @property
    def is_of_agent(self) -> bool:
        """True if it is output of an agent's program."""
        return self.served is not None and self.served.endpoint == AGENT_PROGRAM

    @property
    def own_temperature(self) -> bool:
        """True if the model refused a temperature and used its default; unknown for a recording."""
        is_model = not self.model.startswith("recorded:") and not self.is_of_agent
        return self.finished and self.temperature is None and is_model

    @property
    def reasoning(self) -> str:
        """The reasoning so far."""
        return str(self.streamed.get("reasoning", "")) if self.reply is None else self.reply.event.reasoning

    @property
    def text(self) -> str:
        """The reply so far."""
        return str(self.streamed.get("text", "")) if self.reply is None else self.reply.event.text

    @property
    def live(self) -> bool:
        """True if more text may come."""
        return not self.finished and not self.failed


@dataclass(slots=True)
class AttemptState:
    """One attempt: candidate, lineage, calls, evaluation."""

    attempt: str
    number: int
    origin: Origin
    base: str | None
    heard: int = 0
    """Number of the last command of a person that it follows."""
    calls: list[CallState] = field(default_factory=list)
    proposed: KeptEvent[CandidateProposed] | None = None
    source_hash: int = 0
    """Hash of the source `without_trailing_space`; equal sources have equal hashes in one process."""
    strategy: str = ""
    word: str = "wait"
    """Its current work, in the words of `InstanceState.word`; several attempts of an instance may be in progress."""
    word_wall: float = 0.0
    """Time of the event with which that work began, in seconds since the epoch; 0 before the first work."""
    stage: str | None = None
    """The current stage of the judge."""
    stages_so_far: list[Stage] | None = None
    """Finished stages of the judge, if the verdict does not have them."""
    judged: JudgedFacts | None = None
    same_as: str = ""
    """The earlier attempt with the same source, which gave the evaluation; empty if this attempt was judged."""
    device_s: float = 0.0
    """Seconds in which the judge held devices for it: verdict, rungs of its sweeps, exam and spread."""
    examining: str | None = None
    """The current stage of the judge on the exam cases."""
    swept: KeptEvent[AttemptSwept] | None = None
    """Result of the sweep of its launch parameters."""
    rungs: list[SweepRung] = field(default_factory=list)
    """Reports of the rungs of its sweeps: estimates. A second sweep has the same rung numbers, for variants that were
    not judged yet."""
    examined: JudgedFacts | None = None
    """Result on the exam cases at the instance's end; only for people."""
    measured: dict[str, KeptEvent[WinnerMeasured]] = field(default_factory=dict)
    """The latest measurement on each GPU, because a person or an agent asked; only for people."""
    profiled: dict[str, KeptEvent[ProfileTaken]] = field(default_factory=dict)
    """The latest profile of each case; the latest of all is the last."""
    profile_failures: dict[str, str] = field(default_factory=dict)
    """Why a case has no new profile, in one line."""
    decision: DecisionMade | None = None
    """The current decision about it."""
    waiting: bool = False
    """True while it waits for a person."""
    waiting_wall: float = 0.0
    """When it began to wait for a person."""
    held: bool = False
    """True if it waited for a person at any time."""
    commit: str | None = None
    committed_seq: int = 0
    """Number of the first event with its commit; 0 if there is none. An instance's branch is in this order."""
    started_wall: float = 0.0
    judged_wall: float = 0.0
    judged_worked_s: float = 0.0
    """`SessionState.worked_s` at its verdict."""
    judged_seq: int = 0
    """Number of the event with the verdict; 0 if there is none."""

    @property
    def verdict(self) -> Verdict | None:
        """The judge's verdict, once there is one."""
        return self.judged.verdict if self.judged is not None else None

    @property
    def evaluation(self) -> Evaluation | None:
        """The judge's evaluation, once there is one."""
        return self.judged.evaluation if self.judged is not None else None

    @property
    def exam(self) -> Evaluation | None:
        """The evaluation on the exam cases, if it was examined."""
        return self.examined.evaluation if self.examined is not None else None

    @property
    def source(self) -> str | None:
        """The candidate; `None` before it is known."""
        return self.proposed.event.source if self.proposed is not None else None

    @property
    def is_timed_again(self) -> bool:
        """True if the exam confirmed it and timed it again, in new processes and on new values."""
        return self.examined is not None and self.examined.is_exam and self.examined.speed is not None

    @property
    def timed(self) -> JudgedFacts | None:
        """The verdict with the times that count: the exam's if it timed the attempt again; `None` if not judged."""
        return self.examined if self.is_timed_again else self.judged

    @property
    def timed_evaluation(self) -> Evaluation | None:
        """The evaluation of `timed`."""
        return self.timed.evaluation if self.timed is not None else None

    @property
    def speed(self) -> Speed | None:
        """The speed as the exam timed it again, else as it was found; `None` if it was not timed."""
        return self.timed.speed if self.timed is not None else None

    @property
    def found_speed(self) -> Speed | None:
        """The speed before the exam, if the exam timed the same cases again with the same provenance; else `None`."""
        first, again = self.judged, self.timed
        if first is None or again is None or first is again or first.speed is None or again.speed is None:
            return None
        same_cases = (first.speed.cases, first.speed.all_cases) == (again.speed.cases, again.speed.all_cases)
        return first.speed if same_cases and same_provenance(first.provenance, again.provenance) else None

    @property
    def stages(self) -> list[Stage]:
        """The finished stages of the judge."""
        if self.stages_so_far is not None:
            return self.stages_so_far
        return list(self.judged.evaluation.stages) if self.judged is not None else []

    @property
    def sweep(self) -> AttemptSwept | None:
        """The result of the sweep of its launch parameters, if there was one."""
        return self.swept.event if self.swept is not None else None

    @property
    def spread(self) -> list[WinnerMeasured]:
        """The latest measurement on each GPU, the latest last."""
        return [measured.event for measured in self.measured.values()]

    @property
    def profiles(self) -> dict[str, Profile]:
        """The latest profile of each case, the latest last."""
        taken = ((case, profiled.event.profile) for case, profiled in self.profiled.items())
        return {case: profile for case, profile in taken if profile is not None}

    @property
    def accepted(self) -> bool:
        """True if a person accepted it."""
        return self.decision is not None and self.decision.accepted

    @property
    def rejected(self) -> bool:
        """True if a person rejected it."""
        return self.decision is not None and not self.decision.accepted

    @property
    def confirmation(self) -> Confirmation:
        """The result of the exam; an exam without a verdict on the candidate does not count."""
        exam = self.examined
        if exam is None or not exam.is_exam or not exam.verdict.counted:
            return Confirmation.NOT_EXAMINED
        return Confirmation.CONFIRMED if exam.verdict is Verdict.CORRECT else Confirmation.NOT_CONFIRMED

    @property
    def unexamined_because(self) -> str:
        """Why an exam gave no verdict on the candidate; empty if there was no exam, or it gave a verdict."""
        if self.examined is None or self.confirmation is not Confirmation.NOT_EXAMINED:
            return ""
        error = self.examined.evaluation.error
        return error.first_line if error is not None else str(self.examined.verdict)

    @property
    def usage(self) -> Usage:
        """Tokens of its finished calls; a count that no provider reported is `None`."""
        usages = [call.usage for call in self.calls if call.finished]
        return Usage(
            *(known_sum([getattr(usage, field) for usage in usages]) for field in Usage.__struct_fields__)
        )

    @property
    def cost_usd(self) -> float | None:
        """Cost of its calls with a known price; `None` if there are none."""
        priced = [call.cost_usd for call in self.calls if call.cost_usd is not None]
        return sum(priced) if priced else None


def known_sum(counts: Sequence[int | None]) -> int | None:
    """Returns the sum of the counts that are not `None`; `None` if there are none."""
    numbers = [count for count in counts if count is not None]
    return sum(numbers) if numbers else None


@dataclass(slots=True)
class InstanceState:
    """One instance: an independent chain of attempts on one task."""

    key: str
    """`softmax#2`."""
    task: str
    instance: int
    word: str = "wait"
    """Work of its latest busy attempt: `generate`, `optimize`, `reflect`, `tune`, a stage's name, `exam`, `wait` (for
    a slot), `person`, `done` or `failed`."""
    attempts: list[AttemptState] = field(default_factory=list)
    finished: str | None = None
    """Reason of an `InstanceFinished`."""
    message: str = ""
    best: str | None = None
    """Best judged attempt so far, by `sessions.state.winners`; a failed attempt while none is correct (see `solved`)."""
    last_wall: float = 0.0
    """When its last event happened."""

    @property
    def best_attempt(self) -> AttemptState | None:
        """The attempt that `best` names; `None` if none was judged."""
        return next((attempt for attempt in self.attempts if attempt.attempt == self.best), None)

    @property
    def best_correct(self) -> AttemptState | None:
        """The best attempt, if it is correct."""
        best = self.best_attempt
        return best if best is not None and best.verdict is Verdict.CORRECT else None

    @property
    def solved(self) -> bool:
        """True if an attempt is correct."""
        return any(attempt.verdict is Verdict.CORRECT for attempt in self.attempts)

    @property
    def curable(self) -> bool:
        """True if it ended for a reason after which a resume continues it."""
        return self.finished in CURABLE


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
    """Its users in words, while a candidate waits for it."""
    users: tuple[DeviceUser, ...] = ()
    """The same users."""
    quarantined: str = ""
    """Why nothing is judged on it any more."""
    lost_wall: float = 0.0
    """When it was lost; 0 if it was not."""
    requeued: tuple[str, ...] = ()
    """Attempts that it judged when it was lost; the judge repeats them elsewhere."""
    throttled: str = ""
    """Why its clock dropped during its latest timing, for example `power cap`; empty if it did not drop."""
    throttled_wall: float = 0.0
    """When `throttled` began."""
    recent: tuple[tuple[float, float | None], ...] = ()
    """(wall, utilisation) of the samples of the last minute, oldest first."""


class Preparation(msgspec.Struct, frozen=True):
    """A step before the first model call of a task."""

    step: str
    """`judging the baseline of softmax: compile`."""
    since: float
    """Start of this stage, in seconds since the epoch."""


@dataclass(slots=True)
class SessionState:
    """The fold of a session's events."""

    started: SessionDescription | None = None
    title: str = ""
    """Title by a person; empty if none."""
    started_wall: float | None = None
    last_wall: float | None = None
    last_seq: int = 0
    worked_s: float = 0.0
    """Time in which an engine worked, up to its last event; a stopped session does not age."""
    engine_mono: float | None = None
    """`mono` of the running engine's last event; `None` if no engine runs."""
    engine_wall: float = 0.0
    """When that event happened."""
    instances: dict[str, InstanceState] = field(default_factory=dict)
    """Instances by key `softmax#2`, in order of appearance."""
    devices: dict[str, DeviceState] = field(default_factory=dict)
    verification: dict[str, str] = field(default_factory=dict)
    """Whether its GPUs were verified on their node, in words by product."""
    baselines: dict[str, Evaluation] = field(default_factory=dict)
    """Evaluation of the timing baseline, by task."""
    baseline_stages: dict[str, tuple[str, float]] = field(default_factory=dict)
    """(stage, wall of its start) of each timing baseline that is being judged, by task."""
    baselines_device_s: float = 0.0
    """Seconds in which the judge held devices for baselines."""
    notices: list[tuple[str, str]] = field(default_factory=list)
    """(level, message), oldest first."""
    commands: list[PersonCommand] = field(default_factory=list)
    """Commands that later attempts follow, oldest first."""
    on_hold: set[str] = field(default_factory=set)
    """Instances that a person paused; an empty key is the whole session."""
    retired: dict[str, str] = field(default_factory=dict)
    """Instances that a person retired, with the person's name."""
    extensions: list[SessionExtended] = field(default_factory=list)
    added_usd: float = 0.0
    """What a person added to the budget in USD."""
    forks: dict[str, InstanceForked] = field(default_factory=dict)
    """Instances that a person added, by key."""
    sent: list[CandidateSent] = field(default_factory=list)
    """Candidates of agents, oldest first."""
    withdrawn: set[str] = field(default_factory=set)
    """Attempts that the agent withdrew."""
    left: set[str] = field(default_factory=set)
    """Instances that get no further candidate from their agent."""
    measures: list[MeasureAsked] = field(default_factory=list)
    """Measurements that a person asked for and that are not complete."""
    profiles_asked: list[ProfileAsked] = field(default_factory=list)
    """Profiles that a person asked for and that are not taken yet."""
    baseline_profiles: dict[str, dict[str, Profile]] = field(default_factory=dict)
    """The latest profile of each task's timing baseline, by task and case."""
    lent: set[str] = field(default_factory=set)
    """GPUs that a person lent to others."""
    paused: str = ""
    """Why no GPU of the node judges at the moment."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """Cost of the calls with a known price; `None` if there are none."""
    unpriced_calls: int = 0
    assumed: Spend = NOTHING
    """The sum that budgets assume for lost tries and for calls without known usage."""
    reserved: dict[str, Spend] = field(default_factory=dict)
    """The most that each call in progress can use."""
    lost_tries: list[CallState] = field(default_factory=list)
    """The call of each try that a provider may bill although it brought no reply."""
    finished: bool = False
    stopped: str | None = None
    """Reason of the last `EngineStopped`, until an engine starts again."""
    stopped_wall: float = 0.0
    """When that was."""
    skipped_events: int = 0
    """Events of unknown types, and unreadable lines."""
    journal: JournalReader | None = field(default=None, compare=False, repr=False)
    """Reads the events of large values again; `None`: the state keeps these events."""
    owned: set[str] = field(default_factory=set, compare=False, repr=False)
    """Attempts that no other state shares (see `sessions.state.copying`)."""

    def keep(self, event: E) -> KeptEvent[E]:
        """Returns an event that the state keeps, by its number if the journal has it."""
        return keep(event, self.journal)

    @property
    def counted(self) -> Spend:
        """The tokens and USD that budgets count as spent."""
        return Spend(self.input_tokens + self.output_tokens, self.cost_usd or 0.0).plus(self.assumed)

    @property
    def total_reserved(self) -> Spend:
        """The tokens and USD that budgets hold for the calls in progress."""
        return Spend(*map(sum, zip(NOTHING, *self.reserved.values(), strict=True)))

    @property
    def device_s(self) -> float:
        """Seconds in which the judge held devices."""
        return self.baselines_device_s + sum(attempt.device_s for attempt in self.attempts())

    @property
    def preparing(self) -> tuple[Preparation, ...]:
        """Steps that the running engine works on: the judge, tests, timing baselines; empty without an engine."""
        if self.started is None or self.engine_mono is None:
            return ()
        if not (self.instances or self.baseline_stages):
            return (Preparation("starting the judge", self.started_wall or self.engine_wall),)
        steps = [
            Preparation(
                f"recording the test of {short_task(task)}"
                if stage == RECORDING
                else f"judging the baseline of {short_task(task)}: {stage_word(stage)}",
                since,
            )
            for task, (stage, since) in self.baseline_stages.items()
        ]
        recording = [since for stage, since in self.baseline_stages.values() if stage == RECORDING]
        # A task that is ready has instances at once, so these wait until other tests are recorded.
        begun = {instance.task for instance in self.instances.values()} | self.baseline_stages.keys()
        waiting = [task for task in self.started.tasks if task not in begun]
        if recording and waiting:
            steps.append(Preparation(f"tests that wait to be recorded: {len(waiting)}", min(recording)))
        return tuple(steps)

    def worked_until(self, wall: float) -> float:
        """Returns `worked_s` at a moment after the last event, while an engine works."""
        if self.engine_mono is None:
            return self.worked_s
        return self.worked_s + max(0.0, wall - self.engine_wall)

    def attempt(self, attempt: str) -> AttemptState:
        """Returns the attempt of this name; `KeyError` if there is none."""
        try:
            name = split_attempt(attempt)
        except ValueError:
            raise KeyError(attempt) from None
        for state in reversed(self.instances[name.instance].attempts):
            if state.number == name.number:
                return state
        raise KeyError(attempt)

    @property
    def is_at_rest(self) -> bool:
        """True if no engine runs the session, as far as its events say."""
        return self.finished or self.stopped is not None

    @property
    def gpus(self) -> list[str]:
        """The GPUs of the session, as it names them."""
        return [name for name in (self.started.devices if self.started else ()) if not is_cpu(name)]

    def instance_keys(self) -> list[str]:
        """Returns the keys of all instances, also of those that have not begun."""
        if self.started is None:
            return []
        numbers = range(1, self.started.instances + 1)
        return [
            *(instance_key(task, number) for number in numbers for task in self.started.tasks),
            *self.forks,
        ]

    def takes_iterations(self, instance: str) -> bool:
        """True if more iterations let an instance go on."""
        begun = self.instances.get(instance)
        return begun is None or begun.finished is None or begun.curable or begun.finished in EXTENDABLE

    def phases(self, instance: str) -> tuple[int, ...]:
        """Returns the iterations of an instance: first those of the plan, then those of each extension by a person."""
        planned = self.started.iterations if self.started is not None else 0
        began = self.forks[instance].seq if instance in self.forks else 0
        later = (more.iterations for more in self.extensions if more.iterations and more.seq > began)
        return (planned, *later)

    def most_attempts(self, instance: str) -> int:
        """Returns how many attempts an instance may make: its iterations, and the kernels that people gave."""
        begun = self.instances.get(instance)
        by_people = sum(attempt.origin in GIVEN for attempt in begun.attempts) if begun is not None else 0
        return sum(self.phases(instance)) + by_people

    def sent_to(self, instance: str) -> list[CandidateSent]:
        """Returns the candidates that an agent sent to an instance; attempt n judges the n-th."""
        return [sent for sent in self.sent if sent.instance == instance]

    def is_on_hold(self, instance: str) -> bool:
        """True if a person paused this instance or the session."""
        return bool(self.on_hold & {"", instance})

    def tasks(self) -> list[str]:
        """Returns the tasks in the session's order; tasks of forks in other suites come last."""
        planned = self.started.tasks if self.started is not None else ()
        return list(dict.fromkeys([*planned, *(instance.task for instance in self.instances.values())]))

    def attempts(self) -> list[AttemptState]:
        """Returns every attempt, by instance in order of appearance, then by number."""
        return [attempt for instance in self.instances.values() for attempt in instance.attempts]
