"""Loads the tasks of a clone, and says in one line each what is wrong with it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from suites.errors import BadSuite
from suites.public.clone import MARKERS, Clone, commit_problem, holds
from suites.public.known import COUNTS
from suites.public.loaders.arena import load_arena, load_geak
from suites.public.loaders.atrex import load_atrex
from suites.public.loaders.gpu_mode import load_gpu_mode
from suites.public.loaders.kernelbench import load_kernelbench
from suites.public.loaders.kernelbench_x import load_kernelbench_x
from suites.public.loaders.robust_kbench import load_robust_kbench
from suites.public.loaders.traces import load_traces
from suites.public.loaders.tritonbench import load_revised, load_rocm, load_tritonbench_g, load_tritonbench_t
from suites.public.loading import Loading
from suites.public.task import PublicTask, SuiteKind

_LOADERS: dict[SuiteKind, Callable[[Loading], Iterable[PublicTask]]] = {
    SuiteKind.TRITONBENCH_REVISED: load_revised,
    SuiteKind.ROCM: load_rocm,
    SuiteKind.TRITONBENCH_G: load_tritonbench_g,
    SuiteKind.TRITONBENCH_T: load_tritonbench_t,
    SuiteKind.KERNELBENCH_X: load_kernelbench_x,
    SuiteKind.KERNELBENCH: load_kernelbench,
    SuiteKind.ROBUST_KBENCH: load_robust_kbench,
    SuiteKind.AGENTKERNELARENA: load_arena,
    SuiteKind.GPU_MODE: load_gpu_mode,
    SuiteKind.ATREX_BENCH: load_atrex,
    SuiteKind.GEAK_TASKS: load_geak,
    SuiteKind.FLASHINFER_TRACE: load_traces,
    SuiteKind.SOL_EXECBENCH: load_traces,
}


class PublicSuite(msgspec.Struct, frozen=True):
    """The tasks of a clone, in the suite's own order."""

    clone: Clone
    tasks: tuple[PublicTask, ...]
    notes: tuple[str, ...]
    """Lines about missing or damaged files of the clone."""


def load_clone(clone: Clone, clones: Sequence[Clone] = ()) -> PublicSuite:
    """Return the tasks of a clone. A task that cannot be judged has its reason.

    Other `clones` give what this one lacks, such as the instructions of the revised TritonBench. Raises `BadSuite` if the
    folder is no clone of its kind any more.
    """
    if not holds(clone.folder, clone.kind):
        raise BadSuite(
            f"suite {clone.name!r}: {clone.folder / MARKERS[clone.kind]} is gone; restore the clone or add it again"
        )
    loading = Loading(clone, {companion.kind: companion.folder for companion in clones})
    if (problem := commit_problem(clone)) is not None:
        loading.note(problem)
    with _paused_collection():
        tasks = tuple(_LOADERS[clone.kind](loading))
    count = COUNTS.get(clone.kind, 0)
    if len(tasks) < count:
        loading.note(f"the clone has {len(tasks)} of {count} tasks")
    return PublicSuite(clone, tasks, tuple(loading.notes))


@contextmanager
def _paused_collection() -> Iterator[None]:
    """Pause Python's collection of cycles in the block, then restore what was set before.

    The collection would take as long as the loading, and finds no cycle in syntax trees.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
