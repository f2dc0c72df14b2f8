"""Writes a private repository with a kernel in a package, and the task of that kernel."""

from __future__ import annotations

from pathlib import Path

from suites import Task
from suites.folder import read_task

UTILS = """
import json
from pathlib import Path

import triton
import triton.language as tl

BLOCKS = json.loads((Path(__file__).parent / "configs" / "blocks.json").read_text())
SCALE = tl.constexpr(2.0)


def cfg(columns):
    return {"BLOCK": BLOCKS["scale"]}


@triton.jit
def _twice(x):
    return x * SCALE


@triton.jit
def scaled(x, y):
    return _twice(x) + y
"""
KERNEL = """
import json
import os
from importlib import resources
from pathlib import Path

import torch
import triton
import triton.language as tl
from ops.utils import cfg as blocks

from .utils import cfg, scaled

with open(Path(__file__).parent / "configs" / "warps.json") as file:
    WARPS = json.load(file)["warps"]
NAMES = resources.files("ops").joinpath("configs").joinpath("blocks.json").read_text()
assert os.path.basename(os.path.dirname(__file__)) == "ops" and __package__ == "ops"


@triton.jit
def _scale_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place, mask=place < n, other=0.0)
    y = tl.load(y_ptr + place, mask=place < n, other=0.0)
    tl.store(x_ptr + place, scaled(x, y), mask=place < n)
    tl.store(y_ptr + place, x, mask=place < n)


def scale_(x, y):
    block = cfg(x.numel())["BLOCK"]
    assert blocks is cfg
    _scale_kernel[(triton.cdiv(x.numel(), block),)](x, y, x.numel(), BLOCK=block, num_warps=WARPS)
"""
SPLIT_KERNEL = """
import triton
import triton.language as tl

from ..utils import scaled

LANES = tl.constexpr(1)


@triton.jit
def _place(BLOCK: tl.constexpr):
    return tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) * LANES


@triton.jit
def split_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    place = _place(BLOCK)
    x = tl.load(x_ptr + place, mask=place < n, other=0.0)
    y = tl.load(y_ptr + place, mask=place < n, other=0.0)
    tl.store(x_ptr + place, scaled(x, y), mask=place < n)
    tl.store(y_ptr + place, x, mask=place < n)


@triton.jit
def unused_kernel(x_ptr):
    tl.store(x_ptr, _place(1))


def warps():
    return 4
"""
SPLIT = """
import triton

from ._kernels import split_kernel, unused_kernel, warps
from .utils import cfg


def scale_(x, y):
    block = cfg(x.numel())["BLOCK"]
    split_kernel[(triton.cdiv(x.numel(), block),)](x, y, x.numel(), BLOCK=block, num_warps=warps())


def other(x):
    unused_kernel[(1,)](x)
"""
"""A function, and its kernel in another module, which it imports from the package of that module."""
FILES = {
    "pyproject.toml": "[project]\nname = 'ops'\n",
    "secret.txt": "SECRET",
    "src/ops/__init__.py": "from .scale import scale_\n",
    "src/ops/utils.py": UTILS,
    "src/ops/scale.py": KERNEL,
    "src/ops/sibling.py": KERNEL,
    "src/ops/reference.py": "def scale_(x, y):\n    old = x.clone()\n    x.mul_(2.0).add_(y)\n    y.copy_(old)\n",
    "src/ops/launching.py": "from .sibling import scale_ as run\n",
    "src/ops/split.py": SPLIT,
    "src/ops/_kernels/__init__.py": "from .split import split_kernel, unused_kernel, warps\n",
    "src/ops/_kernels/split.py": SPLIT_KERNEL,
    "src/ops/configs/blocks.json": '{"scale": 128}',
    "src/ops/configs/warps.json": '{"warps": 4}',
}
TASK = """
schema = 1
name = "scale"
title = "Scale in place"
category = "Math"
difficulty = 1
instruction = "Write `scale_(x, y)`: `x` becomes `2 * x + y`, `y` becomes `x` as it was. Sizes are any positive numbers."
entry_points = [{ name = "scale_", signature = "scale_(x, y)" }]
outputs = [{ name = "x" }, { name = "y" }]
in_place = ["x", "y"]
strict = ["out_of_bounds"]
tolerances.float32 = { rtol = 1e-6, atol = 1e-6 }
axes = { n = { min = 1 } }
cases = [{ name = "plain", dtype = "float32", cpu = { n = 1000 }, gpu = { n = 1000000 } }]
package = { root = "../../repo/src", module = "ops.scale" }
"""
PROBLEM = """
import torch


def make_inputs(sizes, dtype, generator):
    return {name: torch.randn(sizes["n"], generator=generator).to(dtype) for name in ("x", "y")}


def oracle(x, y):
    before = x.clone()
    x.mul_(2.0).add_(y)
    y.copy_(before)
"""
COST = """
from suites import Cost, item_bytes


def cost(sizes, dtype):
    return Cost(2 * sizes["n"], 4 * sizes["n"] * item_bytes(dtype))
"""


def write_packaged_task(parent: Path) -> Task:
    """Write the repository and the task's folder as a person would, and read the task."""
    files = {f"repo/{name}": text for name, text in FILES.items()}
    own = {"task.toml": TASK, "problem.py": PROBLEM, "cost.py": COST, "baseline.py": KERNEL}
    for name, text in (files | {f"tasks/scale/{name}": text for name, text in own.items()}).items():
        file = parent / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return read_task(parent / "tasks" / "scale", suite="mine")
