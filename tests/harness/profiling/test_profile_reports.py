"""Reports of profilers: ncu's and Proton's from an H100, rocprofv3's written after its documented schema."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from harness.profiling.bottleneck import profile_words, roofline_words
from harness.profiling.clock_comparison import by_length
from harness.profiling.hatchet import read_hatchet
from harness.profiling.launches import ProfileFailed, list_launches, merge_launches, own_launches
from harness.profiling.ncu_report import METRICS, read_ncu
from harness.profiling.rocpd import PASSES, read_durations, read_rocpd
from harness.profiling.tools import NCU, PROTON, Tool, explain_failure, find_tool, refusal
from harness.wire.messages.profiled import MARK, SCOPE
from harness.wire.results.kernel_counts import KernelProfile
from tests.support.judge import profiles
from tests.support.judge.rocpd import write_rocpd


def test_ncu_report_of_an_h100_is_read_with_its_units() -> None:
    softmax, matmul = read_ncu(profiles.NCU)
    assert (softmax.name, softmax.us, softmax.read_bytes, softmax.written_bytes) == (
        "softmax_kernel", 20.128, 33_564_160, 13_405_696,
    )  # fmt: skip
    assert (softmax.l2_hit, softmax.memory, softmax.registers) == pytest.approx((0.5141, 0.6983, 32))
    assert softmax.conflicts == pytest.approx(11_035 / 850_186)
    assert (matmul.matrix, matmul.vector, matmul.occupancy) == pytest.approx((0.6747, 0.0819, 0.2388))
    assert next(iter(softmax.stalls.items())) == ("a load from L2 or memory", pytest.approx(0.469, abs=1e-3))
    assert next(iter(matmul.stalls)) == "a barrier"
    assert sum(softmax.stalls.values()) < 1, "a warp issues in the rest of its time"


def test_metric_that_a_gpu_lacks_is_unknown_and_not_zero() -> None:
    softmax, _ = read_ncu(profiles.NCU.replace('"69.83"', '"(!) n/a"'))
    assert softmax.memory is None
    assert all(metric in profiles.NCU for metric in METRICS)


def test_launches_of_one_kernel_are_added_and_their_shares_weighted_by_time() -> None:
    long = KernelProfile(name="k", us=30.0, read_bytes=100.0, memory=0.8, stalls={"a": 0.4})
    short = KernelProfile(name="k", us=10.0, read_bytes=20.0, memory=0.4, matrix=0.1)
    launches = own_launches([long, KernelProfile(name=MARK), short])
    assert [(launch.kernel, launch.us) for launch in list_launches(launches)] == [("k", 30.0), ("k", 10.0)]
    [merged] = merge_launches(launches)
    assert list_launches([merged]) == (), "the time is of both together"
    assert (merged.launches, merged.us, merged.read_bytes) == (2, 40.0, 120.0)
    assert merged.memory == pytest.approx(0.7)
    assert merged.matrix is None, "one launch lacks it"
    assert merged.stalls == {"a": pytest.approx(0.3)}


COUNTERS = {
    "FETCH_SIZE": 1024.0, "VALUBusy": 20.0, "MfmaUtil": 75.0, "WRITE_SIZE": 512.0, "TCC_HIT_sum": 30.0,
    "TCC_MISS_sum": 10.0, "OccupancyPercent": 40.0, "LDSBankConflict": 3.0, "SQ_WAIT_ANY": 60.0, "SQ_WAVE_CYCLES": 100.0,
}  # fmt: skip


def amd_passes(folder: Path, *, last: str = "second") -> list[Path]:
    """Write a database for each pass: a warm call, then the call between two marks."""
    files = []
    for number, counters in enumerate(PASSES):
        counted = {name: COUNTERS[name] for name in counters}
        called = [("first", 5_000, counted), (last if number == 2 else "second", 1_000, {})]
        launches = [("first", 9_000, {}), (MARK, 10, {}), *called, (MARK, 10, {})]
        files.append(write_rocpd(folder / f"pass{number}.db", [(MARK, 10, {}), *launches]))
    return files


def test_rocpd_gives_the_launches_between_the_marks_with_the_counters_of_all_passes(tmp_path: Path) -> None:
    first, second = read_rocpd(amd_passes(tmp_path))
    assert first == KernelProfile(
        name="first", us=5.0, read_bytes=1 << 20, written_bytes=1 << 19, l2_hit=0.75, occupancy=0.4, matrix=0.75,
        vector=0.2, stalls={"any cause": 0.6}, conflicts=0.03, registers=80,
    )  # fmt: skip
    assert (second.name, second.us, second.read_bytes) == ("second", 1.0, None)


def test_rocpd_gives_the_lengths_that_a_trial_launched_after_its_calibration(tmp_path: Path) -> None:
    """Unverified on AMD: the database is written after the documented schema."""
    spins = [400_000, 400_000, *(ns for ns in (5_000, 50_000) for _ in range(21))]
    file = write_rocpd(tmp_path / "trial.db", [("add", 900, {}), *(("spin_kernel", ns, {}) for ns in spins)])
    assert by_length(read_durations(file, "spin_kernel"), 2) == (5.0, 50.0)
    with pytest.raises(ProfileFailed, match="shows 0 of the kernels"):
        by_length(read_durations(file, "other"), 2)


def test_pass_with_other_launches_is_left_out(tmp_path: Path) -> None:
    first, _ = read_rocpd(amd_passes(tmp_path, last="another_config"))
    assert (first.l2_hit, first.conflicts) == (0.75, None)
    (tmp_path / "pass9.db").write_text("no database, but a text that is long enough")
    with pytest.raises(ProfileFailed, match=r"pass9\.db is no rocpd database"):
        read_rocpd([tmp_path / "pass9.db"])


def test_proton_gives_times_alone(tmp_path: Path) -> None:
    root, device = json.loads((profiles.REPORTS / "proton_h100.hatchet").read_text())
    scope = {"frame": {"name": SCOPE, "type": "function"}, "metrics": {}, "children": root["children"]}
    warm = {"frame": {"name": "warm", "type": "function"}, "metrics": {"time (ns)": 7}, "children": []}
    file = tmp_path / "profile.hatchet"
    file.write_text(json.dumps([{**root, "children": [warm, scope]}, device]))
    assert read_hatchet(file) == [
        KernelProfile(name="matmul_kernel", us=28.704),
        KernelProfile(name="softmax_kernel", us=20.192),
    ]
    file.write_text("[]")
    with pytest.raises(ProfileFailed, match="no tree"):
        read_hatchet(file)


def test_limit_is_named_with_its_figures_and_compared_with_the_roofline() -> None:
    profile = profiles.softmax_profile()
    words = profile_words(profile)
    assert "memory limits: memory 70 %, matrix units 2 %, vector units 31 %" in words
    assert (
        "moves 46.97 MB between memory and the GPU, 0.70 times the 67.11 MB of the task's cost model" in words
    )
    assert roofline_words(profile).endswith("took 20.13 us under the tool")
    _, matmul = read_ncu(profiles.NCU)
    busy = msgspec.structs.replace(profile, kernels=(matmul,))
    assert "the roofline names memory" in roofline_words(busy)
    assert "the counters name matrix units, because" in roofline_words(busy)
    idle = msgspec.structs.replace(matmul, matrix=0.3)
    waits = profile_words(msgspec.structs.replace(profile, kernels=(idle,)))
    assert "no unit is busy for 60 % or more" in waits
    assert "a resident warp waits for a barrier in 32 % of its time" in waits


def test_words_begin_with_the_limit_of_the_longest_kernel() -> None:
    profile = profiles.softmax_profile()
    (kernel,) = profile.kernels
    assert kernel.us is not None
    short = msgspec.structs.replace(kernel, name="combine", us=kernel.us / 3, memory=0.1, vector=0.1)
    words = profile_words(msgspec.structs.replace(profile, kernels=(short, kernel)))
    assert f"in case {profile.case}: `{kernel.name}` (20.13 us, 75 % of the call): memory limits: " in words
    assert "`combine` (6.709 us, 25 % of the call): latency limits: " in words
    assert words.count("occupancy") == 2, "once a kernel"
    assert "bank conflicts" not in words
    assert "registers" not in words, "the binaries have them"


def test_tool_that_may_not_count_says_what_to_do(tmp_path: Path) -> None:
    tool = Tool(NCU, "2025.3", "/opt/ncu")
    denied = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"
    assert "NVreg_RestrictProfilingToAdminUsers=0" in refusal(tool, denied)
    assert refusal(tool, "==PROF== x\n==ERROR== no kernel") == "ncu 2025.3 counted nothing: no kernel"
    with pytest.raises(ProfileFailed, match="no table"):
        read_ncu(denied)
    old = tmp_path / "ncu"
    old.write_text("#!/bin/sh\necho 'Version 2021.1.0.0 (build 1)'\n")
    old.chmod(0o755)
    with pytest.raises(ProfileFailed, match=r"older than 2022\.3; install"):
        find_tool("cuda", str(tmp_path))


def test_names_of_foreign_code_are_short_and_visible_and_their_number_is_bounded() -> None:
    [kernel] = own_launches([KernelProfile(name="k\n" + "x" * 1000)])
    assert (len(kernel.name), kernel.name[:3]) == (200, "k?x")
    with pytest.raises(ProfileFailed, match="501 different kernels"):
        merge_launches([KernelProfile(name=f"k{number}") for number in range(501)])


def test_file_of_another_form_is_one_line(tmp_path: Path) -> None:
    forged = tmp_path / "profile.hatchet"
    node = {"frame": {"name": "k"}, "metrics": {"time (ns)": 1, "count": "many"}, "children": []}
    forged.write_text(json.dumps([{"frame": {"name": SCOPE}, "metrics": {}, "children": [node]}]))
    with pytest.raises(ProfileFailed, match="unknown form"):
        Tool(PROTON, "3.6").read([forged])


def test_full_gpu_is_not_said_to_be_the_sources_fault() -> None:
    tool = Tool(NCU, "2025.3", "ncu")
    assert explain_failure(tool, "TypeError: no x") == "the source fails under ncu: TypeError: no x"
    full = explain_failure(tool, "OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB.")
    assert "the source fails" not in full
    assert "other sessions" in full
