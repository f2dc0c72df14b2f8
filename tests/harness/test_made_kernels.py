"""Protects kernels that a function makes.

`tests/honest` holds more ways to name kernels and functions.
"""

from __future__ import annotations

import pytest

from harness import DevicePool, Verdict
from tests.support.judging import judge

pytestmark = [pytest.mark.judge, pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="session")]

CLOSURE = """\
import torch
import triton
import triton.language as tl


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


def make(activation, scale):
    @triton.jit
    def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        rest = tl.where(activation(x) * scale == 12345.0, 1.0, 0.0)
        tl.store(out_ptr + offsets, x + y + rest, mask=mask)

    return add_kernel


kernels = [make(tl.exp, tl.constexpr(1)), make(silu, tl.constexpr(2))]


def vector_add(x, y):
    out = torch.empty_like(x)
    for kernel in kernels:
        kernel[(triton.cdiv(out.numel(), 1024),)](x, y, out, out.numel(), BLOCK=1024)
    return out
"""


async def test_kernel_made_in_a_function_may_call_its_arguments(pool: DevicePool) -> None:
    evaluation = await judge(pool, CLOSURE, cases=("fp32-ragged",), hidden=True)
    assert evaluation.verdict is Verdict.CORRECT, evaluation.error
