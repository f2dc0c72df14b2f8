"""How often the judge repeats work after a failure, and how: each row of `RETRIES`, which `docs/trust.md` shows as a table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple, TypeVar

import msgspec

from harness.node.telemetry.other_processes import FOREIGN_BYTES
from harness.processes.pool import DevicePool
from harness.processes.slot import Slot
from harness.wire.errors import DeviceFull, WorkerDied, is_out_of_memory
from harness.wire.limits import memory_words
from harness.wire.messages.guest import OUT_OF_MEMORY
from harness.wire.results.evaluation import ErrorReport, Evaluation, Verdict

from .verdicts import conclude

Result = TypeVar("Result")


class RetryRule(NamedTuple):
    """A row of the table."""

    failure: str
    fault: str
    way: str
    times: int = 1


UNEXPLAINED = RetryRule(
    "a process of the candidate was killed, and no limit of the judge explains it; the machine lacked memory, processes or disk",
    "the machine; the second time the candidate",
    "judge again, with no other slot of the pool in use",
)
FULL_GPU = RetryRule(
    "the GPU's memory was full",
    "its other users; the second time the candidate, unless others still hold memory",
    "judge again, alone on the GPU",
)
OUR_FAILURE = RetryRule(
    "a server, a warden or the judge was lost; a GPU failed its probe",
    "the judge",
    "a session judges again, on another GPU if there is one",
)
LOST_NODE = RetryRule(
    "a node of a cluster was lost",
    "the node; the last time perhaps the candidate",
    "judge again on another node",
    times=2,
)
DISTURBED = RetryRule(
    "others on the GPU, or its clock, left a case without a time", "the machine", "time all cases again"
)
LOST_PLAYER = RetryRule(
    "a player failed with a series of calls that it had made one by one",
    "the clock",
    "time the case by the next clock",
)
LOST_SANITIZER = RetryRule(
    "a process of the sanitizer pass failed", "the judge", "the GPU decides alone", times=0
)
RETRIES = (UNEXPLAINED, FULL_GPU, OUR_FAILURE, LOST_NODE, DISTURBED, LOST_PLAYER, LOST_SANITIZER)

AGAIN = "judged again alone: the first time {why}"
MOVED = "judged again on another node: {why}"
BESIDE_OTHERS = "judged again alone on the GPU: the first time the GPU's memory was full"
NO_VERDICT = frozenset({Verdict.INFRA_ERROR, Verdict.CANCELLED})
"""Verdicts about the judge, not about the candidate."""
_ALONE = "no other candidate was on the GPU"


class JudgeAgain(WorkerDied):
    """A process that ran the candidate failed, and neither the candidate nor the judge explains it."""


def settle(doubt: str, *, again: bool) -> None:
    """`UNEXPLAINED`: raise `JudgeAgain` for a doubt about an error, unless this is the second try."""
    if doubt and not again:
        raise JudgeAgain(doubt)


async def try_alone(attempt: Callable[[str], Awaitable[Result]]) -> Result:
    """`UNEXPLAINED`: return `attempt("")`, and after a `JudgeAgain` `attempt(why)`, which has to keep other slots out."""
    try:
        return await attempt("")
    except JudgeAgain as doubt:
        return await attempt(str(doubt))


async def ask_twice(
    judge: Callable[[], Awaitable[Evaluation]],
    on_failure: Callable[[Evaluation, str], None] = lambda _evaluation, _then: None,
) -> Evaluation:
    """`OUR_FAILURE`: ask the judge, and once more if it fails itself, unless it has judged twice by itself.

    `on_failure` gets each evaluation without a verdict, and what is done then.
    """
    evaluation = await judge()
    if evaluation.verdict in NO_VERDICT and not evaluation.judged_again:
        on_failure(evaluation, "; judging it once more")
        evaluation = await judge()
    if evaluation.verdict in NO_VERDICT:
        on_failure(evaluation, "")
    return evaluation


async def judge_with_memory(
    pool: DevicePool, slot: Slot, attempt: Callable[[str], Awaitable[Evaluation]]
) -> Evaluation:
    """`FULL_GPU`: `attempt("")` on a GPU; if the GPU was full, `attempt(BESIDE_OTHERS)` alone on it.

    Also for the only slot of the only engine that holds a lease: spares, and idle judges of other engines, hold memory too.
    """
    with suppress(DeviceFull):
        evaluation = await pool.judge_on(slot, lambda: attempt(""))
        if not met_full_gpu(evaluation):
            return evaluation
    used_bytes: int | None = None

    async def judge_alone() -> Evaluation:
        nonlocal used_bytes
        used_bytes = await pool.memory_used_bytes(slot.device)
        return await attempt(BESIDE_OTHERS)

    try:
        evaluation = await pool.judge_alone(slot, judge_alone)
    except DeviceFull as full:
        raise DeviceFull(f"{full} ({describe_alone(used_bytes)})") from full
    return say_alone(evaluation, used_bytes) if met_full_gpu(evaluation) else evaluation


def met_full_gpu(evaluation: Evaluation) -> bool:
    """Return whether a process of this evaluation ran out of GPU memory: the candidate's, the judge's or a timer's.

    Decides by the words of drivers and torch too, because a full GPU looks like another failure in some processes. A
    candidate that writes these words itself is judged twice, and gains nothing.
    """
    error = evaluation.error
    if error is not None:
        return error.kind == OUT_OF_MEMORY or is_out_of_memory(error.message)
    performance = evaluation.stages[-1]
    return evaluation.verdict is Verdict.CORRECT and any(
        map(is_out_of_memory, (performance.detail, *evaluation.notes))
    )


def say_alone(evaluation: Evaluation, used_bytes: int | None) -> Evaluation:
    """Return the evaluation of a candidate that met a full GPU when no other candidate was on it.

    `used_bytes` were in use before it began. If processes of others had them, as idle judges of another engine have, the shortage
    is not the candidate's: it is `unsupported`.
    """
    error, alone = evaluation.error, describe_alone(used_bytes)
    if error is None:
        return msgspec.structs.replace(
            evaluation, notes=(*evaluation.notes, f"the GPU's memory was full, and {alone}")
        )
    message = f"{error.message} ({alone})"
    if error.kind == OUT_OF_MEMORY and _held_by_others(used_bytes):
        lacking = ErrorReport(kind="unsupported", message=message)
        return msgspec.structs.replace(evaluation, error=lacking, verdict=conclude(lacking))
    return msgspec.structs.replace(evaluation, error=msgspec.structs.replace(error, message=message))


def describe_alone(used_bytes: int | None) -> str:
    """Return who else was on the GPU when a candidate was judged alone."""
    if used_bytes is None or not _held_by_others(used_bytes):
        return _ALONE
    return f"{_ALONE}, but other processes held {memory_words(used_bytes)}"


def _held_by_others(used_bytes: int | None) -> bool:
    return used_bytes is not None and used_bytes > FOREIGN_BYTES
