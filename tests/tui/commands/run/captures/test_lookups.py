"""`wavedeck capture --lookups`: all planted misses of three projects are found and none else, and programs notice nothing."""

from __future__ import annotations

import csv
import gzip
import re
import signal
import sys
import textwrap
import tomllib
from pathlib import Path

import msgspec
import pytest

from engine.tuning.config_files import config_file
from suites.captures.capture import LOOKUPS, read_capture
from suites.captures.lookups import lookups_of
from suites.captures.program import OpenCapture
from tests.support.command_line import Done, Shell
from tests.support.draws import drawn
from tests.tui.commands.run.captures.serving_packages import write_packages
from tests.tui.commands.run.captures.test_captured_programs import plain_environment, run_program

SERVER = """
import triton
from vllm.model_executor.layers.fused_moe import fused_moe as vllm_moe
from vllm.model_executor.layers.quantization.utils import fp8_utils
from sglang.srt.layers.moe.fused_moe_triton import fused_moe_triton_config as sglang_moe
from sglang.srt.layers.quantization import fp8_kernel

for M in (1, 3, 4, 3000):
    for _ in range(50):
        vllm_moe.try_get_optimal_moe_config((8, 28672, 4096), (8, 4096, 14336), 2, None, M)
        vllm_moe.try_get_optimal_moe_config((64, 1024, 2048), (64, 2048, 512), 6, "fp8_w8a8", M, [128, 128])
        fp8_utils.w8a8_matmul(M, 7168, 2048)
        fp8_utils.w8a8_matmul(M, 1536, 7168)
        sglang_moe.try_get_optimal_moe_config((8, 4096, 4096), None, M)
        sglang_moe.try_get_optimal_moe_config((8, 4096, 4096), None, M, down_moe=True)
        fp8_kernel.w8a8_matmul(M, 1536, 7168)
"""
AITER_SERVER = """
from aiter.fused_moe import ActivationType, QuantType, get_2stage_cfgs
from aiter.ops.gemm_op_a8w8 import gemm_a8w8_blockscale
from aiter.ops.triton.utils.gemm_config_utils import get_gemm_config
from aiter.tuned_gemm import get_GEMM_A16W16_config

for m in (1, 100, 128):
    gemm_a8w8_blockscale(m, 1536, 7168)
    get_gemm_config("GEMM-A16W16", m, 256, 4096)
    get_gemm_config("GEMM-A16W16", m, 512, 4096)
get_GEMM_A16W16_config(64, 256, 5120, False, "torch.bfloat16", "torch.bfloat16")
get_GEMM_A16W16_config(5, 2560, 5120, True, "torch.bfloat16", "torch.float32")
for token in (128, 16):
    get_2stage_cfgs(token, 7168, 256, 256, 9, "torch.bfloat16", "torch.float8_e4m3fnuz", "torch.float8_e4m3fnuz",
                    QuantType.per_Token, True, ActivationType.Silu, False, 0, 0, is_ep=True)
"""
VLLM = "vllm/model_executor/layers"
SGLANG = "python/sglang/srt/layers"
MISSED = {
    f"{VLLM}/fused_moe/configs/E=64,N=512,device_name=AMD_Instinct_MI300X,dtype=fp8_w8a8,block_shape=[128,128].json": (1, 4, 4096),
    f"{VLLM}/quantization/utils/configs/"
    "N=1536,K=7168,device_name=AMD_Instinct_MI300X,dtype=fp8_w8a8,block_shape=[128,128].json": (1, 4, 4096),
    f"{SGLANG}/moe/fused_moe_triton/configs/triton_3_6_0/E=8,N=4096,device_name=NVIDIA_H200_down.json": (1, 4, 4096),
    f"{SGLANG}/quantization/configs/"
    "N=1536,K=7168,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128, 128].json": (1, 4, 4096),
}  # fmt: skip
AITER_MISSED = {
    "aiter/configs/a8w8_blockscale_tuned_gemm.csv": (1,),
    "aiter/ops/triton/configs/gemm/gfx942-GEMM-A16W16-N=512-K=4096.json": (1, 128),
    "aiter/configs/bf16_tuned_gemm.csv": (8,),
    "aiter/configs/tuned_fmoe.csv": (16,),
}


class Server:
    """A program that uses the packages; its recording."""

    def __init__(self, shell: Shell, folder: Path) -> None:
        self.shell, self.folder, self.out = shell, folder, folder / "lookups"
        write_packages(folder)

    def record(self, script: str, *options: str) -> Done:
        """Record a script."""
        (self.folder / "serve.py").write_text(textwrap.dedent(script), encoding="utf-8")
        command = (sys.executable, str(self.folder / "serve.py"))
        return self.shell("capture", "--lookups", "-o", str(self.out), *options, "--", *command)

    def trace(self, **microseconds: float) -> Path:
        """Write a trace of torch's profiler, compressed as vLLM writes it, with the times of kernels."""
        kernels = [
            {"cat": "kernel", "name": name, "dur": time, "ph": "X"} for name, time in microseconds.items()
        ]
        events = [
            {"cat": "cpu_op", "name": "aten::mm", "dur": 9e9},
            {"ph": "M", "name": "process_name"},
            *kernels,
        ]
        path = self.folder / "trace.json.gz"
        path.write_bytes(gzip.compress(msgspec.json.encode({"schemaVersion": 1, "traceEvents": events})))
        return path

    @property
    def missed(self) -> dict[str, tuple[int, ...]]:
        """Sizes M by the file that the loader did not find, or in which it found no row."""
        return {row.path: row.rows for row in lookups_of(read_capture(self.out), {}) if not row.is_found}


@pytest.fixture
def server(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return Server(shell, tmp_path)


def test_all_planted_misses_are_found_and_none_else(server: Server) -> None:
    done = server.record(SERVER + AITER_SERVER)
    assert done.code == 0, done.err
    assert server.missed == MISSED | AITER_MISSED
    assert "to tune: 8 of 8 missing rows" in done.err
    hits = [row for row in lookups_of(read_capture(server.out), {}) if row.is_found]
    assert sorted(row.function for row in hits) == [
        "get_2stage_cfgs", "get_CKGEMM_config", "get_GEMM_A16W16_config", "get_gemm_config",
        "get_moe_configs", "get_moe_configs", "get_w8a8_block_fp8_configs",
    ]  # fmt: skip
    assert "aiter get_2stage_cfgs" in done.err
    assert "gfx942 304" in done.err


def test_files_of_the_plan_are_those_that_apply_writes(server: Server) -> None:
    server.record(SERVER + AITER_SERVER)
    for path in server.missed:
        if path.endswith(".json"):
            file = config_file(path)
            assert file.sizes == {name: int(size) for name, size in re.findall(r"\b([ENK])=(\d+)", path)}
            assert file.home.lower() in path


def test_file_of_another_triton_is_no_hit(server: Server) -> None:
    script = """
    from sglang.srt.layers.moe.fused_moe_triton import fused_moe_triton_config as moe
    for M in (1, 64):
        moe.try_get_optimal_moe_config((16, 4096, 1024), None, M)
        moe.try_get_optimal_moe_config((8, 4096, 4096), None, M)
        moe.try_get_optimal_moe_config((8, 4096, 4096), None, M, down_moe=True)
    """
    done = server.record(script)
    folder = f"{SGLANG}/moe/fused_moe_triton/configs/triton_3_6_0"
    assert server.missed == {
        f"{folder}/E=16,N=1024,device_name=NVIDIA_H200.json": (1, 64),
        f"{folder}/E=8,N=4096,device_name=NVIDIA_H200_down.json": (1, 64),
    }
    assert done.err.count("other file") == 2


def test_state_space_layers_are_listed_and_left_to_the_tuner_of_vllm(server: Server) -> None:
    script = """
    from vllm.model_executor.layers.mamba.ops.mamba_ssm import get_ssm_configs
    get_ssm_configs(64, 128, "float32"), get_ssm_configs(80, 16, "float16")
    """
    done = server.record(script)
    rows = lookups_of(read_capture(server.out), {})
    assert [(row.shape["headdim"], row.result, row.device) for row in rows] == [
        (80, "default", "AMD_Instinct_MI300X"),
        (64, "found", "AMD_Instinct_MI300X"),
    ]
    assert "no plan for get_ssm_configs" in done.err


@pytest.mark.parametrize(
    ("name", "words"),
    [("AMD Radeon 780M / gfx1103", "AMD_Radeon_780M_gfx1103"), ("NVIDIA H200 NVL", "NVIDIA_H200")],
)
def test_file_of_a_device_is_the_one_that_vllm_opens(server: Server, name: str, words: str) -> None:
    server.record(f"""
    from vllm.model_executor.layers.fused_moe import fused_moe as moe
    moe.current_platform.get_device_name = lambda: {name!r}
    moe.try_get_optimal_moe_config((4, 28672, 4096), (4, 4096, 14336), 2, None, 1)
    """)
    assert [path.partition("device_name=")[2] for path in server.missed] == [f"{words}.json"]


def test_shapes_of_aiter_go_to_its_own_tuner(server: Server) -> None:
    done = server.record(AITER_SERVER)
    table, command = re.findall(r"cat > missed_fmoe.csv <<'END'\n(.*?)END\n(.*)", done.err, re.DOTALL)[0]
    assert list(csv.DictReader(table.splitlines())) == [
        {
            "token": "16", "model_dim": "7168", "inter_dim": "256", "expert": "256", "topk": "8",
            "act_type": "ActivationType.Silu", "dtype": "torch.bfloat16", "q_dtype_a": "torch.float8_e4m3fnuz",
            "q_dtype_w": "torch.float8_e4m3fnuz", "q_type": "QuantType.per_Token", "use_g1u1": "1", "doweight_stage1": "0",
        }
    ]  # fmt: skip
    tuner = "python3 csrc/ck_gemm_moe_2stages_codegen/gemm_moe_tune.py"
    assert command.startswith(f"{tuner} -i missed_fmoe.csv -o aiter/configs/tuned_fmoe.csv\n")
    assert (
        "M,N,K\n1,1536,7168\nEND\npython3 csrc/ck_gemm_a8w8_blockscale/gemm_a8w8_blockscale_tune.py -i"
        in done.err
    )
    assert "8,2560,5120,True,torch.bfloat16,torch.float32,False,False\n" in done.err


def test_table_of_one_model_belongs_to_its_family(server: Server) -> None:
    script = """
    import shutil
    from aiter.ops import gemm_op_a8w8 as g
    name = "a8w8_blockscale_bpreshuffle_tuned_gemm_dsv3.csv"
    shutil.copy("FOLDER/aiter/configs/a8w8_blockscale_tuned_gemm.csv", "FOLDER/" + name)
    g.get_CKGEMM_config(20000, 8192, 512, "FOLDER/" + name)
    """
    done = server.record(script.replace("FOLDER", str(server.folder)))
    assert list(server.missed) == ["aiter/configs/a8w8_blockscale_bpreshuffle_tuned_gemm.csv"]
    assert (
        "gemm_a8w8_blockscale_tune.py --preshuffle -i a8w8_blockscale_bpreshuffle_missed_gemm.csv" in done.err
    )
    assert "\n8192,8192,512\n" in done.err, "aiter looks for no larger M"


def test_kernels_below_one_percent_are_listed_and_not_tuned(server: Server) -> None:
    server.record(SERVER)
    trace = server.trace(fused_moe_kernel=30.0, _w8a8_triton_block_scaled_mm=5.0, attention=965.0)
    page = server.shell("capture", "--show", str(server.out), "--server", str(trace)).out
    assert "to tune: 2 of 4 missing rows" in page
    assert [line.split()[0] for line in page.splitlines() if "E=64" in line or "N=1536" in line][:3] == [
        "3.0%",
        "0.5%",
        "0.5%",
    ]
    assert page.count("wavedeck tune TASK --by case") == 2
    assert "E=64 N=512 M=1,4,4096" in page


def test_moe_that_runs_in_aiter_reads_no_file(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_ROCM_USE_AITER", "1")
    done = server.record(SERVER + AITER_SERVER)
    assert "backend aiter: MoE layers run in aiter" in done.err
    assert "to tune: 7 of 7 missing rows" in done.err, "all but the one of vLLM's MoE"
    trace = server.trace(fused_moe_kernel=1.0)
    page = server.shell("capture", "--show", str(server.out), "--server", str(trace)).out
    assert "to tune: 2 of 8 missing rows" in page, "the trace proves that the Triton kernel ran"


PROGRAMS = tomllib.loads(Path(__file__).with_name("lookup_programs.toml").read_text(encoding="utf-8"))
LOOK = "g.get_GEMM_A16W16_config(5, 2560, 5120, True, 'torch.bfloat16', 'torch.float32')"


@pytest.mark.parametrize("name", drawn(sorted(PROGRAMS), 4))
def test_program_does_the_same_and_its_miss_is_found(tmp_path: Path, name: str) -> None:
    program = PROGRAMS[name] | {"script": PROGRAMS[name]["script"].replace("LOOK", LOOK)}
    plain = plain_environment()
    recording = OpenCapture(LOOKUPS, tmp_path / "lookups")
    results = []
    for kind, environ in (("plain", plain), ("under", recording.environment(plain))):
        write_packages(tmp_path / kind)
        results.append(run_program(program, tmp_path / kind, environ))
    assert results[0] == results[1]
    capture = recording.finish(["serve"], 0, 0.0)
    assert [(row.path, row.rows) for row in lookups_of(capture, {}) if not row.is_found] == [
        ("aiter/configs/bf16_tuned_gemm.csv", (8,))
    ]


def test_program_without_the_packages_is_one_line(server: Server) -> None:
    done = server.record("print('served')")
    assert "no process imported a loader of configurations of vLLM, SGLang or aiter" in done.err
    assert not server.out.exists()
    done = server.record("import aiter.tuned_gemm")
    assert "never called" in done.err


def test_killed_program_keeps_what_it_looked_up(server: Server) -> None:
    done = server.record(AITER_SERVER + "\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert done.code == 128 + signal.SIGKILL
    assert server.missed == AITER_MISSED
