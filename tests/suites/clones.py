"""Writes small clones of public benchmarks: our own files in their formats."""

from __future__ import annotations

import json
from pathlib import Path

SEPARATOR = "#" * 146
TRITON = """\
import torch
import triton
import triton.language as tl

BLOCK = 64


@triton.jit
def _scale_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x * factor, mask=offsets < n)


def pack(x):
    return x.contiguous()


def scale(x: torch.Tensor, factor: float = 2.0):
    y = torch.empty_like(x)
    _scale_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), factor, BLOCK)
    return y


class _Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor=3.0):
        return scale(x, factor)


scale_with_gradients = _Scale.apply
"""
SCRIPT = """\
import torch


def test_scale():
    results = {}
    for n in (10, 100):
        x = pack(torch.randn(n, device="cuda"))
        results[n] = scale(x)
    results["gradients"] = scale_with_gradients(x)
    return results


result_gold = test_scale()
"""
TORCH = """\
import torch


def twice(x, *, out=None):
    return torch.add(x, x, out=out)
"""
TORCH_SCRIPT = """\
import torch
from data_utils import rand_tensor


def test_twice():
    return {"one": twice(rand_tensor((3,)))}


test_results = test_twice()
"""
PYTEST = """\
import pytest
import torch
from geak_eval.perf import do_bench

result_gold = {}


def torch_scale(x):
    return 2 * x


def launch(x):
    y = torch.empty_like(x)
    _scale_kernel[(1,)](x, y, x.numel(), 2.0, BLOCK=64)
    return y


@pytest.mark.parametrize("n", [3, 30])
def test_scale(n, request):
    x = torch.randn(n, device="cuda")
    result_gold[request.node.name] = launch(x)
    assert torch.equal(launch(x), torch_scale(x))


def test_performance():
    do_bench(lambda: scale(torch.ones(3)))
"""
MODEL = """\
import torch
from torch import nn

size = 8


class Model(nn.Module):
    def __init__(self, width, bias=True):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return x + self.bias


def get_inputs():
    return [torch.rand(size, size)]


def get_init_inputs():
    return [size]
"""
FORWARD = """\
import torch
from torch import nn


def forward_fn(x: torch.Tensor, weight: torch.Tensor, factor: float) -> torch.Tensor:
    return x @ weight * factor


class Model(nn.Module):
    def __init__(self, features: int, out: int = 64, factor: float = 2.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, out))
        self.factor = factor

    def forward(self, x, fn=forward_fn):
        return fn(x, self.weight, self.factor)


def get_inputs(batch_size: int = 4096, features: int = 512):
    return [torch.randn(batch_size, features)]
"""
RUNNER = """\
import importlib.util
import sys


def load_module():
    spec = importlib.util.spec_from_file_location("kernel", "source/scale.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reference_scale(x):
    return 2 * x


def run_correctness():
    import torch

    mod = load_module()
    x = torch.ones(3)
    return torch.equal(mod.scale(x), reference_scale(x))


def run_performance():
    load_module().scale_with_gradients(1)


if __name__ == "__main__":
    sys.exit(not run_correctness())
"""
CONFIG = """\
source_file_path:
  - source/scale.py

correctness_command:
  - python3 scripts/task_runner.py correctness

task_type: triton2triton

prompt:
  source_code: null
  instructions: |
    Make `scale` faster.

    - Keep its signature.
  cheatsheet: null
"""


def separated(reference: str, test: str) -> str:
    """Return a file with a reference and its test."""
    return f"{reference}\n{SEPARATOR}\n\n{test}"


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files below a folder and return the folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def tritonbench(root: Path) -> Path:
    """Write a clone with one task of TritonBench-G and one of TritonBench-T."""
    g = [
        {
            "file": "scale.py",
            "repo": "nobody/nothing",
            "simp_instru": "\n   Scale a vector.\n",
            "comp_instru": "\n   Scale a vector by a factor.\n     Use blocks.\n",
            "output": TRITON,
            "difficulty": "2",
        }
    ]
    t = [
        {
            "file": "twice.py",
            "func_inputs": "twice(x, *, out=None)",
            "description": "Adds x to itself. Really.",
            "math": "2x",
            "difficulty": 1,
        }
    ]
    return write(
        root,
        {
            "data/TritonBench_G_v1/scale.py": separated(TRITON, SCRIPT),
            "data/TritonBench_G_v1.json": json.dumps(g),
            "performance_metrics/perf_G/golden_metrics/scale_perf.py": "class performance_metrics: ...\n",
            "data/TritonBench_T_v1/twice.py": separated(
                TORCH,
                TORCH_SCRIPT.replace("from data_utils import rand_tensor\n", "").replace(
                    "rand_tensor", "torch.rand"
                ),
            ),
            "data/TritonBench_T_v1.jsonl": json.dumps(t),
        },
    )


def geak_eval(root: Path) -> Path:
    """Write a clone with one task of the revised TritonBench and one of the ROCm Triton Benchmark."""
    return write(
        root,
        {
            "geak_eval/__init__.py": "",
            "geak_eval/data/TritonBench/data/TritonBench_G_v1/__init__.py": "",
            "geak_eval/data/TritonBench/data/TritonBench_G_v1/scale.py": separated(TRITON, SCRIPT),
            "geak_eval/data/ROCm/data/ROCm_v1/test_scale.py": separated(TRITON, PYTEST).replace(
                SEPARATOR, SEPARATOR + "  "
            ),
        },
    )


def kernelbench_x(root: Path) -> Path:
    """Write a clone with two tasks of KernelBench-X, and with a file that is no task."""
    rows = [
        {"file": "Math/twice.py", "description": "Doubles x.", "func_inputs": "twice(x)", "difficulty": 1},
        {
            "file": "Quantization/twice_w8.py",
            "description": "Doubles x.",
            "difficulty": 3,
            "precision_thresholds": {"cosine_sim": 0.95, "l1_relative": 0.05, "rmse": 0.1},
            "quantization_spec": {"weight": "int4", "activation": "float16", "compute": "float16"},
        },
    ]
    test = separated(TORCH, TORCH_SCRIPT)
    return write(
        root,
        {
            "data/kernelbenchx_v1.json": json.dumps(rows),
            "data/kernelbenchx/Math/twice.py": test,
            "data/kernelbenchx/Math/twice_fp16.py": test,
            "data/kernelbenchx/Quantization/twice_w8.py": test,
            "metrics/golden_metrics/twice_perf.py": "class performance_metrics: ...\n",
            "utils/data_utils.py": "",
        },
    )


def kernelbench(root: Path) -> Path:
    """Write a clone with four tasks of KernelBench."""
    pretrained = MODEL.replace("super().__init__()", "self.model = AutoModel.from_pretrained('x')")
    return write(
        root,
        {
            "KernelBench/level1/2_Bias_add_.py": MODEL,
            "KernelBench/level1/10_Bias.py": MODEL,
            "KernelBench/level2/1_Broken.py": "class Model: ...\n",
            "KernelBench/level4/1_Pretrained.py": pretrained,
        },
    )


def robust_kbench(root: Path) -> Path:
    """Write a clone with a forward task, its backward task and a converted task of robust-kbench."""
    single = {
        "single_input_configs": [{"batch_size": 2048}],
        "single_init_configs": [{"factor": 3.0, "no_parameter": 1}],
        "single_shared_configs": [{"features": 512}],
    }
    several = {
        "multi_input_configs": [{"batch_size": 2048}, {"batch_size": 8192}],
        "multi_init_configs": [{"factor": 3.0}],
        "multi_shared_configs": [{"features": 512}],
    }
    empty = {name: [{}] for name in several}
    return write(
        root,
        {
            "tasks/scale/func_forward.py": FORWARD,
            "tasks/scale/config_forward.json": json.dumps(single | several),
            "tasks/scale/func_backward.py": FORWARD.replace("features)]", "features, requires_grad=True)]"),
            "tasks/scale/config_backward.json": json.dumps(single | empty),
            "tasks/kernelbench/level_1/task_12/func_forward.py": FORWARD,
            "tasks/kernelbench/level_1/task_12/config_forward.json": json.dumps(single | empty),
            "tasks/kernelbench/level_1/task_12/12_Scale_rows.py": MODEL,
            "tasks/kernelbench/level_1/task_12/filter_results.json": json.dumps(
                {"filter_output_std": True, "filter_llm_assessment": "words"}
            ),
        },
    )


def arena(root: Path) -> Path:
    """Write a clone with Triton tasks of two formats and a HIP task of AgentKernelArena."""
    escaped = 'prompt:\n  instructions: "\\nComplete the kernel `_scale_kernel`.\\n\\\n    \\  Then\\\n    \\ stop.\\n"\n'
    return write(
        root,
        {
            "tasks/triton2triton/vllm/triton_scale/config.yaml": CONFIG,
            "tasks/triton2triton/vllm/triton_scale/source/scale.py": TRITON,
            "tasks/triton2triton/vllm/triton_scale/scripts/task_runner.py": RUNNER,
            "tasks/instruction2triton/rocmbench/test_scale/config.yaml": f"{escaped}source_file_path: []\n",
            "tasks/instruction2triton/rocmbench/test_scale/test_scale.py": separated(TRITON, PYTEST),
            "tasks/hip2hip/others/scale/config.yaml": "task_type: hip2hip\n",
        },
    )


PROBLEM = """\
import torch
from task import input_t, output_t
from utils import {imported}, Quiet


def generate_input(size: int, seed: int) -> input_t:
    x = torch.empty(size, device="cuda")
    x.uniform_(0, 1, generator=torch.Generator(device="cuda").manual_seed(seed))
    y = torch.empty(size, device="cuda")
    return x, y


def ref_kernel(data: input_t) -> output_t:
    with Quiet():
        return 2 * data[0]


{check}
"""
UTILS = """\
import os


class Quiet:
    def __enter__(self):
        os.environ["QUIET"] = "1"

    def __exit__(self, *_): ...


def make_match_reference(reference, rtol=1e-5, atol=1e-8): ...
"""
PROBLEM_SETTINGS = """\
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}

lang: "py"

description: |
  Double a vector. Really.

  Input: two tensors.

tests:
  # the largest first
  - {"size": 300, "seed": 7}
  - {"size": 3, "seed": 8}

benchmarks:
  - {"size": 9000, "seed": 9}
"""


def gpu_mode(root: Path) -> Path:
    """Write a clone with problems of GPU MODE: two that can be judged, and others with a reason."""
    match = "make_match_reference"
    twice = PROBLEM.format(imported=match, check=f"check_implementation = {match}(ref_kernel, rtol=1e-3)")
    scaled = PROBLEM.format(
        imported=match,
        check=f"def check_implementation(data, output):\n    {match}(ref_kernel, rtol=data[0].numel())",
    )
    texts = {
        "amd/twice": twice,
        "pmpp_v2/scaled_py": scaled,
        "pmpp_v2/properties": scaled.replace("(ref_kernel, rtol=data[0].numel())", "(data)"),
        "amd/package": f"import aiter\n{twice}",
        "amd/evaluator": twice.replace("generate_input", "generate_inputs"),
        "amd/several": twice,
    }
    files = {f"problems/{name}/reference.py": text for name, text in texts.items()}
    files |= {f"problems/{name}/task.yml": PROBLEM_SETTINGS for name in texts}
    files["problems/amd/several/task.yml"] = PROBLEM_SETTINGS.replace('"size": 3,', '"world_size": 8,')
    return write(root, files | {"problems/amd/utils.py": UTILS, "problems/pmpp_v2/utils.py": UTILS})


CONTEXT = {
    "event_type": "launch",
    "grid": [2],
    "compilation_metadata": {"num_warps": 2, "num_stages": 1, "num_ctas": 1, "arch": "sm90"},
    "extracted_args": {
        "x_ptr": {
            "type": "tensor",
            "dtype": "torch.float32",
            "device": "cuda:0",
            "shape": [10, 10],
            "stride": [1, 10],
            "storage_offset": 3,
            "mean": 1,
            "std": 0.5,
            "min": 0.0,
            "max": 2,
        },
        "y_ptr": {"type": "tensor", "dtype": "torch.float32", "shape": [100], "stride": [1]},
        "n": {"type": "int", "value": 100},
        "factor": {"type": "float", "value": 2.0},
        "BLOCK": {"type": "int", "value": 64},
    },
}
"""A launch of `_scale_kernel` as tritonparse 0.6 writes it."""
REPRO = '''\
"""A launch of a kernel."""

import json
import torch
{head}

def create_args_from_json_file(path): ...


{kernel}


def launch_kernel():
    script_dir = Path(__file__).resolve().parent
    json_file = script_dir / "repro_line3_context_20260101000000.json"
    grid, args_dict = create_args_from_json_file(str(json_file))
    imported_kernel_function[tuple(grid)](args_dict["x_ptr"], args_dict["y_ptr"], num_warps=2)


if __name__ == "__main__":
    launch_kernel()
'''


def tritonparse(root: Path) -> Path:
    """Write launches of one kernel: with its source, with its file, and with a file that is missing."""
    tuned = TRITON.replace("@triton.jit", "@triton.autotune([triton.Config({})], key=[])\n@triton.jit")
    kernel = f"{tuned}\n\n# Use kernel function directly\nimported_kernel_function = _scale_kernel"
    embedded = f'CONTEXT_JSON = r"""\n{json.dumps(CONTEXT)}\n"""\n'

    def imports(folder: Path) -> str:
        search = f"p = r'{folder}'\nif p not in sys.path:\n    sys.path.insert(0, p)\n\n"
        return search + "from own_kernels import _scale_kernel as imported_kernel_function"

    folder = "_scale_kernel/"
    return write(
        root,
        {
            "own_kernels.py": TRITON,
            f"{folder}repro_line3_context_20260101000000.json": json.dumps(CONTEXT),
            f"{folder}repro_line3_20250101000000.py": "an older script of the same launch",
            f"{folder}repro_line3_20260101000000.py": REPRO.format(head="", kernel=kernel),
            f"{folder}repro_line4_20260101000000.py": REPRO.format(head=embedded, kernel=imports(root)),
            f"{folder}repro_line5_20260101000000.py": REPRO.format(head="", kernel=imports(root / "gone")),
        },
    )


def geak_tasks(root: Path) -> Path:
    """Write task folders of GEAK: with settings, without, and without a test."""
    program = RUNNER.replace("source/scale.py", "kernel.py").replace(
        "def run_correctness():", "def run_correctness(shapes):"
    )
    return write(
        root,
        {
            "settings/config.yaml": CONFIG.replace("source/scale.py", "kernel.py").replace(
                "task_type", "harness_path: test_kernel_harness.py\ntask_type"
            ),
            "settings/kernel.py": TRITON,
            "settings/test_kernel_harness.py": program,
            "plain/kernel.py": TRITON,
            "plain/test_scale_harness.py": program,
            "alone/kernel.py": TRITON,
        },
    )


AITER_OPERATOR = """\
import torch
import triton

from aiter.ops.triton._triton_kernels.scale import _scale_kernel
from aiter.ops.triton.utils._triton import arch_info
from aiter.ops.triton.utils.logger import Logger as Notes

_NOTES = Notes()


def scale(x: torch.Tensor):
    _NOTES.info("scale")  # aiter_only is a word in a comment
    y = torch.empty_like(x)
    _scale_kernel[(1,)](x, y, x.numel(), 2.0, BLOCK=arch_info.block())
    return y


def compiled(x):
    return aiter_only(x)


def configured(x):
    return open(__file__)
"""
AITER_TEST = """\
import pytest
import torch

from aiter.ops.triton.scale import {name}
{more}

def torch_scale(x):
    return 2 * x


@pytest.mark.parametrize("n", [3, 30])
def test_scale(n):
    x = torch.randn(n, device="cuda")
    torch.testing.assert_close({name}(x), torch_scale(x))
"""


def aiter(root: Path) -> Path:
    """Write a clone of aiter with tests of one operator, and with tests that need more of the package."""
    operator = AITER_OPERATOR.replace("import triton\n", "import triton\nfrom aiter.jit import aiter_only\n")
    return write(
        root,
        {
            "aiter/__init__.py": "raise ImportError('HIP')\n",
            "aiter/ops/triton/__init__.py": "",
            "aiter/ops/triton/scale.py": operator,
            "aiter/ops/triton/_triton_kernels/scale.py": TRITON.partition("def pack")[0],
            "aiter/ops/triton/utils/logger.py": "class Logger:\n    def info(self, text): ...\n",
            "aiter/ops/triton/utils/_triton/arch_info.py": "def block():\n    return 64\n",
            "op_tests/triton_tests/test_scale.py": AITER_TEST.format(name="scale", more=""),
            "op_tests/triton_tests/more/test_compiled.py": AITER_TEST.format(name="compiled", more=""),
            "op_tests/triton_tests/more/test_files.py": AITER_TEST.format(name="configured", more=""),
            "op_tests/triton_tests/more/test_common.py": AITER_TEST.format(
                name="scale", more="from aiter.test_common import checkAllclose\n"
            ),
        },
    )
