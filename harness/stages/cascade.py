"""`evaluate`: one candidate through the six stages: static, compile, the trial on its device, the clock.

On `cpu` the interpreter is the device. Beside a GPU it is a sanitizer pass of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import msgspec

from harness.hardware.recognition import product_of
from harness.hardware.targets import target as find_target
from harness.processes.gpus.capacity import TIMERS_A_CANDIDATE
from harness.processes.pool import DevicePool
from harness.processes.slot import Slot
from harness.wire.device import Target
from harness.wire.errors import HarnessError
from harness.wire.results.evaluation import ErrorReport, Evaluation, Verdict
from suites.dtypes import NoSuchDtype
from suites.errors import SuiteError
from suites.task import Task

from .judged_task import with_calls
from .modes import USUAL_MODE, Attempt, Cases, Exam, Mode, Rough
from .retries import AGAIN, judge_with_memory, try_alone
from .sanitizer import LOST, add_pass, judge_beside
from .sheet import OnEvent, Sheet
from .static.inspection import StaticReport, inspect_source
from .timing.baselines import USUAL, Against
from .trial import Trial, TrialRequest


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

    async def judge(again: str) -> Evaluation:
        nonlocal sheet
        if again:
            sheet.leave_open_stages(again, ok=None)
            sheet = sheet.start_again(AGAIN.format(why=again))
            sheet.judged_again = True
        timers = 0 if against is None else TIMERS_A_CANDIDATE
        async with pool.slot(avoid, on=on, timers=timers, alone=bool(again)) as slot:
            sheet.device = slot.device.name
            own = () if slot.device.target is None else (find_target(slot.device.target),)
            request = TrialRequest(
                task=task,
                source=with_calls(task, candidate),
                targets=(*own, *(target for target in targets if target not in own)),
                product=product_of(slot.device).product,
                seed=seed,
                slow=report.slow,
                mode=mode,
                against=against,
                again=bool(again),
                keep_texts=keep_texts,
            )
            evaluation = await _judge_in_slot(sheet, pool, slot, request)
            return msgspec.structs.replace(
                evaluation,
                provenance=await pool.provenance(slot.device),
                error=evaluation.error and _within(evaluation.error, candidate),
            )

    try:
        return await try_alone(judge)
    except NoSuchDtype as lacking:
        sheet.leave_open_stages("not judged", ok=None)
        return sheet.conclude(ErrorReport(kind="unsupported", message=str(lacking)))
    except (*LOST, SuiteError) as error:
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


async def _judge_in_slot(sheet: Sheet, pool: DevicePool, slot: Slot, request: TrialRequest) -> Evaluation:
    """Judge a candidate on a slot's device, and return its evaluation.

    A slot on `cpu` runs one trial. Beside a GPU the interpreter runs too, at the same time, as the sanitizer pass: it refuses
    only by proofs. A rough mode runs the interpreter first and times on the GPU only what passed. A trial for which the GPU was
    full runs a second time.
    """
    lacking, interpreter = needs_gpu(request.task), slot.interpreter
    if interpreter is None:
        if lacking is not None:
            return sheet.conclude(lacking)
        return await Trial(sheet, pool, slot, request).run()
    sheet.enter("compile")
    beside = sheet.copy_after_static("cpu")

    def begin_trial(again: str) -> Trial:
        """A trial on the GPU; `again` is the note of the second one."""
        nonlocal sheet
        if again:
            sheet.leave_open_stages("the GPU was full", ok=None)
            sheet = sheet.start_again(again)
            sheet.enter("compile")
        return Trial(sheet, pool, slot, request)

    if isinstance(request.mode, Rough):  # the interpreter alone judges, and the GPU takes few samples
        interpreted = request.mode.passed or await Trial(beside, pool, interpreter, request).run()
        if interpreted.verdict not in (Verdict.CORRECT, Verdict.UNSUPPORTED):
            sheet.leave_open_stages("refused by the interpreter, before the GPU", ok=False)
            return msgspec.structs.replace(interpreted, device=slot.device.name)
        timed = await judge_with_memory(
            pool, slot, lambda again: begin_trial(again).time_roughly(interpreted)
        )
        return add_pass(timed, interpreted)
    if request.task.script is not None or lacking is not None:  # the GPU alone can judge it
        return await judge_with_memory(pool, slot, lambda again: begin_trial(again).run())
    # The pass refuses by proofs, and not by what the task is strict about.
    lenient = msgspec.structs.replace(request, task=msgspec.structs.replace(request.task, strict=()))
    sanitizer = Trial(beside, pool, interpreter, lenient, compiles=False)
    judging = judge_with_memory(pool, slot, lambda again: begin_trial(again).run())
    return await judge_beside(judging, sanitizer.run())


def needs_gpu(task: Task) -> ErrorReport | None:
    """Return the error of a task, or of chosen cases, without a case for the interpreter; `None` for other tasks."""
    if not all(case.only_gpu for case in task.cases):
        return None
    names = ", ".join(case.name for case in task.cases)
    return ErrorReport(
        kind="unsupported", message=f"too large for the interpreter, judged on a GPU only: {names}"
    )
