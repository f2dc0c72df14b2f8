"""`wavedeck capture --server`: kernels by GPU time from three kinds of trace, and who made each."""

from __future__ import annotations

import gzip
import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from harness.profiling.kernel_traces import TracedKernel, read_kernel_trace
from tests.support.command_line import Shell, one_line
from tests.support.judge.rocpd import write_rocpd
from tui.diagnostics import ExitCode

GEMM, ATTENTION = "Cijk_Ailk_Bljk_BBS_BH_MT128x32x16", "_fwd_grouped_kernel_stage1"
EVENTS = [
    {"ph": "M", "name": "process_name", "args": {"name": "python"}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "dur": 900, "args": {"External id": 7}},
    *[{"ph": "X", "cat": "kernel", "name": GEMM, "dur": 300.0, "args": {"External id": 7}}] * 2,
    {"ph": "X", "cat": "kernel", "name": ATTENTION, "dur": 200.0, "args": {"stream": 7}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::add"},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "dur": 5000.0, "args": {"External id": 7}},
]


def torch_trace(file: Path) -> Path:
    with gzip.open(file, "wt") as opened:
        json.dump({"schemaVersion": 1, "traceEvents": EVENTS}, opened)
    return file


def nsys_trace(file: Path) -> Path:
    """Write the two tables of an exported database that name and time kernels."""
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        database.execute('CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, "end" INT, demangledName INT)')
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", [(1, GEMM), (2, ATTENTION)])
        rows = [(0, 300_000, 1), (500_000, 800_000, 1), (900_000, 1_100_000, 2)]
        database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?)", rows)
    return file


def test_three_kinds_of_trace_give_the_same_kernels(tmp_path: Path) -> None:
    launches = [(GEMM, 300_000, {}), (ATTENTION, 200_000, {}), (GEMM, 300_000, {})]
    traces = {
        "torch.ops.aten.mm": torch_trace(tmp_path / "rank0.pt.trace.json.gz"),
        "": write_rocpd(tmp_path / "1_results.db", launches),
    }
    for operator, trace in traces.items():
        kernels = read_kernel_trace(trace)
        assert [(kernel.name, kernel.launches, kernel.us, kernel.operator) for kernel in kernels] == [
            (GEMM, 2, 600.0, operator),
            (ATTENTION, 1, 200.0, ""),
        ]
    assert read_kernel_trace(nsys_trace(tmp_path / "trace.sqlite")) == read_kernel_trace(
        tmp_path / "1_results.db"
    )
    assert read_kernel_trace(tmp_path)[0].launches == 6, "a folder has a trace for each process"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (GEMM, "hipBLASLt"),
        ("Custom_Cijk_Alik_Bljk_F8BS_BH_Bias_HAS_SAV_UserArgs_MT256x256x128", "hipBLASLt"),
        ("nvjet_tst_128x64_64x8_1x2_h_bz_TNT", "cuBLAS"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", "cuBLAS"),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasLt::x)", "cuBLAS"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "RCCL/NCCL"),
        ("void ck_tile::kentry<256, 1, ck_tile::FmhaFwdKernel<x>>(ck_tile::y)", "CK"),
        ("_ZN2ck18kernel_gemm_xdl_cshuffleE", "CK"),
        ("_ZN5aiter31fmha_fwd_hd128_bf16_causal_rtneE", "assembly"),
        ("aiter::fmoe_bf16_blockscaleFp8_g1u1_vs_silu_1tg_32x256", "assembly"),
        ("void aiter::act_and_mul_kernel<__hip_bfloat16>(__hip_bfloat16*, int)", "other"),
        (ATTENTION, "Triton"),
        ("triton_poi_fused_add_mul_0", "Triton"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::F>(int, F)", "other"),
        ("_ZN4vllm15rms_norm_kernelIN3c108BFloat16EEEvPT_i", "other"),
        ("__amd_rocclr_copyBuffer", "other"),
    ],
)
def test_name_of_a_kernel_says_who_made_it(name: str, kind: str) -> None:
    assert TracedKernel(name, "", 1, 1.0, 0.5).kind == kind


def test_page_says_what_amdahl_allows_and_names_the_operator(shell: Shell, tmp_path: Path) -> None:
    done = shell("capture", "--server", str(torch_trace(tmp_path / "trace.json.gz")))
    assert done.code == ExitCode.DONE
    rows = [line.split() for line in done.out.splitlines()[1:3]]
    assert rows[0] == ["75", "%", "4.00x", "2", "300.0", "hipBLASLt", GEMM, "torch.ops.aten.mm"]
    assert rows[1][:3] == ["25", "%", "1.33x"]


def test_command_runs_under_the_profiler_and_keeps_its_exit_code(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = write_rocpd(tmp_path / "made.db", [(ATTENTION, 200_000, {})])
    profiler = tmp_path / "bin" / "rocprofv3"
    profiler.parent.mkdir()
    profiler.write_text(
        '#!/bin/sh\necho "$@" >&2\nwhile [ "$1" != -- ]; do\n'
        f'  [ "$1" = --output-directory ] && cp {trace} "$2"\n  shift\ndone\nshift\nexec "$@"\n'
    )
    profiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{profiler.parent}{os.pathsep}{os.environ['PATH']}")
    done = shell("capture", "--server", "out", "--", "sh", "-c", "exit 4")
    assert (done.code, ATTENTION in done.out) == (4, True)
    again = shell("capture", "--server", "out", "--", "true")
    assert (again.code, "out cannot be made: File exists" in again.err) == (ExitCode.USAGE, True)


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
@pytest.mark.parametrize("option", [(), ("--lookups",)])
def test_file_without_kernels_is_refused_in_one_line(
    shell: Shell, tmp_path: Path, name: str, option: tuple[str, ...]
) -> None:
    lists = ('{"traceEvents": []}', '{"traceEvents": [1]}', '{"traceEvents": 3}', '{"traceEvents": [')
    for text in (*lists, "", "{}", "\x1f\x8b"):
        (tmp_path / name).write_text(text)
        done = shell(
            "capture", *option, "--server", str(tmp_path / name), *(("--", "true") if option else ())
        )
        assert done.code == ExitCode.USAGE
        assert re.search(r"holds no kernels|cannot be read", one_line(done))
