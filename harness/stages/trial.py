"""One candidate on one slot, after the static stage: starts its guest, follows the judge's reports, and concludes.

`cascade.evaluate` uses it: for `cpu`, for a GPU, and for the sanitizer pass beside a GPU. Read `Trial.run`, then `_follow_judge`
(in the order of the judge's reports), then `_conclude`.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from harness.cases.call_plan import make_plan
from harness.cases.seeds import derive
from harness.failures import end_task
from harness.hardware.product import Product
from harness.processes.pool import DevicePool
from harness.processes.process_endings import doubt_starved_call, error_of_failure
from harness.processes.slot import Slot
from harness.processes.starting.servers import Child
from harness.processes.starting.spares import GUEST, Worker
from harness.wire import limits
from harness.wire.calls.tensors import NO_CASES
from harness.wire.channels.async_channel import AsyncChannel
from harness.wire.channels.channel import ENCODER
from harness.wire.channels.stack_samples import last_line
from harness.wire.device import Target
from harness.wire.errors import DeviceFull, HarnessError, WorkerDied, is_out_of_memory
from harness.wire.findings import left_behind, name_running_line
from harness.wire.messages.clock import EXAM, SUSTAINED, WHOLE, Effort
from harness.wire.messages.guest import Alive
from harness.wire.messages.judge import (
    JUDGE_REPORTS,
    AtStage,
    Begin,
    Judged,
    JudgeReport,
    Proceed,
    Specified,
    TurnWanted,
    Weighed,
)
from harness.wire.results.evaluation import ErrorReport, Evaluation
from harness.wire.results.served_calls import unchecked_requirements
from suites.task import Task

from .compilation import Compiler, CompileResults, note_unrun_configs, note_unrun_kernels
from .full_sizes import add_needs, find_errors, run_at_full_sizes
from .judged_task import MOST_REPORT_BYTES, resolve_task, script_worker, with_calls
from .modes import Cases, Exam, Mode, Rough
from .retries import settle
from .sheet import Sheet
from .timing.baselines import USUAL, Against, timing_baseline
from .timing.conclusions import require_serving
from .timing.performance import Crowded, Performance
from .verdicts import conclude

_LEAVE_S = 5.0
"""Time for a guest to end by itself after its last answer."""
NO_GPU = "no GPU: not timed"


class TrialRequest(msgspec.Struct, frozen=True):
    """A candidate and how to evaluate it."""

    task: Task
    """The task as written; each `Trial` resolves it for its device."""
    source: str
    targets: tuple[Target, ...]
    product: Product | None
    """The device's product, also for the interpreter beside a GPU; `None` for `cpu` and for an unknown GPU."""
    seed: int
    slow: tuple[str, ...]
    """Calls in the source that the interpreter may be too slow for, as `tl.sort`."""
    mode: Mode
    against: Against | None
    """How the candidate is timed; `None`: no performance stage."""
    again: bool = False
    """The second evaluation, after a `JudgeAgain`."""
    keep_texts: Callable[[Mapping[str, bytes]], None] | None = None
    """Called in another thread with the compiler's texts of the first target, by their SHA-256; `None`: no texts are needed."""

    @property
    def exam(self) -> bool:
        """Whether the exam cases are judged."""
        return isinstance(self.mode, Exam)

    @property
    def effort(self) -> Effort:
        """How much timing the candidate may cost."""
        if isinstance(self.mode, Rough):
            return self.mode.effort
        if self.against is not None and self.against.sustained:
            return SUSTAINED
        return EXAM if self.exam else WHOLE

    @property
    def timing_seed(self) -> int:
        """The seed of timed inputs. An exam draws new values, because it confirms the speedup found before."""
        return derive(self.seed, "confirm") if self.exam else self.seed


class Trial:
    """One candidate on one slot. Call `run`, or `time_roughly` after another trial's `run`, once."""

    def __init__(
        self, sheet: Sheet, pool: DevicePool, slot: Slot, request: TrialRequest, *, compiles: bool = True
    ) -> None:
        """Without `compiles`, another trial compiles the source, as the GPU's beside a sanitizer pass."""
        self._sheet = sheet
        self._pool = pool
        self._slot = slot
        self._request = request
        self._on_cpu = slot.device.kind == "cpu"
        self._limits = pool.limits(slot.device)
        if self._on_cpu:
            self._limits = self._limits.for_source(request.source).under_load(limits.load())
        self._task = resolve_task(request.task, request.targets[0].name, on_gpu=not self._on_cpu)
        is_chosen = isinstance(request.mode, Cases)
        self._plan = make_plan(
            self._task, request.seed, request.source, exam=request.exam, hidden=not is_chosen
        )
        self._compiles = compiles
        self._compiling: asyncio.Task[tuple[CompileResults, float]] | None = None
        self._compile_began_s = 0.0
        self._specified = Specified(NO_CASES)
        self._was_called = False

    async def run(self) -> Evaluation:
        """The Evaluation. Every process of the candidate is ended.

        Raises `WorkerDied` if a process of ours is lost, `JudgeAgain` if a process of the candidate failed without a reason.
        """
        async with self._pool.leases.using(self._slot):
            return await self._judge()

    async def _judge(self) -> Evaluation:
        """Start a guest, give it to the judge's process, and follow the judge to its verdict.

        The guest, the compile task and the script worker end with this call. If it raises, the judge's process is discarded
        too: its next report would belong to this candidate.
        """
        channel = await self._slot.channel()
        cpu_s = 2 * self._limits.call_cpu_s + self._limits.case_cpu_s * self._plan.calls
        guest = await self._start_guest(math.ceil(cpu_s))
        try:
            async with script_worker(self._slot, channel, self._task, self._request.targets[0].name):
                try:
                    await self._send(channel, self._begin(guest), (guest.end.fileno(),))
                finally:
                    guest.end.close()
                return await self._follow_judge(channel, guest.child)
        except BaseException:
            self._slot.discard()
            raise
        finally:
            guest.child.end()
            if self._compiling is not None:
                await end_task(self._compiling)

    async def time_roughly(self, interpreted: Evaluation) -> Evaluation:
        """Estimates of a candidate that the interpreter accepted; the GPU compares its outputs only in timed calls."""
        self._sheet.leave_open_stages("by the interpreter alone", ok=None)
        self._sheet.enter("performance")
        async with self._pool.leases.using(self._slot):
            error = await self._time()
        self._settle(doubt_starved_call(error))
        evaluation = self._sheet.conclude(error)
        return msgspec.structs.replace(
            evaluation,
            call=interpreted.call,
            execution=interpreted.execution,
            stages=(evaluation.stages[0], *interpreted.stages[1:-1], evaluation.stages[-1]),
        )

    async def _start_guest(self, cpu_limit_s: int) -> Worker:
        if self._on_cpu:
            worker = await self._slot.server.spawn_for_another(
                GUEST, cpu_limit_s=cpu_limit_s, sandboxed=True, package=self._task.package_view
            )
            return Worker(*worker)
        return await self._pool.spares.take(GUEST, self._slot.device, self._task.package_view)

    def _begin(self, guest: Worker) -> Begin:
        return Begin(
            task=self._task,
            source=self._request.source,
            seed=self._request.seed,
            guest_pid=guest.pid,
            target=self._request.targets[0].name,
            limits=self._limits,
            exam=self._request.exam,
            plan=self._plan,
            asks=not self._on_cpu,
        )

    async def _follow_judge(self, channel: AsyncChannel, guest: Child) -> Evaluation:
        """Follow the judge's reports on stages until its verdict, and return the evaluation.

        A compile error counts once the stage *call* is over, or when the judge wants a turn on the GPU. It ends the trial; the
        judge may first finish what it says about values. Raises `WorkerDied` if the judge answers another question.
        """
        while True:
            report = await self._receive(channel)
            error = None
            match report:
                case Specified():
                    self._specified = report
                    if self._compiles:
                        self._compile_began_s = time.monotonic()
                        self._compiling = asyncio.create_task(self._compile(), name="compile")
                case AtStage(ended=False):
                    self._sheet.enter(report.stage, report.at_s)
                case AtStage():
                    self._sheet.leave(
                        report.stage, report.detail, ok=report.ok, at_s=report.at_s, cases=report.cases
                    )
                    if report.stage == "call" and report.ok:
                        error = await self._compile_error()
                case TurnWanted():
                    error = await self._give_turn(channel, guest)
                case Judged():
                    return await self._conclude(report, guest)
                case Alive():
                    continue
                case Weighed():
                    raise WorkerDied("the judge answered a question that was not asked")
            if error is not None:
                judged = await self._wait_for_values(channel)
                await self._finish_guest(guest, kill=True)
                return self._sheet.conclude(_with_values(error, judged))

    async def _wait_for_values(self, channel: AsyncChannel) -> Judged | None:
        """Return what the judge says of the values of a source that does not compile; `None` if it does not end soon."""
        with suppress(TimeoutError, WorkerDied):
            async with asyncio.timeout(self._limits.rest_s):
                while True:
                    report = await self._receive(channel)
                    if isinstance(report, Judged):
                        return report
        self._slot.discard()  # its judge may still run the candidate
        return None

    async def _give_turn(self, channel: AsyncChannel, guest: Child) -> ErrorReport | None:
        """Let the judge make its next call on the GPU. The first waits for the compiled kernels; returns their error."""
        error = None
        if not self._was_called and self._compiling is not None:
            async with self._pool.leases.launching_nothing(self._slot):
                await asyncio.wait([self._compiling])
            error = await self._compile_error(before_call=True)
            if error is None and guest.scratch is not None:
                await asyncio.to_thread(
                    self._pool.lay, self._request.source, guest.scratch, self._slot.device
                )
        self._was_called = True
        if error is None:
            await self._pool.leases.let_timing_pass(self._slot)
        await self._send(channel, Proceed(go=error is None))
        return error

    async def _compile(self) -> tuple[CompileResults, float]:
        """Compile for all targets; returns when that was done, by `time.monotonic`, too. Ends once the baseline is compiled."""
        request = self._request
        keeps = request.keep_texts is not None
        compiler = Compiler(self._pool, request.task, request.source, self._limits, keep_texts=keeps)
        baseline = asyncio.create_task(self._compile_baseline(), name="compile/baseline")
        try:
            compiled, ended_s = await compiler.compile_all(request.targets, self._specified), time.monotonic()
            await baseline
            return compiled, ended_s
        finally:
            await end_task(baseline)

    async def _compile_baseline(self) -> None:
        """Prepare for a baseline that is not recorded yet: its recorder holds a lease, and then is ready and only loads kernels.

        After a `HarnessError` its recorder compiles them, or the performance stage says why there is no baseline.
        """
        request, pool = self._request, self._pool
        if self._on_cpu or request.against is None:
            return
        with suppress(HarnessError):
            baseline = request.against.baseline
            if baseline is None:
                baseline = await asyncio.to_thread(timing_baseline, request.task)
            source, target = with_calls(request.task, baseline.source), request.targets[0]
            is_known = source == request.source or pool.kernels.holds(source)
            is_recorded = pool.baseline_calls.has(source, target.name, request.timing_seed)
            if not is_recorded and request.task.package_view is None:  # a spare does not see a package
                pool.expect_timer(self._slot)
            if "triton.jit" in source and not is_known and not is_recorded:
                await Compiler(pool, request.task, source, self._limits).compile(target, self._specified)

    async def _compile_error(self, *, before_call: bool = False) -> ErrorReport | None:
        """End the compile stage once; returns the error if the source does not compile for the first target.

        `before_call`: if host code failed, the stage ends after the call. Its error says more.
        """
        compiling, request, sheet = self._compiling, self._request, self._sheet
        if compiling is None:
            return None
        if not self._was_called:
            sheet.enter("compile", self._compile_began_s)
        compiled, ended_s = await compiling
        for report in compiled.reports.values():
            self._settle(report.doubt)
        first = request.targets[0].name
        report = compiled.reports[first]
        if before_call and report.in_host:
            return None
        self._compiling, sheet.compiled = None, compiled
        if request.keep_texts is not None:
            await asyncio.to_thread(request.keep_texts, compiled.texts)
        sheet.notes += [
            f"{target}: {note}" for target, report in compiled.reports.items() for note in report.notes
        ]
        error = report.failure(first)
        if error is not None:
            sheet.leave(
                "compile", error.message, ok=None if error.kind == "unsupported" else False, at_s=ended_s
            )
            return error
        sheet.notes += note_unrun_configs(report.resources, self._plan.configs)
        sheet.leave("compile", compiled.detail, ok=True, at_s=ended_s)
        return None

    async def _conclude(self, judged: Judged, guest: Child) -> Evaluation:
        """Return the evaluation: the judge's result, corrected by what only the parent sees.

        That is the end of the guest's process, the compiled code, timed calls on a GPU, and on `cpu` the counts of the
        interpreter. Raises `JudgeAgain` if the machine may have caused the error, unless this is the second try, and
        `WorkerDied` if a process of ours is lost.
        """
        request, sheet, error = self._request, self._sheet, judged.error
        sheet.judged = judged
        refusal = None
        timed_out = error is not None and error.kind == "timeout"
        if error is None:
            compiled = sheet.compiled.reports.get(request.targets[0].name)
            refusal = compiled.host_work_error() if compiled is not None else None
        elif timed_out and guest.scratch is not None:
            error = name_running_line(error, last_line(guest.scratch), request.source)
        ending = asyncio.create_task(self._finish_guest(guest, kill=timed_out))
        try:
            if error is None and refusal is None and not self._on_cpu and request.against is not None:
                sheet.enter("performance")
                error = await self._time(alone=ending)
        except BaseException:
            guest.end()
            raise
        finally:
            leftover = await ending
        if judged.failure is not None:
            blame = error_of_failure(judged.failure, guest, error)
            self._settle(blame.doubt)
            error = blame.error
        if not self._on_cpu:  # on `cpu` nothing compiles in a call, and its limits are the candidate's own
            self._settle(doubt_starved_call(error))
        if self._on_cpu and request.slow and error is not None and error.kind == "timeout":
            message = f"{error.place}: {', '.join(request.slow)} is too slow for the interpreter here"
            error = ErrorReport(kind="unsupported", message=message)
        if leftover:
            refusal = left_behind(0, leftover)
        if error is None and refusal is not None:
            error = refusal
            sheet.fail_stage("integrity", refusal.message)
        is_ours = error is not None and error.kind == "infra"
        sheet.leave_open_stages("not finished", ok=None if is_ours else False)
        if self._on_cpu:
            error_at_gpu_sizes = await self._count(judged, is_correct=error is None)
            if error_at_gpu_sizes is not None:
                error = error_at_gpu_sizes
                sheet.fail_stage("execution", error.message)
        unchecked = unchecked_requirements(sheet.timing.served, judged.batch_rows, request.task)
        if error is None and unchecked:
            sheet.notes.append(f"required by the task, but not measured here: {', '.join(unchecked)}")
        return sheet.conclude(error)

    async def _time(self, *, alone: asyncio.Task[int] | None = None) -> ErrorReport | None:
        """The performance stage on a GPU; returns the error of a timed call, which makes the candidate incorrect.

        Nothing is timed before `alone` is done, nor if it counts processes that the candidate left behind.
        """
        request, sheet = self._request, self._sheet
        first = request.targets[0]
        left_out = [case for case in self._task.open_cases if case.no_baseline]
        sheet.notes += [f"{case.name}: not timed: {case.no_baseline}" for case in left_out]
        if not self._task.timed_cases:
            sheet.leave_untimed("the baseline does the work of no case")
            return None
        performance = Performance(
            self._pool,
            self._slot,
            msgspec.structs.replace(
                self._task, cases=tuple(case for case in self._task.cases if case not in left_out)
            ),
            first,
            seed=request.timing_seed,
            alone=alone,
            exam=request.exam,
        )
        channel = await self._slot.channel()
        try:
            timing = await performance.measure(
                channel,
                request.source,
                against=request.against or USUAL,
                compiled={kernel.code_sha256 for kernel in sheet.compiled.resources.get(first.name, ())},
                effort=request.effort,
            )
            timing = require_serving(timing, request.task)
        except Crowded:
            self._slot.discard()
            sheet.leave_untimed("processes were left behind")
            return None
        except TimeoutError:
            self._slot.discard()
            raise WorkerDied("the clock sent no report in time") from None
        except BaseException:
            self._slot.discard()
            raise
        settle(timing.doubt, again=request.again)
        sheet.leave("performance", timing.detail, ok=timing.ok, cases=timing.cases)
        sheet.timing = timing
        sheet.notes += timing.notes
        return timing.error

    async def _count(self, judged: Judged, *, is_correct: bool) -> ErrorReport | None:
        """Run the performance stage on `cpu`, which times nothing: it counts what cases need and runs programs at `gpu` sizes.

        Counts alone after a wrong answer. Returns the error that only `gpu` sizes show; `None` without one.
        """
        request, sheet = self._request, self._sheet
        first = request.targets[0]
        error = None
        if is_correct:
            compiled = sheet.compiled.resources.get(first.name, ())
            sheet.notes += note_unrun_kernels(compiled, judged.kernels)
            sheet.enter("performance")
            if request.against is not None and not isinstance(request.mode, Exam | Rough):
                seed = derive(request.seed, "full sizes", request.source)  # foreign code sees it
                reports = await run_at_full_sizes(
                    self._pool, self._task, request.source, first, self._specified.cases, seed
                )
                sheet.not_sampled = {report.case: report.why for report in reports if report.why}
                sheet.raised_at_full_sizes = tuple(report.case for report in reports if report.raised)
                error, sheet.findings_at_full_sizes = await asyncio.to_thread(
                    find_errors, self._task, self._plan.declared, reports
                )
        sheet.traffic, sheet.full_sizes = await asyncio.to_thread(
            add_needs, self._task, self._plan.declared, judged.traffic, first, request.product
        )
        if is_correct:
            sheet.leave("performance", NO_GPU, ok=None)
        return error

    def _settle(self, doubt: str) -> None:
        settle(doubt, again=self._request.again)

    async def _finish_guest(self, guest: Child, *, kill: bool) -> int:
        """Wait until the guest's process tree is gone; returns how many processes the guest had left behind."""
        if kill:
            guest.end()
        ended = await guest.wait(_LEAVE_S)
        self._sheet.printed = guest.printed.text()
        return ended.leftover

    async def _send(
        self, channel: AsyncChannel, request: Begin | Proceed, descriptors: tuple[int, ...] = ()
    ) -> None:
        try:
            await channel.send(ENCODER.encode(request), descriptors)
        except EOFError as error:
            raise await self._explain_lost_judge() from error

    async def _receive(self, channel: AsyncChannel) -> JudgeReport:
        """Return the judge's next report. Raises `WorkerDied` if the judge is silent for too long or has ended."""
        silence = silence_s(self._limits, scripts=self._task.script is not None)
        try:
            async with asyncio.timeout(silence):
                return JUDGE_REPORTS.decode(await channel.receive(MOST_REPORT_BYTES))
        except TimeoutError:
            raise WorkerDied(f"the judge sent no report for {silence:g} s") from None
        except EOFError as error:
            raise await self._explain_lost_judge() from error

    async def _explain_lost_judge(self) -> WorkerDied:
        """The judge's last printed line, or that the server under it died."""
        judge = self._slot.judge
        if judge is not None:
            await judge.wait(_LEAVE_S)
        if not self._slot.server.alive:
            return WorkerDied(
                f"the {self._slot.server.name} server died; it is started again with the next evaluation"
            )
        printed = judge.printed.text().strip() if judge is not None else ""
        if is_out_of_memory(printed):
            return DeviceFull("the judge ended: the GPU is out of memory")
        last_line = printed.rpartition("\n")[2]
        return WorkerDied(f"the judge is gone: {last_line or 'it was killed'}")


def silence_s(allowed: limits.TimeLimits, *, scripts: bool) -> float:
    """Return the seconds that a judge may send no report: its longest wait for a process, and its own work after that."""
    script_s = limits.SCRIPT_S * limits.MOST_LOAD if scripts else 0.0
    return max(allowed.call_s, allowed.case_s, script_s) + limits.ORACLE_S


def _with_values(failure: ErrorReport, judged: Judged | None) -> ErrorReport:
    """Return the error of the compile, with lines for the cases that are wrong as well."""
    error = None if judged is None else judged.error
    if error is None or not conclude(error).is_failure or not conclude(failure).is_failure:
        return failure
    failure = failure.with_further((error.in_one_line, *error.further), error.cases)
    return msgspec.structs.replace(failure, target="")
