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
from harness.wire.messages.requests import WorkerAnswer
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


class _StepLimit:
    """A time limit for one target that starts anew with each step, a compiled config, within a limit for all steps."""

    def __init__(self, step_s: float, whole_s: float) -> None:
        self._step_s, self._whole_s = step_s, whole_s
        self._steps = 0
        self._pauses = 0
        """Blocks of `paused` that run now."""

    @asynccontextmanager
    async def enforced(self) -> AsyncIterator[None]:
        """Let the block run within both limits. Raises `TimeoutError`; `explain` then says which limit passed."""
        async with asyncio.timeout(self._whole_s) as self._whole, asyncio.timeout(self._step_s) as self._step:
            yield

    def begin_step(self) -> None:
        """Start the limit of a step anew. Raises `BadFrame` after more steps than any honest source has."""
        self._steps += 1
        if self._steps > limits.COMPILE_STEPS:
            raise BadFrame("more configs than anybody compiles")
        self._restart()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Limit no step while the block runs; its end starts the limit of a step anew."""
        self._pauses += 1
        self._restart()
        try:
            yield
        finally:
            self._pauses -= 1
            self._restart()

    def _restart(self) -> None:
        if not (self._step.expired() or self._whole.expired()):
            end_s = None if self._pauses else asyncio.get_running_loop().time() + self._step_s
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
    """Layers of the sandbox of the latest compiling worker; all workers get the same."""

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
        """Return the report of one target, which has the candidate's errors, also if a limit passes or its process ends.

        Raises `WorkerDied` if a process of ours is lost, and any error of `Binaries.make`. `keep`: the report has the texts.
        """
        load = limits.load()
        limit = _StepLimit(self.limits.compile_s * load, self.limits.compile_all_s * load)
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
            try:
                async with limit.enforced():
                    report = await self._converse(channel, request, limit)
                if is_own and child.scratch is not None:
                    self.pool.expect(target.name, report.argument_types)
                    await asyncio.to_thread(self.pool.kernels.keep, self.source, child.scratch)
                return report
            except TimeoutError:
                return TargetReport(error=limit.explain(), kind="timeout")
            except (EOFError, BadFrame):
                blame = compiler_error(await child.wait(_LEAVE_S))
                return TargetReport(trace=child.printed.text(), in_host=True, **_blamed(blame))
            finally:
                channel.close()
                child.end()

    async def _converse(self, channel: AsyncChannel, request: Compile, limit: _StepLimit) -> TargetReport:
        """Send the request and each binary that the worker asks for, until the worker reports; return its report.

        Notes the layers of the worker's sandbox. Raises like `_read_report`, and
        - `WorkerDied` if the worker ends before it has the request, which is no fault of the candidate,
        - `EOFError` if the worker ends later, which is the candidate's fault,
        - any error of `Binaries.make`, which the worker would await until its time is over.
        """
        conversation = Conversation(channel)
        try:
            self._layers = await conversation.sandbox()
        except (EOFError, BadFrame):
            raise WorkerDied("the compiling worker ended before any foreign code ran") from None
        await conversation.send(request)
        sending = asyncio.Lock()

        async def send_binary(wanted: KernelWanted) -> None:
            with limit.paused():  # the queue for binaries is no fault of the candidate
                binary = await self.pool.binaries.make(wanted.kernel)
            with suppress(EOFError):  # the process has ended, which its next answer shows
                async with sending:
                    await channel.send(ENCODER.encode((wanted.number, binary)))

        sends: list[asyncio.Task[None]] = []
        try:
            async with asyncio.TaskGroup() as group:
                while isinstance(answer := await conversation.answer(), Alive | KernelWanted):
                    limit.begin_step()
                    if isinstance(answer, KernelWanted):
                        sends.append(group.create_task(send_binary(answer), name=f"binary/{request.target}"))
                for task in sends:
                    task.cancel()  # a worker that has reported needs no binary
        except ExceptionGroup as failures:
            raise first_failure(failures) from None
        return _read_report(answer, request.target)


def _read_report(answer: WorkerAnswer, target: str) -> TargetReport:
    """Return the worker's last answer as the report of a target.

    `Failed` is the candidate's fault: its code raised. `Broken` says that the judge's code raised. After the import that is the
    candidate's fault, with a `doubt`: it may have used up memory or processes. Both set `in_host`, because a call of the
    candidate then fails too, and its error says more.

    Raises `WorkerDied` for `Broken` before the import, and `BadFrame` for an answer that no worker of ours gives.
    """
    match answer:
        case Failed():
            blame = explain_compile_error(answer.message)
            return TargetReport(trace=answer.trace, line=answer.line, in_host=True, **_blamed(blame))
        case Broken():
            blame = error_of_broken(answer.message, imported=answer.imported)
            return TargetReport(in_host=True, **_blamed(blame))
        case CompileReport():
            _check_architectures(answer, target)
            _check_texts(answer)
            report = TargetReport(**msgspec.structs.asdict(answer))
            if report.error is None:
                return report
            return msgspec.structs.replace(report, **_blamed(explain_compile_error(report.error)))
        case _:
            raise BadFrame("the compiler's answer is of no kind that it may send")


def _blamed(blame: Blame) -> dict[str, Any]:
    """Return the fields of a `TargetReport` for this error."""
    return {"error": blame.error.message, "kind": blame.error.kind, "doubt": blame.doubt}


def _check_architectures(report: CompileReport, target: str) -> None:
    """Raise `BadFrame` if a kernel's binary is for another architecture than the target's."""
    wrong = {kernel.architecture for kernel in report.resources if kernel.architecture} - {target}
    if wrong:
        raise BadFrame(f"a binary for {', '.join(wrong)}, but {target} was requested")


def _check_texts(report: CompileReport) -> None:
    """Raise `BadFrame` unless the compiler's texts are small and exactly those that the kernels of the report name.

    Foreign code may have written the texts, so their contents prove nothing.
    """
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
