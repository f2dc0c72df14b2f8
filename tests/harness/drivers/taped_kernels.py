# ruff: noqa: N803 -- as kernels are written
"""Kernels whose programs take different paths; only subprocesses import this module."""

import torch
import triton
import triton.language as tl

ROWS, COLUMNS = 12, 40
SCALE = tl.constexpr(2)


def inputs(name: str, number: int) -> dict:
    """Inputs of one numbered call; the last call has different sizes."""
    columns = COLUMNS + 3 * (number == 2)
    x = torch.randn(ROWS, columns)
    if name == "asserts":
        x[7, 3] = 100.0 if number == 1 else 0.0
    return {"x": x}


def launched(kernel, x, out, *, columns=0, block=64):
    kernel[(ROWS,)](x, out, columns or x.shape[1], BLOCK=block)
    return (out,)


@triton.jit
def rows_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    top = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, top / tl.sum(top, axis=0), mask=inside)


def rows(number, x):
    return launched(rows_kernel, x, torch.empty_like(x))


@triton.jit
def branches_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0)
    tl.store(out + row * columns + at, values, mask=inside)
    if row % 5 == 4:
        tl.store(out + row * columns + at, values * 3.0, mask=inside)
    if tl.sum(values, axis=0) > 4.0:
        tl.atomic_add(out + row * columns, 1.0)


def branches(number, x):
    return launched(branches_kernel, x, torch.empty_like(x))


@triton.jit
def loops_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + row * columns + at, mask=at < columns, other=0.0), axis=0)
    for _ in range(row % 3):
        total = total * 2.0
    tl.store(out + row, total)


def loops(number, x):
    return launched(loops_kernel, x, torch.empty(ROWS), block=16)


@triton.jit
def asserts_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
    tl.atomic_add(out, 1.0)
    tl.assume(tl.max(values, axis=0) < 50.0)
    tl.atomic_add(out + 1, 1.0)


def asserts(number, x):
    return launched(asserts_kernel, x, torch.zeros(2))


@triton.jit
def misses_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at)
    tl.store(out + row * columns + at, values, mask=at < columns)


def misses(number, x):
    return launched(misses_kernel, x, torch.empty_like(x))


@triton.jit
def promises_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    start = tl.multiple_of(row * 4, 8)
    tl.store(out + row * BLOCK + lanes, tl.load(x + (lanes + start) % columns))


def promises(number, x):
    return launched(promises_kernel, x, torch.empty(ROWS, 16), columns=40, block=16)


@triton.jit
def blocks_kernel(a, b, out, m, n, k, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK
    at = tl.make_block_ptr(a, (m, k), (k, 1), (rows, 0), (BLOCK, BLOCK), (1, 0))
    bt = tl.make_block_ptr(b, (k, n), (1, k), (0, 0), (BLOCK, BLOCK), (0, 1))
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for _ in range(0, k, BLOCK):
        total += tl.dot(tl.load(at, boundary_check=(0, 1)), tl.load(bt, boundary_check=(0, 1)))
        at = tl.advance(at, (0, BLOCK))
        bt = tl.advance(bt, (BLOCK, 0))
    to = tl.make_block_ptr(out, (m, n), (n, 1), (rows, 0), (BLOCK, BLOCK), (1, 0))
    tl.store(to, total, boundary_check=(0, 1))


def blocks(number, x):
    m, k = x.shape
    out = torch.empty(m, m)
    blocks_kernel[(triton.cdiv(m, 4),)](x, x, out, m, m, k, BLOCK=16)
    return (out,)


@triton.jit
def rounds_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at % columns)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for step in tl.static_range(3):
        total += values * (values + step)
    total -= tl.sum(values * 0.3) * values
    square = values[:, None] * values[None, :]
    folded = tl.sum(tl.expand_dims(-(total * values), 1) + square, axis=0) + tl.cumsum(values, axis=0)
    half = values.to(tl.float16) * 1.01 + total.to(tl.float16)
    brain = total - values.to(tl.bfloat16) * 1.01
    more = (
        tl.exp(-values * values) / (tl.sqrt(tl.abs(total)) + 1.0)
        + tl.log(tl.abs(values) + 1.5)
        + brain.to(tl.float32)
    )
    wide = values.to(tl.float64) * 1.1 - total
    far = (
        tl.erf(values) + tl.rsqrt(tl.abs(total) + 0.1) * tl.cos(values) - tl.sin(values) + wide.to(tl.float32)
    )
    tl.store(out + row * BLOCK + at, folded + half + more + far)


def rounds(number, x):
    return launched(rounds_kernel, x, torch.empty(ROWS, 16), block=16)


@triton.jit
def scaled_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns)
    tl.store(out + row * columns + at, values * SCALE, mask=at < columns)


def changed_globals(number, x):
    """Changes a global that the kernel reads, with shapes unchanged in the second call."""
    global SCALE
    SCALE = tl.constexpr((2, 2.5, True)[number])
    return launched(scaled_kernel, x, torch.empty_like(x))


@triton.jit
def aliased_kernel(x, y, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside) + tl.load(y + row * columns + at, mask=inside)
    tl.store(out + row * columns + at, values, mask=inside)


def changed_pointers(number, x):
    """Launches one kernel with different tensors, once with one tensor for two parameters."""
    middle, out = torch.empty_like(x), torch.empty_like(x)
    for tensors in ((x, x, middle), (x, middle, out), (out, x, middle)):
        aliased_kernel[(ROWS,)](*tensors, x.shape[1], BLOCK=64)
    return middle, out


NAMES = (
    "rows", "branches", "loops", "asserts", "misses", "promises", "blocks", "rounds", "changed_globals", "changed_pointers",
)  # fmt: skip
