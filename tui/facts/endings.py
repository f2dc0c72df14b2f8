"""How a session or an instance ended, in words."""

from __future__ import annotations

from sessions.events import EndReason
from sessions.names import split_attempt
from sessions.state.state import AttemptState, InstanceState, SessionState

ENDINGS: dict[str, str] = {
    EndReason.ITERATIONS: "all iterations spent",
    EndReason.SOLVED: "solved; the method does not look for a faster kernel",
    EndReason.SUBMITTED: "submitted: its agent ended the work",
    EndReason.ANSWERED: "answered; the method asks only once",
    EndReason.JUDGED: "all its candidates are judged",
    EndReason.NOTHING_LEFT: "no variant left to judge",
    EndReason.START_FAILED: "the kernel to start from is not correct",
    EndReason.SPEEDUP_REACHED: "the wanted speedup is reached",
    EndReason.AT_ROOF: "nothing left to gain: each case is at its roof, or too short",
    EndReason.NO_GAIN: "no gain any more",
    EndReason.EDITED: "a person's edit was judged",
    EndReason.RETIRED: "retired by a person",
    EndReason.RECORDING_EXHAUSTED: "the recording has no further reply: with a model it would go on",
    EndReason.BUDGET: "budget spent",
    EndReason.MODEL_FAILED: "the model failed",
    EndReason.INFRA_ERROR: "our own failure",
}


def ending_words(reason: str) -> str:
    """Return the words of a reason; an unknown reason (from a newer version) as it is."""
    return ENDINGS.get(reason, reason)


def ended_word(reason: str) -> str:
    """Return a reason in two or three words, for a column."""
    return "no further reply" if reason == EndReason.RECORDING_EXHAUSTED else reason.replace("_", " ")


def pending_word(state: SessionState, attempt: AttemptState, now: str = "in progress") -> str:
    """Return why an attempt has no verdict: `no further reply`, `retired`, `stopped` with its session; else `now`."""
    ended = state.instances[split_attempt(attempt.attempt).instance].finished
    return ended_word(ended) if ended else "stopped" if state.stopped is not None else now


def ending_cause(instance: InstanceState) -> str:
    """Return what the column of endings has no room for: the message of the end; empty without one."""
    if instance.finished == EndReason.RECORDING_EXHAUSTED:
        return ENDINGS[instance.finished]
    return instance.message


def session_ending(state: SessionState) -> str:
    """Return `finished`, `stopped (reason)` or `not finished`, from the events."""
    if state.finished:
        return "finished"
    return f"stopped ({state.stopped})" if state.stopped else "not finished"
