"""Small clones of benchmarks with classes `Model` as references."""

from __future__ import annotations

import json
from pathlib import Path

from .files import write

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
SCALED_ROWS = """\
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, block: int = 32) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"out": (x.float() * scale).to(x.dtype)}
"""
MAKE_INPUTS = """\
import torch


def _make_inputs(num_seqs: int, lengths: list[int], width: int) -> dict[str, torch.Tensor]:
    assert len(lengths) == num_seqs
    x = torch.randn(sum(lengths), width, dtype=torch.bfloat16, device="cuda")
    return {"scale": torch.rand(width, device="cuda"), "x": x}
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


def atrex(root: Path) -> Path:
    """Write a clone of Atrex-bench with one operator of four shapes, one without metadata, and a damaged one."""

    def shape(tokens: int) -> dict[str, object]:
        sizes = {"num_seqs": 9, "lengths": [tokens] * 9, "width": 64}
        return {"init_kwargs": None, "input_kwargs": sizes}

    def weight(time_us: float, **calls: int) -> dict[str, object]:
        return {"production_performance": {"XPU-A": {"performance_us": time_us}}, **calls}

    weights = {
        "0": weight(50.0),
        "1": weight(10.0, call_count=3),
        "2": weight(20.0, call_count=9),
        "3": weight(900.0),
    }
    sizes = {"0": shape(16), "1": shape(32), "2": shape(64), "3": shape(1 << 20)}
    large = {"semantic_Q_read_bytes": 1 << 30, "semantic_Q_write_bytes": 1 << 20}
    return write(
        root,
        {
            "data/unified_attention/reference.py": SCALED_ROWS,
            "data/unified_attention/input.py": MAKE_INPUTS,
            "data/unified_attention/shapes.json": json.dumps(sizes),
            "data/unified_attention/metadata.json": json.dumps(
                {"dtype": "bf16", "phase": "decode", "shapes": weights}
            ),
            "data/unified_attention/roofline.json": json.dumps({"shapes": {"3": large}}),
            "data/stripped/reference.py": SCALED_ROWS,
            "data/stripped/input.py": MAKE_INPUTS,
            "data/stripped/shapes.json": json.dumps({"0": shape(16)}),
            "data/broken/reference.py": SCALED_ROWS,
            "data/broken/shapes.json": "{}",
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
