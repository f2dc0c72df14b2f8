"""TritonBench-G, its revision in GEAK-eval, TritonBench-T, and the ROCm Triton Benchmark in GEAK-eval."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import cleandoc
from pathlib import Path

import msgspec

from suites.public.clone import MARKERS, Clone
from suites.public.config import read_config
from suites.public.instructions import reference_instruction
from suites.public.known import HUNDREDTH, LOOSE
from suites.public.loaders.separated import separated_task
from suites.public.loading import DescribedRow, Loading, first_sentence, read_rows, with_performance
from suites.public.task import PublicTask, ReferenceKind, SuiteKind, TestForm

_PERFORMANCE = {
    SuiteKind.TRITONBENCH_G: "performance_metrics/perf_G/golden_metrics",
    SuiteKind.TRITONBENCH_T: "performance_metrics/perf_T/golden_metrics",
    SuiteKind.TRITONBENCH_REVISED: "geak_eval/data/TritonBench/performance_metrics/perf_G/golden_metrics",
}
_PROMPTS = "tasks/instruction2triton/rocmbench"


class _RowG(msgspec.Struct):
    """The keys of a task in the list of TritonBench-G that a loader needs."""

    file: str
    comp_instru: str = ""
    difficulty: str = ""


def load_tritonbench_g(loading: Loading) -> Iterable[PublicTask]:
    """Yield the tasks of TritonBench-G."""
    clone = loading.clone
    rows = _rows_g(loading, clone.folder)
    for file in list(rows) or _files(clone):
        yield _task_g(loading, file, rows.get(file))


def load_revised(loading: Loading) -> Iterable[PublicTask]:
    """Yield the tasks of the revision in GEAK-eval. Its clone has no instructions: a clone of TritonBench-G gives them."""
    upstream = loading.companions.get(SuiteKind.TRITONBENCH_G)
    rows = _rows_g(loading, upstream) if upstream else {}
    if upstream is None:
        loading.note(
            "instructions and difficulties need a clone of thunlp/TritonBench; add it as tritonbench-g"
        )
    for file in _files(loading.clone):
        yield _task_g(loading, file, rows.get(file))


def load_tritonbench_t(loading: Loading) -> Iterable[PublicTask]:
    """Yield the tasks of TritonBench-T. Its file of descriptions is a JSON array, whatever its name says."""
    clone = loading.clone
    descriptions = clone.folder / "data/TritonBench_T_v1.jsonl"
    rows = {row.file: row for row in read_rows(loading, descriptions, DescribedRow)}
    for file in list(rows) or _files(clone):
        task = separated_task(
            clone,
            clone.folder / MARKERS[clone.kind] / file,
            file=file,
            reference_kind=ReferenceKind.TORCH,
            test_form=TestForm.SCRIPT,
            tolerances=LOOSE,
        )
        row = rows.get(file)
        if row is not None:
            task = msgspec.structs.replace(
                task,
                title=first_sentence(row.description),
                difficulty=row.difficulty,
                instruction=row.instruction,
            )
        yield _finished(task)


def _rows_g(loading: Loading, folder: Path) -> dict[str, _RowG]:
    path = folder / "data/TritonBench_G_v1.json"
    return {row.file: row for row in read_rows(loading, path, _RowG)}


def _files(clone: Clone) -> list[str]:
    folder = clone.folder / MARKERS[clone.kind]
    return sorted(path.name for path in folder.glob("*.py") if path.name != "__init__.py")


def _task_g(loading: Loading, file: str, row: _RowG | None) -> PublicTask:
    """Return a task of TritonBench-G. `row` has its instruction (of two the complex one) and its difficulty."""
    clone = loading.clone
    task = separated_task(
        clone,
        clone.folder / MARKERS[clone.kind] / file,
        file=file,
        reference_kind=ReferenceKind.TRITON,
        test_form=TestForm.SCRIPT,
        tolerances=LOOSE,
    )
    if row is not None:
        task = msgspec.structs.replace(
            task,
            instruction=cleandoc(row.comp_instru).strip(),
            difficulty=int(row.difficulty) if row.difficulty.isdecimal() else None,
        )
    return _finished(task)


def _finished(task: PublicTask) -> PublicTask:
    """Return the task with the source of its inputs for timing, and with an instruction."""
    task = with_performance(task, _PERFORMANCE[task.kind])
    return msgspec.structs.replace(task, instruction=task.instruction or reference_instruction(task))


def load_rocm(loading: Loading) -> Iterable[PublicTask]:
    """Yield the tasks of the ROCm Triton Benchmark. Its clone has no instructions: AgentKernelArena has them."""
    clone = loading.clone
    arena = loading.companions.get(SuiteKind.AGENTKERNELARENA)
    if arena is None:
        loading.note("instructions need a clone of AMD-AGI/AgentKernelArena; add it as agentkernelarena")
    for path in sorted((clone.folder / MARKERS[clone.kind]).glob("*.py")):
        task = separated_task(
            clone,
            path,
            file=path.name,
            reference_kind=ReferenceKind.TRITON,
            test_form=TestForm.PYTEST,
            tolerances=HUNDREDTH,
            search_paths=(clone.folder,),
        )
        text = _prompt(arena, path.stem) if arena is not None else ""
        yield msgspec.structs.replace(task, instruction=text or reference_instruction(task))


def _prompt(arena: Path, stem: str) -> str:
    try:
        return read_config(arena / _PROMPTS / stem / "config.yaml").instructions
    except (OSError, ValueError):
        return ""
