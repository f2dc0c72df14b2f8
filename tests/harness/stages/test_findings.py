"""Protects findings: reported by a lenient task, errors of a strict task."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness import DevicePool, Verdict
from harness.stages.sanitizer import PROOFS, add_pass
from harness.wire.results.evaluation import ErrorReport
from suites import load_task
from tests.support.draws import drawn
from tests.support.judge.candidates import IMPORTS, KERNEL, adding
from tests.support.judge.evaluations import correct, failed
from tests.support.judge.judging import judge_task
from tests.support.tasks.doubled_task import BASELINE, TASK, changed, write_doubled

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]

VECTOR_ADD = load_task("vector_add")
STRICT = msgspec.structs.replace(VECTOR_ADD, cases=VECTOR_ADD.cases[:2])
LENIENT = msgspec.structs.replace(STRICT, strict=())
PAST_THE_END = adding(
    kernel=KERNEL.replace("tl.load(y_ptr + offsets, mask=mask)", "tl.load(y_ptr + offsets)")
)
UNWRITTEN = adding(
    kernel=KERNEL.replace("x + y", "tl.where(offsets < 0, tl.load(out_ptr + offsets, mask=mask), x + y)")
)
IN_ORDER = (
    IMPORTS
    + """
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + offsets, mask=offsets < n) + tl.load(y_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, total, mask=offsets < n)
    tl.store(out_ptr + offsets + BLOCK, total, mask=offsets + BLOCK < n)


def vector_add(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out
"""
)
"""Each program also stores into the next program's block: correct only if programs run from first to last."""


async def test_read_past_the_end_is_refused_only_by_strict_task(pool: DevicePool) -> None:
    line = next(
        number for number, text in enumerate(PAST_THE_END.splitlines(), 1) if "offsets)\n" in text + "\n"
    )
    lenient = await judge_task(pool, PAST_THE_END, LENIENT)
    assert (lenient.verdict, lenient.error) == (Verdict.CORRECT, None)
    (finding,) = lenient.findings
    assert (finding.kind, finding.line) == ("out_of_bounds", line)
    assert "past the end of `y_ptr`" in finding.text
    strict = await judge_task(pool, PAST_THE_END, STRICT)
    assert (strict.verdict, strict.error.kind, strict.error.line) == (Verdict.WRONG, "out_of_bounds", line)


async def test_store_past_the_end_is_refused_by_lenient_task(pool: DevicePool) -> None:
    evaluation = await judge_task(pool, adding(kernel=KERNEL.replace("x + y, mask=mask", "x + y")), LENIENT)
    assert (evaluation.verdict, evaluation.error.kind) == (Verdict.WRONG, "out_of_bounds")


async def test_unused_read_of_uninitialised_memory_is_a_finding(pool: DevicePool) -> None:
    evaluation = await judge_task(pool, UNWRITTEN, LENIENT)
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)
    assert {finding.kind for finding in evaluation.findings} == {"uninitialised"}


async def test_kernel_that_depends_on_program_order_is_refused(pool: DevicePool) -> None:
    evaluation = await judge_task(pool, IN_ORDER, LENIENT, exam=True)
    assert evaluation.error.kind == "race"
    assert "its programs run in another order" in evaluation.error.message


async def test_in_place_task_allows_changed_and_returned_input(pool: DevicePool, tmp_path: Path) -> None:
    text = TASK.replace('outlier_inputs = ["x"]\n', 'outlier_inputs = ["x"]\nin_place = ["x"]\n')
    task = write_doubled(tmp_path, task=text)
    in_place = changed(
        ("    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)\n", "    out = x\n"),
        ("out_ptr + row * columns + offsets", "out_ptr + row * row_stride + offsets * column_stride"),
    )
    for source in drawn((in_place, BASELINE), 1):
        evaluation = await judge_task(pool, source, task)
        assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)
    twice = in_place.replace(
        "    return out", "        doubled_kernel[(1,)](x, out, 1, 1, 1, 1, BLOCK=128)\n    return out"
    )
    assert (await judge_task(pool, twice, task)).verdict is Verdict.WRONG


async def test_gpu_verdict_decides_and_interpreter_refusal_is_a_finding() -> None:
    refused = failed(Verdict.WRONG)
    combined = add_pass(correct(), refused)
    assert combined.verdict is Verdict.CORRECT
    (finding,) = combined.findings
    assert finding.kind == f"interpreter_{refused.error.kind}"
    assert finding.message.startswith("in the interpreter: wrong: ")
    assert add_pass(correct(), correct()).findings == ()
    wrong_on_gpu = msgspec.structs.replace(refused, error=ErrorReport(kind="mismatch", message="wrong"))
    assert add_pass(wrong_on_gpu, correct()).error == wrong_on_gpu.error


@pytest.mark.parametrize("kind", PROOFS)
async def test_proof_of_the_interpreter_refuses_what_the_gpu_accepts(kind: str) -> None:
    proof = msgspec.structs.replace(failed(Verdict.WRONG), error=ErrorReport(kind=kind, message="proven"))
    combined = add_pass(correct(), proof)
    assert (combined.verdict, combined.error.message) == (Verdict.WRONG, "in the interpreter: proven")
    assert (combined.latency, combined.speedup, combined.findings) == ((), None, ())
    assert [stage.name for stage in combined.stages if stage.ok is False] == ["integrity"]
    crashed = failed(Verdict.CRASH)
    assert add_pass(crashed, proof).error == crashed.error, "the GPU's own error comes first"
