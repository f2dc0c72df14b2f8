"""Why an instance ended, in words."""

from __future__ import annotations

from sessions.events import EndReason

WORDS: dict[str, str] = {
    EndReason.ITERATIONS: "all iterations spent",
    EndReason.SOLVED: "solved, and its method looks for no better one",
    EndReason.ANSWERED: "answered, which its method does once",
    EndReason.NOTHING_LEFT: "no variant left that is worth judging",
    EndReason.START_FAILED: "the kernel to start from is not correct",
    EndReason.RECORDING_EXHAUSTED: "the recording ended",
    EndReason.BUDGET: "budget spent",
    EndReason.MODEL_FAILED: "the model failed",
    EndReason.INFRA_ERROR: "our own failure",
}


def ending_words(reason: str) -> str:
    """The words of a reason; one of a newer writer's as it is."""
    return WORDS.get(reason, reason)
