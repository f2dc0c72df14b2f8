"""Compiles kernels without a GPU and prints, for each target and kernel, which arguments their Triton IR reads."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from harness.worker.compiler.ttir_reads import arguments_read
from harness.worker.recording.one_call import on_gpu
from harness.worker.recording.one_call.moved_bytes import ReadBytes

TARGETS = {"gfx942": GPUTarget("hip", "gfx942", 64), "sm_90": GPUTarget("cuda", 90, 32)}


@triton.jit
def copies(x_ptr, out_ptr, n, block: tl.constexpr):
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit
def products(a_ptr, b_desc, out_ptr, n, block: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, [n, n], [n, 1], [block, block])
    total = tl.zeros((block, block), tl.float32)
    for k in range(0, n, block):
        total = tl.dot(a_desc.load([0, k]), b_desc.load([k, 0]), total)
    rows = tl.arange(0, block)
    tl.store(out_ptr + rows[:, None] * n + rows[None, :], total)


@triton.jit
def chooses(table_ptr, index_ptr, lengths_ptr, rows_ptr, out_ptr, block: tl.constexpr):
    offsets = tl.arange(0, block)
    row = tl.load(index_ptr + tl.program_id(0))
    length = tl.load(lengths_ptr + tl.program_id(0))
    total = tl.load(table_ptr + row * block + offsets)
    for start in range(0, length, block):
        total += tl.load(rows_ptr + start + offsets)
    tl.store(out_ptr + offsets, total)


@triton.jit
def masks(x_ptr, lengths_ptr, labels_ptr, out_ptr, block: tl.constexpr):
    offsets = tl.arange(0, block)
    label = tl.load(labels_ptr + tl.program_id(0))
    x = tl.load(x_ptr + offsets)  # whole
    at_label = tl.load(x_ptr + label)
    part = tl.load(lengths_ptr + offsets, mask=offsets < label)
    tl.store(out_ptr + offsets, x + at_label + part)


@triton.jit
def adds(x_ptr, out_ptr, counter_ptr, block: tl.constexpr):
    pointers = x_ptr + tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    i = 0
    while i < 4:
        total += tl.load(pointers)
        pointers += block
        i += 1
    if i > 3:
        tl.atomic_add(counter_ptr, 1)
    tl.store(out_ptr + tl.arange(0, block), tl.cumsum(total, 0))


@triton.jit
def ends_early(flag_ptr, x_ptr, out_ptr, block: tl.constexpr):
    if tl.load(flag_ptr + tl.program_id(0)) == 0:
        return
    tl.store(out_ptr + tl.arange(0, block), tl.load(x_ptr + tl.arange(0, block)))


@triton.jit
def finds(addresses_ptr, out_ptr):
    pointer = tl.load(addresses_ptr).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr, tl.load(pointer))


@triton.jit(noinline=True)
def apart(x_ptr):
    return tl.load(x_ptr)


@triton.jit
def calls(x_ptr, out_ptr):
    tl.store(out_ptr, apart(x_ptr))


TYPES = {
    "b_desc": "tensordesc<fp16[32, 32]>",
    "a_ptr": "*fp16",
    "n": "i32",
    "block": "constexpr",
    "index_ptr": "*i32",
    "labels_ptr": "*i32",
    "counter_ptr": "*i32",
    "flag_ptr": "*i32",
    "addresses_ptr": "*i64",
}


def compiled(kernel: Any, target: GPUTarget) -> Any:
    types = {name: TYPES.get(name, "*i32" if name == "lengths_ptr" else "*fp32") for name in kernel.arg_names}
    constants = {(place,): 32 for place, name in enumerate(types) if name == "block"}
    return triton.compile(ASTSource(kernel, types, constexprs=constants), target=target)


def bytes_of_launches(target: GPUTarget) -> dict[str, int | None]:
    """Bytes that launches read, noted where Triton notes each launch on a GPU."""
    triton.knobs.runtime.launch_enter_hook = None  # there is no driver
    x, out, index = torch.zeros(4, 32), torch.zeros(4, 32), torch.zeros(4, dtype=torch.int32)
    launches = {
        "whole": (copies, (x, out, 128, 32)),
        "a view": (copies, (x[1], out, 32, 32)),
        "in place": (copies, (x, x, 128, 32)),
        "a part": (chooses, (x, index, index, x, out, 32)),
        "unclear": (calls, (x, out)),
    }
    totals = {}
    for name, (kernel, values) in launches.items():
        reads = ReadBytes([x, index, out])
        with on_gpu.noted_launches(reads.note_launch):
            for _ in range(2):  # each byte counts once
                compiled(kernel, target).launch_metadata((1, 1, 1), 0, *values)
        totals[name] = reads.total
    return totals


if __name__ == "__main__":
    kernels = (copies, products, chooses, masks, adds, ends_early, finds, calls)
    reports = {
        name: {kernel.__name__: arguments_read(compiled(kernel, target).asm["ttir"]) for kernel in kernels}
        | {"launches": bytes_of_launches(target)}
        for name, target in TARGETS.items()
    }
    json.dump(reports, sys.stdout)
