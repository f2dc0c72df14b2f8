# ruff: noqa: B007, N803, RET504 -- as kernels are written, with a name where one is looked for
"""
Loops that load what they stored a turn before, or the same turn, into `kept`; what a compiler makes of each, or what the interpreter says of it, as JSON.

    python pipelined_kernels.py TARGET compiled|interpreted
"""

import json
import os
import re
import sys

if sys.argv[-1] == "interpreted":
    os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton
import triton.language as tl

KERNELS = {}
EARLY = re.compile(r"%kept\w* = (?:tt\.load|ttg\.async_copy_global_to_local|amdg\.buffer_load)")


def case(kernel):
    KERNELS[kernel.fn.__name__] = kernel
    return kernel


@case
@triton.jit
def with_stages(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, B)
    for turn in tl.range(0, turns, num_stages=3):
        kept = tl.load(o + at)
        tl.store(o + at, kept + tl.load(x + at + turn * B))


@case
@triton.jit
def with_one_stage(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, B)
    for turn in tl.range(0, turns, num_stages=1):
        kept = tl.load(o + at)
        tl.store(o + at, kept + tl.load(x + at + turn * B))


@case
@triton.jit
def without_stages(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, B)
    for turn in range(turns):
        kept = tl.load(o + at)
        tl.store(o + at, kept + tl.load(x + at + turn * B))


@case
@triton.jit
def with_a_barrier(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, B)
    for turn in tl.range(0, turns, num_stages=3):
        kept = tl.load(o + at)
        tl.store(o + at, kept + tl.load(x + at + turn * B))
        tl.debug_barrier()


@case
@triton.jit
def behind_a_condition(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, B)
    for turn in tl.range(0, turns, num_stages=3):
        held = tl.load(x + at + turn * B)
        if turn < n:
            kept = tl.load(o + at)
            tl.store(o + at, kept + held)


@case
@triton.jit
def behind_a_constant_condition(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, B)
    for turn in tl.range(0, turns, num_stages=3):
        if B > 2:
            kept = tl.load(o + at)
            tl.store(o + at, kept + tl.load(x + at + turn * B))


@case
@triton.jit
def around_a_loop(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, B)
    for turn in tl.range(0, turns, num_stages=3):
        kept = tl.load(o + at)
        for inner in range(n):
            kept += tl.load(x + at + inner)
        tl.store(o + at, kept)


@case
@triton.jit
def around_a_loop_behind_a_condition(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, B)
    for turn in tl.range(0, turns, num_stages=3):
        kept = tl.load(o + at)
        if turn < n:
            for inner in range(n):
                kept += tl.load(x + at + inner)
        tl.store(o + at, kept)


@case
@triton.jit
def around_a_loop_of_one_turn(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, B)
    for turn in tl.range(0, turns, num_stages=3):
        kept = tl.load(o + at)
        for inner in range(B // B):
            kept += tl.load(x + at + inner)
        tl.store(o + at, kept)


@case
@triton.jit
def in_a_loop_of_one_turn(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, B)
    for turn in tl.range(0, turns, num_stages=3):
        for inner in range(B, B + 1):
            kept = tl.load(o + at)
            tl.store(o + at, kept + tl.load(x + at + turn * B))


@case
@triton.jit
def in_an_unrolled_loop(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, B)
    for turn in tl.range(0, turns, num_stages=3):
        for inner in tl.static_range(2):
            kept = tl.load(o + at + inner * B)
            tl.store(o + at + inner * B, kept + tl.load(x + at + turn * B))


@case
@triton.jit
def around_a_wait(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, B)
    for turn in tl.range(0, turns, num_stages=3):
        kept = tl.load(o + at)
        while tl.atomic_add(x, 0.0) == -1.0:
            pass
        tl.store(o + at, kept + 1.0)


@case
@triton.jit
def one_value(x, o, n, turns, B: tl.constexpr):
    for turn in tl.range(0, turns, num_stages=3):
        kept = tl.load(o)
        tl.store(o, kept + tl.sum(tl.load(x + tl.arange(0, B) + turn * B), axis=0))


@case
@triton.jit
def one_narrow_value(x, o, n, turns, B: tl.constexpr):
    o = o.to(tl.pointer_type(tl.float16))
    for turn in tl.range(0, turns, num_stages=3):
        kept = tl.load(o)
        tl.store(o, (kept + tl.sum(tl.load(x + tl.arange(0, B) + turn * B), axis=0)).to(tl.float16))
        tl.debug_barrier()


@case
@triton.jit
def by_an_atomic(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, B)
    for turn in tl.range(0, turns, num_stages=3):
        kept = tl.load(o + at, volatile=True)
        tl.atomic_add(o + at, kept + tl.load(x + at + turn * B))


@case
@triton.jit
def in_the_same_turn(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, B)
    for turn in tl.range(0, turns, num_stages=3):
        tl.store(o + at, tl.load(x + at + turn * B))
        kept = tl.load(o + at)
        tl.store(x + at + turn * B, kept * 2.0)


@triton.jit
def loaded(place):
    kept = tl.load(place)
    return kept


@case
@triton.jit
def in_a_function(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, B)
    for turn in tl.range(0, turns, num_stages=3):
        tl.store(o + at, loaded(o + at) + tl.load(x + at + turn * B))


@case
@triton.jit
def for_a_dot(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    for turn in range(turns):
        kept = tl.load(o + at)
        tl.store(o + at, tl.dot(kept * 2.0, tl.load(x + at)) + 1.0)


@triton.jit
def product(left, right):
    return tl.dot(left, right)


@case
@triton.jit
def for_a_dot_in_a_function(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    for turn in range(turns):
        kept = tl.load(o + at)
        tl.store(o + at, product(kept, tl.load(x + at)) + 1.0)


@case
@triton.jit
def beside_a_dot(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    for turn in range(turns):
        kept = tl.load(o + at)
        right = tl.load(x + at)
        tl.store(o + at, tl.dot(tl.load(x + at + turn), right) + kept)


@case
@triton.jit
def beside_a_dot_with_stages(x, o, n, turns, B: tl.constexpr):
    at = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    for turn in tl.range(0, turns, num_stages=3):
        kept = tl.load(o + at)
        right = tl.load(x + at)
        tl.store(o + at, tl.dot(tl.load(x + at + turn), right, kept))


class Seen(Exception):
    """Stops the compiler where it has made its loops."""


def stop(*given):
    if not given:
        return "", ""
    stages = given[1]

    def seen(module, metadata):
        raise Seen(str(module))

    stages["llir"] = seen
    return None


def compiled(kernel, target) -> bool:
    """Whether `kept` is loaded before the loop as well."""
    kinds = {"x": "*fp32", "o": "*fp32", "n": "i32", "turns": "i32", "B": "constexpr"}
    source = triton.compiler.ASTSource(kernel, kinds, {"B": 256})
    triton.knobs.compilation.always_compile = True
    triton.knobs.runtime.add_stages_inspection_hook = stop
    try:
        triton.compile(source, target=shim.gpu_target(target), options={"num_stages": 3})
    except Seen as seen:
        before, loop, _ = str(seen).partition("scf.for")
        assert loop
        return EARLY.search(before) is not None
    raise AssertionError("the compiler has other stages")


def interpreted(kernel) -> bool:
    """Whether it is told of: where it runs in Python, is written down, and goes by what was written."""
    told = set()
    for _ in range(3):
        x, o = torch.rand(4096), torch.rand(1024)
        with observe({"x": x, "o": o}) as seen:
            kernel[(1,)](x, o, 2, 3, B=256)
        told.add(bool(seen.races))
    (same,) = told
    return same


if __name__ == "__main__":
    from harness.targets import target
    from harness.worker.interpreter import shim
    from harness.worker.interpreter.interpreter import observe, prepare

    asked = target(sys.argv[1])
    if sys.argv[-1] == "interpreted":
        prepare(asked)
        found = {name: interpreted(kernel) for name, kernel in KERNELS.items()}
    else:
        found = {name: compiled(kernel, asked) for name, kernel in KERNELS.items()}
    sys.stdout.write(json.dumps(found))
