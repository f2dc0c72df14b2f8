"""What an instance does now: one state word and its lower case letter, the same on all screens and commands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sessions.names import split_attempt, stage_word
from sessions.settings import AGENT
from sessions.state.state import AttemptState, CallState, InstanceState, Preparation, SessionState
from tui.facts.vocabulary import clock

CALLING = frozenset({"generate", "optimize", "reflect"})
"""Words of the state for attempts that wait for a reply."""
JUDGE = "judge"
WORDS = {
    "wait": ("q", "queued", "dim"),
    "generate": ("g", "generate", "busy"),
    "optimize": ("g", "generate", "busy"),
    "reflect": ("r", "reflect", "busy"),
    "tune": ("j", JUDGE, "busy", "sweep"),
    "performance": ("t", JUDGE, "busy", "timing"),
    "exam": ("j", JUDGE, "busy", "exam"),
    "person": ("?", "review", "warn"),
    "done": (".", "done", "dim"),
    "failed": ("x", "failed", "bad"),
}
"""Values of `Doing`, by `InstanceState.word`; any other word is a stage of the judge."""


class Doing(NamedTuple):
    """The state of an instance, for a cell of any width."""

    letter: str
    """`q` queued, `g` generate, `j` judge, `t` timing, `r` reflect, `?` review, `p` paused, `.` done, `x` failed,
    `m` no model, `a` waits for an agent's candidate, `s` stopped with its engine."""
    state: str
    style: str
    """Word of the palette: busy, warn, bad or dim."""
    stage: str = ""
    """The stage of the judge: `timing`, `execution`; empty in other states."""
    is_held: bool = False
    """True if a person paused the instance, and what runs or waits for a decision is not over yet."""

    @property
    def word(self) -> str:
        """The state with the stage of the judge: `judge: timing`, `generate`, `review, then paused`."""
        word = f"{self.state}: {self.stage}" if self.stage else self.state
        return f"{word}, then paused" if self.is_held else word


def doing(state: SessionState, instance: InstanceState, *, is_abandoned: bool = False) -> Doing:
    """Return what an instance does now; what a person asked for comes first.

    `is_abandoned`: the engine was killed before it could say that it stops.
    """
    if not instance.finished and instance.key in state.retired:
        return Doing(".", "stopping", "warn")
    if (is_abandoned or state.stopped is not None) and not instance.finished:
        waits = instance.word == "person"
        return Doing("s", "not decided" if waits else "stopped", "warn" if waits else "dim")
    asked = {split_attempt(measure.attempt).instance for measure in state.measures}
    if instance.word in ("wait", "done") and instance.key in asked:
        return Doing("t", JUDGE, "busy", "timing")
    if is_paused(state, instance):
        return Doing("p", "paused", "warn")
    is_held = not instance.finished and state.is_on_hold(instance.key)
    if refused_calls(instance):
        return Doing("m", "no model", "warn", is_held=is_held)
    if instance.word == "wait" and is_agents_turn(state, instance):
        return Doing("a", "agent", "dim")
    letter, name, style, *stage = WORDS.get(instance.word, ("j", JUDGE, "busy", stage_word(instance.word)))
    return Doing(letter, name, style, "".join(stage), is_held)


def is_agents_turn(state: SessionState, instance: InstanceState) -> bool:
    """True if an agent that is not Wavedeck's own has a verdict on each candidate that it sent, and may send more."""
    if state.started is None or state.started.method != AGENT or instance.key in state.left:
        return False
    judged = sum(attempt.verdict is not None for attempt in instance.attempts)
    return judged == len(state.sent_to(instance.key)) < sum(state.phases(instance.key))


def preparing(preparations: Iterable[Preparation], now_wall: float) -> list[str]:
    """Return what an engine prepares, with the time of the present stage: `judging the baseline of softmax: compile, 0:12`."""
    return [f"{preparation.step}, {clock(now_wall - preparation.since)}" for preparation in preparations]


def is_paused(state: SessionState, instance: InstanceState) -> bool:
    """True if a person paused the instance and what ran has finished."""
    return not instance.finished and instance.word == "wait" and state.is_on_hold(instance.key)


def busy_attempts(instance: InstanceState) -> list[AttemptState]:
    """Return the attempts in progress; some methods have several at once."""
    return [attempt for attempt in instance.attempts if attempt.word != "wait"]


def live_calls(instance: InstanceState) -> list[CallState]:
    """Return the calls whose replies are arriving."""
    calls = [
        attempt.calls[-1] for attempt in busy_attempts(instance) if attempt.word in CALLING and attempt.calls
    ]
    return [call for call in calls if call.live]


def refused_calls(instance: InstanceState) -> list[CallState]:
    """Return the calls that the model refused and for which nothing has arrived since."""
    return [call for call in live_calls(instance) if call.retries and not call.streamed]
