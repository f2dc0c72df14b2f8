"""The event vocabulary: everything that can happen in a session, as tagged data.

Tags are never reused and fields are only added, with defaults: an older reader skips and counts what it does not know.
`DURABLE` names the events that are on disk (fsync) before anything acts on them.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from harness import Evaluation, Stage, Verdict

SCHEMA = 1


class Role(StrEnum):
    """Who a model speaks as in a call."""

    GENERATOR = "generator"
    REFLECTOR = "reflector"
    OPTIMIZER = "optimizer"


class Origin(StrEnum):
    """How an attempt came to be."""

    FRESH = "fresh"
    REPAIR = "repair"
    OPTIMIZE = "optimize"
    TUNE = "tune"
    HUMAN = "human"


class EndReason(StrEnum):
    """Why an instance ended. `InstanceFinished.reason` stays a word, so that an older reader takes one it does not know."""

    ITERATIONS = "iterations"
    """All of them were spent."""
    SOLVED = "solved"
    """A candidate is correct, and its method looks for no better one."""
    ANSWERED = "answered"
    """Its method asks for one answer, and that was judged."""
    NOTHING_LEFT = "nothing_left"
    """A sweep names no variant any more that is worth a judgement."""
    START_FAILED = "start_failed"
    """The kernel that a sweep was to start from is not correct."""
    RECORDING_EXHAUSTED = "recording_exhausted"
    BUDGET = "budget"
    MODEL_FAILED = "model_failed"
    INFRA_ERROR = "infra_error"


METHOD_DONE = frozenset({EndReason.ITERATIONS, EndReason.SOLVED, EndReason.ANSWERED, EndReason.NOTHING_LEFT})
"""Ends at which a method did all that it does: no remark."""


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one call as the provider counted them; unknown is `None`."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Part of `input_tokens` that was read from the provider's cache."""
    cache_write_tokens: int | None = None
    """Part of `input_tokens` that was written to it, which some providers bill at a price of its own."""


class Message(msgspec.Struct, frozen=True):
    """One message of a prompt."""

    role: str
    """`system`, `user` or `assistant`."""
    content: str


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """What every event carries. The journal fills these four in; whoever makes an event leaves them out."""

    seq: int = 0
    """1, 2, 3, ... in a session: the total order."""
    wall: float = 0.0
    """Seconds since the epoch, UTC."""
    mono: float = 0.0
    """Seconds of a monotonic clock since this engine process started; durations come from here."""
    schema: int = SCHEMA


class MethodOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a method may be told beside counts; each method takes some of them."""

    without: tuple[str, ...] = ()
    """Modules that are off: of `knowledge`, `one-shot`, `optimizer`, `reflection`."""
    tune: bool = False
    """Sweep the launch parameters of each correct attempt."""
    start: str = ""
    """File of the kernel to start from; empty: the task's timing baseline."""
    workers: int = 4
    """That work side by side in one instance of `kernelagent`."""
    descendants: int = 8
    """Candidates of one round of `geak-evolve`."""
    profile: str = "chat"
    """Prompt format that the model expects (`engine.profiles`)."""
    corpus: str = ""
    """Folder of kernels that may be shown as examples, besides the baselines of tasks that are not under test."""


class SessionStarted(Event, frozen=True, kw_only=True, tag="session_started"):
    """First event of a session; the same data as `session.json`."""

    session: str
    method: str
    model: str
    tasks: tuple[str, ...]
    """Full names, `suite/task`."""
    instances: int
    iterations: int
    seed: int
    devices: tuple[str, ...]
    targets: tuple[str, ...]
    review: str
    """`auto` or `manual`."""
    budget_usd: float | None = None
    budget_tokens: int | None = None
    first_chain: int = 1
    """Of a recording: instance n plays chain `first_chain + n - 1`."""
    series: str = ""
    """What the session was started as a part of, as `ablation-20261121-090000-3f2a`; empty for one that stands alone."""
    options: MethodOptions = MethodOptions()
    against: str = ""
    """What candidates are timed against, by name: `eager`, `compile`, or a kernel's file; empty: the task's own baseline."""
    against_source: str = ""
    """The kernel, where a file was named: a resume times against the same."""
    spread: bool = False
    """Whether each instance's winner is measured on every GPU."""
    versions: dict[str, str] = {}
    templates: dict[str, str] = {}
    """sha256 of each prompt template, by file name."""


class EngineStarted(Event, frozen=True, kw_only=True, tag="engine_started"):
    """An engine process took the session up, at the start or at a resume."""

    host: str
    pid: int
    resumed: bool = False


class InstanceStarted(Event, frozen=True, kw_only=True, tag="instance_started"):
    """One chain on one task began."""

    task: str
    instance: int
    """1, 2, ... within the task."""


class AttemptStarted(Event, frozen=True, kw_only=True, tag="attempt_started"):
    """An iteration began: the candidate is about to be asked for."""

    attempt: str
    """`softmax#2/7`: short task id, instance, number within the instance from 1."""
    origin: Origin
    base: str | None = None
    """The attempt this one is derived from."""


class CallStarted(Event, frozen=True, kw_only=True, tag="call_started"):
    """A request goes to the model."""

    call: str
    """`softmax#2/7/generator/1`: attempt, role, number of the call of that role in the attempt."""
    attempt: str
    role: Role
    model: str
    messages: tuple[Message, ...]
    """Exactly what is sent."""


class ReplyPiece(Event, frozen=True, kw_only=True, tag="reply_piece"):
    """Some streamed words, batched; not synced. A retry starts over: see `CallRetried`."""

    call: str
    kind: str
    """`reasoning` or `text`."""
    text: str


class CallRetried(Event, frozen=True, kw_only=True, tag="call_retried"):
    """A try failed and another follows; pieces streamed so far are void."""

    call: str
    reason: str
    """`rate_limited`, `server_error`, `connection`, `cut`, `silent`, `garbage`, `overloaded`, ..."""
    message: str
    wait_s: float
    retry: int
    """1 for the first retry."""


class CallFinished(Event, frozen=True, kw_only=True, tag="call_finished"):
    """A whole reply arrived. Durable: it is never asked for again."""

    call: str
    text: str
    reasoning: str = ""
    stop_reason: str = ""
    """In our words: `end`, `truncated`, or the provider's own where neither fits."""
    usage: Usage = Usage()
    cost_usd: float | None = None
    """By the configured prices; `None` where no price is known."""
    seconds: float = 0.0
    temperature: float | None = None
    """As sent; `None` when the model refused one and its default ruled."""


class CallFailed(Event, frozen=True, kw_only=True, tag="call_failed"):
    """No reply will come: retries are used up, or trying again is useless. Durable."""

    call: str
    reason: str
    """`bad_key`, `unknown_model`, `bad_request`, `gave_up`, `recording_exhausted`, `budget`, ..."""
    message: str


class CandidateProposed(Event, frozen=True, kw_only=True, tag="candidate_proposed"):
    """The candidate of an attempt is known. Durable."""

    attempt: str
    source: str
    strategy: str = ""
    """What the optimizer set out to do, one or a few sentences."""
    unusable: str = ""
    """Where `source` is empty, what was wrong with the reply: `empty`, `truncated`, `no_code_block`, `several_modules`."""


class SweepStarted(Event, frozen=True, kw_only=True, tag="sweep_started"):
    """Launch parameters of an attempt's candidate are swept: its variants are compiled, nothing is judged yet."""

    attempt: str


class SweptVariant(msgspec.Struct, frozen=True):
    """A variant that a sweep would have judged."""

    changes: tuple[str, ...]
    """`num_warps 4 to 8`, one for each thing that differs from the attempt's candidate."""
    source: str
    better: bool
    """Whether it stands above the attempt's candidate by what `AttemptSwept.ranked_by` says, each of its changes needed."""


class AttemptSwept(Event, frozen=True, kw_only=True, tag="attempt_swept"):
    """A sweep over an attempt's launch parameters is over. Durable: its compilations are not made again."""

    attempt: str
    target: str
    """What was compiled for."""
    tried: int
    """Variants compiled."""
    pruned: dict[str, int] = {}
    """How many of them were dropped, by reason in words."""
    ranked_by: str = ""
    """In words; whether any of it was measured."""
    variants: tuple[SweptVariant, ...] = ()
    """Those that look better first, each part best first; of what is left, as many as may be judged."""
    seconds: float = 0.0


class RungEntry(msgspec.Struct, frozen=True):
    """What a rung found of one variant."""

    changes: tuple[str, ...]
    """As in `SweptVariant`, by which it is known."""
    verdict: str
    """Of the interpreter, and of the outputs that were looked at where it was timed: `correct` as far as that goes."""
    estimate: float | None = None
    """Time of the attempt's candidate over the variant's, from few samples: an estimate, never a latency. `None`: not known."""
    samples: int = 0
    why: str = ""
    """It was not right, or could not be said."""
    kept: bool = False
    """It goes on, to the next rung or to the judge."""


class SweepRung(Event, frozen=True, kw_only=True, tag="sweep_rung"):
    """A rung of a sweep is over: its variants' times were estimated, the better part goes on. Durable."""

    attempt: str
    """Whose variants they are, and whose time the ratios are of."""
    rung: int
    """1, 2, ...; each takes several times the samples of the one before."""
    pairs: int
    """Processes of each side."""
    entries: tuple[RungEntry, ...]
    """Best first."""
    seconds: float = 0.0


class StageStarted(Event, frozen=True, kw_only=True, tag="stage_started"):
    """The judge entered a stage of the cascade."""

    attempt: str
    stage: str
    device: str
    exam: bool = False
    """Of the judging on the exam cases, not of the one that gives the verdict."""


class StageFinished(Event, frozen=True, kw_only=True, tag="stage_finished"):
    """The judge left a stage."""

    attempt: str
    stage: Stage
    exam: bool = False
    """As in `StageStarted`."""


class AttemptJudged(Event, frozen=True, kw_only=True, tag="attempt_judged"):
    """The verdict. Durable."""

    attempt: str
    evaluation: Evaluation


class AttemptCommitted(Event, frozen=True, kw_only=True, tag="attempt_committed"):
    """The attempt stands in the git store."""

    attempt: str
    commit: str
    branch: str


class InstanceFinished(Event, frozen=True, kw_only=True, tag="instance_finished"):
    """A chain ended."""

    task: str
    instance: int
    reason: str
    """An `EndReason`, or a word of a newer writer's."""
    best: str | None = None
    """Its best attempt."""
    message: str = ""


class WaitingForPerson(Event, frozen=True, kw_only=True, tag="waiting_for_person"):
    """In manual review an instance waits for a decision about its attempt."""

    attempt: str


class WinnerExamined(Event, frozen=True, kw_only=True, tag="winner_examined"):
    """At the end of an instance its winner was judged on the exam cases. Durable.

    Nothing of it ever reaches a prompt, of this instance or another.
    """

    attempt: str
    evaluation: Evaluation
    """Of the exam cases. A verdict that is not counted says why the attempt was not examined."""


class WinnerMeasured(Event, frozen=True, kw_only=True, tag="winner_measured"):
    """With `spread`, at the end of an instance: its winner was judged and timed on one more GPU. Durable; never part of a prompt."""

    attempt: str
    device: str
    evaluation: Evaluation
    """Of the open cases. A verdict that is not counted says why the device could not be measured on."""


class DecisionMade(Event, frozen=True, kw_only=True, tag="decision_made"):
    """A person accepted or rejected an attempt. Durable."""

    attempt: str
    accepted: bool
    why: str = ""
    by: str = ""
    """The person's login name."""


class DecisionUndone(Event, frozen=True, kw_only=True, tag="decision_undone"):
    """A person took the standing decision about an attempt back. Durable."""

    attempt: str
    by: str = ""


class DeviceSampled(Event, frozen=True, kw_only=True, tag="device_sampled"):
    """A device's state; what cannot be read is `None`, never 0."""

    device: str
    description: str
    busy_with: tuple[str, ...] = ()
    """Attempts being judged on it."""
    utilisation: float | None = None
    """0 to 1."""
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    clock_mhz: float | None = None


class DeviceAwaited(Event, frozen=True, kw_only=True, tag="device_awaited"):
    """A candidate waits for others to be done with a device, until the next `StageStarted` on it."""

    device: str
    holders: tuple[str, ...]
    """Who runs or times on it, in words."""


class DeviceQuarantined(Event, frozen=True, kw_only=True, tag="device_quarantined"):
    """A device failed its health probe and is judged on no more by this engine; its work goes elsewhere."""

    device: str
    why: str


class NodePaused(Event, frozen=True, kw_only=True, tag="node_paused"):
    """No GPU of the session passes its health probe: nothing is judged, and they are probed again. Told at each probe."""

    why: str
    next_probe_s: float


class NodeResumed(Event, frozen=True, kw_only=True, tag="node_resumed"):
    """At least one GPU passes again."""

    seconds: float
    """That nothing was judged."""


class Notice(Event, frozen=True, kw_only=True, tag="notice"):
    """Something a person should know that is no verdict."""

    level: str
    """`info`, `warning` or `error`."""
    message: str


class EngineStopped(Event, frozen=True, kw_only=True, tag="engine_stopped"):
    """The engine left the session unfinished and in order (stop command, signal): it can be resumed. Durable."""

    reason: str
    failed: bool = False
    """Nobody asked for it: model, judge, disk or the engine itself failed."""


class SessionFinished(Event, frozen=True, kw_only=True, tag="session_finished"):
    """Every instance ended. Last event but for later decisions. Durable."""

    solved: tuple[str, ...] = ()
    """Tasks with a correct attempt."""


AnyEvent = (
    SessionStarted
    | EngineStarted
    | InstanceStarted
    | AttemptStarted
    | CallStarted
    | ReplyPiece
    | CallRetried
    | CallFinished
    | CallFailed
    | CandidateProposed
    | SweepStarted
    | AttemptSwept
    | SweepRung
    | StageStarted
    | StageFinished
    | AttemptJudged
    | AttemptCommitted
    | InstanceFinished
    | WaitingForPerson
    | WinnerExamined
    | WinnerMeasured
    | DecisionMade
    | DecisionUndone
    | DeviceSampled
    | DeviceAwaited
    | DeviceQuarantined
    | NodePaused
    | NodeResumed
    | Notice
    | EngineStopped
    | SessionFinished
)

DURABLE: tuple[type[Event], ...] = (
    SessionStarted,
    CallFinished,
    CallFailed,
    CandidateProposed,
    AttemptSwept,
    SweepRung,
    AttemptJudged,
    InstanceFinished,
    WinnerExamined,
    WinnerMeasured,
    DecisionMade,
    DecisionUndone,
    EngineStopped,
    SessionFinished,
)

__all__ = [
    "DURABLE",
    "METHOD_DONE",
    "SCHEMA",
    "AnyEvent",
    "EndReason",
    "Event",
    "Message",
    "Origin",
    "Role",
    "Usage",
    "Verdict",
]
