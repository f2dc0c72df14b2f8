"""Scripted survey: compile results without a compiler, for tests of the search of a sweep."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from harness import Estimate, KernelResources
from harness.stages.survey import Compiled, Sampled
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
        binary="gfx942",
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


def sampled(ratio: float = 1.0) -> Sampled:
    """Return an estimate whose upper bound is `ratio` times its lower bound."""
    return Sampled((), (Estimate("gfx942", "small", {"n": 1}, 1.0, ratio, "memory", "memory", "scripted"),))


def plain(source: str) -> Compiled:
    """Return a result in which each source has its own code and equal resources."""
    return compiled(hashlib.sha256(source.encode()).hexdigest())


class ScriptedSurvey:
    """Survey whose answers depend only on the source; `compiles` and `samples` hold all received sources."""

    def __init__(
        self,
        compiles: Callable[[str], Compiled] = plain,
        samples: Callable[[str], Sampled] = lambda _: sampled(),
    ) -> None:
        self.compiles: list[str] = []
        self.samples: list[str] = []
        self._compiled, self._sampled = compiles, samples

    async def compile(self, sources: Sequence[str]) -> tuple[Compiled, ...]:
        """See `Surveying`."""
        self.compiles += sources
        return tuple(map(self._compiled, sources))

    async def sample(self, sources: Sequence[str]) -> tuple[Sampled, ...]:
        """See `Surveying`."""
        self.samples += sources
        return tuple(map(self._sampled, sources))
