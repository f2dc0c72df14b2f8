"""The event vocabulary: everything that can happen in a session, as tagged data.

Tags are never reused, and new fields have defaults: an older reader skips and counts unknown events.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from harness import Evaluation, Stage
from harness.wire.kernel_profile import Profile

from .settings import SCHEMA, RunSettings, SessionDescription


class Role(StrEnum):
    """The role of the model in a call."""

    GENERATOR = "generator"
    REFLECTOR = "reflector"
    OPTIMIZER = "optimizer"


class Origin(StrEnum):
    """The origin of an attempt."""

    FRESH = "fresh"
    REPAIR = "repair"
    OPTIMIZE = "optimize"
    TUNE = "tune"
    HUMAN = "human"
    FORK = "fork"
    """The unchanged kernel of an attempt of another instance."""
    AGENT = "agent"
    """An agent that is not Wavedeck's own sent it (`CandidateSent`)."""


GIVEN = frozenset({Origin.HUMAN, Origin.FORK})
"""Origins of attempts whose kernel a person gave; a model's accuracy does not count them."""
UNASKED = GIVEN | {Origin.TUNE}
"""Origins of attempts for which no model is asked."""


class EndReason(StrEnum):
    """Why an instance ended. `InstanceFinished.reason` is a string, so that an older reader accepts a newer reason."""

    ITERATIONS = "iterations"
    """All iterations are used."""
    SOLVED = "solved"
    """A candidate is correct, and the method does not look for a better one."""
    ANSWERED = "answered"
    """The method asks for one answer, and that answer was judged."""
    JUDGED = "judged"
    """All candidates that existed before the session are judged."""
    SUBMITTED = "submitted"
    """The agent or the model ended its work, or the agent was silent for too long."""
    NOTHING_LEFT = "nothing_left"
    """A sweep has no variant left that is worth judging."""
    START_FAILED = "start_failed"
    """The start kernel of a sweep is not correct."""
    SPEEDUP_REACHED = "speedup_reached"
    """An attempt reached the speedup that the person asked for."""
    AT_ROOF = "at_roof"
    """An attempt reached the practical roof of the device."""
    NO_GAIN = "no_gain"
    """The latest correct attempts were not faster than the best before."""
    EDITED = "edited"
    """A person's edit was judged; no model is asked."""
    RETIRED = "retired"
    """A person retired it."""
    HOPELESS = "hopeless"
    """No attempt of the task is correct, and the session gave its iterations to other tasks."""
    RECORDING_EXHAUSTED = "recording_exhausted"
    BUDGET = "budget"
    MODEL_FAILED = "model_failed"
    INFRA_ERROR = "infra_error"


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one call as the provider counted them; unknown counts are `None`."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Part of `input_tokens` that was read from the provider's cache."""
    cache_write_tokens: int | None = None
    """Part of `input_tokens` that was written to the cache; some providers have a separate price for it."""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a prompt."""

    role: str
    """`system`, `user`, `assistant` or `tool` (the answer to a tool call)."""
    content: str
    answers: str = ""
    """The id of the call that a `tool` message answers."""
    turn: tuple[dict[str, Any], ...] = ()
    """See `CallFinished.turn`; it is sent, and `content` shows it to people."""


AGENT_PROGRAM = "agent"
"""Endpoint of calls that are output of an agent's program: it asks its models itself, and says what it spent at its end."""


class ServedModel(msgspec.Struct, frozen=True):
    """The model that answered a call, as far as server and request say it."""

    model: str = ""
    """The id that the server says it served, for example with the date of a version; empty if it says none."""
    endpoint: str = ""
    """Protocol of the request: `messages`, `responses` or `chat`; `AGENT_PROGRAM` for the output of an agent's program."""
    parameters: dict[str, Any] = {}
    """Every parameter that was sent besides the prompt: temperature, longest reply, thinking, effort."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Fields of every event; the journal sets them when it writes the event."""

    seq: int = 0
    """1, 2, 3, ... in a session: the total order."""
    wall: float = 0.0
    """Seconds since the epoch, UTC."""
    mono: float = 0.0
    """Seconds since this engine process started, from a monotonic clock; durations use it."""
    schema: int = SCHEMA


class DurableEvent(Event, frozen=True, kw_only=True):
    """An event that is on disk (fsync) before anything acts on it: what it says is never paid or asked for again."""


class PersonEvent(DurableEvent, frozen=True, kw_only=True):
    """A person's command."""

    by: str = ""
    """The person's login name."""


class JudgedEvent(DurableEvent, frozen=True, kw_only=True):
    """The judge's result for an attempt or for a baseline."""

    evaluation: Evaluation
    """A verdict that is not `counted` says why there is no result."""
    device_s: float = 0.0
    """Seconds in which the judge held a device for it."""


class SessionStarted(DurableEvent, frozen=True, kw_only=True, tag="session_started"):
    """First event of a session; the same data as `session.json`.

    Its line in the journal has the fields of `settings` beside the others (`journal.codec`).
    """

    session: str
    settings: RunSettings
    versions: dict[str, str] = {}
    templates: dict[str, str] = {}
    """sha256 of each prompt template, by file name."""

    def describe(self) -> SessionDescription:
        """Returns `session.json` of a session that began with this event."""
        return SessionDescription(
            session=self.session,
            started=self.wall,
            versions=self.versions,
            templates=self.templates,
            **self.settings.settings(),
        )


class EngineStarted(Event, frozen=True, kw_only=True, tag="engine_started"):
    """An engine process opened the session, at its start or at a resume."""

    host: str
    pid: int
    resumed: bool = False


class InstanceStarted(Event, frozen=True, kw_only=True, tag="instance_started"):
    """An instance (one chain on one task) began."""

    task: str
    instance: int
    """1, 2, ... within the task."""


class AttemptStarted(Event, frozen=True, kw_only=True, tag="attempt_started"):
    """An attempt began; its candidate is requested next."""

    attempt: str
    """`softmax#2/7`: short task id, instance, number within the instance from 1."""
    origin: Origin
    base: str | None = None
    """The attempt from which this attempt is derived."""
    heard: int = 0
    """Number of the last command of a person that this attempt follows; later commands wait for the next attempt."""


class CallStarted(Event, frozen=True, kw_only=True, tag="call_started"):
    """A request is sent to the model."""

    call: str
    """`softmax#2/7/generator/1`: attempt, role, number of the role's call in the attempt."""
    attempt: str
    role: Role
    model: str
    messages: tuple[Message, ...]
    """The messages exactly as sent, after those of `continues`."""
    continues: str = ""
    """In a conversation with tools, the earlier call that it goes on from; a journal has each message once."""


class ReplyPiece(Event, frozen=True, kw_only=True, tag="reply_piece"):
    """A batch of streamed text; not synced. A retry starts again: see `CallRetried`."""

    call: str
    kind: str
    """`reasoning` or `text`."""
    text: str


class CallRetried(Event, frozen=True, kw_only=True, tag="call_retried"):
    """A try failed and is repeated; the pieces streamed so far are void."""

    call: str
    reason: str
    """`rate_limited`, `server_error`, `connection`, `cut`, `silent`, `garbage`, `overloaded`, ..."""
    message: str
    wait_s: float
    retry: int
    """1 for the first retry."""
    billed: bool = False
    """True if the provider may bill the failed try: it ended after the reply had begun. Budgets count it in full."""


class CallFinished(DurableEvent, frozen=True, kw_only=True, tag="call_finished"):
    """A complete reply arrived. It is never requested again."""

    call: str
    text: str
    reasoning: str = ""
    stop_reason: str = ""
    """`end`, `truncated`, or the provider's own word if neither fits."""
    usage: Usage = Usage()
    cost_usd: float | None = None
    """Cost by the configured prices; `None` if no price is known."""
    seconds: float = 0.0
    temperature: float | None = None
    """The value that was sent; `None` if the model refused the parameter."""
    served: ServedModel | None = None
    """`None` for a recording, and in journals of older versions. The date of the call is the event's `wall`."""
    turn: tuple[dict[str, Any], ...] = ()
    """A reply with tool calls in the provider's own form, as the next request repeats it; else empty. `text` has the calls as
    people read them."""


class CallFailed(DurableEvent, frozen=True, kw_only=True, tag="call_failed"):
    """No reply will come: all tries failed, or a retry cannot help."""

    call: str
    reason: str
    """`bad_key`, `unknown_model`, `bad_request`, `gave_up`, `recording_exhausted`, ..."""
    message: str
    cause: str = ""
    """With `gave_up`, the reason of the last try, as in `CallRetried`."""
    billed: bool = False
    """See `CallRetried`; about the last try."""


class CandidateProposed(DurableEvent, frozen=True, kw_only=True, tag="candidate_proposed"):
    """The candidate of an attempt is known."""

    attempt: str
    source: str
    strategy: str = ""
    """The model's strategy in one or a few sentences."""
    unusable: str = ""
    """If `source` is empty, the defect of the reply: `empty`, `truncated`, `no_code_block`, `several_modules`,
    `no_eval`."""


class CandidateSent(DurableEvent, frozen=True, kw_only=True, tag="candidate_sent"):
    """An agent sent a candidate. Attempt n of the instance judges the n-th candidate that was sent to it."""

    instance: str
    source: str
    strategy: str = ""
    """The agent's own words about it."""
    heard: int = 0
    """Number of the last command of a person that the agent knew."""


class CandidateWithdrawn(DurableEvent, frozen=True, kw_only=True, tag="candidate_withdrawn"):
    """The agent wants no verdict on a candidate any more: its judging is cancelled."""

    attempt: str


class AgentLeft(DurableEvent, frozen=True, kw_only=True, tag="agent_left"):
    """The agent sends no further candidate: the instance ends when those that were sent are judged."""

    instance: str


class SweepStarted(Event, frozen=True, kw_only=True, tag="sweep_started"):
    """A sweep of an attempt's launch parameters began: variants are compiled or estimated, not judged."""

    attempt: str


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

    attempt: str
    target: str
    """The compile target."""
    tried: int
    """Number of compiled variants."""
    pruned: dict[str, int] = {}
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

    attempt: str
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


class StageStarted(Event, frozen=True, kw_only=True, tag="stage_started"):
    """The judge entered a stage of the cascade."""

    attempt: str
    stage: str
    device: str
    exam: bool = False
    """True for the judging on the exam cases, which does not give the verdict."""


class StageFinished(Event, frozen=True, kw_only=True, tag="stage_finished"):
    """The judge left a stage."""

    attempt: str
    stage: Stage
    exam: bool = False
    """See `StageStarted`."""


class AttemptJudged(JudgedEvent, frozen=True, kw_only=True, tag="attempt_judged"):
    """The verdict."""

    attempt: str
    same_as: str = ""
    """The earlier attempt of the instance with the same source, whose evaluation this is; empty if it was judged."""


class AttemptCommitted(Event, frozen=True, kw_only=True, tag="attempt_committed"):
    """The attempt is in the git store."""

    attempt: str
    commit: str
    branch: str


class InstanceFinished(DurableEvent, frozen=True, kw_only=True, tag="instance_finished"):
    """An instance ended."""

    task: str
    instance: int
    reason: str
    """An `EndReason`, or a word of a newer version."""
    best: str | None = None
    """Its best attempt."""
    message: str = ""


class WaitingForPerson(Event, frozen=True, kw_only=True, tag="waiting_for_person"):
    """In manual review, an instance waits for a decision about its attempt."""

    attempt: str


class WinnerExamined(JudgedEvent, frozen=True, kw_only=True, tag="winner_examined"):
    """At the end of an instance, its winner was judged on the exam cases.

    No prompt of any instance ever contains any of it.
    """

    attempt: str


class BaselineStageStarted(Event, frozen=True, kw_only=True, tag="baseline_stage"):
    """The judge began a stage of a task's timing baseline; the first prompt waits for its end."""

    task: str
    stage: str
    """A stage of the cascade, see `StageStarted`."""


class BaselineMeasured(JudgedEvent, frozen=True, kw_only=True, tag="baseline_measured"):
    """The timing baseline of a task was judged like a candidate, for the first prompt."""

    task: str


class WinnerMeasured(JudgedEvent, frozen=True, kw_only=True, tag="winner_measured"):
    """An attempt was judged and timed again on one GPU: a winner with `spread`, or after `MeasureAsked`.

    On the open cases; part of a prompt only if the model asked for it, by the tool `measure`.
    """

    attempt: str
    device: str


class DecisionMade(PersonEvent, frozen=True, kw_only=True, tag="decision_made"):
    """A person accepted or rejected an attempt."""

    attempt: str
    accepted: bool
    why: str = ""
    forced: bool = False
    """True if the person accepts an attempt that is not correct; `why` then has the reason."""


class DecisionUndone(PersonEvent, frozen=True, kw_only=True, tag="decision_undone"):
    """A person undid the current decision about an attempt."""

    attempt: str


class HintGiven(PersonEvent, frozen=True, kw_only=True, tag="hint_given"):
    """A person gave a hint for the next attempt of an instance."""

    instance: str
    """`softmax#2`."""
    text: str


class AttemptPinned(PersonEvent, frozen=True, kw_only=True, tag="attempt_pinned"):
    """A person chose a correct attempt as the base of its instance's optimizations, until the next pin."""

    attempt: str


class AttemptBanned(PersonEvent, frozen=True, kw_only=True, tag="attempt_banned"):
    """A person excluded an attempt: its instance builds on it no more."""

    attempt: str


class SessionTitled(PersonEvent, frozen=True, kw_only=True, tag="session_titled"):
    """A person gave the session a title, or removed it; a finished session stays finished."""

    title: str
    """Empty: no title."""


class RetireAsked(PersonEvent, frozen=True, kw_only=True, tag="retire_asked"):
    """A person retired an instance; its work in progress is cancelled and its winner examined."""

    instance: str


class Paused(PersonEvent, frozen=True, kw_only=True, tag="paused"):
    """A person paused an instance: no call and no attempt starts until `Unpaused`."""

    instance: str = ""
    """Empty: the whole session."""


class Unpaused(PersonEvent, frozen=True, kw_only=True, tag="unpaused"):
    """A person ended a pause."""

    instance: str = ""
    """Empty: all pauses of the session."""


class SessionExtended(PersonEvent, frozen=True, kw_only=True, tag="session_extended"):
    """A person gave a session more iterations or a larger budget; a finished session is open again.

    With iterations, the instances go on that used all of their own or met a stop rule. With a budget, those go on that
    the budget ended.
    """

    iterations: int
    """Further iterations of each instance."""
    budget_usd: float = 0.0
    """Added to the budget in USD."""


class IterationsMoved(DurableEvent, frozen=True, kw_only=True, tag="iterations_moved"):
    """With `--allocate best`, the unused iterations of an ended instance went to another one."""

    source: str
    """The instance that ended."""
    to: str
    """The instance that got them; it goes on if it had used all of its own."""
    iterations: int


class InstanceForked(PersonEvent, frozen=True, kw_only=True, tag="instance_forked"):
    """A person added an instance that starts from an attempt; a finished session is open again."""

    task: str
    instance: int
    base: str
    """The attempt whose kernel is the first attempt."""
    source: str = ""
    """A person's edit of that kernel: it is judged, and no model is asked. Empty: the method goes on from the kernel."""
    hint: str = ""
    """A hint for the attempt after the first."""


class MeasureAsked(PersonEvent, frozen=True, kw_only=True, tag="measure_asked"):
    """A person asked to time a correct attempt again; a finished session is open again."""

    attempt: str
    devices: tuple[str, ...]
    """GPUs of the session; each gives a `WinnerMeasured`."""


class ProfileAsked(PersonEvent, frozen=True, kw_only=True, tag="profile_asked"):
    """A person asked for the profile of a correct attempt; a finished session is open again."""

    attempt: str
    device: str
    """GPU of the session."""
    case: str = ""
    """Empty: the task's first open case."""
    of_baseline: bool = False
    """The timing baseline of the attempt's task is profiled, not the attempt."""


class ProfileTaken(DurableEvent, frozen=True, kw_only=True, tag="profile_taken"):
    """An attempt, or the timing baseline of its task, ran under a profiler, after `ProfileAsked` or with `profile_best`."""

    attempt: str
    of_baseline: bool = False
    profile: Profile | None = None
    problem: str = ""
    """Why there is no profile, and what to do."""
    case: str = ""
    """The open case of the profile that was tried."""
    device_s: float = 0.0
    """Seconds in which a device was held for it."""
    asked: int = 0
    """`seq` of the `ProfileAsked` that it answers; 0 with `profile_best`, or for the tool of a model."""

    @property
    def failure(self) -> str:
        """The problem in one line that names its subject."""
        subject = f"the baseline of {self.attempt}" if self.of_baseline else self.attempt
        return f"{subject} has no new profile: {self.problem}"


class DeviceLent(PersonEvent, frozen=True, kw_only=True, tag="device_lent"):
    """A person lent a GPU to others: no candidate starts on it until `DeviceReturned`."""

    device: str


class DeviceReturned(PersonEvent, frozen=True, kw_only=True, tag="device_returned"):
    """A person took a lent GPU back."""

    device: str


class DeviceSampled(Event, frozen=True, kw_only=True, tag="device_sampled"):
    """A device's state; a value that cannot be read is `None`, never 0."""

    device: str
    description: str
    busy_with: tuple[str, ...] = ()
    """Attempts that are being judged on it."""
    utilisation: float | None = None
    """0 to 1."""
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    clock_mhz: float | None = None


class DeviceAwaited(Event, frozen=True, kw_only=True, tag="device_awaited"):
    """A candidate waits for other users of a device, until the next `StageStarted` on it."""

    device: str
    holders: tuple[str, ...]
    """The users that run or time on it, in words."""


class DeviceQuarantined(Event, frozen=True, kw_only=True, tag="device_quarantined"):
    """A device failed its health probe; this engine judges on other devices from now on."""

    device: str
    why: str


class VerificationRead(Event, frozen=True, kw_only=True, tag="verification_read"):
    """Whether `doctor --verify-gpu` verified the session's GPUs; recorded at an engine's start if it changed."""

    standings: dict[str, str]
    """`verified on this node, 2026-11-26` and the like, by product."""


class NodePaused(Event, frozen=True, kw_only=True, tag="node_paused"):
    """No GPU of the session passes its health probe, so nothing is judged. Recorded at each probe."""

    why: str
    next_probe_s: float


class NodeResumed(Event, frozen=True, kw_only=True, tag="node_resumed"):
    """At least one GPU passes its health probe again."""

    seconds: float
    """Time without judging."""


class Notice(Event, frozen=True, kw_only=True, tag="notice"):
    """A message for people that is not a verdict."""

    level: str
    """`info`, `warning` or `error`."""
    message: str


class EngineStopped(DurableEvent, frozen=True, kw_only=True, tag="engine_stopped"):
    """The engine left the session unfinished and in good order (stop command, signal, error).

    The session can be resumed.
    """

    reason: str
    failed: bool = False
    """True if no person asked for the stop: model, judge, disk or the engine itself failed."""


class SessionFinished(DurableEvent, frozen=True, kw_only=True, tag="session_finished"):
    """Every instance ended. Decisions may follow, or a command that opens the session again."""

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
    | CandidateSent
    | CandidateWithdrawn
    | AgentLeft
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
    | BaselineStageStarted
    | BaselineMeasured
    | WinnerMeasured
    | DecisionMade
    | DecisionUndone
    | HintGiven
    | AttemptPinned
    | AttemptBanned
    | SessionTitled
    | RetireAsked
    | Paused
    | Unpaused
    | SessionExtended
    | IterationsMoved
    | InstanceForked
    | MeasureAsked
    | ProfileAsked
    | ProfileTaken
    | DeviceLent
    | DeviceReturned
    | DeviceSampled
    | DeviceAwaited
    | DeviceQuarantined
    | VerificationRead
    | NodePaused
    | NodeResumed
    | Notice
    | EngineStopped
    | SessionFinished
)
