"""A survey that says what it is told: compiling without a compiler, for sweeps whose search is under test."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from harness import Estimate, KernelResources
from harness.stages.survey import Compiled, Sampled
from harness.wire.evaluation import GridFit


def compiled(
    code: str = "",
    *,
    spills: int = 0,
    occupancy: float = 4.0,
    matrix: int = 0,
    error: str = "",
    flags: tuple[str, ...] = (),
) -> Compiled:
    """One kernel with these resources; `code` tells it from others."""
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
    """An estimate whose upper bound is so many times the lower."""
    return Sampled((), (Estimate("gfx942", "small", {"n": 1}, 1.0, ratio, "memory", "memory", "told"),))


def plain(source: str) -> Compiled:
    """Every source compiles to code of its own and needs the same."""
    return compiled(hashlib.sha256(source.encode()).hexdigest())


class ToldSurvey:
    """Answers by the source alone; `compiles` and `samples` hold every source it was asked about."""

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
