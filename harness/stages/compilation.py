"""The engine's side of the compile stage: one process for each target, its report checked and put into words."""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Sequence

import msgspec

from harness.processes.pool import DevicePool
from harness.processes.process_endings import status_words
from harness.processes.servers import Child
from harness.wire import limits
from harness.wire.async_channel import AsyncChannel
from harness.wire.channel import BadFrame
from harness.wire.compile_report import CompileReport
from harness.wire.device import Target
from harness.wire.encoding import ENCODER, decode_message
from harness.wire.errors import WorkerDied
from harness.wire.evaluation import ErrorReport, KernelResources, Layer, Verdict
from harness.wire.findings import patched
from harness.wire.guest_messages import GUEST_REPORTS, Broken, Compile, Compiled, Compiling, Failed, Hello
from harness.wire.judge_messages import FirstCallPassed
from harness.wire.limits import TimeLimits
from suites.dtypes import BY_TARGET, NoSuchDtype, on_target
from suites.task import Task

_MAX_REPORT_BYTES = 64 << 20
_LEAVE_S = 5.0
NOTHING = msgspec.Raw(msgspec.msgpack.encode(()))
"""The specifications of no case."""


class TargetReport(CompileReport, frozen=True):
    """The report of one target, with what only the engine knows."""

    trace: str = ""
    timed_out: bool = False

    def failure(self, target: str) -> tuple[Verdict, ErrorReport] | None:
        """The verdict where it was not compiled for the target of this report; `None` where it was."""
        if self.patched:
            return Verdict.REJECTED, patched(self.patched)
        if self.timed_out:
            verdict, kind = Verdict.TIMEOUT, "timeout"
        elif self.error is not None:
            verdict, kind = Verdict.COMPILE_ERROR, "compile"
        elif self.unsupported is not None:
            verdict, kind = Verdict.UNSUPPORTED, "unsupported"
        else:
            return None
        said = self.error or self.unsupported or ""
        first_line = said.partition("\n")[0]
        message = f"{target}: {first_line}"
        return verdict, ErrorReport(kind=kind, message=message, trace=self.trace or said, line=self.line)

    def refusal(self) -> ErrorReport | None:
        """Why the host code does not leave the work to kernels at `gpu` sizes; `None` when it does, or where Python reads values, which are none of a case's here."""
        work = self.host_work
        if work is None:
            return None
        lead = f"case {work.case} at its gpu sizes: "
        if work.operator:
            message = f"{lead}the tensor operator `{work.operator}` computes outside the Triton kernels"
            return ErrorReport(kind="operator", message=message, line=work.line)
        if work.reads:
            return None
        return ErrorReport(kind="no_launch", message=f"{lead}no Triton kernel is launched")


def never_run(resources: Sequence[KernelResources], calls: int) -> list[str]:
    """Notes on autotuned kernels with more configs than the judge's calls take in turn: those beyond are only compiled."""
    known: dict[str, set[int]] = {}
    for one in resources:
        if one.autotune_index is not None:
            known.setdefault(one.kernel, set()).add(one.autotune_index)
    return [
        f"{kernel}: {len(configs)} configs, of which the judge ran the first {calls}; the others were only compiled"
        for kernel, configs in known.items()
        if len(configs) > calls
    ]


def only_compiled(resources: Sequence[KernelResources], ran: Sequence[str]) -> list[str]:
    """Notes on kernels that are launched at `gpu` sizes and in no case that the judge ran."""
    cases: dict[str, str] = {}
    for one in resources:
        if one.kernel not in ran:
            cases.setdefault(one.kernel, one.case)
    return [
        f"`{kernel}` is launched at the gpu sizes of case {case} and in no case here: nothing is known of its answers"
        for kernel, case in cases.items()
    ]


_TARGET_REPORTS: msgspec.msgpack.Decoder[TargetReport] = msgspec.msgpack.Decoder(TargetReport)


class _Patience:
    """How long is waited for one target: anew with each step, but not for ever."""

    def __init__(self, step_s: float, whole_s: float) -> None:
        self._step_s, self._whole_s = step_s, whole_s
        self._steps = 0
        self._end = 0.0
        self._timeout: asyncio.Timeout | None = None

    def begin(self) -> asyncio.Timeout:
        """The time limit, to be entered at once."""
        now = asyncio.get_running_loop().time()
        self._end = now + self._whole_s
        self._timeout = asyncio.timeout_at(min(now + self._step_s, self._end))
        return self._timeout

    def extend(self) -> None:
        """A step was made; steps past all reason are no answer."""
        self._steps += 1
        if self._steps > limits.COMPILE_STEPS:
            raise BadFrame("more configs than anybody compiles")
        assert self._timeout is not None
        self._timeout.reschedule(min(asyncio.get_running_loop().time() + self._step_s, self._end))

    def told(self) -> str:
        """Which limit passed, and what helps."""
        if self._end <= asyncio.get_running_loop().time():
            return (
                f"not compiled within {self._whole_s:g} s, in which {self._steps} configs were; fewer autotune configs "
                "or smaller blocks compile faster"
            )
        first = f"nothing was compiled within {self._step_s:g} s"
        after = f"after {self._steps} configs, {first}" if self._steps else first
        return f"{after}; smaller blocks compile faster, and host code that loops does so at the gpu sizes"


class Compiler:
    """Compiles one candidate on the compiling server of a pool, within the compile limits for each target.

    The finer limit starts anew with each config of an autotuned kernel that is compiled, so that many configs are no
    fault; both stretch where the machine has more to do than cores.
    """

    def __init__(
        self,
        pool: DevicePool,
        task: Task,
        source: str,
        time_limits: TimeLimits,
        *,
        side_by_side: bool = True,
    ) -> None:
        """`side_by_side`: its kernels, where there are cores for it; many sources at once leave none."""
        self._pool = pool
        self._task = task
        self._source = source
        self._limits = time_limits
        self._side_by_side = side_by_side
        self.layers: tuple[Layer, ...] = ()
        """Of the sandbox of a compiling worker; none before one has started."""

    async def compile(self, target: Target, passed: FirstCallPassed) -> TargetReport:
        """The report of one target; a process of ours that was lost is `WorkerDied`."""
        load = limits.load()
        patience = _Patience(self._limits.compile_s * load, self._limits.compile_all_s * load)
        try:
            cases = _on_target(passed.cases, self._task, target)
            # No GPU is waiting for those of other targets.
            further = _on_target(
                passed.ahead if self._pool.is_own(target.name) else NOTHING, self._task, target
            )
        except NoSuchDtype as lacking:
            return TargetReport(unsupported=str(lacking))
        async with self._pool.compiles:
            child, channel = await self._pool.compiling.spawn(
                "compiler", cpu_limit_s=math.ceil(self._limits.compile_all_s), sandboxed=True
            )
            try:
                async with patience.begin():
                    report = await self._hear(channel, target, cases, further, patience)
                if self._pool.is_own(target.name) and child.scratch is not None:
                    self._pool.expect(target.name, report.argument_types)
                    await asyncio.to_thread(self._pool.kernels.keep, self._source, child.scratch)
                return report
            except TimeoutError:
                return TargetReport(error=patience.told(), timed_out=True)
            except (EOFError, BadFrame):
                if not self._pool.compiling.alive:
                    raise WorkerDied("the compiling server died and took the candidate along") from None
                ended = await child.wait(_LEAVE_S)
                how = f"it had {ended.why}" if ended.why else status_words(ended.status)
                return TargetReport(error=f"the compiler's process ended ({how})", trace=child.printed.text())
            finally:
                channel.close()
                child.end()

    async def _hear(
        self,
        channel: AsyncChannel,
        target: Target,
        cases: msgspec.Raw,
        further: msgspec.Raw,
        patience: _Patience,
    ) -> TargetReport:
        try:
            hello = decode_message(GUEST_REPORTS, await channel.receive(_MAX_REPORT_BYTES))
        except EOFError:
            hello = None
        if not isinstance(hello, Hello):
            raise WorkerDied("the compiling worker ended before any foreign code ran")
        self.layers = hello.sandbox
        nonce = secrets.token_hex(16)
        request = Compile(
            nonce=nonce,
            source=self._source,
            entry_point=self._task.entry_points[0].name,
            cases=cases,
            target=target.name,
            allowed=self._task.allowed_operators,
            ahead=further,
            side_by_side=self._side_by_side,
        )
        await channel.send(ENCODER.encode(request))
        report = decode_message(GUEST_REPORTS, await channel.receive(_MAX_REPORT_BYTES))
        while isinstance(report, Compiling) and report.nonce == nonce:
            patience.extend()
            report = decode_message(GUEST_REPORTS, await channel.receive(_MAX_REPORT_BYTES))
        if isinstance(report, Failed) and report.nonce == nonce:
            return TargetReport(error=report.message, trace=report.trace, line=report.line)
        if isinstance(report, Broken) and report.nonce == nonce:
            raise WorkerDied(f"the compiling worker failed: {report.message}")
        if not isinstance(report, Compiled) or report.nonce != nonce:
            raise EOFError("the compiler's answer is none")
        found = decode_message(_TARGET_REPORTS, report.report)
        wrong = {one.binary for one in found.resources if one.binary} - {target.name}
        if wrong:
            raise EOFError(f"a binary for {', '.join(wrong)} where {target.name} was asked for")
        return found


def _on_target(cases: msgspec.Raw, task: Task, target: Target) -> msgspec.Raw:
    """The specifications with the 8-bit floats of this target, where the task leaves them to the target."""
    asked = {case.dtype for case in task.cases} & set(BY_TARGET)
    here = {name: on_target(dtype, target.name) for dtype in asked for name in BY_TARGET[dtype]}
    if not here:
        return cases
    specified = msgspec.msgpack.decode(cases)
    for one in specified:
        for argument in one["arguments"]:
            argument["dtype"] = here.get(argument["dtype"], argument["dtype"])
    return msgspec.Raw(msgspec.msgpack.encode(specified))


def last_line(child: Child) -> str:
    """The last line that a worker printed."""
    return child.printed.text().strip().rpartition("\n")[2]
