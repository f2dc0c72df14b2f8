"""Launches that `tritonparseoss reproduce` wrote: a folder for each kernel, with a script for each launch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from suites.public.instructions import reference_instruction
from suites.public.known import issues_of, vendor_of
from suites.public.loaders.separated import task_name, unsupported
from suites.public.loading import Loading
from suites.public.syntax.launch_text import LaunchText, launch_test
from suites.public.syntax.outline import Outline, entry_point
from suites.public.syntax.repro_kernel import kernel_module
from suites.public.task import Part, PublicTask, TestForm

_TIMESTAMP = re.compile(r"_\d{14}$")
_CONTEXT_FILE = re.compile(r"[\"']([^\"'/]*context[^\"'/]*\.json)[\"']")
_EMBEDDED = re.compile(r"^CONTEXT_JSON = r\"\"\"\n(.*?)\n\"\"\"", re.DOTALL | re.MULTILINE)
_FAILURES = (OSError, SyntaxError, ValueError, RecursionError, msgspec.DecodeError)


def load_tritonparse(loading: Loading) -> Iterable[PublicTask]:
    """Yield one task for each launch. The newest script counts if a launch was written several times."""
    newest: dict[str, Path] = {}
    for path in sorted(loading.clone.folder.glob("*/repro_*.py")):
        launch = _TIMESTAMP.sub("", path.stem).removeprefix("repro_")
        kernel = path.parent.name.lstrip("_")
        newest[f"{task_name(kernel)}-{task_name(launch)}"] = path
    for name, path in newest.items():
        yield _task(loading, name, path)


def _task(loading: Loading, name: str, path: Path) -> PublicTask:
    """Return the task of one recorded launch, `unsupported` with the reason if its script or its arguments cannot be read."""
    clone = loading.clone
    task = PublicTask(
        suite=clone.name,
        kind=clone.kind,
        name=name,
        file=path.relative_to(clone.folder).as_posix(),
        title=f"launch of {path.parent.name}",
        folder=clone.folder,
        test_form=TestForm.SCRIPT,
    )
    try:
        script = path.read_text(encoding="utf-8")
        launch = msgspec.json.decode(_context(path, script), type=LaunchText)
        kernel, text = kernel_module(script)
        test = launch_test(kernel, launch)
    except _FAILURES as error:
        return unsupported(task, f"{task.file}: {error}")
    outline = Outline(text)
    task = msgspec.structs.replace(
        task,
        reference=Part(path, text),
        test=Part(path, test),
        entry_points=(entry_point(outline, kernel),),
        vendor=vendor_of(text),
        issues=issues_of(task, text, text),
    )
    return msgspec.structs.replace(task, instruction=reference_instruction(task))


def _context(path: Path, script: str) -> bytes | str:
    """Return the JSON text of the launch, from the script or from a file beside the script."""
    embedded = _EMBEDDED.search(script)
    if embedded is not None:
        return embedded[1]
    file = _CONTEXT_FILE.search(script)
    if file is None:
        raise ValueError("it names no file with the launch's arguments")
    return (path.parent / file[1]).read_bytes()
