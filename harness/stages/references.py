"""Judges the references of public benchmarks: Triton references as candidates, PyTorch references as oracles."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path

import msgspec

from harness.processes.pool import DevicePool
from harness.wire.device import Target
from harness.wire.errors import WorkerDied
from harness.wire.evaluation import Evaluation, Verdict
from harness.wire.judge_messages import Weigh, Weighed
from suites.dtypes import NoSuchDtype, task_on
from suites.loader import baseline_source
from suites.public.recorded import find_recorded, recorded_folder, text_digest
from suites.public.task import PublicTask, ReferenceKind
from suites.task import Task

from .cascade import evaluate, needs_gpu
from .recording import SEED, NotRecorded, record_task
from .scripts import as_called
from .task_questions import ask_judge


class Result(StrEnum):
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
    judged = ReferenceResult(public.id, text_digest(public), pool.devices[0].name, target.name, Result.LOST)
    try:
        on_cpu = pool.devices[0].kind == "cpu"
        task = None if again else find_recorded(public, registry, for_gpu=not on_cpu)
        if task is None:
            folder = recorded_folder(registry, public.suite) / public.name
            task = await record_task(public, folder, pool=pool, target=target)
        lacking, task = needs_gpu(task), task.for_interpreter if on_cpu else task
        judged = msgspec.structs.replace(
            judged, calls=len(task.cases), notes=task.script.notes if task.script else ()
        )
        if not task.cases:
            judged = msgspec.structs.replace(judged, result=Result.UNSUPPORTED, why=lacking.message)
        elif public.reference_kind is ReferenceKind.TRITON:
            evaluation = await evaluate(
                baseline_source(task), task, pool, targets=[target], seed=SEED, against=None
            )
            judged = _of_evaluation(judged, evaluation)
        else:
            judged = _of_weighing(judged, await _weigh(task, pool, target))
    except NotRecorded as reason:
        judged = msgspec.structs.replace(judged, result=Result.UNSUPPORTED, kind="recording", why=str(reason))
    except NoSuchDtype as reason:
        judged = msgspec.structs.replace(judged, result=Result.UNSUPPORTED, kind="dtype", why=str(reason))
    except WorkerDied as reason:
        judged = msgspec.structs.replace(judged, result=Result.LOST, kind="infra", why=str(reason))
    return msgspec.structs.replace(judged, seconds=round(time.monotonic() - began, 2))


def _of_evaluation(judged: ReferenceResult, evaluation: Evaluation) -> ReferenceResult:
    result = _RESULTS.get(evaluation.verdict, Result.WRONG)
    weak = next(
        (fact.value for fact in evaluation.facts if fact.name == "oracle" and fact.value.startswith("weak")),
        "",
    )
    error = evaluation.error
    return msgspec.structs.replace(
        judged,
        result=result,
        kind=error.kind if error is not None else "",
        why=error.first_line if error is not None else "",
        weak=weak.removeprefix("weak: "),
    )


async def _weigh(task: Task, pool: DevicePool, target: Target) -> Weighed:
    async with pool.slot() as slot:
        return await ask_judge(
            slot, Weigh(task=task_on(as_called(task), target.name), seed=SEED), Weighed, target.name
        )


def _of_weighing(judged: ReferenceResult, weighed: Weighed) -> ReferenceResult:
    if weighed.problem:
        result = Result.UNSUPPORTED if weighed.unsupported else Result.WRONG
        return msgspec.structs.replace(judged, result=result, kind="oracle", why=weighed.problem)
    weak = "; ".join(f"case {weakness.case}: {weakness.problem}" for weakness in weighed.weaknesses[:3])
    return msgspec.structs.replace(judged, result=Result.CORRECT, weak=weak)
