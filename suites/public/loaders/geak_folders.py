"""Task folders of GEAK: a kernel file, a test program with `--correctness`, and often a `config.yaml`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from suites.public.config import ArenaConfig, read_config
from suites.public.loaders.arena import find_program, triton_task
from suites.public.loaders.separated import task_name, unsupported
from suites.public.loading import Loading
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
        config = read_config(folder / "config.yaml") if (folder / "config.yaml").is_file() else ArenaConfig()
    except (OSError, ValueError) as error:
        return unsupported(task, f"{folder.name}/config.yaml cannot be read: {error}")
    config = msgspec.structs.replace(config, sources=config.sources or (KERNEL,))
    if not config.sources[0].endswith(".py"):
        return unsupported(task, f"its kernel {config.sources[0]} is no Python file")
    if not (config.harness or find_program(folder)):
        return unsupported(task, f"{folder.name} has no test program named *harness*.py")
    return triton_task(task, folder, config)
