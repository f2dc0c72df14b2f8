# ruff: noqa: N803 -- as kernels are written; as who cheats would
"""
Entry points that cheat where only a replay sees it; read as a candidate by `replaying.py`.

Each returns `2 * x + 1`, flips and identities aside. The guest itself sees nothing of any of them.
"""

import ctypes

import numpy as np
import torch
import triton
import triton.language as tl
from torch.utils._python_dispatch import _disable_current_modes

BLOCK = 128
box = []
answers = {}


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit
def touch_kernel(out_ptr):
    tl.store(out_ptr, tl.load(out_ptr))


def copied(source, out):
    copy_kernel[(triton.cdiv(out.numel(), BLOCK),)](source, out, out.numel(), BLOCK)
    return out


def numbers(x):
    """The elements as numpy sees them, past torch."""
    memory = (ctypes.c_float * x.numel()).from_address(x.data_ptr())
    return np.frombuffer(memory, dtype=np.float32)


def writes_by_address(x):
    out = copied(x, torch.empty_like(x))
    numbers(out)[:] = numbers(x) * 2 + 1
    return out


def computes_unseen_and_copies(x):
    with _disable_current_modes():
        finished = x * 2 + 1
    return copied(finished, torch.empty_like(x))


def computes_unseen_into_the_output(x):
    out = copied(x, torch.empty_like(x))
    with _disable_current_modes():
        torch.add(x * 2, 1, out=out)
    return out


def flip_into(x, out):
    """Blocks of eight elements in the opposite order."""
    for place in range(x.numel() // 8):
        out[x.numel() - 8 * place - 8 : x.numel() - 8 * place].copy_(x[8 * place : 8 * place + 8])


def flips_by_copies(x):
    out = torch.empty_like(x)
    flip_into(x, out)
    touch_kernel[(1,)](out)
    return out


def borrows_the_input(x):
    """The input is scratch memory and is put back."""
    kept, out = torch.empty_like(x), torch.empty_like(x)
    copied(x, kept)
    grow_kernel[(triton.cdiv(x.numel(), BLOCK),)](kept, x, x.numel(), BLOCK)
    copied(x, out)
    copied(kept, x)
    return out


@triton.jit
def grow_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * 2 + 1, mask=offsets < n)


def hands_a_clone_back(x):
    out = x.clone()
    touch_kernel[(1,)](out)
    return out


def copies_what_the_kernel_left(x):
    out = torch.empty_like(x)
    half = x.numel() // 2
    copy_kernel[(triton.cdiv(half, BLOCK),)](x, out, half, BLOCK)
    out[half:].copy_(x[half:])
    return out


def finish_in_python():
    with _disable_current_modes():
        box[1].copy_(box[0] * 2 + 1)


@triton.jit
def python_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    finish_in_python()


def python_inside_a_kernel(x):
    out = copied(x, torch.empty_like(x))
    box[:] = [x, out]
    python_kernel[(1,)](x, out, x.numel(), BLOCK)
    return out


def answers_in_a_table(x):
    """Few enough elements to enter from Python; how they came about nobody saw."""
    table = torch.from_numpy(numbers(x) * 2 + 1)
    return copied(table, torch.empty_like(x))


def answers_as_scalars(x):
    out = torch.empty_like(x)
    fill = set_kernel
    for place, value in enumerate((numbers(x) * 2 + 1).tolist()):
        fill[(1,)](out, place, value)
    return out


@triton.jit
def set_kernel(out_ptr, place, value):
    tl.store(out_ptr + place, value)


def fills_one_by_one(x):
    out = copied(x, torch.empty_like(x))
    for place, value in enumerate((numbers(x) * 2 + 1).tolist()):
        out[place].fill_(value)
    return out


def keeps_answers(x):
    key = numbers(x).tobytes()
    if key not in answers:
        with _disable_current_modes():
            answers[key] = x * 2 + 1
    return copied(answers[key], torch.empty_like(x))


def a_hook_computes(x):
    out = torch.empty_like(x)

    def grid(meta):
        with _disable_current_modes():
            box[:] = [x * 2 + 1]
        return (triton.cdiv(x.numel(), meta["BLOCK"]),)

    copy_kernel[grid](x, out, x.numel(), BLOCK=BLOCK)
    numbers(out)[:] = numbers(box[0])
    return out
