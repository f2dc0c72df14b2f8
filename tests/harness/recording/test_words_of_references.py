"""Protects the refusal of wrong float32 kernels beside a reference that names 16-bit floats in its text, and casts to none.

Each kernel is off by about five tolerances of KernelBench in every element, or rounded to bfloat16.
"""

from __future__ import annotations

import pytest
import pytest_asyncio
from msgspec.structs import replace

from harness import DevicePool, Verdict
from suites import Task
from suites.public.known import KERNELBENCH
from suites.public.task import ReferenceKind
from tests.support.judge.judging import judge_task
from tests.support.tasks.scripts import HEADER, public_task, record

pytestmark = [pytest.mark.judge, pytest.mark.soak, pytest.mark.asyncio(loop_scope="session")]

REFERENCE = """
import torch

# Inputs may be bfloat16 or half; sums are float32, as with x.bfloat16().float().
DTYPES = {"bfloat16": torch.bfloat16, "half": torch.half, "float": torch.float32}


def log_softmax(x):
    return torch.log_softmax(x, -1)


def layer_norm(x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def power(x):
    return x**8


def wave(x):
    return torch.sin(50 * x)


def exp(x):
    return torch.exp(3 * x)


def product(x):
    return x @ x.t()
"""
TEST = "import torch\nx = 2 * torch.randn(16, 32, device='cuda')\nresults = [\n" + "".join(
    f"    {name}(x),\n" for name in ("log_softmax", "layer_norm", "power", "wave", "exp")
)
TEST += "    product(x[:, :16].contiguous()),\n]\n"

FORMULAS = {
    "log_softmax": "x - tl.max(x, 0) - tl.log(tl.sum(tl.exp(x - tl.max(x, 0)), 0))",
    "layer_norm": "(x - tl.sum(x, 0) / BLOCK) / tl.sqrt(deviation(x, BLOCK) + 1e-5)",
    "power": "x * x * (x * x) * (x * x * (x * x))",
    "wave": "tl.sin(50.0 * x)",
    "exp": "tl.exp(3.0 * x)",
}
"""Each formula works on one row."""
RIGHT = (
    HEADER
    + """

@triton.jit
def deviation(x, BLOCK: tl.constexpr):
    x -= tl.sum(x, 0) / BLOCK
    return tl.sum(x * x, 0) / BLOCK


@triton.jit
def product_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    square = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + square)
    y = tl.dot(x, tl.trans(x), input_precision="ieee")
    tl.store(out_ptr + square, y)


def product(x):
    out = torch.empty_like(x)
    product_kernel[(1,)](x, out, BLOCK=16)
    return out
"""
    + "".join(
        f"""

@triton.jit
def {name}_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row)
    y = {formula}
    tl.store(out_ptr + row, y)


def {name}(x):
    out = torch.empty_like(x)
    {name}_kernel[(x.shape[0],)](x, out, BLOCK=x.shape[1])
    return out
"""
        for name, formula in FORMULAS.items()
    )
)
FAULTS = {
    "five tolerances off": "y + 5e-4 * (1.0 + tl.abs(y))",
    "rounded to bfloat16": "y.to(tl.bfloat16).to(tl.float32)",
}
WRONG = [(name, fault) for name in (*FORMULAS, "product") for fault in FAULTS]


def with_fault(name: str, fault: str) -> str:
    """Return the right kernels with a fault in the kernel of one function."""
    before, kernel = RIGHT.split(f"def {name}_kernel", 1)
    return f"{before}def {name}_kernel{kernel.replace(', y)', f', {FAULTS[fault]})', 1)}"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def named(pool: DevicePool, tmp_path_factory: pytest.TempPathFactory) -> Task:
    folder = tmp_path_factory.mktemp("named")
    public = public_task(REFERENCE, TEST, folder, name="exp")
    public = replace(public, reference_kind=ReferenceKind.TORCH, tolerances=KERNELBENCH)
    return await record(pool, public)


@pytest.mark.parametrize(("name", "fault"), WRONG)
async def test_words_in_a_reference_excuse_no_error(
    pool: DevicePool, named: Task, name: str, fault: str
) -> None:
    evaluation = await judge_task(pool, with_fault(name, fault), named)
    assert evaluation.verdict is Verdict.WRONG


async def test_a_right_kernel_is_right(pool: DevicePool, named: Task) -> None:
    assert (await judge_task(pool, RIGHT, named)).verdict is Verdict.CORRECT
