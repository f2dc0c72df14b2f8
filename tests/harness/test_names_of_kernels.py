"""Names, constants and functions that kernels may use, whichever way they came by them."""

from __future__ import annotations

import pytest

from harness import DevicePool, Verdict

from .additions import addition, judge_addition

pytestmark = [pytest.mark.judge, pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="session")]

ALIASES = addition(
    "cast(total, tl.float32) + unused(exp(-x * x)) + unused(LOG2(y * y + 1)) + unused(tanh(x)) + unused(rint(y)) + unused(rows)",
    module="""
    from triton.language import cast, log2 as LOG2
    from triton.language.extra.libdevice import tanh
    from triton.language.standard import _log2, cdiv as parts

    exp = tl.exp
    rint = tl.extra.libdevice.rint
    assert_that, steps, reduce = tl.static_assert, tl.range, tl.reduce


    @triton.jit
    def plus(a, b):
        return a + b


    @triton.jit
    def sum_of(a, b):
        return tl.where(exp(a) > 0, a + b, a + b)
    """,
    kernel="""
    assert_that(BLOCK > 1)
    total = sum_of(x, y)
    for step in steps(0, 2):
        total += unused(reduce(offsets, 0, plus) + step)
    rows = parts(n, BLOCK) + _log2(BLOCK)
    """,
)
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
ANNOTATIONS = "from __future__ import annotations\n" + addition(
    "x + y + unused(tl.sum(tl.arange(0, K), 0)) + unused(tl.sum(tl.arange(0, J), 0))",
    parameters=", K: triton.language.constexpr = 4, J: 'tl.constexpr' = 4, scale: tl.int32 = 1",
)
CONSTANTS = addition(
    "cast_to(x + y, KIND) + unused(LOG2E * x) + unused(TWO // (offsets + 1)) + unused(squares) + unused(table(BLOCK)) + unused(x.exp())",
    module="""
    import enum

    LOG2E = tl.constexpr(1.4426950408889634)
    TWO = tl.constexpr(2)
    SIZES = tl.constexpr((1, 2, 3))
    KIND = tl.constexpr(tl.float32)


    class Mode(enum.IntEnum):
        ADD = 3


    @triton.jit
    def cast_to(x, dtype: tl.constexpr):
        return x.to(dtype.value) + tl.zeros((1024,), dtype)


    @triton.constexpr_function
    def table(n):
        try:
            return max([size * 2 for size in (1, n)])
        except Exception:
            return 0
    """,
    kernel="""
    squares = LOG2E - tl.where((TWO < offsets) | (TWO == offsets), LOG2E / (x * x + 1), TWO - x)
    for at in tl.static_range(len(SIZES)):
        squares += SIZES[at] * TWO.value
    if MODE == 3:
        squares += TWO << offsets % 4
    """,
    parameters=", MODE: tl.constexpr = None",
    arguments=", BLOCK=1024, MODE=Mode.ADD",
)


@pytest.mark.parametrize(
    "source",
    [ALIASES, CLOSURE, ANNOTATIONS, CONSTANTS],
    ids=["aliases", "closure", "annotations", "constants"],
)
async def test_kernels_may_name_the_language_in_any_way(pool: DevicePool, source: str) -> None:
    evaluation = await judge_addition(pool, source)
    assert evaluation.verdict is Verdict.CORRECT, evaluation.error


async def test_a_library_function_that_the_judge_lacks_is_unsupported(pool: DevicePool) -> None:
    module = "from triton.language.extra.libdevice import j0"
    evaluation = await judge_addition(pool, addition("x + y + unused(j0(x))", module=module))
    assert evaluation.verdict is Verdict.UNSUPPORTED
    assert evaluation.error is not None
    assert "j0" in evaluation.error.message
