"""A GPU that was full: whether an evaluation met it, and what is said if the candidate had the GPU to itself."""

from __future__ import annotations

import msgspec

from harness.node.telemetry.other_processes import FOREIGN_BYTES
from harness.wire.errors import is_out_of_memory
from harness.wire.messages.guest import OUT_OF_MEMORY
from harness.wire.results.evaluation import ErrorReport, Evaluation, Verdict

from .verdicts import conclude

BESIDE_OTHERS = "judged again alone on the GPU: the first time the GPU's memory was full"
_ALONE = "no other candidate was on the GPU"


def met_full_gpu(evaluation: Evaluation) -> bool:
    """Return whether a process of this evaluation ran out of GPU memory: the candidate's, the judge's or a timer's.

    Decides by the words of drivers and torch too, because not every process can tell a full GPU from another failure. A
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
    return f"{_ALONE}, but other processes held {used_bytes / (1 << 30):.1f} GiB"


def _held_by_others(used_bytes: int | None) -> bool:
    return used_bytes is not None and used_bytes > FOREIGN_BYTES
