"""KernelBench-X."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from suites.public.clone import MARKERS, Clone
from suites.public.instructions import reference_instruction
from suites.public.known import KERNELBENCH_X
from suites.public.loaders.separated import separated_task
from suites.public.loading import DescribedRow, Loading, first_sentence, read_rows, with_performance
from suites.public.task import PublicTask, ReferenceKind, TestForm
from suites.task import QuantizationTolerance


class _Thresholds(msgspec.Struct):
    cosine_sim: float
    l1_relative: float
    rmse: float


class _Row(DescribedRow):
    precision_thresholds: _Thresholds | None = None
    quantization_spec: dict[str, str] = msgspec.field(default_factory=dict)


def load_kernelbench_x(loading: Loading) -> Iterable[PublicTask]:
    """Yield the tasks that the suite's list names; its folders hold eight files more."""
    clone = loading.clone
    root = clone.folder / MARKERS[clone.kind]
    rows = {row.file: row for row in read_rows(loading, clone.folder / "data/kernelbenchx_v1.json", _Row)}
    files = list(rows) or sorted(path.relative_to(root).as_posix() for path in root.glob("*/*.py"))
    for file in files:
        yield _task(clone, root / file, file, rows.get(file))


def _task(clone: Clone, path: Path, file: str, row: _Row | None) -> PublicTask:
    """Return the task of a file. `row` has the benchmark's description; without it the reference is the instruction."""
    task = separated_task(
        clone,
        path,
        file=file,
        reference_kind=ReferenceKind.TORCH,
        test_form=TestForm.SCRIPT,
        tolerances=KERNELBENCH_X,
        search_paths=(clone.folder / "utils",),
    )
    task = with_performance(task, "metrics/golden_metrics")
    task = msgspec.structs.replace(task, category=file.partition("/")[0])
    if row is None:
        return msgspec.structs.replace(task, instruction=reference_instruction(task))
    return msgspec.structs.replace(
        task,
        title=first_sentence(row.description),
        instruction=row.instruction,
        difficulty=row.difficulty,
        quantization=_quantization(row.precision_thresholds),
        widths=_widths(row.quantization_spec),
    )


def _quantization(thresholds: _Thresholds | None) -> QuantizationTolerance | None:
    if thresholds is None:
        return None
    return QuantizationTolerance(
        cosine_min=thresholds.cosine_sim, relative_l1_max=thresholds.l1_relative, rmse_max=thresholds.rmse
    )


def _widths(spec: dict[str, str]) -> dict[str, int]:
    bits = {kind: spec.get(kind, "").removeprefix("int") for kind in ("weight", "activation")}
    return {kind: int(text) for kind, text in bits.items() if text.isdecimal()}
