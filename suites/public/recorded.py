"""Task folders that were recorded from the tests of public benchmarks. They lie in the person's home, not in a clone."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from suites.errors import SuiteError
from suites.folder import TASK_FILE, read_task
from suites.public.task import PublicTask, TestForm
from suites.task import Task

FORMAT = 5
"""Version of recorded folders: a folder of another version is recorded again."""


class NeedsRecording(SuiteError):
    """A task of a public benchmark, or a whole benchmark, whose calls were not recorded yet."""

    def __init__(self, name: str) -> None:
        suite, _, task = name.partition("/")
        eval_command = f"`wavedeck eval FILE --task {name}` or " if task else ""
        super().__init__(
            f"the calls of {name} are not recorded yet; {eval_command}`wavedeck suites references {suite}` records them"
        )
        self.name = name


def recorded_folder(registry: Path, suite: str) -> Path:
    """Return the folder with the recorded tasks of a clone; `registry` is the home's `suites.toml`."""
    return registry.parent / "recorded" / suite


def text_digest(public: PublicTask) -> str:
    """Return a digest of everything in a public task that a recording depends on; the clone may move."""

    def from_root(path: Path) -> str:
        return os.path.relpath(path, public.folder)

    whole = hashlib.blake2b(digest_size=16)
    whole.update(msgspec.json.encode((FORMAT, public), enc_hook=from_root))
    return whole.hexdigest()


def find_recorded(public: PublicTask, registry: Path, *, for_gpu: bool) -> Task | None:
    """Return the recorded task of a public task; `None` if there is none, or if the clone has changed since.

    `for_gpu`: also `None` if the task has a call for timing and was recorded without a GPU, because this call is missing.
    """
    folder = recorded_folder(registry, public.suite) / public.name
    if not (folder / TASK_FILE).is_file():
        return None
    try:
        task = read_task(folder, suite=public.suite)
    except SuiteError:
        return None
    script = task.script
    if script is None or script.digest != text_digest(public):
        return None
    is_timed = public.performance is not None or public.test_form is TestForm.MODEL
    return None if for_gpu and is_timed and not script.on_gpu else task


def load_recorded(suite: str, name: str, registry: Path) -> Task:
    """Return the recorded task `suite/name`. Raises `NeedsRecording`, or `BadTask` if its folder is damaged."""
    folder = recorded_folder(registry, suite) / name
    if not (folder / TASK_FILE).is_file():
        raise NeedsRecording(f"{suite}/{name}")
    return read_task(folder, suite=suite)
