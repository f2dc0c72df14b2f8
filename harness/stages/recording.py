"""Records a public task: runs its test with its reference on a device, for several seeds."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from harness.processes.pool import DevicePool
from harness.processes.process_endings import JudgeAgain, check_end
from harness.processes.servers import Child
from harness.processes.slot import Slot
from harness.wire import limits
from harness.wire.async_channel import AsyncChannel
from harness.wire.channel import BadFrame
from harness.wire.device import Target
from harness.wire.encoding import ENCODER, decode_message
from harness.wire.errors import WorkerDied
from harness.wire.evaluation import Verdict
from harness.wire.script_messages import LIKE_RESULTS, NAN, RECORD_REPORTS, Record, Recorded, Script
from harness.wire.server_messages import status_words
from suites.loader import baseline_source
from suites.public.task import PublicTask, ReferenceKind, TestForm
from suites.python_source import parse_python
from suites.task import Task

from .amd_texts import for_cuda
from .cascade import evaluate
from .model_scripts import choose_model_script
from .modes import Cases
from .recorded_task import NotRecorded, write_task

__all__ = ["NotRecorded", "helpers_of", "record_task", "script_of"]

SEED = 0
"""Seed of the values with which a reference is judged. Fixed, so that the same reference gets the same verdict."""
_FORMS = (TestForm.SCRIPT, TestForm.RUNNER, TestForm.PYTEST)
RUNS = ((1, NAN), (1, LIKE_RESULTS), (2, NAN))
"""Seed and poison of each run. Calls that change between runs are no cases."""


async def record_task(public: PublicTask, folder: Path, *, pool: DevicePool, target: Target) -> Task:
    """Record a public task on a device of the pool, write its folder, and return the task.

    A call with inputs for timing is left out if the reference itself fails on them.

    Raises `NotRecorded` with the reason if no call of its test can be judged, `WorkerDied` if a process of ours is lost.
    """
    try:
        return await _record_task(public, folder, pool, target, again=False)
    except JudgeAgain:
        return await _record_task(public, folder, pool, target, again=True)


async def _record_task(
    public: PublicTask, folder: Path, pool: DevicePool, target: Target, *, again: bool
) -> Task:
    async with pool.slot(alone=again) as slot, pool.leases.using(slot):
        on_gpu = slot.device.kind != "cpu"
        notes: tuple[str, ...] = ()
        if public.test_form is TestForm.MODEL and not public.unsupported:
            async with _recorder(slot, target, again=again) as recorder:
                script, notes = await choose_model_script(public, recorder.run, on_gpu=on_gpu)
        else:
            script = for_target(script_of(public), target)
        try:
            chosen, recordings, choice = await _record(slot, target, script, again=again)
        except NotRecorded as reason:
            if not (on_gpu and script.performance):
                raise
            notes += (f"recorded without the benchmark's inputs for timing; with them: {reason}",)
            chosen, recordings, choice = await _record(
                slot, target, replace(script, performance=""), again=again
            )
    notes += choice
    task = write_task(public, chosen, recordings, folder, on_gpu=on_gpu, notes=notes)
    try:
        failure = await _failure_for_timing(public, task, pool, target)
    except BaseException:
        shutil.rmtree(
            folder, ignore_errors=True
        )  # else the next command takes the unchecked call for a good one
        raise
    if not failure:
        return task
    notes += (f"the reference itself fails on the benchmark's inputs for timing: {failure}",)
    tests_only = [
        replace(recording, calls=tuple(call for call in recording.calls if not call.for_timing))
        for recording in recordings
    ]
    return write_task(public, replace(chosen, performance=""), tests_only, folder, on_gpu=on_gpu, notes=notes)


async def _record(
    slot: Slot, target: Target, script: Script, *, again: bool
) -> tuple[Script, list[Recorded], tuple[str, ...]]:
    """Run a script for all of `RUNS`. Return it with the choice of the first run, the recordings, and notes about the choice."""
    async with _recorder(slot, target, again=again) as recorder:
        first = await recorder.run(script, *RUNS[0], budget_s=limits.SCRIPT_BUDGET_S)
        chosen = replace(script, nodes=first.nodes, calls=first.ended_after)
        recordings = [first]
        if chosen == script and not script.is_pytest:
            recordings += [await recorder.run(script, *run) for run in RUNS[1:]]
    if chosen != script:  # in a new process, because a time limit may leave a process in any state
        async with _recorder(slot, target, again=again) as recorder:
            recordings = [await recorder.run(chosen, *run) for run in RUNS]
    return chosen, recordings, first.notes


async def _failure_for_timing(public: PublicTask, task: Task, pool: DevicePool, target: Target) -> str:
    """Return why a Triton reference is not correct in the calls for timing; empty if it is, or if there are none.

    Raises `WorkerDied` if the judge failed: that says nothing about the reference.

    Benchmarks only time with these inputs. Some make programs store to one place, or store past the end of a tensor.
    """
    names = [case.name for case in task.cases if case.only_gpu]
    if not names or public.reference_kind is not ReferenceKind.TRITON:
        return ""
    evaluation = await evaluate(
        baseline_source(task), task, pool, Cases(tuple(names)), targets=[target], seed=SEED, against=None
    )
    if evaluation.verdict is Verdict.CORRECT:
        return ""
    why = evaluation.error.first_line if evaluation.error is not None else evaluation.verdict.value
    if evaluation.verdict in (Verdict.INFRA_ERROR, Verdict.CANCELLED):
        raise WorkerDied(why)
    return why


def script_of(public: PublicTask) -> Script:
    """Return the script of a public task. Raises `NotRecorded` if its test has another form."""
    if public.unsupported:
        raise NotRecorded(public.unsupported)
    if public.reference is None or public.test is None or public.test_form not in _FORMS:
        raise NotRecorded(f"tests of the form `{public.test_form}` cannot be recorded yet")
    is_runner = public.test_form is TestForm.RUNNER
    is_program = is_runner and not public.runner
    if is_program and not public.arguments:
        raise NotRecorded("no function of its test can be called without arguments")
    reference = public.reference.text
    test_file, reference_file = "test.py", ""
    if is_runner:
        root = Path(os.path.commonpath([public.reference.path, public.test.path]))
        test_file = str(public.test.path.relative_to(root))
        reference_file = str(public.reference.path.relative_to(root))
    else:
        reference = _with_imports(reference, public.test.text)
    return Script(
        reference=reference,
        test=public.test.text,
        entry_points=tuple(entry.name for entry in public.entry_points),
        modules=public.modules,
        helpers=helpers_of(public),
        runner=public.runner if is_runner else "",
        arguments=public.arguments if is_program else None,
        is_pytest=public.test_form is TestForm.PYTEST,
        performance=public.performance.text if public.performance is not None else "",
        oracle=next(iter(public.oracles), ""),
        test_file=test_file,
        reference_file=reference_file,
        has_kernels=public.reference_kind is ReferenceKind.TRITON,
    )


def for_target(script: Script, target: Target) -> Script:
    """Return the script for a target: on CUDA without what only AMD's GPUs have."""
    if target.backend != "cuda":
        return script
    return replace(script, reference=for_cuda(script.reference), test=for_cuda(script.test))


def helpers_of(public: PublicTask) -> dict[str, str]:
    """Return the modules of the benchmark that the test names: texts by file name.

    The first folder that has a module gives it.
    """
    words = set(re.findall(r"\w+", public.script))
    imported = re.findall(r"^\s*(?:from|import) ([\w.]+)", public.script, re.MULTILINE)
    helpers: dict[str, str] = {}
    for folder in public.search_paths:
        files = [file for file in sorted(folder.glob("*.py")) if file.stem in words]
        files += [folder / f"{name.replace('.', '/')}.py" for name in imported if "." in name]
        for file in files:
            name = str(file.relative_to(folder))
            if name not in helpers and file.is_file():
                helpers[name] = file.read_text(encoding="utf-8", errors="replace")
    return helpers


def _with_imports(reference: str, test: str) -> str:
    """Return the reference with imports of the test that it uses and lacks: both were one module."""
    try:
        tree, test_tree = parse_python(reference), parse_python(test)
    except (SyntaxError, ValueError):
        return reference
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    lines = [
        ast.unparse(statement)
        for statement in test_tree.body
        if isinstance(statement, ast.Import | ast.ImportFrom)
        and any((alias.asname or alias.name.partition(".")[0]) in names - bound for alias in statement.names)
    ]
    return "\n".join([*lines, reference])


class _Recorder:
    """A process that runs scripts, several in turn, so that kernels compile once."""

    def __init__(self, child: Child, channel: AsyncChannel, target: Target, *, again: bool) -> None:
        """`again`: the second try, after a `JudgeAgain`."""
        self._again = again
        self._child = child
        self._channel = channel
        self._target = target

    async def run(self, script: Script, seed: int, poison: int = 0, *, budget_s: float = 0.0) -> Recorded:
        """Run a script once and return its calls. Raises `NotRecorded` if its process gives no report."""
        request = Record(secrets.token_hex(16), script, seed, self._target.name, poison, budget_s)
        with suppress(EOFError):  # the process has ended: `receive` raises the reason
            await self._channel.send(ENCODER.encode(request))
        recorded = decode_message(RECORD_REPORTS, await self.receive())
        if recorded.nonce != request.nonce:
            raise WorkerDied("a script worker sent an answer that was not asked for")
        return recorded

    async def receive(self) -> bytes:
        """Return the next message of the process."""
        limit_s = limits.script_s()
        try:
            async with asyncio.timeout(limit_s):
                return await self._channel.receive(limits.RECORDING_BYTES)
        except TimeoutError:
            raise NotRecorded(f"its test does not end within {limit_s:.0f} s here") from None
        except (EOFError, BadFrame) as error:
            ended = await self._child.wait(limits.END_S)
            check_end(ended, "the process of its test", again=self._again)
            how = ended.why or status_words(ended.status)
            raise NotRecorded(f"its test ended its process: {how}") from error


@asynccontextmanager
async def _recorder(slot: Slot, target: Target, *, again: bool) -> AsyncIterator[_Recorder]:
    device = None if slot.device.kind == "cpu" else slot.device
    child, channel = await slot.server.spawn(
        "script", cpu_limit_s=limits.SCRIPT_CPU_S, sandboxed=True, device=device
    )
    recorder = _Recorder(child, channel, target, again=again)
    try:
        await recorder.receive()  # the worker's hello
        yield recorder
    finally:
        channel.close()
        child.end()
