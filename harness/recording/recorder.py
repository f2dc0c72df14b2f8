"""Records a public task: runs its test with its reference on a device, for several seeds."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import shutil
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from harness.processes.pool import DevicePool
from harness.stages.cascade import evaluate
from harness.stages.modes import Cases
from harness.wire import limits
from harness.wire.device import Target
from harness.wire.errors import NotRecorded, WorkerDied
from harness.wire.messages.script import LIKE_RESULTS, NAN, RanScript, RunScript, Script
from harness.wire.results.evaluation import Verdict
from suites.loader import baseline_source
from suites.public.recorded import find_recorded, recorded_folder
from suites.public.task import PublicTask, ReferenceKind, TestForm
from suites.source.python_source import parse_python
from suites.task import Task

from .model_scripts import choose_model_script, for_cuda
from .recorded_task import write_task
from .script_process import ScriptProcess, Start, run_in_slot

SEED = 0
"""Seed of the values with which a reference is judged. Fixed, so that the same reference gets the same verdict."""
RUNS = ((1, NAN), (1, LIKE_RESULTS), (2, NAN))
"""Seed and poison of each run. Calls that change between runs are no cases."""


async def find_or_record(
    public: PublicTask, registry: Path, *, pool: DevicePool, target: Target, again: bool = False
) -> Task:
    """Return a public task's recorded task for the pool's devices; records it if missing, or `again`. Raises as `record_task`."""
    for_gpu = pool.devices[0].kind != "cpu"
    task = None if again else find_recorded(public, registry, for_gpu=for_gpu)
    folder = recorded_folder(registry, public.suite) / public.name
    return task or await record_task(public, folder, pool=pool, target=target)


async def record_task(public: PublicTask, folder: Path, *, pool: DevicePool, target: Target) -> Task:
    """Record a public task on a device of the pool, write its folder, and return the task.

    A call with inputs for timing is left out if the reference itself fails on them.

    Raises `NotRecorded` with the reason if no call of its test can be judged, `WorkerDied` if a process of ours is lost.
    """
    on_gpu = pool.devices[0].kind != "cpu"
    run = partial(_run_test, public, target, on_gpu=on_gpu)
    chosen, recordings, notes = await run_in_slot(pool, "its test", run)
    write = partial(_write_in_thread, public, folder, on_gpu=on_gpu)
    try:
        task = await write(chosen, recordings, notes)
        failure = await _failure_for_timing(public, task, pool, target)
    except NotRecorded:
        raise
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
    return await write(replace(chosen, performance=""), tests_only, notes)


async def _write_in_thread(
    public: PublicTask,
    folder: Path,
    script: Script,
    recordings: list[RanScript],
    notes: tuple[str, ...],
    *,
    on_gpu: bool,
) -> Task:
    """Call `write_task` in a thread, because recordings may have hundreds of megabytes. A cancelled caller waits for its end."""
    writing = asyncio.create_task(
        asyncio.to_thread(write_task, public, script, recordings, folder, on_gpu=on_gpu, notes=notes)
    )
    try:
        return await asyncio.shield(writing)
    except asyncio.CancelledError:
        await asyncio.wait([writing])
        raise


async def _run_test(
    public: PublicTask, target: Target, start: Start, *, on_gpu: bool
) -> tuple[Script, list[RanScript], tuple[str, ...]]:
    """Run the test for all of `RUNS`. Return its script with the choices of the first run, the recordings, and notes."""
    notes: tuple[str, ...] = ()

    async def record(
        process: ScriptProcess, script: Script, seed: int, poison: int = NAN, budget_s: float = 0.0
    ) -> RanScript:
        return await process.ask(
            RunScript(script, seed, target.name, poison, counts_bytes=True, budget_s=budget_s), RanScript
        )

    async def record_all(script: Script) -> tuple[Script, list[RanScript], tuple[str, ...]]:
        """Record the script for all seeds; return the script as the first run chose it, its recordings and the notes.

        If the first run chose nodes or a number of calls, all recordings are made again with that choice.
        """
        async with start() as running:
            first = await record(running, script, *RUNS[0], limits.SCRIPT_BUDGET_S)
            chosen = replace(script, nodes=first.nodes, calls=first.ended_after)
            recordings = [first]
            if chosen == script and not script.is_pytest:
                recordings += [await record(running, script, *run) for run in RUNS[1:]]
        if chosen != script:  # in a new process, because a time limit may leave a process in any state
            async with start() as running:
                recordings = [await record(running, chosen, *run) for run in RUNS]
        return chosen, recordings, (*notes, *first.notes)

    if public.test_form is TestForm.MODEL and not public.unsupported:
        async with start() as running:
            script, notes = await choose_model_script(public, partial(record, running), on_gpu=on_gpu)
    else:
        script = for_target(script_of(public), target)
    try:
        return await record_all(script)
    except NotRecorded as reason:
        if not (on_gpu and script.performance):
            raise
        notes += (f"recorded without the benchmark's inputs for timing; with them: {reason}",)
        return await record_all(replace(script, performance=""))


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
    """Return the script of a public task: its reference, its test, and how the test is run.

    Raises `NotRecorded`, with the reason, if the task cannot be used or its test needs arguments.
    """
    if public.unsupported or public.reference is None or public.test is None:
        raise NotRecorded(public.unsupported or "it has no test")
    script = Script(
        reference=public.reference.text,
        test=public.test.text,
        entry_points=tuple(entry.name for entry in public.entry_points),
        modules=public.modules,
        helpers=helpers_of(public),
        is_pytest=public.test_form is TestForm.PYTEST,
        performance=public.performance.text if public.performance is not None else "",
        oracle=next(iter(public.oracles), ""),
        has_kernels=public.reference_kind is ReferenceKind.TRITON,
        widths=public.widths,
    )
    if public.test_form is not TestForm.RUNNER:
        return replace(script, reference=_with_imports(script.reference, script.test))
    if not (public.runner or public.arguments):
        raise NotRecorded("no function of its test can be called without arguments")
    root = Path(os.path.commonpath([public.reference.path, public.test.path]))
    return replace(
        script,
        runner=public.runner,
        arguments=None if public.runner else public.arguments,
        test_file=str(public.test.path.relative_to(root)),
        reference_file=str(public.reference.path.relative_to(root)),
    )


def for_target(script: Script, target: Target) -> Script:
    """Return the script for a target: on CUDA without what only AMD's GPUs have."""
    if target.backend != "cuda":
        return script
    return replace(script, reference=for_cuda(script.reference), test=for_cuda(script.test))


def helpers_of(public: PublicTask) -> dict[str, str]:
    """Return the modules of the benchmark that the test names, and all that they name: texts by file name.

    The first folder that has a module gives it. AgentKernelArena's `aka_benchmark.py` is `_aka_benchmark` in its tests.
    """
    helpers: dict[str, str] = {}
    texts = [public.script]
    for text in texts:
        words = set(re.findall(r"\w+", text))
        imported = re.findall(r"^\s*(?:from|import) ([\w.]+)", text, re.MULTILINE)
        for folder in public.search_paths:
            files = {
                f"{name}.py": file
                for file in sorted(folder.glob("*.py"))
                for name in (file.stem, f"_{file.stem}")
                if name in words
            }
            paths = [f"{name.replace('.', '/')}.py" for name in imported if "." in name]
            files |= {path: folder / path for path in paths}
            for name, file in files.items():
                if name not in helpers and file.is_file():
                    helpers[name] = file.read_text(encoding="utf-8", errors="replace")
                    texts.append(helpers[name])
    return helpers


def _with_imports(reference: str, test: str) -> str:
    """Return the reference with imports of the test that it uses and lacks: both were one module."""
    try:
        tree, test_tree = parse_python(reference), parse_python(test)
    except (SyntaxError, ValueError):
        return reference
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound = {name for node in ast.walk(tree) for name in _imported_names(node)}
    lines = [
        ast.unparse(statement) for statement in test_tree.body if _imported_names(statement) & (names - bound)
    ]
    return "\n".join([*lines, reference])


def _imported_names(node: ast.AST) -> set[str]:
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return set()
    return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
