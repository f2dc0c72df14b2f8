"""`evaluate`: one candidate through the six stages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import msgspec

from harness.hardware.recognition import product_of
from harness.hardware.targets import target as find_target
from harness.processes.pool import DevicePool, Slot
from harness.stages.static.inspection import inspect_source
from harness.stages.timing.baselines import USUAL, Against
from harness.wire import limits
from harness.wire.channel import BadFrame
from harness.wire.device import Device, Target
from harness.wire.effort import WHOLE, Effort
from harness.wire.errors import HarnessError, WorkerDied
from harness.wire.evaluation import ErrorReport, Evaluation, Verdict
from suites.dtypes import NoSuchDtype, task_on
from suites.errors import SuiteError
from suites.task import Task

from .interpreter_findings import beside
from .sheet import OnEvent, Sheet
from .slot_evaluation import Asked, Evaluating


async def evaluate(
    candidate: str,
    task: Task,
    *,
    pool: DevicePool,
    targets: Sequence[Target],
    seed: int,
    exam: bool = False,
    rival: str | None = None,
    against: Against = USUAL,
    avoid: str = "",
    on: str = "",
    effort: Effort = WHOLE,
    passed: Evaluation | None = None,
    on_event: OnEvent | None = None,
) -> Evaluation:
    """All that can be said of `candidate` on a free slot of `pool`.

    The device's own target, on `cpu` the first of `targets`, can fail the candidate; the others are reported beside. Same `seed`, same verdict. `rival` is
    the best source so far, which a GPU times beside the baseline of `against`; `cpu` times nothing. It is judged on another device than `avoid` where one is
    free, or `on` that device alone. `exam` judges the task's exam cases in place of
    the open ones; what comes of it belongs in no feedback. With a rough `effort` a GPU is asked for time alone, once the interpreter let the candidate
    pass: the evaluation has estimates (`rough`) in place of latencies, and is no verdict to keep; on `cpu` it changes nothing.
    `passed` is what such an evaluation of the same candidate said before: the interpreter is not asked again. `on_event` is called in order, from the event
    loop. Cancelling ends the candidate's whole process tree. What goes wrong on our side is the verdict `infra_error`,
    never an exception; only wrong arguments raise (`HarnessError`), and `NoDeviceLeft` when every GPU of the pool has failed.
    """
    if not targets:
        raise HarnessError("no target to compile for; name one, as gfx942")
    sheet = Sheet(task, pool.devices[0].name, on_event)
    sheet.facts |= {"versions": pool.versions, "exam": exam}
    sheet.enter("static")
    report = await asyncio.to_thread(inspect_source, candidate, task)
    sheet.notes += report.notes
    if report.verdict is not None:
        assert report.error is not None
        sheet.leave("static", report.error.message, ok=False)
        return sheet.done(report.verdict, report.error)
    sheet.leave("static", f"kernels: {', '.join(report.kernels)}", ok=True)
    try:
        async with pool.slot(avoid, on=on) as slot:
            sheet.place(slot.device.name)
            compiled_for = _targets(slot.device, targets)
            here = task_on(task, compiled_for[0].name)
            product = product_of(slot.device).product
            asked = Asked(
                here, task, candidate, compiled_for, product, seed, report, exam, rival, against, effort
            )
            if slot.interpreter is None:
                return await Evaluating(sheet, pool, slot, asked).run()
            sheet.enter("call")
            interpreter = Evaluating(sheet.silent("cpu"), pool, slot.interpreter, asked)
            at_gpu_sizes = msgspec.structs.replace(asked, task=here.at_gpu_sizes)
            if effort.rough:
                interpreted = passed or await interpreter.run()
                if not _may_be_timed(interpreted):
                    sheet.fail_open_stages("refused by the interpreter, before the GPU", ok=False)
                    return msgspec.structs.replace(interpreted, device=slot.device.name)
                on_gpu = Evaluating(sheet, pool, slot, at_gpu_sizes)
                timed = await pool.judge_on(slot, partial(on_gpu.roughly, interpreted))
                return beside(timed, interpreted)
            return await _with_interpreter(sheet, pool, slot, at_gpu_sizes, interpreter)
    except NoSuchDtype as lacking:
        return sheet.done(Verdict.UNSUPPORTED, ErrorReport(kind="unsupported", message=str(lacking)))
    except (WorkerDied, SuiteError, BadFrame, msgspec.DecodeError, OSError) as error:
        sheet.fail_open_stages("not judged", ok=None)
        return sheet.done(Verdict.INFRA_ERROR, ErrorReport(kind="infra", message=str(error)))


async def _with_interpreter(
    sheet: Sheet, pool: DevicePool, slot: Slot, asked: Asked, interpreter: Evaluating
) -> Evaluation:
    """The GPU's evaluation; the interpreter runs meanwhile, and what it has to say is added.

    The GPU begins when the source is compiled for it, so that it does not wait for the compiler.
    """
    interpreting = asyncio.create_task(interpreter.run(), name="interpreter")
    try:
        await _first_case_done(interpreter, interpreting)
        if interpreting.done() and interpreting.result().verdict is Verdict.COMPILE_ERROR:
            sheet.fail_open_stages("does not compile for the GPU", ok=False)
            return msgspec.structs.replace(interpreting.result(), device=slot.device.name)
        on_gpu = Evaluating(sheet, pool, slot, asked, compiled=interpreter.compiled)
        evaluation = await pool.judge_on(slot, on_gpu.run)
        await asyncio.wait([interpreting], timeout=limits.INTERPRETER_S)
        return beside(evaluation, interpreting.result() if interpreting.done() else None)
    finally:
        interpreting.cancel()
        await asyncio.wait([interpreting])
        if not interpreting.cancelled():
            interpreting.exception()  # raised to whoever asked for the result, or of no matter


async def _first_case_done(interpreter: Evaluating, interpreting: asyncio.Task[Evaluation]) -> None:
    """Waits until the first case is right in the interpreter, or until the interpreter ends."""
    done = asyncio.create_task(interpreter.first_case_done.wait(), name="first case")
    try:
        await asyncio.wait((done, interpreting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        done.cancel()


def _may_be_timed(interpreted: Evaluation) -> bool:
    """Whether a GPU is asked for a rough time: it judges no outputs then, so that the interpreter alone can refuse."""
    return interpreted.verdict in (Verdict.CORRECT, Verdict.UNSUPPORTED)


def _targets(device: Device, asked: Sequence[Target]) -> tuple[Target, ...]:
    """The device's own target first, where it is a GPU."""
    own = () if device.target is None else (find_target(device.target),)
    return (*own, *(one for one in asked if one not in own))
