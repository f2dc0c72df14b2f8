"""KernelBench: levels 1 to 4."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from suites.public.clone import Clone
from suites.public.instructions import module_instruction
from suites.public.known import KERNELBENCH, issues_of
from suites.public.loaders.separated import unsupported
from suites.public.loading import Loading
from suites.public.syntax.outline import Outline, entry_point
from suites.public.task import Issue, Part, PublicTask, ReferenceKind, TestForm

LEVELS = (1, 2, 3, 4)
_NEEDED = ("Model", "get_inputs", "get_init_inputs")
_PARAMETER = re.compile(r"^.*\btorch\.(?:rand|normal).*$", re.MULTILINE)
"""Lines that draw initial parameters: both models get the same seed."""


def load_kernelbench(loading: Loading) -> Iterable[PublicTask]:
    """Yield the tasks of all levels, by level and number."""
    for level in LEVELS:
        folder = loading.clone.folder / "KernelBench" / f"level{level}"
        for path in sorted(folder.glob("*.py"), key=_number):
            yield _task(loading.clone, level, path)


def _number(path: Path) -> tuple[int, str]:
    head = path.stem.partition("_")[0]
    return (int(head) if head.isdecimal() else 0, path.stem)


def _task(clone: Clone, level: int, path: Path) -> PublicTask:
    """Return the task of a module file, `unsupported` with the reason if it breaks the format or needs the network."""
    head, _, title = path.stem.partition("_")
    place = path.relative_to(clone.folder)
    task = PublicTask(
        suite=clone.name,
        kind=clone.kind,
        name=f"level{level}_{head}",
        file=f"level{level}/{path.name}",
        title=title.replace("_", " ").strip(),
        folder=clone.folder,
        category=f"level {level}",
        reference_kind=ReferenceKind.MODULE,
        test_form=TestForm.MODEL,
        tolerances=KERNELBENCH,
    )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return unsupported(task, f"{place} cannot be read: {error}")
    outline = Outline(text)
    missing = [name for name in _NEEDED if not outline.defines(name)]
    if missing:
        return unsupported(task, f"{place} does not define {', '.join(missing)}")
    try:
        model = entry_point(outline, "Model")
    except (SyntaxError, ValueError, RecursionError) as error:
        return unsupported(task, f"{place} cannot be read: {error}")
    task = msgspec.structs.replace(
        task,
        reference=Part(path, text),
        instruction=module_instruction(text),
        entry_points=(
            msgspec.structs.replace(
                model, name="ModelNew", signature=model.signature.replace("Model", "ModelNew", 1)
            ),
        ),
        issues=issues_of(task, text, _PARAMETER.sub("", outline.pieces["Model"])),
    )
    if Issue.NETWORK in task.issues:
        return unsupported(task, "the reference loads its model and weights from the network (transformers)")
    return task
