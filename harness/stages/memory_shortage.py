"""A GPU that was full: whether an evaluation met it, and what is said if the candidate had the GPU to itself."""

from __future__ import annotations

import msgspec

from harness.wire.errors import is_out_of_memory
from harness.wire.messages.guest import OUT_OF_MEMORY
from harness.wire.results.evaluation import Evaluation, Verdict

BESIDE_OTHERS = "judged again alone on the GPU: beside other candidates the GPU's memory was full"
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


def say_alone(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation of a candidate that met a full GPU alone: the shortage is its own."""
    error = evaluation.error
    if error is None:
        return msgspec.structs.replace(
            evaluation, notes=(*evaluation.notes, f"the GPU's memory was full, and {_ALONE}")
        )
    return msgspec.structs.replace(
        evaluation, error=msgspec.structs.replace(error, message=f"{error.message} ({_ALONE})")
    )
