"""The engine's side of the compile stage: one process for each target, its report checked and put into words."""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from harness.failures import first_failure
from harness.processes.conversation import Conversation
from harness.processes.pool import DevicePool
from harness.processes.process_endings import Blame, compiler_error, error_of_broken, explain_compile_error
from harness.wire import limits
from harness.wire.calls.tensors import CASE_SPECS, NO_CASES, TensorSpec
from harness.wire.channels.async_channel import AsyncChannel
from harness.wire.channels.channel import ENCODER, BadFrame
from harness.wire.device import Target
from harness.wire.errors import WorkerDied
from harness.wire.findings import foreign_kernel, patched
from harness.wire.limits import TimeLimits
from harness.wire.messages.compiler import KEPT_BYTES, Compile, CompileReport, KernelWanted
from harness.wire.messages.guest import Alive, Broken, Failed
from harness.wire.messages.judge import Specified
from harness.wire.results.evaluation import ErrorReport, KernelResources, Layer
from suites.dtypes import BY_TARGET, NoSuchDtype, on_target, task_on
from suites.task import Task

from .judged_task import called_entry

_LEAVE_S = 5.0
Result = TypeVar("Result")


class TargetReport(CompileReport, frozen=True):
    """The compiler's report for one target, and how its process failed."""

    trace: str = ""
    kind: str = "compile"
    """The kind of `error`, unless the compiler itself said that a time limit passed."""
    doubt: str = ""
    """Why `error` may not be the candidate's; see `Blame`."""

    def failure(self, target: str) -> ErrorReport | None:
        """The error if the source did not compile for `target`, else `None`."""
        if self.patched:
            return patched(self.patched)
        if self.error is not None:
            kind = "timeout" if self.timed_out else self.kind
        elif self.unsupported is not None:
            kind = "unsupported"
        else:
            return None
        words = self.error or self.unsupported or ""
        first_line = words.partition("\n")[0]
        message = f"{target}: {first_line}"
        refuses = "" if self.in_host else target
        return ErrorReport(
            kind=kind, message=message, trace=self.trace or words, line=self.line, target=refuses
        )

    def host_work_error(self) -> ErrorReport | None:
        """The error if host code computes at `gpu` sizes what kernels should, else `None`.

        A call without a launch counts only if Python read no tensor elements: the compiling worker holds none of a case's values.
        """
        work = self.host_work
        if work is None:
            return None
        case = f"case {work.case} at its gpu sizes: "
        if work.moves:
            message = (
                f"{case}more than {limits.COPIES} copies into parts of tensors move elements outside the Triton kernels; "
                "move them in a kernel"
            )
            return ErrorReport(kind="moved_by_host", message=message, line=work.line)
        if work.kernel:
            return foreign_kernel(case, work.kernel)
        if work.operator:
            message = f"{case}the tensor operator `{work.operator}` computes outside the Triton kernels"
            return ErrorReport(kind="operator", message=message, line=work.line)
        if work.reads:
            return None
        return ErrorReport(kind="no_launch", message=f"{case}no Triton kernel is launched")


class CompileResults(msgspec.Struct, frozen=True):
    """Reports of all targets, by name; a report of the first target can fail the candidate."""

    reports: dict[str, TargetReport] = {}
    layers: tuple[Layer, ...] = ()
    """Layers of the compiling worker's sandbox."""

    @property
    def resources(self) -> dict[str, tuple[KernelResources, ...]]:
        """Compiled kernels by target."""
        return {target: report.resources for target, report in self.reports.items()}

    @property
    def texts(self) -> dict[str, bytes]:
        """The compiler's texts, by their SHA-256."""
        return {digest: text for report in self.reports.values() for digest, text in report.texts.items()}

    @property
    def errors(self) -> dict[str, str]:
        """Errors by target, for the targets that did not compile."""
        return {
            target: report.error or f"unsupported: {report.unsupported}"
            for target, report in self.reports.items()
            if report.error or report.unsupported
        }

    @property
    def detail(self) -> str:
        """`gfx942: 3 binaries, sm_90: 3 binaries`."""
        return ", ".join(
            f"{target}: {_binaries(len(report.resources))}"
            for target, report in self.reports.items()
            if target not in self.errors
        )


def _binaries(number: int) -> str:
    return "1 binary" if number == 1 else f"{number} binaries"


def note_unrun_configs(resources: Sequence[KernelResources], calls: int) -> list[str]:
    """Notes on autotuned kernels with more configs than the judge's `calls` run."""
    indices: dict[str, set[int]] = {}
    for kernel in resources:
        if kernel.autotune_index is not None:
            indices.setdefault(kernel.kernel, set()).add(kernel.autotune_index)
    return [
        f"{kernel}: {len(configs)} configs, of which the judge ran the first {calls}; the others were only compiled"
        for kernel, configs in indices.items()
        if len(configs) > calls
    ]


def note_unrun_kernels(resources: Sequence[KernelResources], launched: Sequence[str]) -> list[str]:
    """Notes on kernels that a case launches at its `gpu` sizes, but no case at the sizes that the judge ran."""
    cases: dict[str, str] = {}
    for kernel in resources:
        if kernel.kernel not in launched:
            cases.setdefault(kernel.kernel, kernel.case)
    return [
        f"`{kernel}` is launched at the gpu sizes of case {case} and in no case here: nothing is known of its answers"
        for kernel, case in cases.items()
    ]


class _Patience:
    """A time limit for one target that starts anew with each compiled config, within a limit for all of them."""

    def __init__(self, step_s: float, whole_s: float) -> None:
        self._step_s, self._whole_s = step_s, whole_s
        self._steps = 0
        self._waiting = 0
        self._is_over = False

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[None]:
        """Both limits, for the time within."""
        async with asyncio.timeout(self._whole_s) as self._whole, asyncio.timeout(self._step_s) as self._step:
            try:
                yield
            finally:
                self._is_over = True

    def extend(self) -> None:
        """Start the limit of a step anew; `BadFrame` after more steps than any honest source has."""
        self._steps += 1
        if self._steps > limits.COMPILE_STEPS:
            raise BadFrame("more configs than anybody compiles")
        self._limit_step()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """No step is limited while the process may wait for a binary: the queue is no fault of the candidate."""
        self._waiting += 1
        self._limit_step()
        try:
            yield
        finally:
            self._waiting -= 1
            self._limit_step()

    def _limit_step(self) -> None:
        if not (self._is_over or self._step.expired() or self._whole.expired()):
            end_s = None if self._waiting else asyncio.get_running_loop().time() + self._step_s
            self._step.reschedule(end_s)

    def explain(self) -> str:
        """Which limit passed, and what helps."""
        if self._whole.expired():
            return (
                f"not compiled within {self._whole_s:g} s, in which {self._steps} configs were; fewer autotune configs "
                "or smaller blocks compile faster"
            )
        first = f"nothing was compiled within {self._step_s:g} s"
        after = f"after {self._steps} configs, {first}" if self._steps else first
        return f"{after}; smaller blocks compile faster, and host code that loops does so at the gpu sizes"


@dataclass(slots=True)
class Compiler:
    """Compiles a candidate in sandboxed processes, with limits for each target, which stretch on a machine that is too busy."""

    pool: DevicePool
    task: Task
    source: str
    limits: TimeLimits
    keep_texts: bool = False
    """`compile_all` returns the texts of the first target."""
    _layers: tuple[Layer, ...] = ()

    async def compile_all(self, targets: Sequence[Target], specified: Specified) -> CompileResults:
        """Compile for all targets at once. Raises like `compile`."""
        jobs = [
            self.compile(target, specified, keep=self.keep_texts and target is targets[0])
            for target in targets
        ]
        reports = await run_all(jobs, "compile")
        names = (target.name for target in targets)
        return CompileResults(dict(zip(names, reports, strict=True)), self._layers)

    async def compile(self, target: Target, specified: Specified, *, keep: bool = False) -> TargetReport:
        """The report of one target; `WorkerDied` if a process of ours is lost."""
        load = limits.load()
        patience = _Patience(self.limits.compile_s * load, self.limits.compile_all_s * load)
        is_own = self.pool.is_own(target.name)
        try:
            request = Compile(
                source=self.source,
                entry_point=called_entry(self.task).name,
                cases=_specify_for_target(specified.cases, self.task, target),
                target=target.name,
                allowed=self.task.allowed_operators,
                # Hidden cases are compiled ahead only for a GPU that will run them.
                ahead=_specify_for_target(specified.ahead if is_own else NO_CASES, self.task, target),
                ahead_configs=specified.configs if is_own else {},
                host_cpu_s=self.limits.host_cpu_s,
                keep_texts=keep,
            )
        except NoSuchDtype as lacking:
            return TargetReport(unsupported=str(lacking))
        async with self.pool.compiles:
            child, channel = await self.pool.compiling.spawn(
                "compiler",
                cpu_limit_s=math.ceil(self.limits.compile_all_s),
                sandboxed=True,
                package=self.task.package_view,
            )
            making: set[asyncio.Task[None]] = set()
            try:
                async with patience.begin():
                    report = await self._converse(channel, request, patience, making)
                if is_own and child.scratch is not None:
                    self.pool.expect(target.name, report.argument_types)
                    await asyncio.to_thread(self.pool.kernels.keep, self.source, child.scratch)
                return report
            except TimeoutError:
                return TargetReport(error=patience.explain(), kind="timeout")
            except (EOFError, BadFrame):
                blame = compiler_error(await child.wait(_LEAVE_S))
                return TargetReport(trace=child.printed.text(), in_host=True, **_blamed(blame))
            finally:
                for task in making:
                    task.cancel()
                if making:  # the channel closes only when nothing is sent any more
                    await asyncio.wait(making)
                channel.close()
                child.end()

    async def _converse(
        self,
        channel: AsyncChannel,
        request: Compile,
        patience: _Patience,
        making: set[asyncio.Task[None]],
    ) -> TargetReport:
        """The worker's report; `making` gets the tasks that send it binaries."""
        conversation = Conversation(channel)
        sending = asyncio.Lock()

        async def make(wanted: KernelWanted) -> None:
            with patience.waiting():
                binary = await self.pool.binaries.make(wanted.kernel)
            with suppress(EOFError):  # the process has ended, which its next answer shows
                async with sending:
                    await channel.send(ENCODER.encode((wanted.number, binary)))

        try:
            self._layers = await conversation.sandbox()
        except (EOFError, BadFrame):
            raise WorkerDied("the compiling worker ended before any foreign code ran") from None
        await conversation.send(request)
        while True:
            match await conversation.answer():
                case Alive():
                    patience.extend()
                case KernelWanted() as wanted:
                    patience.extend()
                    making.add(asyncio.create_task(make(wanted), name=f"binary/{request.target}"))
                case Failed() as answer:
                    blame = explain_compile_error(answer.message)
                    return TargetReport(trace=answer.trace, line=answer.line, in_host=True, **_blamed(blame))
                case Broken() as answer:
                    blame = error_of_broken(answer.message, imported=answer.imported)
                    return TargetReport(in_host=True, **_blamed(blame))
                case CompileReport() as compiled:
                    report = TargetReport(**msgspec.structs.asdict(compiled))
                    if report.error is not None:
                        blame = explain_compile_error(report.error)
                        report = msgspec.structs.replace(report, **_blamed(blame))
                    wrong = {kernel.binary for kernel in report.resources if kernel.binary} - {request.target}
                    if wrong:
                        raise BadFrame(f"a binary for {', '.join(wrong)}, but {request.target} was requested")
                    _check_texts(report)
                    return report
                case _:
                    raise BadFrame("the compiler's answer is of no kind that it may send")


def _blamed(blame: Blame) -> dict[str, Any]:
    return {"error": blame.error.message, "kind": blame.error.kind, "doubt": blame.doubt}


def _check_texts(report: CompileReport) -> None:
    """Raise `BadFrame` unless the texts are small and exactly those that the rows name. Their contents stay foreign."""
    named = {digest for kernel in report.resources for digest in kernel.texts.values()}
    if sum(map(len, report.texts.values())) > KEPT_BYTES or named != set(report.texts):
        raise BadFrame("the report has other texts than it names")
    if any(hashlib.sha256(text).hexdigest() != digest for digest, text in report.texts.items()):
        raise BadFrame("a text has another digest than its name")


def _specify_for_target(cases: msgspec.Raw, task: Task, target: Target) -> msgspec.Raw:
    """The specifications with the 8-bit floats of this target, where the task leaves them to the target."""
    if task.script is not None:
        return cases
    task_on(task, target.name)  # raises if the target lacks a dtype
    dtypes = {case.dtype for case in task.cases} & set(BY_TARGET)
    here = {name: on_target(dtype, target.name) for dtype in dtypes for name in BY_TARGET[dtype]}
    if not here:
        return cases
    specifications = CASE_SPECS.decode(cases)
    for arguments in specifications.values():
        for name, value in arguments.items():
            if isinstance(value, TensorSpec):
                dtype = here.get(value.dtype, value.dtype)
                arguments[name] = msgspec.structs.replace(value, dtype=dtype)
    return msgspec.Raw(msgspec.msgpack.encode(specifications))


async def run_all(jobs: Sequence[Coroutine[Any, Any, Result]], name: str) -> list[Result]:
    """The results in order; the first failure ends the other jobs and is raised alone."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(job, name=f"{name}/{number}") for number, job in enumerate(jobs)]
    except ExceptionGroup as failures:
        raise first_failure(failures) from None
    return [task.result() for task in tasks]
