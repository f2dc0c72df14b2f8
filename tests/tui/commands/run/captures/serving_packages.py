"""Packages in the shape of vLLM, SGLang and aiter: their loaders of tuned configurations, with stubbed devices, and folders."""

from __future__ import annotations

from pathlib import Path

MOE_JSON = '{"triton_version": "3.6.0", "16": {"BLOCK_SIZE_M": 64}}'
VLLM_MOE = """
import functools, json, pathlib

class current_platform:
    get_device_name = staticmethod(lambda: "AMD Instinct MI300X")

def file_of(E, N, dtype, block):
    parts = [f"E={E}", f"N={N}", "device_name=" + current_platform.get_device_name().replace(" ", "_")]
    parts += [f"dtype={dtype}"] if dtype else []
    parts += [f"block_shape=[{block[0]},{block[1]}]"] if all(block) else []
    return pathlib.Path(__file__).resolve().parent / "configs" / (",".join(parts) + ".json")

@functools.lru_cache
def get_moe_configs(E, N, dtype, block_n=None, block_k=None):
    file = file_of(E, N, dtype, (block_n, block_k))
    return {int(m): row for m, row in json.loads(file.read_text()).items() if m.isdigit()} if file.exists() else None

def try_get_optimal_moe_config(w1_shape, w2_shape, top_k, dtype, M, block_shape=None):
    by_m = get_moe_configs(w2_shape[0], w2_shape[2], dtype, *(block_shape or (0, 0)))
    return by_m[sorted(by_m, key=lambda m: abs(m - M))[0]] if by_m else {"BLOCK_SIZE_M": 16}
"""
BLOCK_FP8 = """
import functools, json, os
from PLATFORM import NAME

@functools.lru_cache
def get_w8a8_block_fp8_configs(N, K, block_n, block_k):
    device_name = NAMED.replace(" ", "_")
    file = f"N={N},K={K},device_name={device_name},dtype=fp8_w8a8,block_shape=[{block_n},SPACE{block_k}].json"
    path = os.path.join(os.path.dirname(os.path.realpath(__file__)), "configs", file)
    if os.path.exists(path):
        with open(path) as f:
            return {int(key): value for key, value in json.load(f).items()}
    return None

def w8a8_matmul(M, N, K):
    return get_w8a8_block_fp8_configs(N, K, 128, 128)
"""
SGLANG_MOE = """
import functools, json, os, triton
from sglang.srt.utils import get_device_name

def get_config_file_name(E, N, dtype, block_shape=None, per_channel_quant=False, down_moe=False):
    device_name = get_device_name().replace(" ", "_")
    dtype = f",dtype={dtype}" if dtype else ""
    block = f",block_shape={block_shape}" if all(block_shape) else ""
    down = "_down" if down_moe else ""
    return f"E={E},N={N},device_name={device_name}{dtype}{block}{down}.json"

@functools.lru_cache
def get_moe_configs(E, N, dtype, block_n=0, block_k=0, per_channel_quant=False, down_moe=False):
    name = get_config_file_name(E, N, dtype, [block_n, block_k], per_channel_quant, down_moe)
    for version in (triton.__version__, "3.5.1"):
        path = os.path.join(os.path.dirname(__file__), "configs", "triton_" + version.replace(".", "_"), name)
        if os.path.exists(path):
            with open(path) as f:
                return {int(key): value for key, value in json.load(f).items()}
    return get_moe_configs(E, N, dtype, block_n, block_k, per_channel_quant) if down_moe else None

def try_get_optimal_moe_config(w2_shape, dtype, M, down_moe=False):
    E, _, N = w2_shape
    return get_moe_configs(E, N, dtype, 0, 0, down_moe=down_moe)
"""
VLLM_STATE_SPACE = """
import functools, json, pathlib
from vllm.utils.platform_utils import get_device_name_as_file_name

@functools.cache
def get_ssm_configs(headdim, dstate, cache_dtype):
    name = f"headdim={headdim},dstate={dstate},device_name={get_device_name_as_file_name()},cache_dtype={cache_dtype}.json"
    file = pathlib.Path(__file__).parent / "configs" / "selective_state_update" / name
    return {int(key): row for key, row in json.loads(file.read_text()).items()} if file.exists() else None
"""
AITER_CHIP = """
import functools

@functools.lru_cache(maxsize=1)
def get_gfx():
    return "gfx942"

get_gfx_runtime = get_gfx

@functools.lru_cache(maxsize=1)
def get_cu_num():
    return 304
"""
AITER_GEMM = """
import csv, functools, os
from aiter.jit.utils.chip_info import get_cu_num, get_gfx_runtime as get_gfx

CACHE = {}

@functools.lru_cache(maxsize=1024)
def get_CKGEMM_config(M, N, K, tuned_file=None):
    if tuned_file not in CACHE:
        with open(tuned_file) as f:
            CACHE[tuned_file] = {tuple(row[key] for key in ("gfx", "cu_num", "M", "N", "K")): row for row in csv.DictReader(f)}
    for padded in (M, (M + 15) // 16 * 16, 1 << (M - 1).bit_length()):
        config = CACHE[tuned_file].get((get_gfx(), str(get_cu_num()), str(padded), str(N), str(K)))
        if config is not None:
            break
    return config

def gemm_a8w8_blockscale(m, n, k):
    folder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "configs")
    return get_CKGEMM_config(m, n, k, os.path.join(folder, "a8w8_blockscale_tuned_gemm.csv"))
"""
AITER_BF16 = """
import functools
from aiter.jit.utils.chip_info import get_cu_num, get_gfx

@functools.lru_cache(maxsize=4096)
def get_GEMM_A16W16_config(M, N, K, bias, dtype, otype, scaleAB=False, bpreshuffle=False):
    if (get_gfx(), get_cu_num(), M, N, K) == ("gfx942", 304, 64, 256, 5120):
        return {"libtype": "asm", "solidx": 5, "us": 7.9, "kernelName": "_ZN5aiter"}
    return {"libtype": "torch", "solidx": 0}
"""
AITER_MOE = """
import csv, enum, functools, os
from aiter.jit.utils.chip_info import get_cu_num, get_gfx, get_gfx_runtime

class ActivationType(enum.Enum):
    Silu = 0

class QuantType(enum.Enum):
    per_Token = 2

class MOEMetadata:
    def __init__(self, stage1, stage2):
        self.stage1, self.stage2 = stage1, stage2

def ck_moe_stage1(kernelName=""):
    pass

def ck_moe_stage2_fwd(kernelName=""):
    pass

KEYS = ("gfx", "cu_num", "token", "model_dim", "inter_dim", "expert", "topk")

@functools.lru_cache(maxsize=2048)
def get_2stage_cfgs(token, model_dim, inter_dim, expert, topk, dtype, q_dtype_a, q_dtype_w, q_type, use_g1u1, activation,
                    doweight_stage1, hidden_pad, intermediate_pad, is_shuffled=True, is_ep=False, config_file=None):
    with open(os.path.join(os.path.dirname(__file__), "configs", "tuned_fmoe.csv")) as f:
        rows = {tuple(row[key] for key in KEYS): row for row in csv.DictReader(f)}
    values = (get_gfx_runtime(), get_cu_num(), token, model_dim, inter_dim, expert, topk - is_ep)
    row = rows.get(tuple(map(str, values)), {"kernelName1": "", "kernelName2": ""})
    return MOEMetadata(functools.partial(ck_moe_stage1, kernelName=row["kernelName1"]),
                       functools.partial(ck_moe_stage2_fwd, kernelName=row["kernelName2"]))
"""
AITER_TRITON = """
import functools, json, os
from aiter.ops.triton.utils import arch_info

CONFIGS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "configs")

@functools.lru_cache(maxsize=1024)
def _cached(config_name, M, N=None, K=None):
    folder = f"{CONFIGS}/gemm/{arch_info.get_arch()}-{config_name}"
    path = f"{folder}-N={N}-K={K}.json"
    is_tuned = os.path.exists(path)
    with open(path if is_tuned else f"{folder}.json") as f:
        return json.load(f)["any"], is_tuned

def get_gemm_config(config_name, M, N=None, K=None, bounds=None, specialized_filename=None, backend=None, B=None):
    return _cached(config_name, M, N, K)
"""
_VLLM = "vllm/model_executor/layers"
_SGLANG = "sglang/srt/layers"
FILES = {
    f"{_VLLM}/fused_moe/fused_moe.py": VLLM_MOE,
    f"{_VLLM}/fused_moe/__init__.py": "from vllm.model_executor.layers.fused_moe.fused_moe import get_moe_configs\n",
    f"{_VLLM}/fused_moe/configs/E=8,N=14336,device_name=AMD_Instinct_MI300X.json": MOE_JSON,
    f"{_VLLM}/quantization/utils/fp8_utils.py": BLOCK_FP8.replace("PLATFORM", "vllm.platforms").replace("SPACE", "")
    .replace("NAMED", "current_platform.get_device_name()").replace("NAME", "current_platform"),
    f"{_VLLM}/quantization/utils/configs/"
    "N=7168,K=2048,device_name=AMD_Instinct_MI300X,dtype=fp8_w8a8,block_shape=[128,128].json": '{"1": {}}',
    "vllm/platforms.py": "class current_platform:\n    @staticmethod\n    def get_device_name():\n        return 'AMD Instinct MI300X'\n",
    f"{_VLLM}/mamba/ops/mamba_ssm.py": VLLM_STATE_SPACE,
    f"{_VLLM}/mamba/ops/configs/selective_state_update/"
    "headdim=64,dstate=128,device_name=AMD_Instinct_MI300X,cache_dtype=float32.json": '{"96": {"BLOCK_SIZE_M": 4}}',
    "vllm/utils/platform_utils.py": "def get_device_name_as_file_name(device_id=0):\n    return 'AMD_Instinct_MI300X'\n",
    f"{_SGLANG}/moe/fused_moe_triton/fused_moe_triton_config.py": SGLANG_MOE,
    f"{_SGLANG}/moe/fused_moe_triton/configs/triton_3_5_1/E=16,N=1024,device_name=NVIDIA_H200.json": '{"1": {}}',
    f"{_SGLANG}/moe/fused_moe_triton/configs/triton_3_6_0/E=8,N=4096,device_name=NVIDIA_H200.json": '{"1": {}}',
    f"{_SGLANG}/quantization/fp8_kernel.py": BLOCK_FP8.replace("PLATFORM", "sglang.srt.utils").replace("SPACE", " ")
    .replace("NAMED", "get_device_name()").replace("NAME", "get_device_name"),
    "sglang/srt/utils.py": "def get_device_name():\n    return 'NVIDIA H200'\n",
    "aiter/jit/utils/chip_info.py": AITER_CHIP,
    "aiter/ops/gemm_op_a8w8.py": AITER_GEMM,
    "aiter/tuned_gemm.py": AITER_BF16,
    "aiter/fused_moe.py": AITER_MOE,
    "aiter/ops/triton/utils/gemm_config_utils.py": AITER_TRITON,
    "aiter/ops/triton/utils/arch_info.py": "def get_arch():\n    return 'gfx942'\n",
    "aiter/ops/triton/configs/gemm/gfx942-GEMM-A16W16.json": '{"any": {}}',
    "aiter/ops/triton/configs/gemm/gfx942-GEMM-A16W16-N=256-K=4096.json": '{"any": {}}',
    "aiter/configs/a8w8_blockscale_tuned_gemm.csv": "gfx,cu_num,M,N,K,libtype,kernelName\n"
    "gfx942,304,128,1536,7168,ck,a8w8_x\ngfx942,80,1,512,7168,ck,a8w8_x\n",
    "aiter/configs/tuned_fmoe.csv": "gfx,cu_num,token,model_dim,inter_dim,expert,topk,kernelName1,kernelName2\n"
    "gfx942,304,128,7168,256,256,8,moe_ck2stages_gemm1,moe_ck2stages_gemm2\n",
    "triton/__init__.py": "__version__ = '3.6.0'\n",
}  # fmt: skip


def write_packages(folder: Path) -> None:
    """Write the packages and their configurations below a folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
