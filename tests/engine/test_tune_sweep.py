"""The search of a sweep: what it compiles, what it drops, and which variants it names first."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from engine.tuning import Findings, sweep
from engine.tuning.sweep import COMPILES, SAMPLES
from harness import target
from harness.stages.survey import Compiled, Sampled
from tests.support.surveys import ToldSurvey, compiled, plain, sampled

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


def given_in(source: str, name: str) -> int:
    """What a variant gives an option, or a block of `main`."""
    if name in {"block_m", "block_k"}:
        first, second = re.findall(r"block_m, block_k = (\d+), (\d+)", source)[0]
        return int(first if name == "block_m" else second)
    found = re.search(rf"\b{name}=(\d+)", source)
    return int(found[1]) if found else 0


async def swept(
    compiles: Callable[[str], Compiled] = plain,
    samples: Callable[[str], Sampled] = lambda _: sampled(),
    *,
    source: str = SOURCE,
    most: int = 8,
) -> tuple[Findings, ToldSurvey]:
    survey = ToldSurvey(compiles, samples)
    return await sweep(source, "starter/matmul", GFX942, survey, most=most), survey


async def test_what_cannot_run_is_dropped_and_counted() -> None:
    def told(source: str) -> Compiled:
        if given_in(source, "num_stages") > 2:
            return compiled(error="needs 98304 bytes of LDS", flags=("too_large",))
        if given_in(source, "waves_per_eu") == 4:
            return compiled(source, spills=30)
        if given_in(source, "matrix_instr_nonkdim") == 16:
            return compiled(error="unknown instruction")
        if given_in(source, "kpack") == 2:
            return compiled(source.replace(", kpack=2", ""))
        return compiled(source)

    found, survey = await swept(told)
    assert found.tried == len(survey.compiles) - 1, "the start is no variant"
    assert found.pruned == {
        "do not compile": 1,
        "do not fit the device": 2,
        "give the same code as another": 1,
        "spill where the start does not": 1,
    }
    for variant in found.variants:
        assert not told(variant.source).error
        assert not variant.better, "nothing speaks for it"


async def test_a_start_that_spills_is_no_reason_to_drop_what_spills_less() -> None:
    def told(source: str) -> Compiled:
        return compiled(source, spills={128: 40, 64: 10, 32: 0, 256: 80}[given_in(source, "block_m")])

    found, _ = await swept(told)
    assert found.variants[0].better
    assert given_in(found.variants[0].source, "block_m") == 32


async def test_a_larger_tile_that_spills_alone_is_found_with_the_warps_that_it_needs() -> None:
    def told(source: str) -> Compiled:
        crowded = given_in(source, "block_m") == 256 and given_in(source, "num_warps") < 8
        return compiled(source, spills=200 if crowded else 0)

    found, _ = await swept(told, lambda source: sampled(512 / given_in(source, "block_m")))
    best = found.variants[0]
    assert best.better
    assert best.changes == ("num_warps 4 to 8", "BLOCK_M 128 to 256")


async def test_occupancy_is_no_reason_where_matrix_instructions_work_and_is_one_elsewhere() -> None:
    def told(matrix: int) -> Callable[[str], Compiled]:
        return lambda source: compiled(source, occupancy=float(given_in(source, "num_warps")), matrix=matrix)

    found, _ = await swept(told(4))
    assert not any(variant.better for variant in found.variants)
    found, _ = await swept(told(0))
    assert found.variants[0].changes == ("num_warps 4 to 16",)
    assert [variant.changes for variant in found.variants if variant.better] == [
        ("num_warps 4 to 16",),
        ("num_warps 4 to 8",),
    ], "other changes beside it add nothing"


async def test_differences_of_a_sample_are_none() -> None:
    found, _ = await swept(samples=lambda source: sampled(2.0 + 0.01 * given_in(source, "block_m") / 256))
    assert not any(variant.better for variant in found.variants)


async def test_nothing_is_tried_where_nothing_can_be_varied_or_the_start_does_not_compile() -> None:
    found, survey = await swept(source="def main(a):\n    return a\n")
    assert (found, survey.compiles) == (Findings(0, {}, ()), [])
    found, _ = await swept(lambda _: compiled(error="no"))
    assert found == Findings(0, {}, ())


@given(st.integers(min_value=0, max_value=2**32))
async def test_a_sweep_is_bounded_and_the_same_answers_give_the_same_variants(salt: int) -> None:
    def scatter(source: str) -> int:
        return hash_of(f"{salt}{source}")

    def told(source: str) -> Compiled:
        kind = scatter(source) % 7
        if kind == 0 and source != SOURCE:
            return compiled(error="no", flags=("too_large",) if salt % 2 else ())
        return compiled(str(scatter(source) % 50), spills=kind // 5, occupancy=float(kind))

    def traffic(source: str) -> Sampled:
        return sampled(1 + scatter(source) % 5)

    found, survey = await swept(told, traffic)
    again, _ = await swept(told, traffic)
    assert found == again
    assert found.tried <= COMPILES
    assert len(survey.compiles) == len({*survey.compiles}) == found.tried + 1, "none twice"
    assert len(survey.samples) == len({*survey.samples}) <= SAMPLES + 1
    assert sum(found.pruned.values()) <= found.tried
    codes = [told(variant.source).resources[0].code_sha256 for variant in found.variants]
    assert len(codes) == len({*codes}), "no two of the same code"
    start = told(SOURCE).resources[0].vgpr_spills or 0
    for variant in found.variants:
        row = told(variant.source).resources[0]
        assert not row.failure
        assert (row.vgpr_spills or 0) <= start


def hash_of(text: str) -> int:
    """A number that looks drawn and is the same in every process."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
