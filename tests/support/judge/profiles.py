"""A profile as the session keeps it: what Nsight Compute counted on an H100 for a softmax of 4096 rows and 4096 columns."""

from __future__ import annotations

from pathlib import Path

from harness.profiling.launches import merge_launches
from harness.profiling.ncu_report import read_ncu
from harness.wire.results.kernel_counts import Profile, Roofline

REPORTS = Path(__file__).parents[2] / "harness" / "profiling" / "profiles"
NCU = (REPORTS / "ncu_h100.csv").read_text(encoding="utf-8")


def softmax_profile(*, case: str = "square", device: str = "0") -> Profile:
    """Return the profile of one call."""
    softmax, _ = merge_launches(read_ncu(NCU))
    return Profile(
        tool="ncu 2025.3.1.0",
        how="caches emptied before each launch, clocks as they are",
        case=case,
        device=device,
        product="H100 SXM",
        kernels=(softmax,),
        roofline=Roofline(bytes=67_108_864, flops=83_886_080, memory_us=20.03, compute_us=1.25),
        opened=("user", "capabilities"),
    )
