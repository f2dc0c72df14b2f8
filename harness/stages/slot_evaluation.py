"""One candidate on one slot, after the static stage: guest, judge and compilers started, heard out and ended."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Awaitable, Mapping

import msgspec

from harness.cases.call_plan import PATIENCE, make_plan
from harness.cases.seeds import derive
from harness.hardware.product import Product
from harness.processes.pool import DevicePool, Slot
from harness.processes.process_endings import verdict_of
from harness.processes.servers import Child
from harness.processes.spares import GUEST, Worker
from harness.sandbox.layers import different_layers
from harness.stages.estimates.sample_findings import Sampled, sampled
from harness.stages.estimates.sampling_stage import Sampler
from harness.stages.static.inspection import StaticReport
from harness.stages.timing.baselines import Against
from harness.stages.timing.conclusions import mean_speedups, not_timed
from harness.stages.timing.performance import Crowded, Performance
from harness.wire import limits
from harness.wire.async_channel import AsyncChannel
from harness.wire.device import Target
from harness.wire.effort import Effort
from harness.wire.encoding import ENCODER
from harness.wire.errors import WorkerDied
from harness.wire.evaluation import ErrorReport, Evaluation, Verdict
from harness.wire.findings import drop_repeated, left_behind
from harness.wire.judge_messages import (
    JUDGE_REPORTS,
    Alive,
    Begin,
    Entered,
    FirstCallPassed,
    FirstCaseRight,
    Judged,
    JudgeReport,
    Left,
    Proceed,
    Specified,
    Weighed,
)
from suites.task import Case, Task

from .compilation import Compiler, TargetReport, last_line, never_run, only_compiled
from .sheet import Sheet

_MAX_REPORT_BYTES = 64 << 20
_LEAVE_S = 5.0
"""For a guest to end by itself after its last answer."""
NO_GPU = "no GPU: estimate only"


class Asked(msgspec.Struct, frozen=True):
    """What is to be judged."""

    task: Task
    """With the dtypes of the first target and the sizes of the device."""
    as_written: Task
    source: str
    targets: tuple[Target, ...]
    product: Product | None
    """Of the device, also while the interpreter runs it first; `None` for `cpu`, and where it is not in the table."""
    seed: int
    static: StaticReport
    exam: bool
    rival: str | None
    against: Against
    effort: Effort


class Evaluating:
    """One candidate on one slot, after the static stage."""

    def __init__(
        self,
        sheet: Sheet,
        pool: DevicePool,
        slot: Slot,
        asked: Asked,
        *,
        compiled: Mapping[str, TargetReport] | None = None,
    ) -> None:
        """`compiled`: reports of all targets, where the source was compiled for them before."""
        self._sheet = sheet
        self.first_case_done = asyncio.Event()
        """The source compiled, and its first case is right."""
        self._pool = pool
        self._slot = slot
        self._asked = asked
        self._task = asked.task
        allowed = pool.limits(slot.device)
        self._limits = allowed.for_source(asked.source) if slot.device.kind == "cpu" else allowed
        self._specifications = msgspec.Raw(msgspec.msgpack.encode(()))
        """Arguments of every case at `gpu` sizes, once the judge has told them."""
        self.compiled: Mapping[str, TargetReport] = compiled or {}
        """By target, once there are some."""
        self._plan = make_plan(asked.task, asked.seed, asked.source, exam=asked.exam)

    async def run(self) -> Evaluation:
        """The Evaluation; `WorkerDied` when a process of ours was lost. Leaves no process of the candidate's behind."""
        channel = await self._slot.channel()
        time_limits = self._limits
        cpu = 2 * time_limits.call_cpu_s + time_limits.case_cpu_s * self._plan.calls
        guest, pid, end = await self._guest(math.ceil(cpu))
        finished = False
        replaying: tuple[Child, int, socket.socket] | None = None
        try:
            try:
                if self._slot.device.kind == "cpu":  # a GPU's launches are not recorded
                    replaying = await self._slot.server.spawn_for_another(
                        "verifier", cpu_limit_s=math.ceil(PATIENCE * cpu), sandboxed=True
                    )
                begin = Begin(
                    task=self._task,
                    source=self._asked.source,
                    seed=self._asked.seed,
                    guest_pid=pid,
                    verifier_pid=None if replaying is None else replaying[1],
                    target=self._asked.targets[0].name,
                    limits=time_limits,
                    exam=self._asked.exam,
                    plan=self._plan,
                    further_cases=self._hidden_cases_at_gpu_sizes(),
                )
                ends = (end,) if replaying is None else (end, replaying[2])
                await self._tell(channel, begin, tuple(one.fileno() for one in ends))
            finally:
                end.close()
                if replaying is not None:
                    replaying[2].close()
            evaluation = await self._follow(channel, guest)
            finished = True
        finally:
            guest.end()
            if replaying is not None:
                replaying[0].end()
            if not finished:
                self._slot.discard()
        return evaluation

    def _hidden_cases_at_gpu_sizes(self) -> tuple[Case, ...]:
        asked = self._asked
        plan = make_plan(asked.task.at_gpu_sizes, asked.seed, asked.source, exam=asked.exam)
        return tuple(step.case.case for step in plan.execution if step.case.hidden)

    async def roughly(self, interpreted: Evaluation) -> Evaluation:
        """What few samples say of a candidate that the interpreter let pass; its outputs are looked at where it is timed."""
        self._sheet.fail_open_stages("by the interpreter alone", ok=None)
        self._sheet.enter("performance")
        verdict, error = await self._time()
        told = self._sheet.done(verdict, error)
        return msgspec.structs.replace(
            told,
            call=interpreted.call,
            execution=interpreted.execution,
            stages=(told.stages[0], *interpreted.stages[1:-1], told.stages[-1]),
        )

    async def _guest(self, cpu_s: int) -> Worker:
        """On a GPU one that was started ahead, where there is one."""
        device = self._slot.device
        if device.kind != "cpu":
            guest = await self._pool.spares.take(GUEST, device)
            try:
                assert guest.child.scratch is not None
                await asyncio.to_thread(self._pool.kernels.lay, self._asked.source, guest.child.scratch)
            except BaseException:
                guest.end.close()
                guest.child.end()
                raise
            return guest
        return Worker(*await self._slot.server.spawn_for_another(GUEST, cpu_limit_s=cpu_s, sandboxed=True))

    async def _follow(self, channel: AsyncChannel, guest: Child) -> Evaluation:
        """Hears the judge out."""
        while True:
            report = await self._hear(channel)
            match report:
                case Entered(stage=stage, at_s=at_s):
                    self._sheet.enter(stage, at_s)
                case Left(stage=stage, ok=ok, detail=detail, at_s=at_s):
                    self._sheet.leave(stage, detail, ok=ok, at_s=at_s)
                case FirstCallPassed():
                    self._specifications = report.cases
                    # What the judge goes on to say is heard once it is compiled: the stages keep their order. A GPU is not
                    # left in the middle of a kernel because nothing compiles.
                    on_cpu = self._slot.device.kind == "cpu"
                    if on_cpu:
                        await self._tell(channel, Proceed())
                    failure = await self._compile(report)
                    if failure is not None:
                        self._slot.discard()  # it judges what nobody asks for any more
                        await self._finish_guest(guest, kill=True)
                        return self._sheet.done(*failure)
                    if not on_cpu:
                        await self._tell(channel, Proceed())
                case FirstCaseRight():
                    self.first_case_done.set()
                case Judged():
                    return await self._conclude(report, guest)
                case Alive():
                    continue
                case Weighed() | Specified():
                    raise WorkerDied("the judge answered a question that was not asked")

    async def _conclude(self, judged: Judged, guest: Child) -> Evaluation:
        """The judge's verdict, with what only the engine knows: whether its code is the text's, how the guest ended, costs, estimates."""
        sheet, verdict, error = self._sheet, Verdict(judged.verdict), judged.error
        compiling = different_layers(sheet.facts.get("sandbox", ()), judged.sandbox)
        sheet.facts |= {
            "sandbox": (*judged.sandbox, *compiling),
            "facts": (*judged.facts, *sheet.facts.get("facts", ())),
            "margins": judged.margins,
            "findings": judged.findings,
        }
        on_cpu = self._slot.device.kind == "cpu"
        if verdict is Verdict.CORRECT and not on_cpu and guest.scratch is not None:
            await asyncio.to_thread(self._pool.kernels.keep, self._asked.source, guest.scratch)
        compiled = self.compiled.get(self._asked.targets[0].name)
        refused = compiled.refusal() if verdict is Verdict.CORRECT and compiled is not None else None
        ending = asyncio.create_task(self._finish_guest(guest, kill=verdict is Verdict.TIMEOUT))
        try:
            if verdict is Verdict.CORRECT and refused is None and not on_cpu:
                sheet.enter("performance")
                verdict, error = await self._time(alone=ending)
        except BaseException:
            guest.end()
            raise
        finally:
            leftover = await ending
        if judged.guest_ended:
            verdict, error = self._how_it_ended(guest, judged)
        if on_cpu and verdict is Verdict.TIMEOUT and self._asked.static.slow and error is not None:
            verdict = Verdict.UNSUPPORTED
            slow = ", ".join(self._asked.static.slow)
            message = f"{error.message.partition(' did not')[0]}: {slow} is too slow for the interpreter here"
            error = ErrorReport(kind="unsupported", message=message)
        if verdict is Verdict.CORRECT and leftover:
            verdict, error = Verdict.REJECTED, left_behind(0, leftover)
            sheet.revise("integrity", error.message)
        if verdict is Verdict.CORRECT and refused is not None:
            verdict, error = Verdict.REJECTED, refused
            sheet.revise("integrity", refused.message)
        sheet.fail_open_stages("not finished", ok=None if verdict is Verdict.INFRA_ERROR else False)
        if on_cpu and compiled is not None and verdict is Verdict.CORRECT:
            sheet.notes += only_compiled(compiled.resources, judged.kernels)
        if on_cpu:
            if verdict is Verdict.CORRECT:
                sheet.enter("performance")
            found = await self._sampled(judged, correct=verdict is Verdict.CORRECT)
            sheet.facts |= found.facts
            sheet.facts["findings"] = drop_repeated((*judged.findings, *found.findings))
            if verdict is Verdict.CORRECT:
                sheet.leave("performance", NO_GPU, ok=None)
            if found.wrong is not None:
                verdict, error = Verdict.WRONG, found.wrong
                sheet.revise("execution", found.wrong.message)
        return sheet.done(verdict, error)

    async def _time(self, *, alone: Awaitable[int] | None = None) -> tuple[Verdict, ErrorReport | None]:
        """Latencies of a correct candidate; what is wrong in a call that is timed makes it incorrect after all.

        Nothing is timed before `alone` is done, nor where it found processes.
        """
        performance = Performance(
            self._pool, self._slot, self._task, self._asked.targets[0], seed=self._timing_seed(), alone=alone
        )
        channel = await self._slot.channel()
        try:
            resources = self._sheet.facts.get("resources", {}).get(self._asked.targets[0].name, ())
            compiled = {one.code_sha256 for one in resources}
            timing = await performance.measure(
                channel,
                self._asked.source,
                rival=self._asked.rival,
                against=self._asked.against,
                compiled=compiled,
                effort=self._asked.effort,
            )
        except Crowded:
            self._slot.discard()
            self._sheet.leave("performance", "not timed: processes were left behind", ok=None)
            return Verdict.CORRECT, None
        except TimeoutError:
            self._slot.discard()
            raise WorkerDied("the clock said nothing for too long") from None
        except BaseException:
            self._slot.discard()
            raise
        sheet = self._sheet
        sheet.leave("performance", timing.detail, ok=timing.ok)
        sheet.notes += timing.notes
        sheet.facts["facts"] = (*sheet.facts.get("facts", ()), *timing.facts)
        sheet.facts |= {"latency": timing.latency, "rough": timing.rough}
        sheet.facts |= {"device_before": timing.before, "device_after": timing.after}
        missing = not_timed(self._task.open_cases, timing.latency)
        sheet.facts["not_timed"] = missing
        speedup, geomean = mean_speedups(timing.latency, missing)
        sheet.facts |= {"speedup": speedup, "speedup_geomean": geomean}
        return timing.verdict, timing.error

    def _timing_seed(self) -> int:
        """An exam times the open cases once more, with values of its own: what was *found* is *confirmed* or not."""
        return derive(self._asked.seed, "confirm") if self._asked.exam else self._asked.seed

    async def _finish_guest(self, guest: Child, *, kill: bool) -> int:
        """Waits until the guest's tree is gone; how many processes it had left behind."""
        if kill:
            guest.end()
        ended = await guest.wait(_LEAVE_S)
        if text := guest.printed.text():
            self._sheet.facts["printed"] = text
        return ended.leftover

    def _how_it_ended(self, guest: Child, judged: Judged) -> tuple[Verdict, ErrorReport]:
        """See `verdict_of`; `WorkerDied` where it was our server that died."""
        assert judged.error is not None
        if not self._slot.server.alive:
            raise WorkerDied(f"the {self._slot.server.name} server died and took the candidate along")
        return verdict_of(guest.ended.result(), judged.error.message.removeprefix("the process ended "))

    async def _compile(self, passed: FirstCallPassed) -> tuple[Verdict, ErrorReport] | None:
        """The compile stage: every target in its own process; the verdict when the first one fails."""
        self._sheet.enter("compile")
        if not self.compiled:
            self.compiled = await self._compile_anew(passed)
        reports = self.compiled
        self._sheet.facts["resources"] = {name: one.resources for name, one in reports.items()}
        self._sheet.facts["compile_errors"] = {
            name: one.error or f"unsupported: {one.unsupported}"
            for name, one in reports.items()
            if one.error or one.unsupported
        }
        for name, one in reports.items():
            self._sheet.notes += [f"{name}: {note}" for note in one.notes]
        first = self._asked.targets[0].name
        judging = reports[first]
        failure = judging.failure(first)
        if failure is not None:
            verdict, error = failure
            self._sheet.leave("compile", error.message, ok=None if verdict is Verdict.UNSUPPORTED else False)
            return failure
        self._sheet.notes += never_run(judging.resources, self._plan.configs)
        count = {
            name: len(one.resources)
            for name, one in reports.items()
            if name not in self._sheet.facts["compile_errors"]
        }
        detail = ", ".join(f"{name}: {number} binaries" for name, number in count.items())
        self._sheet.leave("compile", detail, ok=True)
        return None

    async def _compile_anew(self, passed: FirstCallPassed) -> dict[str, TargetReport]:
        compiler = Compiler(self._pool, self._asked.as_written, self._asked.source, self._limits)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(compiler.compile(target, passed), name=f"compile/{target.name}")
                    for target in self._asked.targets
                ]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        # Until the judge's word: a candidate may fail before it.
        self._sheet.facts["sandbox"] = compiler.layers
        return {target.name: task.result() for target, task in zip(self._asked.targets, tasks, strict=True)}

    async def _sampled(self, judged: Judged, *, correct: bool) -> Sampled:
        samples = correct and not self._asked.exam and not self._asked.effort.rough
        sampler = (
            Sampler(self._pool, self._task, self._asked.source, self._asked.targets[0]) if samples else None
        )
        return await sampled(
            sampler,
            self._specifications,
            judged.traffic,
            task=self._task,
            cases=self._plan.declared,
            targets=self._asked.targets,
            product=self._asked.product,
        )

    async def _tell(
        self, channel: AsyncChannel, request: Begin | Proceed, descriptors: tuple[int, ...] = ()
    ) -> None:
        try:
            await channel.send(ENCODER.encode(request), descriptors)
        except EOFError as error:
            raise await self._lost_judge() from error

    async def _hear(self, channel: AsyncChannel) -> JudgeReport:
        silence = max(self._limits.call_s, self._limits.case_s) + limits.ORACLE_S
        try:
            async with asyncio.timeout(silence):
                return JUDGE_REPORTS.decode(await channel.receive(_MAX_REPORT_BYTES))
        except TimeoutError:
            raise WorkerDied(f"the judge said nothing for {silence:g} s") from None
        except EOFError as error:
            raise await self._lost_judge() from error

    async def _lost_judge(self) -> WorkerDied:
        """Who was lost: the judge, with its last words, or the server under it."""
        judge = self._slot.judge
        if judge is not None:
            await judge.wait(_LEAVE_S)
        if not self._slot.server.alive:
            return WorkerDied(
                f"the {self._slot.server.name} server died; it is started again with the next evaluation"
            )
        said = last_line(judge) if judge is not None else ""
        return WorkerDied(f"the judge is gone: {said or 'it was killed'}")
