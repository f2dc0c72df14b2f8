"""Suites with a folder for each task: AgentKernelArena, and task folders of GEAK.

Only Triton tasks of AgentKernelArena are loaded; the others are listed with the reason. A folder of GEAK has a kernel file, a
test program with `--correctness`, and often a `config.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from suites.public.clone import Clone
from suites.public.config import ArenaConfig, read_config
from suites.public.instructions import reference_instruction
from suites.public.known import ARENA, issues_of, vendor_of
from suites.public.loaders.separated import separated_task, task_name, unsupported
from suites.public.loading import Loading
from suites.public.syntax.calls import test_calls
from suites.public.task import Part, PublicTask, ReferenceKind, TestForm

RUNNER = "run_correctness"
"""Function of a script that tests correctness."""
_PERFORMANCE = "src/tools/perf"
"""Folder of the modules for timing that tests import. In a task's folder they are missing, or stubs that raise an error."""
_TIMER = "_aka_benchmark"
"""Module for timing in the workspaces of AgentKernelArena: `aka_benchmark.py` of that folder."""
_TASK_RUNNER = "scripts/task_runner.py"
_SHORT = {"triton2triton": "", "instruction2triton": "instruction"}
KERNEL = "kernel.py"


def load_arena(loading: Loading) -> Iterable[PublicTask]:
    """Yield the tasks of all folders with a `config.yaml`, Triton tasks first."""
    root = loading.clone.folder / "tasks"
    folders = [path.parent for path in root.rglob("config.yaml")]
    for folder in sorted(folders, key=lambda path: (_family(root, path) not in _SHORT, path)):
        yield _task(loading.clone, root, folder)


def _family(root: Path, folder: Path) -> str:
    return folder.relative_to(root).parts[0]


def _task(clone: Clone, root: Path, folder: Path) -> PublicTask:
    """Return the task of a folder of AgentKernelArena; `unsupported` with the reason if its `config.yaml` rules it out."""
    parts = folder.relative_to(root).parts
    family = parts[0]
    name = "-".join(task_name(part) for part in (_SHORT.get(family, family), *parts[1:]) if part)
    task = PublicTask(
        suite=clone.name,
        kind=clone.kind,
        name=name,
        file="/".join(parts),
        title=parts[-1].removeprefix("triton_").replace("_", " "),
        folder=clone.folder,
        category=" ".join((family, *parts[1:-1])),
        tolerances=ARENA,
    )
    try:
        config = read_config(folder / "config.yaml")
    except (OSError, ValueError) as error:
        return unsupported(task, f"{folder.relative_to(clone.folder)}/config.yaml cannot be read: {error}")
    if config.problem:
        return unsupported(task, config.problem)
    return triton_task(msgspec.structs.replace(task, gives_reference=config.gives_reference), folder, config)


def find_program(folder: Path) -> str:
    """Return the test program of a task's folder: `scripts/task_runner.py` or `*harness*.py`; empty if there is none."""
    programs = sorted(path.name for path in folder.glob("*harness*.py"))
    return _TASK_RUNNER if (folder / _TASK_RUNNER).is_file() else next(iter(programs), "")


def triton_task(task: PublicTask, folder: Path, config: ArenaConfig) -> PublicTask:
    """Return the task of a folder with its reference, its test and its instruction; with `unsupported` if a file is missing."""
    source = folder / (config.sources[0] if config.sources else f"{folder.name}.py")
    program = config.harness or find_program(folder)
    if not program:
        clone = Clone(task.suite, task.kind, task.folder)
        loaded = separated_task(
            clone,
            source,
            file=task.file,
            name=task.name,
            reference_kind=ReferenceKind.TRITON,
            test_form=TestForm.PYTEST,
            tolerances=ARENA,
            search_paths=(clone.folder / _PERFORMANCE, folder),
        )
        loaded = msgspec.structs.replace(
            loaded, title=task.title, category=task.category, gives_reference=task.gives_reference
        )
    else:
        loaded = _runner_task(task, source, folder / program, config)
    return msgspec.structs.replace(loaded, instruction=config.instructions or reference_instruction(loaded))


def _runner_task(task: PublicTask, source: Path, runner: Path, config: ArenaConfig) -> PublicTask:
    """Return the task with a test that is a program of its own, `runner`; `unsupported` if it calls nothing of the kernel."""
    try:
        reference, test = source.read_text(encoding="utf-8"), runner.read_text(encoding="utf-8")
        calls = test_calls(reference, test, TestForm.RUNNER, source.stem)
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        return unsupported(task, f"{runner.relative_to(task.folder)} cannot be read: {error}")
    usual = "correctness" if runner == source.parents[1] / _TASK_RUNNER else "--correctness"
    arguments = config.correctness[-1].split()[2:] if config.correctness else [usual]
    task = msgspec.structs.replace(
        task,
        reference=Part(source, reference),
        test=Part(runner, calls.test),
        test_form=TestForm.RUNNER,
        runner=RUNNER if RUNNER in calls.without_arguments else "",
        arguments=tuple(arguments),
        entry_points=calls.entry_points,
        oracles=calls.oracles,
        modules=calls.modules,
        search_paths=(source.parent, *([task.folder / _PERFORMANCE] if _TIMER in test else [])),
        vendor=vendor_of(reference),
        issues=issues_of(task, reference, calls.code),
    )
    if not task.entry_points:
        return unsupported(task, f"its test {runner.name} calls nothing that {source.name} defines")
    return task


def load_geak(loading: Loading) -> Iterable[PublicTask]:
    """Yield one task for each folder with a `kernel.py` or a `config.yaml`."""
    root = loading.clone.folder
    folders = {path.parent for name in (KERNEL, "config.yaml") for path in root.glob(f"*/{name}")}
    for folder in sorted(folders):
        yield _geak_task(loading, folder)


def _geak_task(loading: Loading, folder: Path) -> PublicTask:
    """Return the task of a folder of GEAK; `unsupported` with the reason if it has no Python kernel or no test program."""
    clone = loading.clone
    task = PublicTask(
        suite=clone.name,
        kind=clone.kind,
        name=task_name(folder.name),
        file=folder.name,
        title=folder.name.replace("_", " "),
        folder=clone.folder,
        gives_reference=True,
    )
    try:
        config = read_config(folder / "config.yaml") if (folder / "config.yaml").is_file() else ArenaConfig()
    except (OSError, ValueError) as error:
        return unsupported(task, f"{folder.name}/config.yaml cannot be read: {error}")
    config = msgspec.structs.replace(config, sources=config.sources or (KERNEL,))
    if not config.sources[0].endswith(".py"):
        return unsupported(task, f"its kernel {config.sources[0]} is no Python file")
    if not (config.harness or find_program(folder)):
        return unsupported(task, f"{folder.name} has no test program named *harness*.py")
    return triton_task(task, folder, config)
