"""Loads the tasks of a clone, and says in one line each what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from suites.errors import BadSuite
from suites.public.arena import load_arena
from suites.public.clone import MARKERS, Clone, commit_note
from suites.public.instructions import Instruction
from suites.public.kernelbench import load_kernelbench
from suites.public.kernelbench_x import load_kernelbench_x
from suites.public.known import COUNTS
from suites.public.rocm import load_rocm
from suites.public.task import PublicTask, SuiteKind
from suites.public.tritonbench import load_revised, load_tritonbench_g, load_tritonbench_t

_LOADERS: dict[
    SuiteKind,
    Callable[[Clone, Mapping[SuiteKind, Path], Instruction, list[str]], Iterable[PublicTask]],
] = {
    SuiteKind.TRITONBENCH_REVISED: load_revised,
    SuiteKind.ROCM: load_rocm,
    SuiteKind.TRITONBENCH_G: load_tritonbench_g,
    SuiteKind.TRITONBENCH_T: load_tritonbench_t,
    SuiteKind.KERNELBENCH_X: load_kernelbench_x,
    SuiteKind.KERNELBENCH: load_kernelbench,
    SuiteKind.AGENTKERNELARENA: load_arena,
}


class PublicSuite(msgspec.Struct, frozen=True):
    """The tasks of a clone, in the suite's own order."""

    clone: Clone
    tasks: tuple[PublicTask, ...]
    notes: tuple[str, ...]
    """What is missing or damaged in the clone, one line each."""


def load_clone(
    clone: Clone, clones: Sequence[Clone] = (), instruction: Instruction = Instruction.COMPLEX
) -> PublicSuite:
    """Return the tasks of a clone. A task that cannot be judged has its reason.

    Other `clones` give what this one lacks, such as the instructions of the revised TritonBench. Raises `BadSuite` if the
    folder is no clone of its kind any more.
    """
    if not (clone.folder / MARKERS[clone.kind]).is_dir():
        raise BadSuite(
            f"suite {clone.name!r}: {clone.folder / MARKERS[clone.kind]} is gone; restore the clone or add it again"
        )
    notes = [note] if (note := commit_note(clone)) is not None else []
    companions = {other.kind: other.folder for other in clones}
    tasks = tuple(_LOADERS[clone.kind](clone, companions, instruction, notes))
    missing = COUNTS[clone.kind] - len(tasks)
    if missing > 0:
        notes.append(f"{clone.name}: the clone has {len(tasks)} of {COUNTS[clone.kind]} tasks")
    return PublicSuite(clone, tasks, tuple(notes))
