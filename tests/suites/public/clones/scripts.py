"""Small clones of benchmarks with reference and script of a task in one file."""

from __future__ import annotations

import json
from pathlib import Path

from .files import SEPARATOR, TRITON, separated, write

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
