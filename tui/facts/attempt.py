"""Phrases about one attempt: its origin, its gain, and a person's decision with its consequences and readers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sessions.events import DecisionMade, Origin
from sessions.names import split_attempt
from sessions.state.cases import gain, is_apart
from sessions.state.state import AttemptState, CallState, InstanceState, SessionState
from sessions.state.winners import accepted_attempt, earlier_best
from tui.facts.vocabulary import UNKNOWN, clock, moment, percent_change

MARKDOWN = re.compile(r"\*\*(?=\S)|(?<=\S)\*\*|^#+\s+", re.MULTILINE)
REFLECTING = frozenset({"geak", "geak-evolve", "reflexion"})
"""Methods that ask a reflector why an attempt failed."""
WITHOUT_PROMPTS = "tune"
"""The method without a model."""
AFTER_RESUME = " after `wavedeck resume`"


def origin_words(attempt: AttemptState, base: str = "", by: str = "") -> str:
    """Return `fresh`, `optimize of softmax#3/5`, or `edit by ada of softmax#3/5`; `base` is another name of the base."""
    if not attempt.base:
        return f"{attempt.origin}"
    is_edit = attempt.origin is Origin.HUMAN
    origin = f"edit{f' by {by}' if by else ''}" if is_edit else attempt.origin
    return f"{origin} of {base or attempt.base}"


def editor_of(state: SessionState, attempt: AttemptState) -> str:
    """Return who edited the kernel with which the attempt's instance began; empty if no person did."""
    fork = state.forks.get(split_attempt(attempt.attempt).instance)
    return fork.by if fork is not None and attempt.origin is Origin.HUMAN else ""


def strategy_words(attempt: AttemptState) -> str:
    """Return the model's strategy on one line, without Markdown's signs of bold words and headings."""
    return " ".join(MARKDOWN.sub("", attempt.strategy).split())


def gain_words(attempt: AttemptState, instance: InstanceState) -> str:
    """Return the gain on the instance's earlier best: `+6 %`, `first` without one, or `-` if nothing was measured.

    `apart` if other hardware or software timed the earlier best.
    """
    speed, before = attempt.speed, earlier_best(attempt, instance)
    if before is None:
        return UNKNOWN if speed is None else "first"
    return "apart" if is_apart(attempt, before) else percent_change(gain(attempt, before))


def decided_words(decision: DecisionMade) -> str:
    """Return `accepted by kim: clean and right`."""
    return _decided(decision, "")


def dated_decision(decision: DecisionMade, now_wall: float | None = None) -> str:
    """Return `accepted by kim at 2026-11-20 14:03 UTC: clean`, or with the present time `accepted by kim 0:05 ago: clean`."""
    if now_wall is None:
        return _decided(decision, f" at {moment(decision.wall)} UTC")
    return _decided(decision, f" {clock(now_wall - decision.wall)} ago")


def _decided(decision: DecisionMade, when: str) -> str:
    verb = "accepted" if decision.accepted else "rejected"
    why = f": {' '.join(decision.why.split())}" if decision.why else ""
    return f"{verb} by {decision.by or 'a person'}{when}{why}"


def accepted_place(task: str) -> str:
    """Return where the store keeps an accepted kernel, as git names it: `accepted:starter/softmax/kernel.py`."""
    return f"accepted:{task}/kernel.py"


def consequences(state: SessionState, attempt: AttemptState, *, accepted: bool, over: bool) -> str:
    """Return what a decision does and where its reason goes, a sentence a line; `over`: no engine works on the session."""
    instance = state.instances[split_attempt(attempt.attempt).instance]
    effect = (accept_words if accepted else reject_words)(state, attempt, instance, over=over)
    reason = _reason_words(state, attempt, instance, accepted=accepted, over=over)
    sentences = (f"{'Accepted' if accepted else 'Rejected'}: {effect}.", reason, recorded_words(state))
    return "\n".join(filter(None, sentences))


def recorded_words(state: SessionState) -> str:
    """Return a sentence that says what a recorded model does with a person's words; empty for a real model."""
    if state.finished or state.started is None or not state.started.model.startswith("recorded:"):
        return ""
    return "The model is recorded: its next reply was made without your words."


def accept_words(
    state: SessionState, attempt: AttemptState, instance: InstanceState, *, over: bool, short: bool = False
) -> str:
    """Return what an acceptance does: what the waiting instance does then, where the kernel is written, what it replaces."""
    then = f"{instance.key} goes on from it{AFTER_RESUME if over else ''}" if attempt.waiting else ""
    if short:
        return f"stored, and {then}" if then else "stored"
    earlier = accepted_attempt(state, instance.task)
    instead = f" instead of #{earlier.attempt.rpartition('#')[2]}" if earlier not in (None, attempt) else ""
    return ", ".join(filter(None, (then, f"the store gets {accepted_place(instance.task)}{instead}")))


def reject_words(state: SessionState, attempt: AttemptState, instance: InstanceState, *, over: bool) -> str:
    """Return what a rejection does."""
    if not attempt.waiting:
        return "it no longer counts as a best attempt"
    verb = "goes on" if _goes_on(state, attempt, instance) else "ends"
    return f"{instance.key} {verb} without it{AFTER_RESUME if over else ''}"


def _reason_words(
    state: SessionState, attempt: AttemptState, instance: InstanceState, *, accepted: bool, over: bool
) -> str:
    """Return a sentence that says where the reason of a decision goes."""
    method = state.started.method if state.started is not None else ""
    task = instance.key.partition("#")[0]
    if method == WITHOUT_PROMPTS:
        return "The reason goes only into the record: this method asks no model."
    if state.finished:
        return "The reason goes only into the record: the session is finished, no prompt follows."
    if over:
        return (
            f"The reason goes into the record. After `wavedeck resume` the next prompts of {task} quote it."
        )
    # These quote the decision in their next prompts, among a person's words (`engine.methods.orders`).
    readers = [
        chain.key
        for chain in state.instances.values()
        if chain.task == instance.task
        and chain.finished is None
        and (accepted or not attempt.held or chain is not instance)
    ]
    names = ", ".join(readers[:3]) + (f" and {len(readers) - 3} more" if len(readers) > 3 else "")
    if attempt.waiting and not accepted and _goes_on(state, attempt, instance):
        without = state.started.options.without if state.started is not None else ()
        reflector = "to the reflector: " if method in REFLECTING and "reflection" not in without else ""
        also = f", and into those of {names}" if readers else ""
        return f"The reason goes {reflector}into the next prompt of {instance.key}{also}."
    if not readers:
        return f"The reason goes only into the record: no instance of {task} asks for a further attempt."
    return f"The reason goes into the next prompts of {names}."


def _goes_on(state: SessionState, attempt: AttemptState, instance: InstanceState) -> bool:
    return instance.finished is None and attempt.number < state.most_attempts(instance.key)


def served_as(call: CallState) -> str:
    """Return `served as NAME` if the server names another model than the one that was asked for; else empty."""
    asked = call.model.partition(":")[2].partition("@")[0]
    served = call.served.model if call.served is not None else ""
    return f"served as {served}" if served not in ("", asked) else ""


def served_words(call: CallState) -> str:
    """Return `served as test-20261101, messages, max_tokens 32000, thinking.type adaptive`; empty if unknown."""
    if call.served is None:
        return ""
    return ", ".join(filter(None, (served_as(call), call.served.endpoint, *_values(call.served.parameters))))


def _values(parameters: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    for name, value in parameters.items():
        if isinstance(value, dict):
            yield from _values(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name} {value:g}" if isinstance(value, float) else f"{prefix}{name} {value}"
