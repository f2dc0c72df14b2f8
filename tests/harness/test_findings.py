"""Findings: reported without a refusal, and raised to errors where a task is strict; which calls are replayed, and how."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness import DevicePool, Evaluation, Verdict, evaluate, target
from harness.stages.interpreter_findings import add_interpreter_findings
from harness.wire.evaluation import ErrorReport
from suites import Task, baseline_source, load_task
from tests.harness.doubling import BASELINE, TASK, changed, write_doubled
from tests.support.candidates import IMPORTS, KERNEL, adding
from tests.support.evaluations import correct, failed

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]

STRICT = load_task("vector_add")
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
"""Each program stores into the next program's block, too: right only where programs run from the first to the last."""


async def judged(pool: DevicePool, source: str, task: Task = LENIENT, *, exam: bool = False) -> Evaluation:
    return await evaluate(source, task, pool=pool, targets=[target("gfx942")], seed=1, exam=exam)


async def test_a_read_past_the_end_is_reported_and_refuses_where_the_task_is_strict(pool: DevicePool) -> None:
    line = next(
        number for number, text in enumerate(PAST_THE_END.splitlines(), 1) if "offsets)\n" in text + "\n"
    )
    lenient = await judged(pool, PAST_THE_END)
    assert (lenient.verdict, lenient.error) == (Verdict.CORRECT, None)
    (finding,) = lenient.findings
    assert (finding.kind, finding.line) == ("out_of_bounds", line)
    assert "past the end of `y_ptr`" in finding.text
    strict = await judged(pool, PAST_THE_END, STRICT)
    assert strict.error is not None
    assert (strict.verdict, strict.error.kind, strict.error.line) == (Verdict.WRONG, "out_of_bounds", line)


async def test_a_store_past_the_end_refuses_however_lenient_the_task(pool: DevicePool) -> None:
    found = await judged(pool, adding(kernel=KERNEL.replace("x + y, mask=mask", "x + y")))
    assert found.error is not None
    assert (found.verdict, found.error.kind) == (Verdict.WRONG, "out_of_bounds")


async def test_memory_that_nobody_wrote_is_a_finding_where_its_value_is_unused(pool: DevicePool) -> None:
    found = await judged(pool, UNWRITTEN)
    assert (found.verdict, found.error) == (Verdict.CORRECT, None)
    assert {finding.kind for finding in found.findings} == {"uninitialised"}


async def test_one_drawn_call_is_replayed_and_every_call_at_the_exam(pool: DevicePool) -> None:
    def replays(evaluation: Evaluation) -> list[str]:
        return [fact.value for fact in evaluation.facts if fact.name.endswith("replay")]

    (drawn,) = replays(await judged(pool, adding()))
    assert "programs in reverse: 1 launches (add_kernel)" in drawn
    (every,) = replays(await judged(pool, adding(), exam=True))
    repeated, _, rest = every.partition(" of ")
    calls = int(rest.partition(" ")[0])
    assert int(repeated) == calls > 10


async def test_a_kernel_whose_programs_depend_on_their_order_is_refused(pool: DevicePool) -> None:
    found = await judged(pool, IN_ORDER, exam=True)
    assert found.error is not None
    assert found.error.kind == "race"
    assert "run from the last to the first" in found.error.message


async def test_an_input_that_the_task_wants_changed_may_be_changed_and_returned(
    pool: DevicePool, tmp_path: Path
) -> None:
    text = TASK.replace('outlier_inputs = ["x"]\n', 'outlier_inputs = ["x"]\nin_place = ["x"]\n')
    task = write_doubled(tmp_path, task=text)
    in_place = changed(
        ("    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)\n", "    out = x\n"),
        ("out_ptr + row * columns + offsets", "out_ptr + row * row_stride + offsets * column_stride"),
    )
    for source in (in_place, BASELINE):
        found = await judged(pool, source, task)
        assert (found.verdict, found.error) == (Verdict.CORRECT, None)
    twice = in_place.replace(
        "    return out", "        doubled_kernel[(1,)](x, out, 1, 1, 1, 1, BLOCK=128)\n    return out"
    )
    assert (await judged(pool, twice, task)).verdict is Verdict.WRONG


async def test_the_baselines_of_strict_tasks_have_no_finding(pool: DevicePool) -> None:
    for name in ("softmax", "layer_norm"):
        found = await judged(pool, baseline_source(load_task(name)), load_task(name))
        assert (found.verdict, found.findings) == (Verdict.CORRECT, ())


async def test_the_gpu_decides_and_the_interpreters_refusal_is_a_finding() -> None:
    refused = failed(Verdict.WRONG)
    assert refused.error is not None
    found = add_interpreter_findings(correct(), refused)
    assert found.verdict is Verdict.CORRECT
    (finding,) = found.findings
    assert finding.kind == f"interpreter_{refused.error.kind}"
    assert finding.message.startswith("in the interpreter: wrong: ")
    assert add_interpreter_findings(correct(), correct()).findings == ()
    unfinished = add_interpreter_findings(correct(), None)
    assert (unfinished.verdict, unfinished.facts[-1].name) == (Verdict.CORRECT, "interpreter")
    wrong_on_gpu = msgspec.structs.replace(refused, error=ErrorReport(kind="mismatch", message="wrong"))
    assert add_interpreter_findings(wrong_on_gpu, correct()).error == wrong_on_gpu.error
