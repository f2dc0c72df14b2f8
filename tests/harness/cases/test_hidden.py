"""Protects hidden cases with real judges: each kind finds a kernel that is wrong only there, and honest kernels pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import Basis, DevicePool, Verdict
from suites import Task, baseline_source, load_task
from tests.support.draws import drawn
from tests.support.judge.judging import judge_task
from tests.support.tasks.doubled_task import BASELINE, PROBLEM, TASK, changed, write_doubled

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]

WRAPPER = "def doubled(x):\n    rows, columns = x.shape\n"
LAUNCH = "doubled_kernel[(rows,)](x, out, rows, columns, x.stride(0), x.stride(1), BLOCK=128)"


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return write_doubled(tmp_path)


async def test_general_kernel_is_correct_in_every_hidden_case(pool: DevicePool, task: Task) -> None:
    """Every call is compared, and the worst call is the margin of a kernel that is a little off."""
    evaluation = await judge_task(pool, changed(("2 * x, mask=mask", "x * 2.000001, mask=mask")), task)
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)
    names = {margin.case for margin in evaluation.margins}
    assert names >= {
        "plain",
        "wide",
        "hidden: ragged float32",
        "hidden: small, of parameters",
        "hidden: rows=1",
        "hidden: columns=1",
        "hidden: offset, without gradients",
        "hidden: unaligned",
        "hidden: transposed",
        "hidden: padded rows",
        "hidden: every second element",
        "hidden: multiples of 16",
        "hidden: large values",
    }
    assert [traffic.case for traffic in evaluation.traffic] == ["plain", "wide"]
    assert {row.case for rows in evaluation.resources.values() for row in rows} == {"plain"}
    calls = next(fact for fact in evaluation.facts if fact.name == "calls with right answers")
    assert (int(calls.value) >= 20, calls.basis) == (True, Basis.PROOF)
    used = {margin.case: margin.used for margin in evaluation.margins if margin.measure == "elementwise"}
    assert 0.3 < used["plain"] < 1
    assert set(used) == names
    with_empty_launch = changed(("    if out.numel():\n        doubled_kernel", "    doubled_kernel"))
    assert (await judge_task(pool, with_empty_launch, task)).verdict is Verdict.CORRECT


MASK, VALUE, SHAPE = "mask = offsets < columns", "2 * x, mask=mask", "rows, columns = x.shape\n"
STRIDES = "x.stride(0), x.stride(1)"


WRONG_IN_ONE_KIND = [
    (MASK, "mask = offsets < (columns // 8) * 8", "hidden: ragged"),
    (MASK, "mask = offsets < tl.where(columns % 16 == 0, columns // 64 * 64, columns)", "hidden: multiples of 16"),
    ("[(rows,)]", "[(rows // 4 * 4,)]", "hidden: "),
    ("[(rows,)]", "[(min(rows, 16),)]", "hidden: "),
    ("[(rows,)]", "[(max(rows, 2) // 2 * 2,)]", "hidden: "),
    (STRIDES, "columns, 1", "hidden: transposed"),
    (STRIDES, "columns * x.stride(1), x.stride(1)", "hidden: transposed"),
    (STRIDES, "x.stride(0), 1", "hidden: transposed"),
    ("(x, out", "(x.as_strided(x.shape, x.stride(), 0), out", "hidden: offset, without gradients"),
    (SHAPE, SHAPE + "    assert not x.requires_grad\n", "hidden: small, of parameters"),
    (SHAPE, SHAPE + "    assert torch.is_grad_enabled()\n", "hidden: offset, without gradients"),
    (SHAPE, SHAPE + "    assert columns > 1\n", "hidden: columns=1"),
    (SHAPE, SHAPE + "    blocks = 1024 // columns\n", "columns=0"),
    ("    out = torch", "    if not rows:\n        return x.new_empty(1)\n    out = torch", "hidden: rows=0"),
    (VALUE, "tl.where(x == x, 2 * x, 0), mask=mask", "hidden: rough values"),
    (VALUE, "tl.where((tl.abs(x) < 1e30) | (columns < 2000), 2 * x, 6e38), mask=mask", "hidden: long columns"),
    (VALUE, "tl.where((x > 1000) & (x < float('inf')), 1000, 2 * x), mask=mask", "hidden: large values"),
    (VALUE, "(3 if columns < 64 else 2) * x, mask=mask", "hidden: "),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "case"), drawn(WRONG_IN_ONE_KIND, 2))
async def test_kernel_wrong_in_one_kind_is_found_in_that_kind(
    pool: DevicePool, task: Task, right: str, wrong: str, case: str
) -> None:
    evaluation = await judge_task(pool, changed((right, wrong)), task)
    assert evaluation.verdict in (Verdict.WRONG, Verdict.CALL_ERROR), evaluation.error
    assert case in evaluation.error.message
    assert evaluation.error.message.startswith("case hidden: ")


async def test_padded_and_strided_inputs_find_what_transposed_inputs_miss(
    pool: DevicePool, tmp_path: Path
) -> None:
    """The kernel checks which dimension is dense and computes the second stride from the shape."""
    assuming = changed(("x.stride(0), x.stride(1)", "*((columns, 1) if x.stride(1) == 1 else (1, rows))"))
    evaluation = await judge_task(pool, assuming, write_doubled(tmp_path))
    assert evaluation.error.message.startswith("case hidden: padded rows, rows=")
    halfway = changed(("x.stride(0), x.stride(1)", "x.stride(0), 1 if x.stride(0) > 1 else x.stride(1)"))
    evaluation = await judge_task(pool, halfway, write_doubled(tmp_path / "again"))
    assert "hidden: every second element" in evaluation.error.message


async def test_task_without_allows_varies_only_sizes_and_offsets(pool: DevicePool, tmp_path: Path) -> None:
    text = TASK.replace('allows = ["offset", "unaligned", "non-contiguous", "special-values"]\n', "")
    plain = write_doubled(tmp_path, task=text.replace("min = 0", "min = 1"))
    dense = changed(
        ("x.stride(0), x.stride(1)", "columns, 1"),
        ("2 * x, mask=mask", "tl.where(x == x, 2 * x, 0), mask=mask"),
        ("    if out.numel():\n", "    if 1024 // columns >= 0:\n"),
    )
    evaluation = await judge_task(pool, dense, plain)
    assert evaluation.verdict is Verdict.CORRECT, evaluation.error
    kinds = {
        margin.case.partition(" ")[2] for margin in evaluation.margins if margin.case.startswith("hidden")
    }
    assert kinds == {
        "ragged float32",
        "small, of parameters",
        "rows=1",
        "columns=1",
        "offset, without gradients",
        "long columns",
        "multiples of 16",
        "multiples of 32",
        "between",
    }


async def test_hidden_case_that_task_code_refuses_is_skipped_and_reported(
    pool: DevicePool, tmp_path: Path
) -> None:
    refusing = PROBLEM.replace("    return {", "    assert sizes['rows'] != 1\n    return {")
    evaluation = await judge_task(pool, BASELINE, write_doubled(tmp_path, problem=refusing))
    assert evaluation.verdict is Verdict.CORRECT
    left_out = {fact.name for fact in evaluation.facts if fact.name.endswith("left out")}
    assert left_out == {"hidden: rows=1: left out"}


async def test_exam_cases_appear_only_in_the_exam(pool: DevicePool) -> None:
    task = load_task("vector_add")
    source = baseline_source(task)
    exam, usual = await judge_task(pool, source, task, exam=True), await judge_task(pool, source, task)
    assert (exam.verdict, exam.exam) == (Verdict.CORRECT, True)
    assert (usual.verdict, usual.exam) == (Verdict.CORRECT, False)
    names = [case.name for case in task.exam_cases]
    assert [traffic.case for traffic in exam.traffic] == names
    assert [traffic.case for traffic in usual.traffic] == [case.name for case in task.open_cases]
    assert {row.case for row in exam.resources["gfx942"]} <= set(names)
    margins = {margin.case for margin in exam.margins}
    assert set(names) < margins
    assert not margins & {case.name for case in task.open_cases}
    assert not any(name in str(usual) for name in names)
    sizes = [margin.case for margin in exam.margins if margin.case.startswith("hidden: ")]
    assert sizes


async def test_exam_of_task_without_exam_cases_finds_special_cased_kernel(
    pool: DevicePool, tmp_path: Path
) -> None:
    """The task marks no exam case, so the judge draws new sizes for the exam."""
    task = write_doubled(tmp_path)
    exam = await judge_task(pool, BASELINE, task, exam=True)
    assert exam.verdict is Verdict.CORRECT
    assert [traffic.case for traffic in exam.traffic] == ["exam: standard float32"]
    evaluation = await judge_task(pool, changed(("[(rows,)]", "[(rows // 4 * 4,)]")), task, exam=True)
    assert evaluation.verdict is Verdict.WRONG
    assert evaluation.exam
