# ruff: noqa: N803 -- as kernels are written
"""Runs kernels by their IR and prints what they stored beside what torch or the interpreter gives, as JSON; run by the tests."""

import json
import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton
import triton.language as tl
from jit_functions import jit_functions

from harness.targets import target
from harness.worker.interpreter.interpreter import observe, prepare
from harness.worker.serving.records import FunctionNotes, Language
from harness.worker.ttir.endings import Unread, Wrong
from harness.worker.ttir.launch import launch
from harness.worker.ttir.lowering import NotLowered
from harness.worker.verifier.kernels_only import Kernels

torch.set_num_threads(1)
prepare(target("gfx942"))

from triton.language.extra import libdevice  # noqa: E402 -- after the process is prepared, as a guest does it

FILE = __file__
BLOCK = 64


@triton.jit
def later(first, second):
    return tl.where(second > first, second, first)


@triton.jit
def larger(first, at_first, second, at_second):
    takes = second > first
    return tl.where(takes, second, first), tl.where(takes, at_second, at_first)


@triton.jit
def ordered(a, b):
    if a > b:
        return a, b
    return b, a


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def kernel(x_ptr, i_ptr, out_ptr, n, scale, WHAT: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes)
    i = tl.load(i_ptr + lanes)
    if WHAT == "arithmetic":
        out = (x * 1.5 - 2.0) / (tl.abs(x) + 1.0) + scale
    elif WHAT == "functions":
        out = (
            tl.exp(x)
            + tl.exp2(x)
            + tl.log(tl.abs(x) + 1)
            + tl.sqrt(tl.abs(x))
            + tl.sin(x)
            + tl.cos(x)
            + tl.floor(x)
            + tl.erf(x)
        )
    elif WHAT == "a device's library":
        out = libdevice.tanh(x) + tl.extra.libdevice.pow(tl.abs(x), x)
    elif WHAT == "a device's predicate":
        out = tl.where(libdevice.isnan(x / (x - x)), 1.0, 2.0)
    elif WHAT == "integers":
        out = (i // 3 + i % 5 + (i >> 1) + (i << 2) + (i & 12) + (i | 3) + (i ^ 9) - (-i)).to(tl.float32)
    elif WHAT == "unsigned integers":
        u = (i - 20).to(tl.uint32, bitcast=True)
        out = ((u // 7) % 1000 + (u >> 28) + (u > 100).to(tl.uint32)).to(tl.float32)
    elif WHAT == "integers that overflow":
        out = ((i * 123456789).to(tl.int8) + i.to(tl.int8) * 100).to(tl.float32)
    elif WHAT == "wide products":
        out = (tl.umulhi(i * 123456789, 987654321)).to(tl.float32)
    elif WHAT == "comparisons":
        nan = tl.where(lanes % 7 == 0, float("nan"), x)
        out = (
            (nan > 0).to(tl.float32)
            + (nan != nan).to(tl.float32) * 2
            + (i >= 30).to(tl.float32) * 4
            + (nan <= 0) * 8.0
        )
    elif WHAT == "least and most":
        nan = tl.where(lanes % 7 == 0, float("nan"), x)
        out = tl.maximum(nan, 0.1) + tl.minimum(i, 9) + tl.clamp(x, -0.5, 0.5)
    elif WHAT == "casts":
        out = (
            x.to(tl.float16).to(tl.float32)
            + x.to(tl.bfloat16).to(tl.float32)
            + (x * 10).to(tl.int32)
            + i.to(tl.float64).to(tl.float32)
        )
    elif WHAT == "eight bits":
        out = x.to(tl.float8e5).to(tl.float32) + x.to(tl.float8e4b8).to(tl.float32)
    elif WHAT == "bits":
        out = (x.to(tl.int32, bitcast=True) ^ 1).to(tl.float32, bitcast=True)
    elif WHAT == "a sum":
        out = x * 0 + tl.sum(x) + tl.max(x) + tl.min(x)
    elif WHAT == "places":
        out = x * 0 + tl.argmax(x, 0) * 100 + tl.argmin(x, 0)
    elif WHAT == "a reduction by a function":
        out = x * 0 + tl.reduce(x, 0, later)
    elif WHAT == "a pair reduced":
        largest, at = tl.reduce((x, i), 0, larger)
        out = x * 0 + largest + at
    elif WHAT == "mapped":
        large, small = tl.map_elementwise(ordered, x, -x)
        out = large * 2 - small
    elif WHAT == "running sums":
        out = tl.cumsum(x) + tl.cumsum(x, reverse=True) + tl.associative_scan(i, 0, add)
    elif WHAT == "shapes":
        two = tl.reshape(x, (8, 8))
        out = tl.reshape(
            tl.trans(two) + tl.sum(two, axis=1)[:, None] + tl.sum(two, axis=0)[None, :], (BLOCK,)
        )
    elif WHAT == "joined and split":
        left, right = tl.split(tl.reshape(x, (32, 2)))
        out = tl.reshape(tl.join(right, left), (BLOCK,))
    elif WHAT == "gathered":
        out = tl.gather(x, (lanes * 5) % BLOCK, 0)
    elif WHAT == "counted":
        out = tl.histogram(i % 8, BLOCK).to(tl.float32)
    elif WHAT == "a dot":
        two = tl.reshape(x, (8, 8))
        wide = tl.reshape(tl.broadcast_to(two[:, None, :], (8, 2, 8)), (16, 8))
        wide = tl.reshape(tl.broadcast_to(wide[:, :, None], (16, 8, 2)), (16, 16))
        out = x * 0 + tl.sum(tl.dot(wide, wide, input_precision="ieee"))
    elif WHAT == "sorted":
        out = tl.sort(x)
    elif WHAT == "loops":
        out = x
        for step in range(0, n, 7):
            out += step
        count = 0
        while count < n:
            count += 3
            if count % 2 == 0:
                out += count
            else:
                out -= 1.0
    elif WHAT == "a loop of blocks":
        out = x * 0
        for start in tl.range(0, BLOCK, 16, num_stages=2):
            part = tl.load(x_ptr + start + tl.arange(0, 16))
            out += tl.sum(part)
    elif WHAT == "masks":
        part = tl.load(x_ptr + lanes, mask=lanes < n, other=-1.0)
        tl.store(out_ptr + lanes, part)
        out = tl.load(out_ptr + lanes) * 2
    elif WHAT == "atomics":
        tl.store(out_ptr + lanes, x * 0)
        old = tl.atomic_add(out_ptr + lanes // 2, 1.0)
        tl.atomic_max(out_ptr + 40 + lanes // 8, x)
        one = tl.atomic_cas(i_ptr + 0, 1, 9)
        out = tl.load(out_ptr + lanes) + old * 0 + one + tl.atomic_xchg(i_ptr + 1, 3)
    elif WHAT == "block pointers":
        block = tl.make_block_ptr(x_ptr, (n,), (1,), (8,), (BLOCK,), (0,))
        out = tl.load(block, boundary_check=(0,), padding_option="zero")
    elif WHAT == "descriptors":
        made = tl.make_tensor_descriptor(x_ptr, [8, 8], [8, 1], [4, 8])
        out = tl.reshape(tl.join(made.load([2, 0]), made.load([6, 0])), (BLOCK,))
    elif WHAT == "programs":
        out = x * 0 + tl.program_id(0) + 10 * tl.num_programs(1)
    elif WHAT == "annotated constants":
        width: tl.constexpr = BLOCK // 2
        out = x + tl.sum(tl.arange(0, width))
    elif WHAT == "an early end":
        out = x
        if n > 1000:
            return
    elif WHAT == "outside":
        out = tl.load(x_ptr + lanes + n * 100)
    tl.store(out_ptr + lanes, out)


@triton.jit
def typed(x_ptr, i_ptr, out_ptr, n: tl.int8, scale, WHAT: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.load(x_ptr + lanes) * 0 + n * scale)


@triton.jit
def wrong(x_ptr, i_ptr, out_ptr, n, scale, WHAT: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + tl.arange(0, 48)))


@triton.jit
def assembled(x_ptr, i_ptr, out_ptr, n, scale, WHAT: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes)
    out = tl.inline_asm_elementwise("v_mov $0, $1", "=v,v", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out_ptr + lanes, out)


SOURCE = Path(FILE).read_text(encoding="utf-8")
FUNCTIONS = jit_functions(SOURCE)
CONSTANTS = ("WHAT", "BLOCK")


def notes():
    language = {"tl": Language("triton.language")}
    helpers = {name: FUNCTIONS[name] for name in ("later", "larger", "ordered", "add")}
    known = language | helpers | {"libdevice": Language("triton.language.extra.libdevice")}
    return (
        *(FunctionNotes(FUNCTIONS[name], language, (), ()) for name in helpers),
        FunctionNotes(FUNCTIONS["kernel"], known, CONSTANTS, ()),
        *(FunctionNotes(FUNCTIONS[name], language, CONSTANTS, ()) for name in ("wrong", "assembled")),
        FunctionNotes(FUNCTIONS["typed"], language, CONSTANTS, (), types={"n": "i8"}),
    )


def inputs():
    x = torch.randn(BLOCK, generator=torch.Generator().manual_seed(3))
    return x, torch.arange(BLOCK, dtype=torch.int32), torch.full((BLOCK,), -7.0)


def lowered(functions, name, what, n, scale):
    x, i, out = inputs()
    arguments = {"x_ptr": x, "i_ptr": i, "out_ptr": out, "n": n, "scale": scale, "WHAT": what, "BLOCK": BLOCK}
    with observe({"x": x, "i": i, "out": out}) as seen:
        try:
            launch(functions[FUNCTIONS[name]], (3, 2, 1), arguments, {}, seen)
        except (Wrong, NotLowered, Unread) as error:
            return {"error": type(error).__name__, "told": str(error), "line": getattr(error, "line", None)}
    return {"out": out.tolist(), "launches": [one.programs for one in seen.launches]}


def interpreted(what, n, scale):
    x, i, out = inputs()
    with observe({"x": x, "i": i, "out": out}):
        kernel[(3, 2, 1)](x, i, out, n, scale, WHAT=what, BLOCK=BLOCK)
    return out.tolist()


def main():
    functions = Kernels(SOURCE, FILE, lambda value: value).build(notes(), readable=True)
    found = {}
    for what in sys.argv[1:]:
        name = what if what in FUNCTIONS else "kernel"
        found[what] = lowered(functions, name, what, 300 if name == "typed" else 37, 1.25)
        if name == "kernel" and what not in ("outside", "mapped"):
            found[what]["interpreted"] = interpreted(what, 37, 1.25)
    found["line of wrong"] = FUNCTIONS["wrong"].line
    found["x"] = inputs()[0].tolist()
    sys.stdout.write(json.dumps(found))


main()
