# ruff: noqa: N803 -- compile-time constants are written so in Triton
"""Candidates of which it is known what they touch at large sizes; `run_at_full_sizes.py` runs them."""

import torch
import triton
import triton.language as tl


@triton.jit
def one_pass_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + offsets, e / tl.sum(e, axis=0), mask=offsets < columns)


def one_pass(x):
    out = torch.empty_like(x)
    one_pass_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


def half_of_rows(x):
    out = torch.empty_like(x)
    one_pass_kernel[(x.shape[0] // 2,)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


@triton.jit
def matmul_kernel(a_ptr, b_ptr, out_ptr, n, k, TILE: tl.constexpr):
    program, across = tl.program_id(0), n // TILE
    rows = program // across * TILE + tl.arange(0, TILE)
    columns = program % across * TILE + tl.arange(0, TILE)
    inner = tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, k, TILE):
        a = tl.load(a_ptr + rows[:, None] * k + (start + inner)[None, :])
        b = tl.load(b_ptr + (start + inner)[:, None] * n + columns[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], acc.to(tl.float16))


def matmul(a, b):
    out = torch.empty_like(a)
    tiles = a.shape[0] // 128
    matmul_kernel[(tiles * tiles,)](a, b, out, a.shape[0], a.shape[1], TILE=128)
    return out


@triton.jit
def skip_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr + offsets, x, mask=(offsets < n) & (x > 0))


def skips_small_values(x):
    out = torch.empty_like(x)
    skip_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


@triton.jit
def gather_kernel(keys_ptr, table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keys = tl.load(keys_ptr + offsets, mask=offsets < n, other=0)
    tl.store(out_ptr + offsets, tl.load(table_ptr + keys, mask=offsets < n), mask=offsets < n)


def gathers(keys, table):
    out = torch.empty(keys.shape, dtype=table.dtype, device=table.device)
    gather_kernel[(triton.cdiv(keys.numel(), 1024),)](keys, table, out, keys.numel(), BLOCK=1024)
    return out


def branches_on_values(x):
    return one_pass(x) if x.max().item() > 0 else half_of_rows(x)


@triton.jit
def overflowing_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns)
    tl.store(out_ptr + row * columns + offsets, x, mask=offsets < columns)


def overflows(x):
    out = torch.empty_like(x)
    overflowing_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


@triton.jit
def ragged_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Reads past the end, unmasked, and stores where a value says."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + x.to(tl.int64) - 1, x)


def stores_where_values_say(x):
    out = torch.empty_like(x)
    ragged_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


@triton.jit
def lengths_kernel(values_ptr, bounds_ptr, out_ptr, LONGEST: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, LONGEST)
    end = tl.load(bounds_ptr + row + 1)
    length = end - tl.load(bounds_ptr + row)
    x = tl.load(values_ptr + end - 1 - offsets, mask=offsets < length, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def sums_rows_by_length(values, bounds):
    """Loads the end of a row before its start."""
    out = torch.empty(bounds.numel() - 1, dtype=values.dtype, device=values.device)
    lengths_kernel[(out.numel(),)](values, bounds, out, LONGEST=4096)
    return out


@triton.jit
def striding_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for at in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = at + tl.arange(0, BLOCK)
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def strides_and_catches_all(x):
    for _ in range(100):
        try:
            striding_kernel[(108,)](x, torch.empty_like(x), x.numel(), BLOCK=1024)
        except BaseException:  # noqa: BLE001 -- what a candidate may do
            continue
    return x


@triton.jit
def counting_kernel(out_ptr, turns):
    total = 0
    for turn in range(turns):
        total += turn
    tl.store(out_ptr, total)


def loops_without_memory(x):
    counting_kernel[(1,)](x, 1 << 40)
    return x
