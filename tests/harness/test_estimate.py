"""The roofline: two bounds in the right order, each on the right side."""

from __future__ import annotations

import pytest

from harness.hardware.product_tables import find_product
from harness.hardware.targets import target
from harness.stages.estimates.roofline import estimate
from harness.wire.evaluation import SampledTraffic, Traffic
from suites.task import Cost

MI300X = target("gfx942")


def traffic(*, read: int, write: int, dot_flops: int = 0, minimal: int = 0, flops: int = 0) -> Traffic:
    return Traffic(
        case="c",
        sizes={"n": 1024},
        requested_read_bytes=read,
        requested_write_bytes=write,
        unique_read_bytes=read,
        unique_write_bytes=write,
        minimal_bytes=minimal,
        dot_flops=dot_flops,
        flops=flops,
        launches=1,
        programs=1,
    )


def test_a_streaming_kernel_is_bound_by_memory_on_both_sides() -> None:
    cost = Cost(flops=1 << 24, minimal_bytes=3 * (1 << 26))
    made = estimate(traffic(read=2 << 26, write=1 << 26), cost, "float32", MI300X)
    assert made is not None
    assert (made.bound_low, made.bound_high) == ("memory", "memory")
    assert made.low_us == made.high_us == pytest.approx(3 * (1 << 26) / 5.3e12 * 1e6)


def test_a_large_matmul_lies_between_compute_and_uncached_memory() -> None:
    """4096 cubed with 128 x 128 tiles asks for 2.1 GB where 0.1 GB is needed (design note on rooflines)."""
    size, flops = 4096, 2 * 4096**3
    cost = Cost(flops=flops, minimal_bytes=3 * size * size * 2, dot_dtype="float16")
    made = estimate(
        traffic(read=2 * 32 * size * size * 2, write=size * size * 2, dot_flops=flops),
        cost,
        "float16",
        MI300X,
    )
    assert made is not None
    assert made.bound_low == "compute"
    assert made.low_us == pytest.approx(flops / 1307.4e12 * 1e6)
    assert made.bound_high == "memory"
    assert made.high_us == pytest.approx(411, rel=0.02)


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


def test_what_a_dies_cache_shares_lies_between_the_bounds() -> None:
    """The large matmul again: 0.57 GB distinct on the dies of an MI300X, and then compute is the limit."""
    flops = 2 * 4096**3
    cost = Cost(flops=flops, minimal_bytes=100_663_296, dot_dtype="float16")
    counts = sampled(
        requested=2_181_038_080, distinct=570_425_344, minimal=cost.minimal_bytes, dot_flops=flops
    )
    made = estimate(counts, cost, "float16", MI300X)
    assert made is not None
    assert made.shared_us is not None
    assert made.low_us < made.shared_us < made.high_us
    assert made.shared_us == pytest.approx(570_425_344 / 5.3e12 * 1e6)
    assert made.high_us == pytest.approx(411, rel=0.02)
    assert made.basis.endswith("at n=4096; 20 of 1024 programs sampled as on gfx942")


def test_on_a_device_that_is_known_the_peaks_are_its_own() -> None:
    """What an H200 took 130 us for needs 160 at the bandwidth of an H100, which shares its target."""
    cost = Cost(flops=1 << 24, minimal_bytes=537_000_000)
    counts = traffic(read=268_500_000, write=268_500_000)
    h200 = find_product("H200 SXM")
    reference = estimate(counts, cost, "float32", target("sm_90"))
    own = estimate(counts, cost, "float32", target("sm_90"), h200)
    other = estimate(counts, cost, "float32", MI300X, h200)
    assert reference is not None
    assert own is not None
    assert reference.low_us == pytest.approx(160.3, rel=1e-3)
    assert own.low_us == pytest.approx(537_000_000 / h200.memory_bytes_per_s * 1e6)
    assert own.low_us < 130
    assert own.basis.startswith(f"H200 SXM vendor peaks: {h200.memory_bytes_per_s / 1e12:.4g} TB/s")
    assert (own.product, own.of_device) == ("H200 SXM", True)
    assert (reference.product, reference.of_device) == ("H100 SXM5", False)
    assert other == estimate(counts, cost, "float32", MI300X), "an H200 says nothing of another target"


def test_no_peak_no_estimate() -> None:
    """An A100 has no matrix units for float8."""
    cost = Cost(flops=1, minimal_bytes=1, dot_dtype="float8_e4m3fn")
    assert estimate(traffic(read=1, write=1), cost, "float8_e4m3fn", target("sm_80")) is None
    assert estimate(traffic(read=1, write=1), cost, "float8_e4m3fn", target("sm_90")) is not None
