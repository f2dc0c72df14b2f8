"""Commands to a session. Each is the event that it becomes, and says itself why a session cannot follow it.

A surface asks `refusal` before it offers a command; the engine asks it before it records one (`checked`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

import msgspec

from harness import Verdict
from harness.wire.device import devices_named, nodes_of
from sessions.errors import CommandRefused
from sessions.names import (
    AttemptKey,
    InstanceKey,
    InstanceKeyOrNone,
    TaskName,
    split_attempt,
    split_instance,
    title_problem,
)
from sessions.settings import MethodOptions

from . import refusals
from .base import DurableEvent, Event
from .methods import METHOD_FACTS, ways_on
from .refusals import MOST_CHARACTERS, SHOWN

if TYPE_CHECKING:
    from sessions.state.state import SessionState

C = TypeVar("C", bound="Command")

ALL_GPUS = ("all",)
"""Devices of a `MeasureAsked` on every GPU of the session."""
MOST_ITERATIONS = 1000
"""Most iterations of one extension."""
NOTHING_TO_STOP = "the session is not running, so there is nothing to stop"
WORDS = {"text": "hint", "why": "reason", "by": "name of the person"}
"""Words for fields in refusals, where they differ from the field's name."""


class Command(DurableEvent, frozen=True, kw_only=True):
    """A command to a session."""

    opens: ClassVar[bool] = False
    """True if it brings new work: a stopped or finished session goes on at once."""
    follows_end: ClassVar[bool] = False
    """True if a finished session follows it and stays finished."""
    kept_by_session: ClassVar[tuple[str, ...]] = Event.__struct_fields__
    """Fields that the session sets, not the person."""
    free_texts: ClassVar[tuple[str, ...]] = ("source",)
    """Fields with texts that may be longer than `MOST_CHARACTERS`."""

    def refusal(self, state: SessionState) -> str:
        """Returns why the session cannot follow the command, and what to do, in one line; empty if it can."""
        reasons = chain(self._unfit(state), self._problems(state))
        return next(filter(None, reasons), "")

    def _unfit(self, state: SessionState) -> Iterator[str]:
        """Yields why no command of this kind, or with these texts, is possible."""
        if state.finished and not (self.opens or self.follows_end):
            method = state.started.method if state.started is not None else ""
            ways = " or ".join(ways_on(method))
            advice = f"open it again with: wavedeck steer {ways}" if ways else "start another run"
            yield f"the session is finished, so no further attempt can follow; {advice}"
        for name in self.given_fields():
            value = getattr(self, name)
            for text in value if isinstance(value, tuple) else (value,):
                if isinstance(text, str) and name not in self.free_texts:
                    yield from refusals.unfit_text(WORDS.get(name, name), text)

    def _problems(self, state: SessionState) -> Iterator[str]:
        """Yields why the session cannot follow this command; the first one counts."""
        yield ""

    def completed(self, state: SessionState) -> Self:
        """Returns the command with the fields that the session sets."""
        return self

    @property
    def target(self) -> str:
        """The attempt, the GPU or the instance that it is about; empty: the session."""
        values = (getattr(self, name, "") for name in ("attempt", "base", "device", "instance"))
        return next((value for value in values if value), "")

    def is_pending(self, state: SessionState) -> bool:
        """True if the session has the same work to do already, because of an earlier command."""
        return False

    @classmethod
    def given_fields(cls) -> tuple[str, ...]:
        """Returns the names of the fields that the person sets."""
        return tuple(name for name in cls.__struct_fields__ if name not in cls.kept_by_session)


class PersonCommand(Command, frozen=True, kw_only=True):
    """A person's command."""

    by: str = ""
    """The person's login name."""


class DecisionMade(PersonCommand, frozen=True, kw_only=True, tag="decision_made"):
    """A person accepted or rejected an attempt."""

    follows_end = True

    attempt: AttemptKey
    accepted: bool
    why: str = ""
    forced: bool = False
    """True if the person accepts an attempt that is not correct; `why` then has the reason."""

    def _problems(self, state: SessionState) -> Iterator[str]:
        yield from refusals.not_judged(state, self.attempt)
        verdict = state.attempt(self.attempt).verdict
        if not self.accepted or verdict is Verdict.CORRECT:
            return
        if not self.forced:
            yield (
                f"{self.attempt} is {verdict}, and only a correct attempt can be accepted; "
                "choose a correct one, or give --force and the reason with --why"
            )
        if not self.why.strip():
            yield f"{self.attempt} is {verdict}; to accept it anyway, give the reason with --why"


class DecisionUndone(PersonCommand, frozen=True, kw_only=True, tag="decision_undone"):
    """A person undid the current decision about an attempt."""

    follows_end = True

    attempt: AttemptKey

    def _problems(self, state: SessionState) -> Iterator[str]:
        yield from refusals.not_judged(state, self.attempt)
        if state.attempt(self.attempt).decision is None:
            yield f"there is no decision about {self.attempt} to undo"


class HintGiven(PersonCommand, frozen=True, kw_only=True, tag="hint_given"):
    """A person gave a hint for the next attempt of an instance."""

    instance: InstanceKey
    """`softmax#2`."""
    text: str

    def _problems(self, state: SessionState) -> Iterator[str]:
        yield from refusals.ended(state, self.instance)
        if not self.text.strip():
            yield "the hint is empty; write what the next attempt should consider"
        yield from refusals.asks_no_more(state, self.instance)


class AttemptPinned(PersonCommand, frozen=True, kw_only=True, tag="attempt_pinned"):
    """A person chose a correct attempt as the base of its instance's optimizations, until the next pin."""

    attempt: AttemptKey

    def _problems(self, state: SessionState) -> Iterator[str]:
        yield from refusals.no_base(state, self.attempt)
        advice = ", so it cannot be optimized; pin a correct attempt"
        yield from refusals.not_correct(state, self.attempt, advice)
        if self.attempt == orders_until(state, split_attempt(self.attempt).instance, state.last_seq).pinned:
            yield f"{self.attempt} is already pinned"


class AttemptBanned(PersonCommand, frozen=True, kw_only=True, tag="attempt_banned"):
    """A person excluded an attempt: its instance builds on it no more."""

    attempt: AttemptKey

    def _problems(self, state: SessionState) -> Iterator[str]:
        yield from refusals.no_base(state, self.attempt)
        if self.attempt in orders_until(state, split_attempt(self.attempt).instance, state.last_seq).banned:
            yield f"{self.attempt} is already banned"


class SessionTitled(PersonCommand, frozen=True, kw_only=True, tag="session_titled"):
    """A person gave the session a title, or removed it; a finished session stays finished."""

    follows_end = True
    free_texts = ("title",)

    title: str
    """Empty: no title."""

    def _problems(self, state: SessionState) -> Iterator[str]:
        title = self.title.strip()
        yield title_problem(title)
        if title == state.title:
            yield f"the session already has the title {title!r}" if title else "the session has no title"

    def completed(self, state: SessionState) -> Self:
        """Returns the command with a title without spaces around it."""
        return msgspec.structs.replace(self, title=self.title.strip())


class RetireAsked(PersonCommand, frozen=True, kw_only=True, tag="retire_asked"):
    """A person retired an instance; its work in progress is cancelled and its winner examined."""

    instance: InstanceKey

    def _problems(self, state: SessionState) -> Iterator[str]:
        yield from refusals.ended(state, self.instance)
        if self.instance in state.retired:
            yield f"{self.instance} is already being retired"


class Paused(PersonCommand, frozen=True, kw_only=True, tag="paused"):
    """A person paused an instance: no call and no attempt starts until `Unpaused`."""

    instance: InstanceKeyOrNone = ""
    """Empty: the whole session."""

    def _problems(self, state: SessionState) -> Iterator[str]:
        if self.instance:
            yield from refusals.ended(state, self.instance)
        if state.is_on_hold(self.instance):
            yield f"{self.instance or 'the session'} is already paused"


class Unpaused(PersonCommand, frozen=True, kw_only=True, tag="unpaused"):
    """A person ended a pause."""

    instance: InstanceKeyOrNone = ""
    """Empty: all pauses of the session."""

    def _problems(self, state: SessionState) -> Iterator[str]:
        if self.instance:
            yield from refusals.ended(state, self.instance)
            if "" in state.on_hold:
                yield "the whole session is paused; end that pause: wavedeck steer unpause SESSION"
        if not (self.instance in state.on_hold if self.instance else state.on_hold):
            yield f"{self.instance or 'the session'} is not paused"


class SessionExtended(PersonCommand, frozen=True, kw_only=True, tag="session_extended"):
    """A person gave a session more iterations or a larger budget; a finished session is open again.

    With iterations, the instances go on that used all of their own or met a stop rule. With a budget, those go on that
    the budget ended.
    """

    opens = True

    iterations: int = 0
    """Further iterations of each instance."""
    budget_usd: float = 0.0
    """Added to the budget in USD."""

    def _problems(self, state: SessionState) -> Iterator[str]:
        started = state.started
        name = started.method if started is not None else "its method"
        if "extend" not in ways_on(name):
            yield f"a session of {name} takes no further iterations; start another run"
        if not (0 <= self.iterations <= MOST_ITERATIONS and 0 <= self.budget_usd < math.inf):
            yield (
                f"--iterations must be from 1 to {MOST_ITERATIONS}, and --budget-usd above 0; "
                "give numbers in that range"
            )
        if not self.iterations and not self.budget_usd:
            yield "nothing to extend by; give --iterations, --budget-usd or both"
        if self.budget_usd and (started is None or started.budget_usd is None):
            yield "the session has no budget in USD, so none can be added; give --iterations alone"
        if self.iterations and not any(map(state.takes_iterations, state.instance_keys())):
            yield "no instance can use more iterations: each is solved, stopped, or out of replies or budget"


class InstanceForked(PersonCommand, frozen=True, kw_only=True, tag="instance_forked"):
    """A person added an instance that starts from an attempt; a finished session is open again."""

    opens = True
    kept_by_session = (*Event.__struct_fields__, "task", "instance")

    task: TaskName = ""
    instance: int = 0
    base: AttemptKey
    """The attempt whose kernel is the first attempt."""
    source: str = ""
    """A person's edit of that kernel: it is judged, and no model is asked. Empty: the method goes on from the kernel."""
    hint: str = ""
    """A hint for the attempt after the first."""

    def _problems(self, state: SessionState) -> Iterator[str]:
        yield from refusals.gone(state)
        if not self.source and state.started is not None:
            method, style = state.started.method, state.started.options.prompt_style
            if not METHOD_FACTS[method].roles:
                yield f"{method} asks no model; run it on a kernel with --start instead"
            if style != MethodOptions().prompt_style:
                yield f"the prompt style {style} has no prompt to improve a kernel; fork a session of another"
        if self.source and not self.source.strip():
            yield "the edit is empty; give the file of a kernel"
        yield from refusals.no_attempt(state, self.base)
        if not state.attempt(self.base).source:
            yield f"{self.base} has no kernel; choose an attempt that has one"

    def completed(self, state: SessionState) -> Self:
        """Returns the command with the next free number of an instance on the task."""
        task = split_instance(split_attempt(self.base).instance).task
        taken = [split_instance(key) for key in state.instance_keys()]
        number = 1 + max(name.number for name in taken if name.task == task)
        return msgspec.structs.replace(self, task=task, instance=number)


class MeasureAsked(PersonCommand, frozen=True, kw_only=True, tag="measure_asked"):
    """A person asked to time a correct attempt again; a finished session is open again."""

    opens = True

    attempt: AttemptKey
    devices: tuple[str, ...] = ()
    """GPUs of the session; each gives a `WinnerMeasured`. In a command also `ALL_GPUS`, or none: the one that judged it."""

    def _problems(self, state: SessionState) -> Iterator[str]:
        advice = ", so its time means nothing; measure a correct attempt"
        yield from refusals.not_correct(state, self.attempt, advice)
        yield from refusals.unusable_gpus(state, self.completed(state).devices)
        if self.is_pending(state) and not state.is_at_rest:
            yield f"{self.attempt} is already being measured; wait for its result"

    def completed(self, state: SessionState) -> Self:
        """Returns the command with the names of its GPUs."""
        devices = tuple(state.gpus) if self.devices == ALL_GPUS else self.devices
        return msgspec.structs.replace(self, devices=devices or (_judged_on(state, self.attempt),))

    def is_pending(self, state: SessionState) -> bool:
        """True if the attempt is to be measured already."""
        return any(earlier.attempt == self.attempt for earlier in state.measures)


class ProfileAsked(PersonCommand, frozen=True, kw_only=True, tag="profile_asked"):
    """A person asked for the profile of a correct attempt; a finished session is open again."""

    opens = True

    attempt: AttemptKey
    device: str = ""
    """GPU of the session. In a command also empty: the one that judged the attempt."""
    case: str = ""
    """Empty: the case that reaches the smallest share of its practical roof."""
    of_baseline: bool = False
    """The timing baseline of the attempt's task is profiled, not the attempt."""

    def _problems(self, state: SessionState) -> Iterator[str]:
        yield from refusals.not_correct(state, self.attempt, "; profile a correct attempt")
        evaluation = state.attempt(self.attempt).evaluation
        timed = [latency.case for latency in evaluation.latency] if evaluation is not None else []
        if self.case and timed and self.case not in timed:
            yield f"{self.attempt} has no open case {self.case[:SHOWN]!r}; it has {', '.join(timed)}"
        yield from refusals.unusable_gpus(state, [self.completed(state).device])
        if self.is_pending(state) and not state.is_at_rest:
            yield f"{self.attempt} is already being profiled; wait for its result"

    def completed(self, state: SessionState) -> Self:
        """Returns the command with the name of its GPU."""
        return msgspec.structs.replace(self, device=self.device or _judged_on(state, self.attempt))

    def is_pending(self, state: SessionState) -> bool:
        """True if the attempt, or the baseline of its task, is to be profiled already."""
        wanted = (self.attempt, self.of_baseline)
        return any((earlier.attempt, earlier.of_baseline) == wanted for earlier in state.profiles_asked)


class DeviceLent(PersonCommand, frozen=True, kw_only=True, tag="device_lent"):
    """A person lent a GPU to others: no candidate starts on it until `DeviceReturned`."""

    device: str
    """A GPU of the session, or a node of a cluster for all its GPUs."""

    def _problems(self, state: SessionState) -> Iterator[str]:
        yield from _unknown_gpu(state, self.device)
        devices = devices_named(self.device, state.gpus)
        if state.lent.issuperset(devices):
            yield f"GPU {self.device} is already lent"
        quarantined = {name for name, device in state.devices.items() if device.quarantined}
        if not set(state.gpus) - state.lent - quarantined - set(devices):
            yield f"GPU {self.device} is the last one in service; stop the session instead"


class DeviceReturned(PersonCommand, frozen=True, kw_only=True, tag="device_returned"):
    """A person took a lent GPU back."""

    device: str
    """A GPU of the session, or a node of a cluster for all its GPUs."""

    def _problems(self, state: SessionState) -> Iterator[str]:
        yield from _unknown_gpu(state, self.device)
        if state.lent.isdisjoint(devices_named(self.device, state.gpus)):
            yield f"GPU {self.device} is not lent"


class CandidateSent(Command, frozen=True, kw_only=True, tag="candidate_sent"):
    """An agent sent a candidate. Attempt n of the instance judges the n-th candidate that was sent to it."""

    free_texts = ("source", "strategy")

    instance: InstanceKey
    source: str
    strategy: str = ""
    """The agent's own words about it."""
    heard: int = 0
    """Number of the last command of a person that the agent knew."""

    def _problems(self, state: SessionState) -> Iterator[str]:
        yield from refusals.no_agent(state, self.instance)
        if not self.source.strip():
            yield "the code is empty; send one complete module"
        most = sum(state.phases(self.instance))
        if len(state.sent_to(self.instance)) >= most:
            yield f"all {most} evaluations are used; a person can add some: wavedeck steer extend"

    def completed(self, state: SessionState) -> Self:
        """Returns the command with a short note, and with no number of a command that is not given yet."""
        return msgspec.structs.replace(
            self, strategy=self.strategy[:MOST_CHARACTERS], heard=min(self.heard, state.last_seq)
        )


class CandidateWithdrawn(Command, frozen=True, kw_only=True, tag="candidate_withdrawn"):
    """The agent wants no verdict on a candidate any more: its judging is cancelled."""

    attempt: AttemptKey

    def _problems(self, state: SessionState) -> Iterator[str]:
        try:
            instance, number = split_attempt(self.attempt)
        except ValueError:
            instance, number = self.attempt, 0
        yield from refusals.no_agent(state, instance)
        if number > len(state.sent_to(instance)):
            yield f"no candidate was sent as {self.attempt}"


class AgentLeft(Command, frozen=True, kw_only=True, tag="agent_left"):
    """The agent sends no further candidate: the instance ends when those that were sent are judged."""

    instance: InstanceKey

    def _problems(self, state: SessionState) -> Iterator[str]:
        yield from refusals.no_agent(state, self.instance)


class Stop(PersonCommand, frozen=True, kw_only=True, tag="stop"):
    """A person stops the engine. In no journal: the engine records why it stopped (`EngineStopped`)."""

    follows_end = True

    reason: str = ""

    def _problems(self, state: SessionState) -> Iterator[str]:
        if state.is_at_rest:
            yield NOTHING_TO_STOP


class Ping(Command, frozen=True, kw_only=True, tag="ping"):
    """Asks whether the engine answers. In no journal."""

    follows_end = True


def checked(command: C, state: SessionState) -> C:
    """Returns the command as a session in this state records it. Raises `CommandRefused`."""
    if refusal := command.refusal(state):
        raise CommandRefused(refusal)
    return command.completed(state)


@dataclass(frozen=True, slots=True)
class Orders:
    """Attempts that a person chose or excluded as bases of an instance."""

    pinned: str | None = None
    """The base of the next optimizations; `None`: the method chooses."""
    banned: frozenset[str] = frozenset()


def orders_until(state: SessionState, instance: str, until: int) -> Orders:
    """Returns the orders to an instance up to the command `until`; a later order about an attempt replaces an earlier."""
    orders = Orders()
    for command in state.commands:
        if command.seq > until or not isinstance(command, AttemptPinned | AttemptBanned):
            continue
        attempt = command.attempt
        if split_attempt(attempt).instance != instance:
            continue
        if isinstance(command, AttemptPinned):
            orders = Orders(attempt, orders.banned - {attempt})
        else:
            orders = Orders(None if orders.pinned == attempt else orders.pinned, orders.banned | {attempt})
    return orders


def _judged_on(state: SessionState, attempt: str) -> str:
    evaluation = state.attempt(attempt).evaluation
    return evaluation.device if evaluation is not None else ""


def _unknown_gpu(state: SessionState, name: str) -> Iterator[str]:
    return refusals.unknown_gpus(state, [name], (*state.gpus, *nodes_of(state.gpus)))
