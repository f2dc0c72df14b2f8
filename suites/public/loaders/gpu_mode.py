"""Problems of GPU MODE's competitions: one folder a problem, with `task.yml` and `reference.py`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from suites.public.clone import MARKERS
from suites.public.config import read_yaml
from suites.public.instructions import reference_instruction
from suites.public.known import issues_of
from suites.public.loaders.gpu_mode_reference import GpuModeReference, read_reference
from suites.public.loaders.separated import task_name, unsupported
from suites.public.loading import Loading, first_sentence
from suites.public.syntax.outline import Outline, entry_point
from suites.public.task import Part, PublicTask, ReferenceKind, TestForm

ENTRY = "custom_kernel"
MOST_SECONDS = 2
"""CPU time after the first call, after which the test makes no further call: the largest tests of a problem are for GPUs."""
_TEST = """\
import time

limit = float("inf")
for arguments in {tests}:
    if time.process_time() < limit:
        custom_kernel(generate_input(**arguments))
        limit = min(limit, time.process_time() + {most_seconds})
"""


def load_gpu_mode(loading: Loading) -> Iterable[PublicTask]:
    """Yield the problems of all competitions, by folder."""
    root = loading.clone.folder / MARKERS[loading.clone.kind].partition("/")[0]
    for path in sorted(root.glob("*/*/task.yml")):
        yield _task(loading, root, path)


def _task(loading: Loading, root: Path, path: Path) -> PublicTask:
    """Return the task of a `task.yml`, `unsupported` with the reason if it needs several GPUs or cannot be read."""
    clone = loading.clone
    parts = path.parent.relative_to(root).parts
    task = PublicTask(
        suite=clone.name,
        kind=clone.kind,
        name="-".join(map(task_name, parts)),
        file="/".join(parts),
        title=parts[-1].replace("_", " ").replace("-", " ").removesuffix(" py"),
        folder=clone.folder,
        category=parts[0],
        reference_kind=ReferenceKind.TORCH,
        test_form=TestForm.SCRIPT,
    )
    place = path.parent.relative_to(clone.folder)
    try:
        values = read_yaml(path)
        sources = {str(file["name"]): path.parent / str(file["source"]) for file in _maps(values, "files")}
        tests = _maps(values, "tests")
    except (OSError, ValueError, KeyError) as error:
        return unsupported(task, f"{place}/task.yml cannot be read: {error}")
    description = str(values.get("description") or "").strip()
    task = msgspec.structs.replace(
        task, title=first_sentence(description) or task.title, instruction=description
    )
    if any(int(str(test.get("world_size", 1))) > 1 for test in tests):
        return unsupported(task, "it needs several GPUs: its tests have a `world_size`")
    try:
        reference = read_reference(
            sources.get("reference.py", path.parent / "reference.py"), sources.get("utils.py")
        )
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        return unsupported(task, f"a file of {place} cannot be read: {error}")
    task = msgspec.structs.replace(task, vendor=reference.vendor)
    if reference.problem:
        return unsupported(task, reference.problem)
    if not tests:
        return unsupported(task, f"{place}/task.yml has no tests")
    return _with_reference(task, reference, tests, path)


def _with_reference(
    task: PublicTask, reference: GpuModeReference, tests: Sequence[Mapping[str, object]], path: Path
) -> PublicTask:
    """Return the task with its reference, a script that makes the calls of `tests`, and an instruction.

    The script begins with the smallest test. `path` is the file `task.yml`.
    """
    outline = Outline(reference.text)
    rows = "".join(f"    {dict(test)!r},\n" for test in sorted(tests, key=_size))
    task = msgspec.structs.replace(
        task,
        reference=Part(path.parent / "reference.py", reference.text),
        test=Part(path, _TEST.format(tests=f"[\n{rows}]", most_seconds=MOST_SECONDS)),
        entry_points=(entry_point(outline, ENTRY),),
        tolerances=reference.tolerances,
        issues=issues_of(
            task, reference.text, "".join(outline.pieces[name] for name in sorted(outline.closure(ENTRY)))
        ),
    )
    outputs_rule = (
        "\nThe last items of `data` are the tensors for the results: write the results there, and return these tensors."
        if reference.gives_outputs
        else ""
    )
    return msgspec.structs.replace(
        task, instruction=f"{task.instruction}\n{outputs_rule}\n{reference_instruction(task)}"
    )


def _maps(values: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    items = values.get(key) or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError(f"an item of `{key}` is no map")
    return items


def _size(test: Mapping[str, object]) -> float:
    """Return the product of a test's numbers: the rough size of its tensors."""
    numbers = [
        sum(value) if isinstance(value, list) else value for key, value in test.items() if key != "seed"
    ]
    return math.prod(number for number in numbers if isinstance(number, int) and number > 0)
