"""Consequences of a decision in words: who reads its reason, where the store keeps the kernel, how the instance goes on."""

from __future__ import annotations

from sessions.names import split_attempt
from sessions.state.state import AttemptState, InstanceState, SessionState
from sessions.state.winners import accepted_attempt

REFLECTING = frozenset({"geak", "geak-evolve", "reflexion"})
"""Methods that ask a reflector why an attempt failed."""
WITHOUT_PROMPTS = "tune"
"""The method without a model."""


def accepted_place(task: str) -> str:
    """Return where the store keeps an accepted kernel, as git names it: `accepted:starter/softmax/kernel.py`."""
    return f"accepted:{task}/kernel.py"


def decision_words(state: SessionState, attempt: AttemptState, *, accepted: bool, over: bool) -> str:
    """Return what a decision does and where its reason goes, a sentence a line, for the dialog that asks for the reason."""
    instance = state.instances[split_attempt(attempt.attempt).instance]
    effect = (
        accept_words(state, attempt, instance, over=over)
        if accepted
        else reject_words(state, attempt, instance, over=over)
    )
    reason = reason_words(state, attempt, accepted=accepted, over=over)
    return f"{'Accepted' if accepted else 'Rejected'}: {effect}.\n{reason}"


def reason_words(state: SessionState, attempt: AttemptState, *, accepted: bool, over: bool) -> str:
    """Return a sentence that says where the reason of a decision goes; `over`: no engine works on the session."""
    instance = state.instances[split_attempt(attempt.attempt).instance]
    if state.started is not None and state.started.method == WITHOUT_PROMPTS:
        return "The reason goes only into the record: this method asks no model."
    if state.finished:
        return "The reason goes only into the record: the session is finished, no prompt follows."
    if over:
        return f"The reason goes into the record. After `wavedeck resume` the next prompts of {_short(instance)} quote it."
    readers = _readers(state, attempt, instance, accepted=accepted)
    if attempt.waiting and not accepted and _goes_on(state, attempt, instance):
        also = f", and into those of {_names(readers)}" if readers else ""
        return f"The reason goes {_to_reflector(state)}into the next prompt of {instance.key}{also}."
    if not readers:
        return f"The reason goes only into the record: no instance of {_short(instance)} asks for a further attempt."
    return f"The reason goes into the next prompts of {_names(readers)}."


def accept_words(
    state: SessionState, attempt: AttemptState, instance: InstanceState, *, over: bool, short: bool = False
) -> str:
    """Return what an acceptance does: what the waiting instance does then, where the kernel is written, what it replaces."""
    when = " after `wavedeck resume`" if over else ""
    then = f"{instance.key} goes on from it{when}" if attempt.waiting else ""
    if short:
        return f"stored, and {then}" if then else "stored"
    earlier = accepted_attempt(state, instance.task)
    instead = f" instead of {_number(earlier)}" if earlier is not None and earlier is not attempt else ""
    return ", ".join(filter(None, (then, f"the store gets {accepted_place(instance.task)}{instead}")))


def reject_words(state: SessionState, attempt: AttemptState, instance: InstanceState, *, over: bool) -> str:
    """Return what a rejection does."""
    if not attempt.waiting:
        return "it no longer counts as a best attempt"
    when = " after `wavedeck resume`" if over else ""
    if _goes_on(state, attempt, instance):
        return f"{instance.key} goes on without it{when}"
    return f"{instance.key} ends without it{when}"


def _number(attempt: AttemptState) -> str:
    """`#2/1`: the attempt without its task."""
    return f"#{attempt.attempt.rpartition('#')[2]}"


def _to_reflector(state: SessionState) -> str:
    started = state.started
    reflects = (
        started is not None and started.method in REFLECTING and "reflection" not in started.options.without
    )
    return "to the reflector: " if reflects else ""


def _goes_on(state: SessionState, attempt: AttemptState, instance: InstanceState) -> bool:
    return instance.finished is None and attempt.number < sum(state.phases(instance.key))


def _readers(
    state: SessionState, attempt: AttemptState, instance: InstanceState, *, accepted: bool
) -> list[str]:
    """Running instances that quote the decision in their next prompts, among a person's words (`engine.methods.orders`)."""
    running = [
        chain.key
        for chain in state.instances.values()
        if chain.task == instance.task and chain.finished is None
    ]
    own = accepted or not attempt.held
    return [key for key in running if own or key != instance.key]


def _short(instance: InstanceState) -> str:
    return instance.key.partition("#")[0]


def _names(keys: list[str]) -> str:
    shown = ", ".join(keys[:3])
    return f"{shown} and {len(keys) - 3} more" if len(keys) > 3 else shown
