"""`evaluate`: one candidate through the six stages, on `cpu`, or on a GPU with the interpreter beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import msgspec

from harness.hardware.recognition import product_of
from harness.hardware.targets import target as find_target
from harness.processes.gpus.capacity import TIMERS_A_CANDIDATE
from harness.processes.pool import DevicePool
from harness.processes.process_endings import AGAIN, JudgeAgain
from harness.processes.slot import Slot
from harness.stages.static.inspection import StaticReport, inspect_source
from harness.stages.timing.baselines import USUAL, Against
from harness.wire import limits
from harness.wire.channels.channel import BadFrame
from harness.wire.device import Target
from harness.wire.errors import DeviceFull, HarnessError, WorkerDied
from harness.wire.results.evaluation import ErrorReport, Evaluation, Verdict
from suites.dtypes import NoSuchDtype
from suites.errors import SuiteError
from suites.task import Task

from .compilation import CompileResults
from .interpreter_findings import add_interpreter_findings
from .judged_task import with_calls
from .memory_shortage import BESIDE_OTHERS, describe_alone, met_full_gpu, say_alone
from .modes import USUAL_MODE, Attempt, Cases, Exam, Mode, Rough
from .sheet import OnEvent, Sheet
from .slot_evaluation import Request, SlotEvaluation

_LOST = (WorkerDied, BadFrame, msgspec.DecodeError, OSError)
"""Errors of a judgement if one of its processes fails."""


async def evaluate(
    candidate: str,
    task: Task,
    pool: DevicePool,
    mode: Mode = USUAL_MODE,
    *,
    targets: Sequence[Target],
    seed: int,
    against: Against | None = USUAL,
    on_event: OnEvent | None = None,
    keep_texts: Callable[[Mapping[str, bytes]], None] | None = None,
) -> Evaluation:
    """Evaluate `candidate` on a free slot of `pool`. The same `seed` gives the same verdict.

    - `mode`: which cases are judged, where, and how long they are timed.
    - `targets`: a GPU's own target, on `cpu` the first target, can fail the candidate; the others are only reported.
    - `against`: how the candidate is timed on a GPU; `None` for no performance stage. `cpu` times nothing.
    - `on_event`: called in order, from the event loop.
    - `keep_texts`: called in another thread with what the compiler wrote for the first target, as gzip by its SHA-256.
      The rows of `Evaluation.resources` name the texts.

    If a process of the candidate fails without a reason (`JudgeAgain`), the candidate is judged once more, with no other slot of
    the pool in use. Cancelling ends the candidate's whole process tree. Our own failures give the verdict `infra_error`. Only
    wrong arguments raise (`HarnessError`), and `NoDeviceLeft` if every GPU of the pool has failed.
    """
    if not targets:
        raise HarnessError("no target to compile for; name one, as gfx942")
    sheet = Sheet(task, pool.devices[0].name, mode, on_event, provenance=pool.software)
    task = task.with_cases(mode.names) if isinstance(mode, Cases) else task
    sheet.enter("static")
    report = await asyncio.to_thread(inspect_source, candidate, task)
    refused = _leave_static(sheet, report)
    if refused is not None:
        return refused
    avoid = mode.avoid if isinstance(mode, Exam) else ""
    on = mode.device if isinstance(mode, Attempt) else ""

    async def judge(sheet: Sheet, *, again: bool) -> Evaluation:
        timers = 0 if against is None else TIMERS_A_CANDIDATE
        async with pool.slot(avoid, on=on, timers=timers, alone=again) as slot:
            sheet.device = slot.device.name
            own = () if slot.device.target is None else (find_target(slot.device.target),)
            request = Request(
                task=task,
                source=with_calls(task, candidate),
                targets=(*own, *(target for target in targets if target not in own)),
                product=product_of(slot.device).product,
                seed=seed,
                slow=report.slow,
                mode=mode,
                against=against,
                again=again,
                keep_texts=keep_texts,
            )
            evaluation = await _judge_in_slot(sheet, pool, slot, request)
            return msgspec.structs.replace(
                evaluation,
                provenance=await pool.provenance(slot.device),
                error=evaluation.error and _within(evaluation.error, candidate),
            )

    try:
        try:
            return await judge(sheet, again=False)
        except JudgeAgain as doubt:
            sheet.leave_open_stages(str(doubt), ok=None)
            sheet = sheet.start_again(AGAIN.format(why=doubt))
            return await judge(sheet, again=True)
    except NoSuchDtype as lacking:
        sheet.leave_open_stages("not judged", ok=None)
        return sheet.conclude(ErrorReport(kind="unsupported", message=str(lacking)))
    except (*_LOST, SuiteError) as error:
        sheet.leave_open_stages("not judged", ok=None)
        return sheet.conclude(ErrorReport(kind="infra", message=str(error)))


def _within(error: ErrorReport, candidate: str) -> ErrorReport:
    """Return the error without its line if that is in the judge's text behind the candidate's."""
    is_inside = (error.line or 0) <= len(candidate.rstrip().splitlines())
    return error if is_inside else msgspec.structs.replace(error, line=None)


def refuse_text(candidate: str, task: Task, mode: Mode) -> Evaluation | None:
    """Return the evaluation of a candidate that the static stage refuses, without a device; `None` for any other."""
    sheet = Sheet(task, "", mode)
    sheet.enter("static")
    return _leave_static(sheet, inspect_source(candidate, task))


def _leave_static(sheet: Sheet, report: StaticReport) -> Evaluation | None:
    """End the static stage; returns the evaluation if the stage refuses the candidate."""
    sheet.notes += report.notes
    if report.error is not None:
        sheet.leave("static", report.error.message, ok=False)
        return sheet.conclude(report.error)
    sheet.leave("static", f"kernels: {', '.join(report.kernels)}", ok=True)
    return None


async def _judge_in_slot(sheet: Sheet, pool: DevicePool, slot: Slot, request: Request) -> Evaluation:
    lacking = needs_gpu(request.task)
    if slot.interpreter is None:
        if lacking is not None:
            return sheet.conclude(lacking)
        return await SlotEvaluation(sheet, pool, slot, request).run()
    sheet.enter("call")
    if isinstance(request.mode, Rough):
        return await _time_after_interpreter(sheet, pool, slot, slot.interpreter, request, request.mode)
    if request.task.script is not None or lacking is not None:  # the GPU alone can judge it
        return await _judge_with_memory(
            sheet, pool, slot, lambda sheet: SlotEvaluation(sheet, pool, slot, request).run()
        )
    return await _judge_beside_interpreter(sheet, pool, slot, slot.interpreter, request)


async def _time_after_interpreter(
    sheet: Sheet, pool: DevicePool, slot: Slot, interpreter: Slot, request: Request, mode: Rough
) -> Evaluation:
    """A rough evaluation: the interpreter alone judges, then the GPU takes few samples."""
    interpreted = mode.passed
    if interpreted is None:
        interpreted = await SlotEvaluation(sheet.copy_after_static("cpu"), pool, interpreter, request).run()
    if interpreted.verdict not in (Verdict.CORRECT, Verdict.UNSUPPORTED):
        sheet.leave_open_stages("refused by the interpreter, before the GPU", ok=False)
        return msgspec.structs.replace(interpreted, device=slot.device.name)
    timed = await _judge_with_memory(
        sheet, pool, slot, lambda sheet: SlotEvaluation(sheet, pool, slot, request).time_roughly(interpreted)
    )
    return add_interpreter_findings(timed, interpreted)


async def _judge_beside_interpreter(
    sheet: Sheet, pool: DevicePool, slot: Slot, interpreter: Slot, request: Request
) -> Evaluation:
    """The GPU's evaluation with the interpreter's findings, both judged at the same time.

    The GPU's processes and inputs are prepared beside the interpreter. Its first call waits until the interpreter's first case is
    right: then the source is compiled, and the GPU does not wait for that.
    """
    first_case_or_end = asyncio.Event()
    in_interpreter = SlotEvaluation(
        sheet.copy_after_static("cpu"), pool, interpreter, request, on_first_case=first_case_or_end.set
    )
    interpreting = asyncio.create_task(in_interpreter.run(), name="interpreter")
    interpreting.add_done_callback(lambda _: first_case_or_end.set())

    async def compiled() -> CompileResults | None:
        await first_case_or_end.wait()
        if interpreting.done() and (
            interpreting.exception() is not None or interpreting.result().verdict is Verdict.COMPILE_ERROR
        ):
            return None
        return CompileResults(in_interpreter.compiled.reports)

    try:
        evaluation = await _judge_with_memory(
            sheet,
            pool,
            slot,
            lambda sheet: SlotEvaluation(sheet, pool, slot, request, before_first_call=compiled).run(),
        )
        if evaluation.verdict is Verdict.CANCELLED:
            refused = interpreting.result()
            sheet.leave_open_stages("does not compile for the GPU", ok=False)
            return msgspec.structs.replace(refused, device=slot.device.name)
        await asyncio.wait([interpreting], timeout=limits.INTERPRETER_S)
        if not interpreting.done():
            return add_interpreter_findings(evaluation, None)
        try:
            interpreted = interpreting.result()
        except _LOST:  # the GPU decides, and its verdict is whole
            return add_interpreter_findings(evaluation, None, why="its processes failed")
        return add_interpreter_findings(evaluation, interpreted)
    finally:
        interpreting.cancel()
        await asyncio.wait([interpreting])
        if not interpreting.cancelled():
            interpreting.exception()  # mark as retrieved: `result` has raised it, or its result is not needed


async def _judge_with_memory(
    sheet: Sheet, pool: DevicePool, slot: Slot, judge: Callable[[Sheet], Awaitable[Evaluation]]
) -> Evaluation:
    """The evaluation on a GPU. If the GPU was full, the candidate is judged again alone.

    Also for the only slot of the only engine that holds a lease: spares, and idle judges of other engines, hold memory too.
    """
    try:
        evaluation = await pool.judge_on(slot, partial(judge, sheet))
        if not met_full_gpu(evaluation):
            return evaluation
    except DeviceFull:
        sheet.leave_open_stages("the GPU was full", ok=None)
    again = sheet.start_again(BESIDE_OTHERS)
    again.enter("call")
    used_bytes: int | None = None

    async def judge_alone() -> Evaluation:
        nonlocal used_bytes
        used_bytes = await pool.memory_used_bytes(slot.device)
        return await judge(again)

    try:
        evaluation = await pool.judge_alone(slot, judge_alone)
    except DeviceFull as full:
        raise DeviceFull(f"{full} ({describe_alone(used_bytes)})") from full
    return say_alone(evaluation, used_bytes) if met_full_gpu(evaluation) else evaluation


def needs_gpu(task: Task) -> ErrorReport | None:
    """Return the error of a task, or of chosen cases, without a case for the interpreter; `None` for other tasks."""
    if not all(case.only_gpu for case in task.cases):
        return None
    names = ", ".join(case.name for case in task.cases)
    return ErrorReport(
        kind="unsupported", message=f"too large for the interpreter, judged on a GPU only: {names}"
    )
