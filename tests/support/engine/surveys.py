"""Scripted survey: compile results without a compiler, for tests of the search of a sweep."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from harness import KernelResources
from harness.stages.survey import Compiled
from harness.wire.results.evaluation import GridFit


def compiled(
    code: str = "",
    *,
    spills: int = 0,
    occupancy: float = 4.0,
    matrix: int = 0,
    error: str = "",
    flags: tuple[str, ...] = (),
) -> Compiled:
    """Return the result for one kernel with these resources; `code` identifies its binary."""
    row = KernelResources(
        kernel="kernel",
        case="small",
        config={},
        autotune_index=None,
        architecture="gfx942",
        binary_sha256="",
        code_sha256=code,
        grid=(1, 1, 1),
        vgpr_spills=spills,
        occupancy=occupancy,
        matrix_instructions=matrix,
        flags=flags,
        failure=error,
        fits=(GridFit("small", (1, 1, 1), 1, 304, 1, 1, 0.0, 0.0, 0, 8, 1, 0),),
    )
    return Compiled((row,), error)


def plain(source: str) -> Compiled:
    """Return a result in which each source has its own code and equal resources."""
    return compiled(hashlib.sha256(source.encode()).hexdigest())


class ScriptedSurvey:
    """Survey whose answers depend only on the source; `compiles` holds all received sources."""

    def __init__(self, compiles: Callable[[str], Compiled] = plain) -> None:
        self.compiles: list[str] = []
        self._compiled = compiles

    async def compile(self, sources: Sequence[str]) -> tuple[Compiled, ...]:
        """See `Surveying`."""
        self.compiles += sources
        return tuple(map(self._compiled, sources))
