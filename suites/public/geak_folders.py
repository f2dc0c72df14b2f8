"""Task folders of GEAK: a kernel file, a test program with `--correctness`, and often a `config.yaml`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from suites.public.arena import triton_task
from suites.public.config import ArenaConfig, read_config
from suites.public.loading import Loading
from suites.public.separated import task_name, unsupported
from suites.public.task import PublicTask

KERNEL = "kernel.py"


def load_geak(loading: Loading) -> Iterable[PublicTask]:
    """Yield one task for each folder with a `kernel.py` or a `config.yaml`."""
    root = loading.clone.folder
    folders = {path.parent for name in (KERNEL, "config.yaml") for path in root.glob(f"*/{name}")}
    for folder in sorted(folders):
        yield _task(loading, folder)


def _task(loading: Loading, folder: Path) -> PublicTask:
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
        config = _config(folder)
    except (OSError, ValueError) as error:
        return unsupported(task, f"{folder.name}/config.yaml cannot be read: {error}")
    if config.sources and not config.sources[0].endswith(".py"):
        return unsupported(task, f"its kernel {config.sources[0]} is no Python file")
    if not config.harness:
        return unsupported(task, f"{folder.name} has no test program named *harness*.py")
    return triton_task(task, folder, config)


def _config(folder: Path) -> ArenaConfig:
    """Return the settings of a folder. Without a `config.yaml` they are `kernel.py` and the first test program."""
    if (folder / "config.yaml").is_file():
        config = read_config(folder / "config.yaml")
        if config.harness or (folder / "scripts/task_runner.py").is_file():
            return config if config.harness else _with_harness(config, "scripts/task_runner.py")
    else:
        config = ArenaConfig(sources=(KERNEL,))
    programs = sorted(path.name for path in folder.glob("*harness*.py"))
    return _with_harness(config, programs[0]) if programs else config


def _with_harness(config: ArenaConfig, harness: str) -> ArenaConfig:
    correctness = config.correctness or (f"python3 {harness} --correctness",)
    sources = config.sources or (KERNEL,)
    return ArenaConfig(config.task_type, sources, harness, config.functions, correctness, config.instructions)
