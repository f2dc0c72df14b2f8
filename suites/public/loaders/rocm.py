"""ROCm Triton Benchmark in GEAK-eval."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from suites.public.clone import MARKERS
from suites.public.config import read_config
from suites.public.instructions import reference_instruction
from suites.public.known import HUNDREDTH
from suites.public.loaders.separated import separated_task
from suites.public.loading import Loading
from suites.public.task import PublicTask, ReferenceKind, SuiteKind, TestForm

_PROMPTS = "tasks/instruction2triton/rocmbench"


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
