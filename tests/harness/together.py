# ruff: noqa: N803 -- as kernels are written
"""Runs kernels by their IR, programs together and one by one, and prints what they stored, as JSON; run by the tests."""

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
from harness.worker.ttir import machine
from harness.worker.ttir.endings import Wrong
from harness.worker.ttir.launch import launch
from harness.worker.verifier.kernels_only import Kernels

torch.set_num_threads(1)
prepare(target("gfx942"))

FILE = __file__
BLOCK = 64
GRID = (3, 2, 1)
PROGRAMS = 6


@triton.jit
def later(first, second):
    return tl.where(second > first, second, first)


@triton.jit
def kernel(x_ptr, i_ptr, out_ptr, n, WHAT: tl.constexpr, BLOCK: tl.constexpr):
    program = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    lanes = tl.arange(0, BLOCK)
    own = program * BLOCK + lanes
    x = tl.load(x_ptr + own)
    i = tl.load(i_ptr + own)
    tile = tl.reshape(x, (8, 8))
    out = x
    if WHAT == "arithmetic":
        out = tl.exp(x) / (1 + tl.abs(x)) + (i // 3) * (i % 5) + tl.fma(x, x, x)
    elif WHAT == "sums":
        out = x - tl.max(x) + tl.sum(x) / tl.sum(x * x) + tl.argmin(x, 0)
    elif WHAT == "rows and columns":
        out = tl.reshape(tile - tl.max(tile, 1)[:, None] + tl.sum(tile, 0)[None, :], (BLOCK,))
    elif WHAT == "by a function":
        out = tl.reduce(x, 0, later) + tl.associative_scan(x, 0, later)
    elif WHAT == "running sums":
        out = tl.cumsum(x, 0, reverse=True) + tl.reshape(tl.cumsum(tile, 1), (BLOCK,))
    elif WHAT == "turned":
        out = tl.reshape(tl.trans(tile), (BLOCK,)) + tl.flip(x, 0)
    elif WHAT == "joined":
        one, two = tl.split(tl.join(x, lanes * 1.0))
        both = tl.cat(x, lanes * 1.0, can_reorder=True)
        out = one - two + tl.sum(both * tl.arange(0, 2 * BLOCK))
    elif WHAT == "gathered":
        out = tl.gather(x, BLOCK - 1 - lanes, 0) + tl.gather(lanes, i % BLOCK, 0) + tl.gather(x, i % BLOCK, 0)
    elif WHAT == "a dot":
        square = tl.reshape(
            tl.cat(tl.cat(x, x, can_reorder=True), tl.cat(x, x, can_reorder=True), can_reorder=True), (16, 16)
        )
        same = tl.reshape(tl.arange(0, 256), (16, 16)).to(tl.float32)
        found = tl.dot(square, same) + tl.dot(same, square)
        out = x + tl.sum(found) / 1000
    elif WHAT == "chosen by a number":
        out = tl.where(program > 2, x, 2 * x)
    elif WHAT == "masks":
        out = tl.load(x_ptr + lanes, mask=lanes < 8 * program, other=program) + tl.load(
            x_ptr + lanes, mask=lanes < n
        )
    elif WHAT == "numbers":
        out = x + tl.load(x_ptr + program) + tl.load(x_ptr + 5) + (program.to(tl.float32) / 3)
        tl.store(i_ptr + program, 7 * program)
    elif WHAT == "a loop":
        for at in range(0, n, 16):
            out += tl.load(x_ptr + own % (at + 1)) * at
    elif WHAT == "a branch for all":
        if n > 3:
            out = x * 2
    elif WHAT == "one place":
        tl.store(out_ptr + lanes, x)
        out_ptr += BLOCK
    elif WHAT == "a loop by program":
        for _ in range(program + 1):
            out += x
    elif WHAT == "a branch by program":
        if program % 2 == 1:
            out = x * 2
    elif WHAT == "an end by program":
        if program == 4:
            return
    elif WHAT == "hands on":
        before = tl.load(out_ptr + own - BLOCK, mask=own >= BLOCK, other=0.0)
        out = before + x
    elif WHAT == "hands back":
        out = x + tl.load(out_ptr + own + BLOCK, mask=own + BLOCK < 6 * BLOCK, other=0.0)
    elif WHAT == "stores twice":
        tl.store(out_ptr + own + BLOCK // 2, 2 * x, mask=own + BLOCK // 2 < 6 * BLOCK)
    elif WHAT == "in place":
        out = tl.load(out_ptr + own) + x
    elif WHAT == "half an element":
        tl.store(
            out_ptr.to(tl.pointer_type(tl.int8)) + 4 * own + 6, (i + 1).to(tl.int8), mask=own < 6 * BLOCK - 2
        )
    elif WHAT == "atomics":
        out = x + tl.atomic_add(i_ptr + 0, 1)
    elif WHAT == "a swap":
        out = x + tl.atomic_cas(i_ptr + 0, program, program + 1)
    elif WHAT == "counted":
        out = x + tl.max(tl.histogram(i % (program + 1), 8), 0)
    elif WHAT == "waits":
        while tl.load(i_ptr + 1, volatile=True) != program * 5:
            if program == 0:
                tl.store(i_ptr + 1, 0)
        tl.store(i_ptr + 1, 5 * program + 5)
    elif WHAT == "outside":
        out = tl.load(x_ptr + own + (program == 4) * 100000)
    tl.store(out_ptr + own, out, mask=own < 6 * BLOCK)


SOURCE = Path(FILE).read_text(encoding="utf-8")
FUNCTIONS = jit_functions(SOURCE)


def ran(what, lanes):
    """With so many lanes at once; how many programs that left in the end."""
    machine.MOST_LANES = lanes
    language = {"tl": Language("triton.language")}
    notes = (
        FunctionNotes(FUNCTIONS["later"], language, (), ()),
        FunctionNotes(FUNCTIONS["kernel"], language | {"later": FUNCTIONS["later"]}, ("WHAT", "BLOCK"), ()),
    )
    functions = Kernels(SOURCE, FILE, lambda value: value).build(notes, readable=True)
    own = functions[FUNCTIONS["kernel"]]
    x = torch.randn(PROGRAMS * BLOCK, generator=torch.Generator().manual_seed(3))
    i = torch.arange(PROGRAMS * BLOCK, dtype=torch.int32) * 7 % 50
    out = torch.full(((PROGRAMS + 1) * BLOCK,), -7.0)
    arguments = {"x_ptr": x, "i_ptr": i, "out_ptr": out, "n": 37, "WHAT": what, "BLOCK": BLOCK}
    told = ""
    with observe({"x": x, "i": i, "out": out}) as seen:
        try:
            launch(own, GRID, arguments, {}, seen)
        except Wrong as wrong:
            told = f"line {wrong.line}: {wrong}"
        marked = {
            name: int(seen.origin(one).allocation.writes.sum()) for name, one in (("i", i), ("out", out))
        }
    module, _ = own.read(arguments, {})
    return {"out": out.tolist(), "i": i.tolist(), "told": told, "marked": marked, "at once": module.at_once}


sys.stdout.write(json.dumps({what: [ran(what, 1 << 16), ran(what, 1)] for what in sys.argv[1:]}))
