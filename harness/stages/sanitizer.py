"""The sanitizer pass beside a GPU: the interpreter runs the same candidate, and its counts, findings and proofs are added.

The GPU decides. What the interpreter refuses is a finding, except a proof: an access of memory that no other run can excuse.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any

import msgspec

from harness.failures import end_task
from harness.wire import limits
from harness.wire.channels.channel import BadFrame
from harness.wire.errors import WorkerDied
from harness.wire.results.evaluation import Basis, ErrorReport, Evaluation, Fact, Finding, Verdict

from .verdicts import conclude

LOST = (WorkerDied, BadFrame, msgspec.DecodeError, OSError)
"""Errors of a judgement if one of its processes fails."""
WHERE = "in the interpreter"
PROOFS = ("race", "out_of_bounds")
"""Kinds of errors that refuse on a GPU too: programs that depend on their order, and stores outside every tensor."""
_NO_REFUSAL = (Verdict.CORRECT, Verdict.INFRA_ERROR, Verdict.CANCELLED)


async def judge_beside(
    judging: Awaitable[Evaluation], sanitizing: Coroutine[Any, Any, Evaluation]
) -> Evaluation:
    """Return the GPU's evaluation, with what the pass said within `INTERPRETER_S` after it."""
    task = asyncio.create_task(sanitizing, name="sanitizer")
    try:
        evaluation = await judging
        await asyncio.wait([task], timeout=limits.INTERPRETER_S)
        if not task.done():
            return _without(evaluation, "not finished when the GPU was")
        try:
            return add_pass(evaluation, task.result())
        except LOST:  # the GPU decides, and its verdict is whole
            return _without(evaluation, "its processes failed")
    finally:
        await end_task(task)


def _without(on_gpu: Evaluation, why: str) -> Evaluation:
    fact = Fact("interpreter", f"{why}: no access was checked", Basis.EVIDENCE)
    return msgspec.structs.replace(on_gpu, facts=(*on_gpu.facts, fact))


def add_pass(on_gpu: Evaluation, interpreted: Evaluation) -> Evaluation:
    """Return the GPU's evaluation with the interpreter's results; a proof refuses a candidate that the GPU accepts.

    The interpreter's notes are left out: they are about kernels that its small sizes did not run, and the GPU ran the full sizes.
    """
    facts = [msgspec.structs.replace(fact, name=f"cpu, {fact.name}") for fact in interpreted.facts]
    findings = [
        msgspec.structs.replace(finding, message=f"{WHERE}: {finding.message}")
        for finding in interpreted.findings
    ]
    error = interpreted.error
    proof = None
    if error is not None and error.kind in PROOFS and on_gpu.verdict is Verdict.CORRECT:
        proof = msgspec.structs.replace(error, message=f"{WHERE}: {error.message}")
    elif error is not None and interpreted.verdict not in _NO_REFUSAL:
        message = f"{WHERE}: {interpreted.verdict}: {error.first_line}"
        findings.append(Finding(kind=f"interpreter_{error.kind}", message=message, line=error.line))
    evaluation = msgspec.structs.replace(
        on_gpu,
        traffic=interpreted.traffic,
        full_sizes=interpreted.full_sizes,
        not_sampled=interpreted.not_sampled,
        raised_at_full_sizes=interpreted.raised_at_full_sizes,
        facts=(*facts, *on_gpu.facts),
        findings=(*on_gpu.findings, *findings),
    )
    return evaluation if proof is None else _refuse(evaluation, proof)


def _refuse(evaluation: Evaluation, error: ErrorReport) -> Evaluation:
    """Return the evaluation with this error in the stage *integrity*, its verdict, and no times; the original stays as it was."""
    stages = [
        msgspec.structs.replace(stage, ok=False, detail=error.first_line)
        if stage.name == "integrity"
        else stage
        for stage in evaluation.stages
    ]
    return msgspec.structs.replace(
        evaluation,
        verdict=conclude(error),
        error=error,
        stages=tuple(stages),
        latency=(),
        rough=(),
        speedup=None,
        speedup_ci=None,
        speedup_geomean=None,
        speedup_geomean_ci=None,
        speedup_weighted_ci=None,
    )
