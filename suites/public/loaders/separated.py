"""Tasks in one file, with a reference, a separator line and a test: TritonBench, ROCm Triton Benchmark, KernelBench-X."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from suites.public.clone import Clone
from suites.public.known import issues_of, vendor_of
from suites.public.syntax.calls import test_calls
from suites.public.task import Issue, Part, PublicTask, ReferenceKind, TestForm
from suites.task import Tolerance

_NO_LETTER = re.compile(r"[^a-z0-9_]+")
SEPARATOR = "#" * 146


def task_name(name: str) -> str:
    """Return a name of a public suite in the form of our task names: `token_attn_reduceV` becomes `token_attn_reducev`."""
    plain = _NO_LETTER.sub("_", name.lower())
    return plain if plain[:1].isalpha() else f"task_{plain}"


def separated_task(
    clone: Clone,
    path: Path,
    *,
    file: str,
    reference_kind: ReferenceKind,
    test_form: TestForm,
    tolerances: dict[str, Tolerance],
    name: str = "",
    search_paths: tuple[Path, ...] = (),
) -> PublicTask:
    """Return the task of a file in which a line of 146 `#` separates the reference from its test.

    The task is `unsupported`, with the reason, if the file is missing, cannot be read, or breaks the format. Loaders add what
    other files say: instruction, title, difficulty, performance.
    """
    task = PublicTask(
        suite=clone.name,
        kind=clone.kind,
        name=name or task_name(path.stem),
        file=file,
        title=path.stem.replace("_", " "),
        folder=clone.folder,
        reference_kind=reference_kind,
        test_form=test_form,
        tolerances=tolerances,
        search_paths=search_paths,
    )
    place = path.relative_to(clone.folder)
    try:
        parts = split_file(path)
        if parts is None:
            return unsupported(task, f"{place} does not have exactly one separator line of 146 `#`")
        reference, test = parts
        calls = test_calls(reference.text, test.text, test_form, path.stem)
    except FileNotFoundError:
        return unsupported(task, f"{place} is missing in the clone")
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        return unsupported(task, f"{place} cannot be read: {error}")
    task = msgspec.structs.replace(
        task,
        reference=reference,
        test=Part(path, calls.test, test.line),
        test_form=calls.form,
        entry_points=calls.entry_points,
        result_name=calls.result_name,
        oracles=calls.oracles,
        modules=calls.modules,
        vendor=vendor_of(reference.text),
        issues=issues_of(task, reference.text, calls.code, has_copies=calls.has_copies),
    )
    if Issue.NO_TENSORS in task.issues:
        return unsupported(task, "its entry point returns an optimizer object, not tensors")
    if not task.entry_points:
        return unsupported(task, f"the test in {place} calls nothing that its reference defines")
    return task


def unsupported(task: PublicTask, reason: str) -> PublicTask:
    """Return the task with the reason why it cannot be judged."""
    return msgspec.structs.replace(task, unsupported=reason)


def split_file(path: Path) -> tuple[Part, Part] | None:
    """Return the reference and the test of a file; `None` if it does not have exactly one separator line.

    Raises `OSError` or `UnicodeDecodeError` if the file cannot be read.
    """
    lines = path.read_text(encoding="utf-8").split("\n")
    places = [number for number, line in enumerate(lines) if line.strip() == SEPARATOR]
    if len(places) != 1:
        return None
    place = places[0]
    reference = Part(path, "\n".join(lines[:place]))
    return reference, Part(path, "\n".join(lines[place + 1 :]), place + 2)
