"""Protects the roofline estimate: its lower and upper bounds, and which resource limits each bound."""

from __future__ import annotations

import pytest

from harness.hardware.product_tables import find_product
from harness.hardware.targets import target
from harness.stages.estimates.roofline import estimate
from harness.wire.results.evaluation import SampledTraffic
from suites.task import Cost
from tests.support.judge.evaluations import traffic

MI300X = target("gfx942")


def test_streaming_kernel_is_memory_bound() -> None:
    cost = Cost(flops=1 << 24, minimal_bytes=3 * (1 << 26))
    bounds = estimate(traffic("c", read=2 << 26, write=1 << 26), cost, "float32", MI300X)
    assert (bounds.bound_low, bounds.bound_high) == ("memory", "memory")
    assert bounds.low_us == bounds.high_us == pytest.approx(3 * (1 << 26) / 5.3e12 * 1e6)


def test_large_matmul_lies_between_compute_and_uncached_memory() -> None:
    """A 4096-cubed product in 128 x 128 tiles requests 2.1 GB and needs 0.1 GB."""
    size, flops = 4096, 2 * 4096**3
    cost = Cost(flops=flops, minimal_bytes=3 * size * size * 2, dot_dtype="float16")
    bounds = estimate(
        traffic("c", read=2 * 32 * size * size * 2, write=size * size * 2, dot_flops=flops),
        cost,
        "float16",
        MI300X,
    )
    assert bounds.bound_low == "compute"
    assert bounds.low_us == pytest.approx(flops / 1307.4e12 * 1e6)
    assert bounds.bound_high == "memory"
    assert bounds.high_us == pytest.approx(411, rel=0.02)


def sampled(*, requested: int, distinct: int, minimal: int, dot_flops: int, dies: int = 8) -> SampledTraffic:
    return SampledTraffic(
        case="c",
        sizes={"n": 4096},
        target="gfx942",
        launches=1,
        programs=1024,
        sampled=20,
        requested_read_bytes=requested,
        requested_write_bytes=0,
        requested_low_bytes=requested,
        requested_high_bytes=requested,
        unique_low_bytes=minimal,
        unique_high_bytes=minimal,
        die_bytes=distinct,
        dies=dies,
        group=8,
        minimal_bytes=minimal,
        flops=dot_flops,
        dot_flops=dot_flops,
    )


def test_estimate_with_die_caches_lies_between_bounds() -> None:
    """The same product reads 0.57 GB of distinct bytes over the dies of an MI300X."""
    flops = 2 * 4096**3
    cost = Cost(flops=flops, minimal_bytes=100_663_296, dot_dtype="float16")
    counts = sampled(
        requested=2_181_038_080, distinct=570_425_344, minimal=cost.minimal_bytes, dot_flops=flops
    )
    bounds = estimate(counts, cost, "float16", MI300X)
    assert bounds.low_us < bounds.shared_us < bounds.high_us
    assert bounds.shared_us == pytest.approx(570_425_344 / 5.3e12 * 1e6)
    assert bounds.high_us == pytest.approx(411, rel=0.02)
    assert bounds.basis.endswith("at n=4096; 20 of 1024 programs sampled as on gfx942")


def test_known_device_uses_its_own_peaks() -> None:
    """An H200 took 130 us; an H100, which has the same target, would need 160 us at its bandwidth."""
    cost = Cost(flops=1 << 24, minimal_bytes=537_000_000)
    counts = traffic("c", read=268_500_000, write=268_500_000)
    h200 = find_product("H200 SXM")
    reference = estimate(counts, cost, "float32", target("sm_90"))
    h200_bounds = estimate(counts, cost, "float32", target("sm_90"), h200)
    amd_bounds = estimate(counts, cost, "float32", MI300X, h200)
    assert reference.low_us == pytest.approx(160.3, rel=1e-3)
    assert h200_bounds.low_us == pytest.approx(537_000_000 / h200.memory_bytes_per_s * 1e6)
    assert h200_bounds.low_us < 130
    assert h200_bounds.basis.startswith(f"H200 SXM vendor peaks: {h200.memory_bytes_per_s / 1e12:.4g} TB/s")
    assert (h200_bounds.product, h200_bounds.of_device) == ("H200 SXM", True)
    assert (reference.product, reference.of_device) == ("H100 SXM5", False)
    assert amd_bounds == estimate(counts, cost, "float32", MI300X), (
        "an H200 has no figures for a different target"
    )


def test_target_without_peak_gets_no_estimate() -> None:
    """An A100 has no matrix units for float8."""
    cost = Cost(flops=1, minimal_bytes=1, dot_dtype="float8_e4m3fn")
    assert estimate(traffic("c", read=1, write=1), cost, "float8_e4m3fn", target("sm_80")) is None
    assert estimate(traffic("c", read=1, write=1), cost, "float8_e4m3fn", target("sm_90")) is not None
