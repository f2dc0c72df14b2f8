"""Configuration files of vLLM, SGLang and aiter: rows that were not tuned stay, and a loader finds what is written."""

from __future__ import annotations

import json

import pytest

from engine.errors import UsageProblem
from engine.tuning.config_files import ConfigFile, TunedRow, config_file, rows_by_size, with_rows
from engine.tuning.launch_config import launch_config
from harness import target
from harness.wire.results.provenance import Provenance
from tests.support.sessions.tuned_sessions import kernel

GFX942 = target("gfx942")
START = launch_config(kernel())
VLLM = "vllm/fused_moe/configs/E=8,N=512,device_name=AMD_Instinct_MI300X,dtype=fp8_w8a8,block_shape=[128,128].json"
BLOCK_FP8 = (
    "utils/configs/N=512,K=4096,device_name=AMD_Instinct_MI300X,dtype=fp8_w8a8,block_shape=[128,128].json"
)
SGLANG = "configs/triton_3_6_0/E=8,N=512,device_name=AMD_Instinct_MI300X,dtype=fp8_w8a8,block_shape=[128, 128].json"
AITER = "configs/gemm/gfx942-GEMM-A16W16-N=512-K=4096.json"
MI300X = Provenance(product="MI300X", triton="3.6.0+rocm7.0")


def row(m: int, *, is_faster: bool = True, **changes: int) -> TunedRow:
    return TunedRow(f"M{m}", {"M": m, "N": 512, "K": 4096}, launch_config(kernel(**changes)), is_faster)


def written(
    path: str, text: str | None, *rows: TunedRow, default: str | None = None
) -> tuple[dict[str, dict[str, object]], list[int]]:
    file = config_file(path)
    new, sizes = with_rows(file, text, rows_by_size(file, rows), start=START, target=GFX942, default=default)
    return json.loads(new), sizes


def test_existing_rows_stay_and_new_rows_have_their_keys() -> None:
    old = {
        "1": {"BLOCK_SIZE_M": 16, "kpack": 2},
        "64": {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 1, "num_warps": 1, "waves_per_eu": 3, "kpack": 2},
        "256": {"BLOCK_SIZE_M": 99},
    }
    rows, sizes = written(
        BLOCK_FP8,
        json.dumps(old),
        row(64, BLOCK_SIZE_M=32),
        row(128, BLOCK_SIZE_M=128),
        row(256, is_faster=False),
    )
    assert sizes == [64, 128]
    assert list(rows) == ["1", "64", "128", "256"]
    assert (rows["1"], rows["256"]) == (old["1"], old["256"])
    # The options that the launch does not set have Triton's defaults, with which the kernel was timed.
    common = {"BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "num_warps": 4}
    assert rows["64"] == {"BLOCK_SIZE_M": 32, "waves_per_eu": 0, "kpack": 1, **common}


def test_new_file_has_a_row_for_every_case_also_where_the_start_is_best() -> None:
    rows, sizes = written(VLLM, None, row(16, is_faster=False), row(64, num_warps=8))
    assert sizes == [16, 64]
    assert rows["16"] == {**START, "num_stages": 2}
    assert all(name.isdigit() for name in rows), "the loader turns each key into a number"


def test_aiter_gets_a_bound_and_keeps_the_rows_of_its_default_file() -> None:
    default = json.dumps({"M_LEQ_128": dict(START), "M_GEQ_4096": {}, "any": {**START, "kpack": 2}})
    rows, _ = written(AITER, None, row(64, BLOCK_SIZE_M=32), default=default)
    assert list(rows) == ["M_LEQ_64", "M_LEQ_128", "M_GEQ_4096", "any"]
    assert (rows["M_LEQ_128"], rows["any"]["kpack"]) == (START, 2)
    assert rows["M_LEQ_64"]["BLOCK_SIZE_M"] == 32
    with pytest.raises(UsageProblem, match="aiter looks for no row M_LEQ_48"):
        written(AITER, None, row(48), default=default)
    with pytest.raises(UsageProblem, match=r"without configs/gemm/gfx942-GEMM-A16W16\.json"):
        written(AITER, None, row(64))
    needs_more = json.dumps({"any": {**START, "cache_modifier": ".cg"}})
    with pytest.raises(UsageProblem, match="needs cache_modifier"):
        written(AITER, None, row(64), default=needs_more)


def test_change_that_the_file_cannot_hold_is_refused() -> None:
    tuned = TunedRow("M64", {"M": 64}, {**START, "schedule_hint": "attention"}, is_faster=True)
    with pytest.raises(UsageProblem, match="case M64 is tuned by schedule_hint, for which"):
        written(VLLM, None, tuned)


def test_cases_must_fit_the_file() -> None:
    file = config_file(BLOCK_FP8)
    elsewhere = TunedRow("other", {"M": 64, "N": 1024, "K": 4096}, START, is_faster=True)
    assert list(rows_by_size(file, [elsewhere, row(64)])) == [64]
    with pytest.raises(UsageProblem, match="no case of the task has the sizes of"):
        rows_by_size(file, [elsewhere])
    with pytest.raises(UsageProblem, match="the cases M64 and M64 both have M=64"):
        rows_by_size(file, [row(64), row(64)])


@pytest.mark.parametrize(
    ("path", "timed", "complaint"),
    [
        (VLLM, MI300X, ""),
        (SGLANG, MI300X, ""),
        (AITER, MI300X, ""),
        (
            VLLM,
            Provenance(product="MI325X"),
            "is for AMD Instinct MI300X, but the kernel was timed on MI325X",
        ),
        (SGLANG, Provenance(product="MI300X", triton="3.6.10"), "is for Triton 3.6.0"),
        (AITER.replace("gfx942", "gfx950"), MI300X, "is for gfx950"),
    ],
)
def test_times_of_other_hardware_or_software_are_refused(
    path: str, timed: Provenance, complaint: str
) -> None:
    file: ConfigFile = config_file(path)
    if not complaint:
        return file.check(timed, GFX942)
    with pytest.raises(UsageProblem, match=complaint):
        file.check(timed, GFX942)
    return None


@pytest.mark.parametrize(
    "path",
    [
        SGLANG.replace("128, 128", "128,128"),  # SGLang's name has a space
        VLLM.replace("128,128", "128, 128"),  # vLLM's has none
        "configs/gemm/gfx942-GEMM-A16W16.json",  # rows of every N and K
        "ops/add.py",
    ],
)
def test_file_that_no_loader_looks_for_is_refused(path: str) -> None:
    with pytest.raises(UsageProblem, match="is no configuration file; the names of such files are as"):
        config_file(path)
