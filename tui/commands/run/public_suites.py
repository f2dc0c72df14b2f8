"""`wavedeck suites list` and `show` for clones of public benchmarks."""

from __future__ import annotations

from pathlib import Path

from suites import load_public_suite, load_public_task
from suites.public.clone import Clone
from suites.public.loader import PublicSuite
from suites.public.task import ISSUES, EntryKind, PublicTask, ReferenceKind
from tui.diagnostics import say
from tui.facts.tables import Column, Field, Number
from tui.print.plain import emit, emit_json, listing, wrapped

REFERENCES = {
    ReferenceKind.TRITON: "Triton kernels",
    ReferenceKind.TORCH: "a PyTorch function",
    ReferenceKind.MODULE: "a PyTorch module",
}
VENDORS = {"amd": "AMD", "nvidia": "NVIDIA"}


def public_suite(name: str, registry: Path) -> PublicSuite:
    """Return the tasks of a clone; what is wrong with the clone goes to standard error, one line each."""
    suite = load_public_suite(name, registry=registry)
    for note in suite.notes:
        say(note)
    return suite


def list_public(name: str, registry: Path, *, as_json: bool) -> None:
    """Print the tasks of a clone, as JSON or a table."""
    tasks = public_suite(name, registry).tasks
    if as_json:
        emit_json([public_entry(task) for task in tasks])
        return
    emit(listing(_FIELDS, (task for task in tasks if not task.unsupported)))
    if any(task.unsupported for task in tasks):
        emit("\n" + listing(_UNSUPPORTED, (task for task in tasks if task.unsupported)))


_FIELDS: tuple[Field[PublicTask], ...] = (
    Field(Column("task", keep=True), lambda task: task.id),
    Field(
        Number("difficulty", if_known=True),
        lambda task: "" if task.difficulty is None else str(task.difficulty),
    ),
    Field(Column("category", keep=True, drop=2, if_known=True), lambda task: task.category),
    Field(
        Column("notes", least=20, if_known=True),
        lambda task: ", ".join([*([f"{VENDORS[task.vendor]} only"] if task.vendor else []), *task.issues]),
    ),
    # Last, because a task may have many: the names are as long as a line.
    Field(
        Column("entry points", least=20, drop=1),
        lambda task: ", ".join(entry.name for entry in task.entry_points),
    ),
)
_UNSUPPORTED: tuple[Field[PublicTask], ...] = (
    Field(Column("task", keep=True), lambda task: task.id),
    Field(Column("why it cannot be judged", least=20), lambda task: task.unsupported),
)
CLONES: tuple[Field[Clone], ...] = (
    Field(Column("clone", keep=True), lambda clone: clone.name),
    Field(Column("benchmark", keep=True), lambda clone: clone.kind),
    Field(Column("folder", drop=1), lambda clone: str(clone.folder)),
    Field(Column("its tasks", keep=True), lambda clone: f"wavedeck suites list {clone.name}"),
)


def public_entry(task: PublicTask) -> dict[str, object]:
    """Return a task as `--json` lists it."""
    return {
        "task": task.id,
        "suite": task.suite,
        "name": task.name,
        "title": task.title,
        "category": task.category or None,
        "difficulty": task.difficulty,
        "entry_points": [entry.signature or entry.name for entry in task.entry_points],
        "kind": task.kind,
        "file": task.file,
        "reference": task.reference_kind,
        "vendor": task.vendor or None,
        "issues": task.issues,
        "unsupported": task.unsupported or None,
        "folder": str(task.folder),
    }


def show_public(name: str, registry: Path, *, as_json: bool) -> None:
    """Print one task: where it is, instruction, entry points, notes."""
    task = load_public_task(name, registry=registry)
    if as_json:
        emit_json(public_entry(task) | {"instruction": task.instruction, "public_task": task})
        return
    emit(f"{task.id}: {task.title}")
    emit("\n".join(_facts(task)) + "\n")
    if task.unsupported:
        emit(f"It cannot be judged: {task.unsupported}.\n")
    if task.instruction:
        emit(wrapped(task.instruction) + "\n")
    for entry in task.entry_points:
        word = {EntryKind.KERNEL: "kernel ", EntryKind.CLASS: "class "}.get(entry.kind, "def ")
        emit(f"{word}{entry.signature or entry.name}")
    for issue in task.issues:
        emit(f"\n{ISSUES[issue]}")


def _facts(task: PublicTask) -> list[str]:
    """Return one line for each fact that is known."""
    facts = [f"file: {task.file} in {task.folder}"]
    if task.reference is not None:
        facts.append(f"reference: {REFERENCES[task.reference_kind]}")
        truth = ", ".join(task.oracles) or "the reference's outputs"
        facts.append(f"oracle: {truth}")
    if task.category:
        facts.append(f"category: {task.category}")
    if task.difficulty is not None:
        facts.append(f"difficulty: {task.difficulty} of 5")
    if task.vendor:
        facts.append(f"runs on GPUs of: {VENDORS[task.vendor]}")
    return facts
