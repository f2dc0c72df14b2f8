"""`evaluate`: one candidate through the six stages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import msgspec

from harness.worker.serving.channel import BadFrame
from suites.dtypes import NoSuchDtype, task_on
from suites.errors import SuiteError
from suites.task import Task

from .baselines import USUAL, Against
from .device import Device, Target
from .effort import WHOLE, Effort
from .errors import HarnessError, WorkerDied
from .evaluating import Asked, Evaluating
from .evaluation import ErrorReport, Evaluation, Verdict
from .pool import DevicePool
from .products import product_of
from .sheet import OnEvent, Sheet
from .static import inspect_source
from .targets import target as find_target


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
            interpreter = Evaluating(sheet.silent("cpu"), pool, slot.interpreter, asked, before_gpu=True)
            said = asyncio.create_task(_said(passed) if passed else interpreter.run(), name="interpreter")

            async def interpreted() -> Evaluation | None:
                return sheet.interpreted(await asyncio.shield(said), report.unbounded)

            try:
                beside = not (effort.rough or report.unbounded) and await _begins(interpreter, said)
                held = None if beside else await interpreted()
                if held is not None:
                    return held
                asked = msgspec.structs.replace(asked, task=here.at_gpu_sizes)
                on_gpu = Evaluating(sheet, pool, slot, asked, interpreted=interpreted if beside else None)
                if effort.rough:
                    return await pool.judge_on(slot, partial(on_gpu.roughly, await said))
                return await interpreter.completed(await pool.judge_on(slot, on_gpu.run))
            finally:
                said.cancel()
                await asyncio.wait([said])
                if not said.cancelled():
                    said.exception()  # told by who waited for it, or of no matter
                await interpreter.let_go()
    except NoSuchDtype as lacking:
        return sheet.done(Verdict.UNSUPPORTED, ErrorReport(kind="unsupported", message=str(lacking)))
    except (WorkerDied, SuiteError, BadFrame, msgspec.DecodeError, OSError) as error:
        sheet.fail_open_stages("not judged", ok=None)
        return sheet.done(Verdict.INFRA_ERROR, ErrorReport(kind="infra", message=str(error)))


async def _said(evaluation: Evaluation) -> Evaluation:
    return evaluation


async def _begins(interpreter: Evaluating, said: asyncio.Task[Evaluation]) -> bool:
    """Whether a GPU may try the first case beside the interpreter's others; `False` once the interpreter is done."""
    begins = asyncio.create_task(interpreter.may_begin.wait(), name="may begin")
    try:
        await asyncio.wait((begins, said), return_when=asyncio.FIRST_COMPLETED)
    finally:
        begins.cancel()
    return not said.done()


def _targets(device: Device, asked: Sequence[Target]) -> tuple[Target, ...]:
    """The device's own target first, where it is a GPU."""
    own = () if device.target is None else (find_target(device.target),)
    return (*own, *(one for one in asked if one not in own))
