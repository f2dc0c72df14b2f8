"""Judges the references of public benchmarks: Triton references as candidates, PyTorch references as oracles."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from harness.processes.pool import DevicePool
from harness.stages.cascade import evaluate, needs_gpu
from harness.stages.judged_task import ask_judge, resolve_task
from harness.wire.device import Target
from harness.wire.errors import NotRecorded, WorkerDied
from harness.wire.messages.judge import Weigh, Weighed
from harness.wire.results.evaluation import Evaluation, Verdict
from suites.dtypes import NoSuchDtype
from suites.loader import baseline_source
from suites.public.recorded import text_digest
from suites.public.task import PublicTask, ReferenceKind
from suites.task import Task, TextEnum

from .recorder import SEED, find_or_record


class Result(TextEnum):
    """Result of one reference."""

    CORRECT = "correct"
    WRONG = "wrong"
    """A wrong or unrepeatable value, a store outside a tensor, an exception or a crash, as proof."""
    NOT_COMPILED = "not compiled"
    """It does not compile for the target or does not fit on it."""
    TIMEOUT = "timeout"
    UNSUPPORTED = "unsupported"
    """This device or the format of tasks cannot judge it."""
    LOST = "lost"
    """A process of ours failed. The result is not kept."""


_RESULTS = {
    Verdict.CORRECT: Result.CORRECT,
    Verdict.COMPILE_ERROR: Result.NOT_COMPILED,
    Verdict.TIMEOUT: Result.TIMEOUT,
    Verdict.UNSUPPORTED: Result.UNSUPPORTED,
    Verdict.CANCELLED: Result.LOST,
    Verdict.INFRA_ERROR: Result.LOST,
}


class ReferenceResult(msgspec.Struct, frozen=True):
    """How a reference was judged."""

    task: str
    digest: str
    """Digest of the benchmark's texts."""
    device: str
    target: str
    """Target that a Triton reference was compiled for."""
    result: Result
    calls: int = 0
    """Calls that were judged."""
    kind: str = ""
    """Kind of the error, or `recording` if no call could be recorded."""
    why: str = ""
    """The reason in one line; empty if it is correct."""
    weak: str = ""
    """Wrong answers that the task accepts; empty if it refuses all wrong answers that were tried."""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


async def judge_reference(
    public: PublicTask, registry: Path, *, pool: DevicePool, target: Target, again: bool = False
) -> ReferenceResult:
    """Record a public task if it is not recorded yet, with `again` in any case, and judge its reference."""
    began = time.monotonic()
    outcome: dict[str, Any]
    try:
        task = await find_or_record(public, registry, pool=pool, target=target, again=again)
        outcome = await _judge(public, task, pool, target)
    except NotRecorded as reason:
        outcome = {"result": Result.UNSUPPORTED, "kind": "recording", "why": str(reason)}
    except NoSuchDtype as reason:
        outcome = {"result": Result.UNSUPPORTED, "kind": "dtype", "why": str(reason)}
    except WorkerDied as reason:
        outcome = {"result": Result.LOST, "kind": "infra", "why": str(reason)}
    return ReferenceResult(
        task=public.id,
        digest=text_digest(public),
        device=pool.devices[0].name,
        target=target.name,
        seconds=round(time.monotonic() - began, 2),
        **outcome,
    )


async def _judge(public: PublicTask, task: Task, pool: DevicePool, target: Target) -> dict[str, Any]:
    """Judge a public task's reference; return the fields of its row that depend on the judge.

    A Triton reference is judged as a candidate, any other is tested as an oracle. Raises like `evaluate` and `ask_judge`.
    """
    on_cpu = pool.devices[0].kind == "cpu"
    here = resolve_task(task, target.name, on_gpu=not on_cpu)
    notes = task.script.notes if task.script is not None else ()
    outcome: dict[str, Any] = {"calls": len(here.cases), "notes": notes}
    lacking = needs_gpu(task) if on_cpu else None
    if lacking is not None:
        return outcome | {"result": Result.UNSUPPORTED, "why": lacking.message}
    if public.reference_kind is ReferenceKind.TRITON:
        evaluation = await evaluate(
            baseline_source(task), task, pool, targets=[target], seed=SEED, against=None
        )
        return outcome | _of_evaluation(evaluation)
    async with pool.slot() as slot:
        weighed = await ask_judge(slot, Weigh(task=here, seed=SEED), Weighed, target.name)
    return outcome | _of_weighing(weighed)


def _of_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    """Return the outcome of a reference that was judged as a candidate, as fields of its row."""
    error = evaluation.error
    return {
        "result": _RESULTS.get(evaluation.verdict, Result.WRONG),
        "kind": error.kind if error is not None else "",
        "why": error.first_line if error is not None else "",
        "weak": evaluation.weak_oracle,
    }


def _of_weighing(weighed: Weighed) -> dict[str, Any]:
    """Return the outcome of a reference that was tested as an oracle, as fields of its row."""
    if weighed.problem:
        result = Result.UNSUPPORTED if weighed.unsupported else Result.WRONG
        return {"result": result, "kind": "oracle", "why": weighed.problem}
    weak = "; ".join(f"case {weakness.case}: {weakness.problem}" for weakness in weighed.weaknesses[:3])
    return {"result": Result.CORRECT, "weak": weak}
