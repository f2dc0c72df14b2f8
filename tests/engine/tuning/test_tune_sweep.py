"""Search of a sweep: compiled variants, dropped variants and the order of the result."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from engine.tuning.launch_config import Config
from engine.tuning.sweep import COMPILES, Findings, sweep
from harness import target
from harness.stages.survey import Compiled
from tests.support.engine.surveys import ScriptedSurvey, compiled, plain

GFX942 = target("gfx942")
SOURCE = """
@triton.jit
def kernel(a, b, n, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    for start in range(0, n, BLOCK_K):
        tl.dot(a, b)


def main(a, b):
    block_m, block_k = 128, 64
    kernel[(triton.cdiv(a, block_m),)](a, b, a, BLOCK_M=block_m, BLOCK_K=block_k, num_warps=4, num_stages=2)
"""


def option_value(source: str, name: str) -> int:
    """Return the value of a launch option or of a block of `main`; 0 if absent."""
    if name in {"block_m", "block_k"}:
        first, second = re.findall(r"block_m, block_k = (\d+), (\d+)", source)[0]
        return int(first if name == "block_m" else second)
    match = re.search(rf"\b{name}=(\d+)", source)
    return int(match[1]) if match else 0


async def swept(
    compiles: Callable[[str], Compiled] = plain, *, source: str = SOURCE
) -> tuple[Findings, ScriptedSurvey]:
    survey = ScriptedSurvey(compiles)
    return await sweep(source, "starter/matmul", GFX942, survey, most=8), survey


async def test_sweep_drops_and_counts_variants_that_cannot_run() -> None:
    def compile_source(source: str) -> Compiled:
        if option_value(source, "num_stages") > 2:
            return compiled(error="needs 98304 bytes of LDS", flags=("too_large",))
        if option_value(source, "waves_per_eu") == 4:
            return compiled(source, spills=30)
        if option_value(source, "matrix_instr_nonkdim") == 16:
            return compiled(error="unknown instruction")
        if option_value(source, "kpack") == 2:
            return compiled(source.replace(", kpack=2", ""))
        return compiled(source)

    findings, survey = await swept(compile_source)
    assert findings.tried == len(survey.compiles) - 1, "the start is not a variant"
    assert findings.pruned == {
        "do not compile": 1,
        "do not fit the device": 2,
        "give the same code as another": 1,
        "spill where the start does not": 1,
    }
    for variant in findings.variants:
        assert not compile_source(variant.source).error
        assert not variant.better, "no variant looks better"


async def test_variants_that_break_a_constraint_are_not_compiled() -> None:
    def constraint(config: Config) -> bool:
        return config["BLOCK_K"] in {64, 128} and config["num_warps"] != 16

    survey = ScriptedSurvey()
    findings = await sweep(SOURCE, "starter/matmul", GFX942, survey, most=8, is_allowed=constraint)
    assert {option_value(source, "block_k") for source in survey.compiles} == {64, 128}
    assert all(option_value(source, "num_warps") != 16 for source in survey.compiles)
    assert findings.pruned["break the task's constraint"] == 4


async def test_sweep_keeps_variants_that_spill_less_than_the_start() -> None:
    def compile_source(source: str) -> Compiled:
        return compiled(source, spills={128: 40, 64: 10, 32: 0, 256: 80}[option_value(source, "block_m")])

    findings, _ = await swept(compile_source)
    assert findings.variants[0].better
    assert option_value(findings.variants[0].source, "block_m") == 32


async def test_occupancy_counts_only_without_matrix_instructions() -> None:
    def with_matrix(matrix: int) -> Callable[[str], Compiled]:
        return lambda source: compiled(
            source, occupancy=float(option_value(source, "num_warps")), matrix=matrix
        )

    findings, _ = await swept(with_matrix(4))
    assert not any(variant.better for variant in findings.variants)
    findings, _ = await swept(with_matrix(0))
    assert findings.variants[0].changes == ("num_warps 4 to 16",)
    assert [variant.changes for variant in findings.variants if variant.better] == [
        ("num_warps 4 to 16",),
        ("num_warps 4 to 8",),
    ], "additional changes bring nothing"


async def test_sweep_is_empty_without_knobs_or_with_a_broken_start() -> None:
    findings, survey = await swept(source="def main(a):\n    return a\n")
    assert (findings, survey.compiles) == (Findings(0, {}, ()), [])
    findings, _ = await swept(lambda _: compiled(error="no"))
    assert findings == Findings(0, {}, ())


@given(st.integers(min_value=0, max_value=2**32))
async def test_sweep_is_bounded_and_deterministic(salt: int) -> None:
    def scatter(source: str) -> int:
        """Return a pseudo-random number that is equal in every process."""
        return int.from_bytes(hashlib.sha256(f"{salt}{source}".encode()).digest()[:4], "big")

    def compile_source(source: str) -> Compiled:
        kind = scatter(source) % 7
        if kind == 0 and source != SOURCE:
            return compiled(error="no", flags=("too_large",) if salt % 2 else ())
        return compiled(str(scatter(source) % 50), spills=kind // 5, occupancy=float(kind))

    findings, survey = await swept(compile_source)
    again, _ = await swept(compile_source)
    assert findings == again
    assert findings.tried <= COMPILES
    assert len(survey.compiles) == len({*survey.compiles}) == findings.tried + 1, (
        "no source is compiled twice"
    )
    assert sum(findings.pruned.values()) <= findings.tried
    codes = [compile_source(variant.source).resources[0].code_sha256 for variant in findings.variants]
    assert len(codes) == len({*codes}), "no two variants have the same code"
    start = compile_source(SOURCE).resources[0].vgpr_spills or 0
    for variant in findings.variants:
        row = compile_source(variant.source).resources[0]
        assert not row.failure
        assert (row.vgpr_spills or 0) <= start
