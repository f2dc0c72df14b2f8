"""A person's clone or folder of a public benchmark: its kind by its files, and its commit."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from suites.errors import BadSuite
from suites.public.task import SuiteKind

MARKERS = {
    SuiteKind.TRITONBENCH_REVISED: "geak_eval/data/TritonBench/data/TritonBench_G_v1",
    SuiteKind.ROCM: "geak_eval/data/ROCm/data/ROCm_v1",
    SuiteKind.TRITONBENCH_G: "data/TritonBench_G_v1",
    SuiteKind.TRITONBENCH_T: "data/TritonBench_T_v1",
    SuiteKind.KERNELBENCH_X: "data/kernelbenchx",
    SuiteKind.KERNELBENCH: "KernelBench/level1",
    SuiteKind.ROBUST_KBENCH: "tasks/kernelbench/level_1",
    SuiteKind.AGENTKERNELARENA: "tasks/triton2triton",
    SuiteKind.GPU_MODE: "problems/pmpp_v2",
    SuiteKind.ATREX_BENCH: "data/unified_attention/shapes.json",
    SuiteKind.GEAK_TASKS: "*/kernel.py",
    SuiteKind.FLASHINFER_TRACE: "definitions/**/*.json",
    SuiteKind.SOL_EXECBENCH: "*/*/definition.json",
}
"""A path that only a folder of this kind has, from its root; `*` matches any name, `**` any folders."""

COMMITS = {
    SuiteKind.TRITONBENCH_REVISED: "453b021",
    SuiteKind.ROCM: "453b021",
    SuiteKind.TRITONBENCH_G: "603e28a",
    SuiteKind.TRITONBENCH_T: "603e28a",
    SuiteKind.KERNELBENCH_X: "fd41922",
    SuiteKind.KERNELBENCH: "423217d",
    SuiteKind.ROBUST_KBENCH: "078f5ba",
    SuiteKind.AGENTKERNELARENA: "d6f7c8a",
    SuiteKind.GPU_MODE: "f83cb92",
    SuiteKind.ATREX_BENCH: "eb8697d",
}
"""Commit that the loader was written for; none for folders that a person makes."""

_COMMIT = re.compile(r"[0-9a-f]{40,64}")


class Clone(msgspec.Struct, frozen=True):
    """A clone as the registry keeps it."""

    name: str
    kind: SuiteKind
    folder: Path


def kinds_of(folder: Path) -> tuple[SuiteKind, ...]:
    """Return the benchmarks that a folder holds; empty if it is no clone of any."""
    return tuple(kind for kind in MARKERS if holds(folder, kind))


def holds(folder: Path, kind: SuiteKind) -> bool:
    """Return whether a folder holds a benchmark of this kind."""
    marker = MARKERS[kind]
    return next(folder.glob(marker), None) is not None if "*" in marker else (folder / marker).exists()


def choose_kind(name: str, folder: Path, kind: SuiteKind | None) -> SuiteKind:
    """Return the kind of a clone: `kind`, else the only kind of the folder, else the kind that is called `name`.

    Raises `BadSuite` if the folder does not hold that kind, or if it holds several and none is chosen.
    """
    kinds = kinds_of(folder)
    if kind is not None:
        if kind not in kinds:
            raise BadSuite(f"{folder} is no clone of {kind}: {folder / MARKERS[kind]} is missing")
        return kind
    if len(kinds) == 1:
        return kinds[0]
    for candidate in kinds:
        if candidate == name:
            return candidate
    raise BadSuite(f"{folder} holds {' and '.join(kinds)}; choose one with --kind")


def commit_of(folder: Path) -> str | None:
    """Return the commit that is checked out in a clone; `None` if the folder has no readable git data."""
    try:
        git = folder / ".git"
        if git.is_file():
            git = folder / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref:"):
            return head if _COMMIT.fullmatch(head) else None
        ref = head.removeprefix("ref:").strip()
        if (git / ref).is_file():
            return (git / ref).read_text(encoding="utf-8").strip()
        packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((line.partition(" ")[0] for line in packed if line.endswith(f" {ref}")), None)


def commit_problem(clone: Clone) -> str | None:
    """Return a text if the clone is of another commit than the loader was written for; else `None`."""
    written_for = COMMITS.get(clone.kind)
    commit = None if written_for is None else commit_of(clone.folder)
    if written_for is None or commit is None or commit.startswith(written_for):
        return None
    return f"the clone is at commit {commit[:7]}; this Wavedeck was written for {written_for}"
