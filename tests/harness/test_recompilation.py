"""Code that is held beside what a clean process compiles from the text: what a hostile compiling process may say, and what is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness import Basis, DevicePool, Verdict, target
from harness.compilation import Compiler, TargetReport
from harness.evaluation import ErrorReport
from harness.limits import TimeLimits
from harness.recompilation import MOST, OTHER_CODE, fact, refusal
from harness.worker.serving.messages import FirstCallPassed
from harness.worker.serving.records import Function, FunctionNotes
from suites import load_task
from tests.support.judging import judge, pool

__all__ = ["pool"]
pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]

SOURCE = """
import torch
import triton
import triton.language as tl

SHIFT = tl.constexpr(2)


@triton.jit(noinline=True)
def shifted(x, by):
    return x + by


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.device_assert(shifted(n, SHIFT) > 0, "nothing to do")
    tl.store(out_ptr + offsets, total, mask=mask)


@triton.constexpr_function
def endless(x):
    while True:
        x += 1


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out
"""
ADD = Function("add_kernel", SOURCE[: SOURCE.index("@triton.jit\ndef add_kernel")].count("\n") + 1)
GFX942 = target("gfx942")


async def compiled(pool: DevicePool, source: str = SOURCE) -> TargetReport:
    """What the compiling process says of one launch of `vector_add`."""
    tensor = {"shape": (5000,), "strides": (1,), "dtype": "float32"}
    cases = [{"case": "one", "arguments": [{"name": "x"} | tensor, {"name": "y"} | tensor]}]
    specified = msgspec.Raw(msgspec.msgpack.encode(cases))
    none = msgspec.Raw(msgspec.msgpack.encode(()))
    compiler = Compiler(pool, load_task("vector_add"), source, TimeLimits())
    report = await compiler.compile(GFX942, FirstCallPassed(cases=specified, once=none, ahead=none))
    assert report.error is None
    assert len(report.asked) == len(report.resources) == 1
    return report


def saying(report: TargetReport, **other: Any) -> TargetReport:
    """The report of a process that lies about what its code was made of."""
    asked = tuple(msgspec.structs.replace(one, **other) for one in report.asked)
    return msgspec.structs.replace(report, asked=asked)


async def held(
    pool: DevicePool, report: TargetReport, source: str = SOURCE, limit_s: float = 60.0
) -> tuple[Verdict, ErrorReport] | None:
    return await refusal(pool, source, GFX942, report, limit_s)


async def test_a_kernel_with_assertions_and_functions_of_its_own_is_the_texts(pool: DevicePool) -> None:
    assert await held(pool, await compiled(pool)) is None


async def test_code_of_another_text_is_refused(pool: DevicePool) -> None:
    refused = await held(pool, await compiled(pool), SOURCE.replace("x_ptr + offsets", "y_ptr + offsets"))
    assert refused is not None
    assert (refused[0], refused[1].kind) == (Verdict.REJECTED, OTHER_CODE)
    assert "`add_kernel`" in refused[1].message


async def test_code_that_nobody_asked_for_is_refused(pool: DevicePool) -> None:
    refused = await held(pool, msgspec.structs.replace(await compiled(pool), asked=()))
    assert refused is not None
    assert refused[1].kind == OTHER_CODE


NOTES = FunctionNotes(ADD, {}, ("BLOCK",), ())
LIES: dict[str, dict[str, Any]] = {
    "another constant": {"constants": (((4,), 512),)},
    "another option": {"options": {"num_warps": 8}},
    "no such function": {"kernel": Function("add_kernel", 1), "functions": (FunctionNotes(Function("add_kernel", 1), {}, (), ()),)},
    "a function without notes": {"functions": ()},
    "a signature of numbers": {"signature": {"x_ptr": 5}},
    "a constant far away": {"constants": (((400,), 512),)},
    "attributes of no kind": {"attributes": (((0,), "aligned"), ((1,), [[7]]))},
    "an option that is none": {"options": {"num_warps": "many"}},
    "a module as a name": {"functions": (msgspec.structs.replace(NOTES, names={"tl": 7, "SHIFT": None}),)},
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
async def test_what_a_hostile_process_says_gives_another_code_or_none(pool: DevicePool, lie: str) -> None:
    refused = await held(pool, saying(await compiled(pool), **LIES[lie]))
    assert refused is not None, lie
    assert (refused[0], refused[1].kind) == (Verdict.REJECTED, OTHER_CODE)
    assert "\n" not in refused[1].message


async def test_a_text_that_compiles_for_ever_ends_at_the_limit(pool: DevicePool) -> None:
    report = await compiled(pool)
    source = SOURCE.replace("BLOCK + tl.arange", "endless(BLOCK) + tl.arange")
    endless = Function("endless", source[: source.index("@triton.constexpr_function")].count("\n") + 1)
    (notes,) = [one for one in report.asked[0].functions if one.function == ADD]
    functions = (
        *(one for one in report.asked[0].functions if one.function != ADD),
        msgspec.structs.replace(notes, names=notes.names | {"endless": endless}),
        FunctionNotes(endless, {}, (), (), computes_constants=True),
    )
    refused = await held(pool, saying(report, functions=functions), source, limit_s=3.0)
    assert refused is not None
    assert (refused[0], refused[1].kind) == (Verdict.UNSUPPORTED, "unproven")
    assert "within 3 s" in refused[1].message


async def test_what_cannot_be_told_is_unproven(pool: DevicePool) -> None:
    report = TargetReport(untold="`add_kernel` is compiled with a value of the type object")
    refused = await held(pool, report)
    assert refused is not None
    assert refused[0] is Verdict.UNSUPPORTED


async def test_the_evaluation_says_how_much_was_compiled_again(pool: DevicePool) -> None:
    found = await judge(pool, SOURCE.replace("@triton.constexpr_function", ""), "vector_add")
    assert (found.verdict, found.error) == (Verdict.CORRECT, None)
    (told,) = [one for one in found.facts if one.name == "compiled code"]
    assert told.basis is Basis.PROOF
    count = len({one.code_sha256 for one in found.resources["gfx942"]})
    assert told.value.startswith(f"{count} of {count} ")


async def test_one_code_told_of_many_times_hides_no_other(pool: DevicePool) -> None:
    report, own = await compiled(pool), "a code of its own"
    (row,), (honest,) = report.resources, report.asked
    report = msgspec.structs.replace(
        report,
        resources=(row,) * 500 + (msgspec.structs.replace(row, code_sha256=own),),
        asked=(honest,) * 500 + (msgspec.structs.replace(honest, code_sha256=own),),
    )
    refused = await held(pool, report)
    assert refused is not None
    assert refused[1].kind == OTHER_CODE


async def test_of_more_codes_than_are_made_again_some_are_drawn_and_that_is_told(pool: DevicePool) -> None:
    report = await compiled(pool)
    (row,), (honest,) = report.resources, report.asked
    codes = [f"{number:064x}" for number in range(MOST + 5)]
    report = msgspec.structs.replace(
        report,
        resources=tuple(msgspec.structs.replace(row, code_sha256=code) for code in codes),
        asked=tuple(msgspec.structs.replace(honest, code_sha256=code) for code in codes),
    )
    assert fact(report).value.startswith(f"{MOST} of {MOST + 5} ")
    refused = await held(pool, report)
    assert refused is not None
    assert refused[1].kind == OTHER_CODE
