"""What needs a person, most urgent first: used by the header, Fleet, Home, `wavedeck status` and the terminal's title."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from sessions.state.state import AttemptState, CallState, Confirmation, DeviceState, SessionState
from tui.facts.attempt import gain_words
from tui.facts.doing import refused_calls
from tui.facts.endings import ending_words
from tui.facts.evaluation.provenance import APART
from tui.facts.instance import FactsCache, InstanceFacts
from tui.facts.vocabulary import UNKNOWN, clock, count, counted, duration, money

BUDGET_SHARE = 0.9
"""A budget needs a person above this share."""
IDLE_S = 600.0
"""A busy instance without an event for so long counts as idle."""
CAUSES = {"rate_limited": "429", "connection": "not reachable", "bad_key": "key refused"}
"""Causes of a silent model in words, by the reason of `CallRetried`; other reasons are their own words."""


class EngineHealth(Protocol):
    """What a viewer knows of the engine, besides its events."""

    @property
    def running(self) -> bool:
        """True if an engine works on the session."""

    @property
    def error(self) -> str:
        """Why the session's files cannot be read; empty if they can."""


class ConcernKind(StrEnum):
    """Kinds of concerns; their order is the order of urgency."""

    ENGINE = "engine"
    REVIEW = "review"
    MODEL = "model"
    LOST = "GPU lost"
    STUCK = "stuck"
    FAILED = "failed"
    BUDGET = "budget"
    GPU = "GPU"
    IDLE = "idle"


URGENCY = {kind: place for place, kind in enumerate(ConcernKind)}
WRONG = frozenset(
    {ConcernKind.ENGINE, ConcernKind.MODEL, ConcernKind.LOST, ConcernKind.STUCK, ConcernKind.FAILED}
)
"""Kinds in red: something is wrong or failed. The others are yellow: they wait for a person."""


@dataclass(frozen=True, slots=True)
class Concern:
    """One thing that needs a person."""

    kind: ConcernKind
    subject: str
    """The attempt, instance or GPU (its name alone) that it is about; empty: the session."""
    words: str
    """One line, complete without the subject."""
    instance: str = ""
    """Key of the instance to which `enter` goes; empty if there is none."""
    attempt: int | None = None
    """Number of the attempt to which `enter` goes."""

    @property
    def style(self) -> str:
        """`warn` if it waits for a person, `bad` if something failed."""
        return "bad" if self.kind in WRONG else "warn"


def attention(
    state: SessionState,
    *,
    now_wall: float,
    health: EngineHealth | None,
    facts: FactsCache | None = None,
    present: float | None = None,
) -> list[Concern]:
    """
    Return what needs a person, most urgent first; within a kind the oldest first.

    `now_wall` is in seconds since the epoch; `health` is `None` in a replay. `facts` spares work for a caller that asks
    again and again. `present` is the present time if `now_wall` is the end of a session that is over.
    """
    cache = facts or FactsCache()
    instances = cache.all(state)
    concerns = [
        *_engine(state, now_wall, present, health),
        *_reviews(state, now_wall, instances),
    ]
    if not _is_over(state, health):
        concerns += _model(state, now_wall)
        concerns += _budget(state)
        concerns += _devices(state, now_wall)
        concerns += _idle(state, now_wall)
    concerns += _stuck(instances)
    concerns += _failed(state)
    return sorted(concerns, key=lambda concern: URGENCY[concern.kind])


def summary(concerns: Sequence[Concern]) -> str:
    """Return what waits in a few words: `2 reviews  1 stuck`; empty if nothing waits."""
    reviews = sum(concern.kind is ConcernKind.REVIEW for concern in concerns)
    stuck = sum(concern.kind is ConcernKind.STUCK for concern in concerns)
    others = len(concerns) - reviews - stuck
    parts = [
        counted(reviews, "review") if reviews else "",
        f"{stuck} stuck" if stuck else "",
        f"{others} other" if others and (reviews or stuck) else counted(others, "warning") if others else "",
    ]
    return "  ".join(filter(None, parts))


def model_trouble(state: SessionState, now_wall: float) -> str:
    """Return `MODEL 429 for 2:10, retry in 0:20, 31 wait` while a model refuses calls; empty if it does not."""
    refused = [call for instance in state.instances.values() for call in refused_calls(instance)]
    if not refused:
        return ""
    since = min(call.refused_wall for call in refused)
    due = min(call.retry_wall for call in refused) - now_wall
    retry = f"retry in {clock(due)}" if due >= 1 else "retrying now"
    return f"MODEL {_cause(refused[-1])} for {clock(now_wall - since)}, {retry}, {len(refused)} wait"


def ended_words(state: SessionState, now_wall: float, *, crashed: bool, end_wall: float | None) -> str:
    """Return `ENGINE ENDED 0:40 ago: cause`; without a time at the end of a replay. `end_wall`: when the work ended."""
    since = state.stopped_wall if state.stopped is not None else end_wall
    cause = "it crashed or was killed" if crashed else state.stopped or "no reason given"
    ago = f" {clock(now_wall - since)} ago" if since is not None and now_wall - since >= 1 else ""
    return f"ENGINE ENDED{ago}: {cause}"


def waiting_words(state: SessionState, attempt: AttemptState, now_wall: float) -> str:
    """Return `waits 4:10: 1.84x, own gain +6 %, not examined`; in a session that was stopped, `not decided: ...`."""
    speed = attempt.speed
    figures = ["not measured"]
    if speed is not None:
        gain = gain_words(attempt, state.instances[attempt.attempt.rpartition("/")[0]])
        without_figure = dict.fromkeys(("first", UNKNOWN), "its first speedup")
        without_figure["apart"] = APART.format(name="its best")
        figures = [speed.figure, without_figure.get(gain, f"own gain {gain}")]
    examined = {
        Confirmation.CONFIRMED: "confirmed by the exam",
        Confirmation.NOT_CONFIRMED: "failed its exam",
        Confirmation.NOT_EXAMINED: "not examined",
    }
    since = attempt.waiting_wall or attempt.judged_wall
    waits = f"waits {clock(now_wall - since)}" if state.stopped is None else "not decided"
    return f"{waits}: {', '.join([*figures, examined[attempt.confirmation]])}"


def foreign_words(device: DeviceState, session: str) -> str:
    """Return who else uses a GPU: `kim: pid 4242`; empty for nobody, and for the session itself."""
    foreign = [user for user in device.users if user.session != session]
    return "; ".join(f"{user.user}: {user.session or f'pid {user.pid}'}" for user in foreign)


def _is_over(state: SessionState, health: EngineHealth | None) -> bool:
    crashed = health is not None and not health.running
    return state.finished or state.stopped is not None or crashed


def _engine(
    state: SessionState, now_wall: float, present: float | None, health: EngineHealth | None
) -> Iterator[Concern]:
    if health is not None and health.error:
        yield Concern(ConcernKind.ENGINE, "", f"disconnected: {health.error}")
    crashed = health is not None and not health.running and not state.finished and state.stopped is None
    if state.stopped is not None or crashed:
        end_wall, now = (state.last_wall, now_wall) if present is None else (now_wall, present)
        words = ended_words(state, now, crashed=crashed, end_wall=end_wall)
        yield Concern(ConcernKind.ENGINE, "", words)
    elif state.paused and not state.finished:
        yield Concern(
            ConcernKind.ENGINE, "", f"nothing is judged: no GPU passes its health probe: {state.paused}"
        )


def _model(state: SessionState, now_wall: float) -> Iterator[Concern]:
    words = model_trouble(state, now_wall)
    if words:
        yield Concern(ConcernKind.MODEL, "", words)


def _reviews(state: SessionState, now_wall: float, instances: Iterable[InstanceFacts]) -> Iterator[Concern]:
    waiting = [attempt for facts in instances for attempt in facts.waiting]
    for attempt in sorted(waiting, key=lambda attempt: attempt.waiting_wall):
        instance = attempt.attempt.rpartition("/")[0]
        words = waiting_words(state, attempt, now_wall)
        yield Concern(ConcernKind.REVIEW, attempt.attempt, words, instance, attempt.number)


def _stuck(instances: Iterable[InstanceFacts]) -> Iterator[Concern]:
    for facts in instances:
        if facts.same_error and not facts.finished:
            words = f"same error {facts.errors} times: {facts.same_error}"
            yield Concern(ConcernKind.STUCK, facts.key, words, facts.key, facts.attempt)


def _failed(state: SessionState) -> Iterator[Concern]:
    for instance in state.instances.values():
        if instance.finished is not None and instance.curable:
            cause = f": {instance.message}" if instance.message else ""
            words = f"failed: {ending_words(instance.finished)}{cause}"
            yield Concern(ConcernKind.FAILED, instance.key, words, instance.key)


def _budget(state: SessionState) -> Iterator[Concern]:
    started = state.started
    if started is None:
        return
    usd = None if started.budget_usd is None else started.budget_usd + state.added_usd
    spent = state.counted
    limits: list[tuple[float, float | None, str]] = [
        (spent.usd, usd, f"{money(spent.usd)} of {money(usd)}"),
        (
            spent.tokens,
            started.budget_tokens,
            f"{count(spent.tokens)} of {count(started.budget_tokens or 0)} tokens",
        ),
        (
            state.device_s if started.budget_device_s is not None else 0.0,
            started.budget_device_s,
            f"{duration(state.device_s)} of {duration(started.budget_device_s)} on devices",
        ),
        (
            state.worked_s,
            started.budget_wall_s,
            f"{duration(state.worked_s)} of {duration(started.budget_wall_s)}",
        ),
    ]
    for used, limit, words in limits:
        if limit and used > BUDGET_SHARE * limit:
            yield Concern(ConcernKind.BUDGET, "", f"budget {used / limit * 100:.0f} % used: {words}")


def _devices(state: SessionState, now_wall: float) -> Iterator[Concern]:
    session = state.started.session if state.started is not None else ""
    for device in state.devices.values():
        name = device.device
        if device.quarantined:
            again = f"; {counted(len(device.requeued), 'attempt')} queued again" if device.requeued else ""
            ago = clock(now_wall - device.lost_wall)
            yield Concern(ConcernKind.LOST, name, f"lost {ago} ago: {device.quarantined}{again}")
        elif device.throttled:
            since = clock(now_wall - device.throttled_wall)
            yield Concern(
                ConcernKind.GPU,
                name,
                f"throttled ({device.throttled}) for {since}: samples at a low clock do not count",
            )
        elif others := foreign_words(device, session):
            yield Concern(ConcernKind.GPU, name, f"used by {others}")


def _idle(state: SessionState, now_wall: float) -> Iterator[Concern]:
    for instance in state.instances.values():
        asked = state.is_on_hold(instance.key) or instance.key in state.retired
        if instance.finished is not None or asked or instance.word in ("person", "done", "failed"):
            continue
        silent = now_wall - instance.last_wall
        if instance.last_wall and silent > IDLE_S and instance.attempts:
            yield Concern(ConcernKind.IDLE, instance.key, f"no event for {duration(silent)}", instance.key)


def _cause(call: CallState) -> str:
    return CAUSES.get(call.retry_reason, call.retry_reason.replace("_", " "))
