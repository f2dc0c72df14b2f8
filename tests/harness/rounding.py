# ruff: noqa: N803 -- as kernels are written
"""Runs kernels here and with another device's arithmetic and prints what they stored, as JSON; run by the tests."""

import json
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton
import triton.language as tl

from harness.targets import target
from harness.worker.interpreter.interpreter import observe, prepare

torch.set_num_threads(1)
prepare(target("gfx942"))

from triton.language.extra import libdevice  # noqa: E402 -- after the process is prepared, as a guest does it

BLOCK = 64


@triton.jit
def joined(first_a, last_a, whole_a, first_b, last_b, whole_b):
    return first_a, last_b, whole_a * whole_b * (last_a + 1 == first_b).to(tl.int32)


@triton.jit
def affine(a_slope, a_shift, b_slope, b_shift):
    return a_slope * b_slope, a_shift * b_slope + b_shift


@triton.jit
def kernel(x_ptr, out_ptr, WHAT: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes)
    if WHAT == "the same product twice":
        product = x * x
        out = product - product
    elif WHAT == "a product and a sum":
        out = x * 1.1 + 0.3
    elif WHAT == "a product in another shape and a sum":
        out = tl.reshape(tl.expand_dims(x * 1.1, 1), (BLOCK,)) + 0.3
    elif WHAT == "a negated product and a sum":
        out = 0.3 + -(x * 1.1)
    elif WHAT == "a fused product and sum":
        out = tl.fma(x, 1.1, 0.3)
    elif WHAT == "what fma keeps":
        out = tl.fma(x, x, -(x * x))
    elif WHAT == "a quotient":
        out = x / 3.0
    elif WHAT == "an exact quotient":
        out = (x * 0.0 + lanes * 6) / 3.0
    elif WHAT == "a rounded quotient":
        out = tl.div_rn(x, x * 0.0 + 3.0)
    elif WHAT == "a quotient in double":
        out = (x.to(tl.float64) / 3.0 * 1e9).to(tl.float32)
    elif WHAT == "a root":
        out = tl.sqrt(tl.abs(x))
    elif WHAT == "an exact root":
        out = tl.sqrt((lanes * lanes).to(tl.float32)) + tl.rsqrt(tl.exp2((lanes % 8 * 2).to(tl.float32)))
    elif WHAT == "a rounded root":
        out = tl.sqrt_rn(tl.abs(x))
    elif WHAT == "exact powers":
        out = tl.exp2((lanes - 20).to(tl.float32)) + tl.log2(tl.exp2((lanes - 20).to(tl.float32)))
    elif WHAT == "powers":
        out = tl.exp(x)
    elif WHAT == "powers of two of products":
        out = tl.exp2(x * 1.4426950408889634)
    elif WHAT == "powers without a number":
        out = tl.exp(tl.where(lanes % 2 == 0, float("inf"), float("-inf"))) + tl.log(x * 0.0)
    elif WHAT == "a library's tanh":
        out = libdevice.tanh(x)
    elif WHAT == "a library's tanh of large ones":
        out = libdevice.tanh(x * 100.0 + tl.where(x > 0, 50.0, -50.0))
    elif WHAT == "a library's floor":
        out = libdevice.floor(x * 4.0)
    elif WHAT == "a sum":
        out = x * 0.0 + tl.sum(x)
    elif WHAT == "an exact sum":
        out = (
            tl.sum(tl.floor(x * 64.0))
            + tl.cumsum(tl.floor(x * 64.0))
            + tl.reduce(tl.floor(x * 64.0), 0, tl.standard._sum_combine)
        )
    elif WHAT == "a running sum":
        out = tl.cumsum(x)
    elif WHAT == "a running sum back":
        out = tl.cumsum(x, reverse=True)
    elif WHAT == "whole numbers in order":
        out = (tl.cumsum(lanes) - tl.sum(lanes)).to(tl.float32)
    elif WHAT == "neighbours with neighbours":
        out = x * 0.0 + tl.reduce((lanes, lanes, lanes * 0 + 1), 0, joined)[2]
    elif WHAT == "a scan that does not commute":
        _, out = tl.associative_scan((x * 0.0 + 0.5, tl.floor(x * 8.0)), 0, affine)
    elif WHAT == "a magic number":
        out = x * 8.0 + 12582912.0 - 12582912.0
    elif WHAT == "what a sum loses":
        total = x + 1000.0
        out = (x - (total - (total - x))) + (1000.0 - (total - x))
    else:
        tl.static_assert(False)
    tl.store(out_ptr + lanes, out)


@triton.jit
def dot_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + (rows * 7 + columns * 3) % 64)
    tl.store(out_ptr + rows * BLOCK + columns, tl.dot(x, x, input_precision="ieee"))


HERE, ELSEWHERE, FAR = 0, 0x5EED0001, 0xFA20002
"""Devices, by their numbers."""


def stored(what, x, elsewhere, **options):
    with observe({"x": x}) as seen:
        seen.programs.elsewhere = elsewhere
        if what == "a dot":
            out = torch.empty(16, 16)
            dot_kernel[(1,)](x, out, BLOCK=16)
        else:
            out = torch.empty(BLOCK)
            kernel[(1,)](x, out, WHAT=what, BLOCK=BLOCK, **options)
    return out.flatten().tolist()


def main():
    x = torch.randn(BLOCK, generator=torch.Generator().manual_seed(3))
    found = {}
    for what in sys.argv[1:]:
        found[what] = {
            "here": stored(what, x, HERE),
            "elsewhere": stored(what, x, ELSEWHERE),
            "far": stored(what, x, FAR),
            "unfused": stored(what, x, ELSEWHERE, enable_fp_fusion=False),
        }
    sys.stdout.write(json.dumps(found))


main()
