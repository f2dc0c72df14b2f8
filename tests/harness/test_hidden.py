"""Hidden cases on real judges and guests: each kind finds a kernel that is wrong only there, and no honest one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness import Basis, DevicePool, Evaluation, Verdict, evaluate, target
from harness.cases.call_plan import make_plan
from suites import Allowance, Task, baseline_source, load_task
from tests.harness.doubling import BASELINE, PROBLEM, TASK, changed, write_doubled

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]

WRAPPER = "def doubled(x):\n    rows, columns = x.shape\n"
LAUNCH = "doubled_kernel[(rows,)](x, out, rows, columns, x.stride(0), x.stride(1), BLOCK=128)"


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return write_doubled(tmp_path)


async def judged(
    pool: DevicePool, source: str, task: Task, *, exam: bool = False, seed: int = 1
) -> Evaluation:
    return await evaluate(source, task, pool=pool, targets=[target("gfx942")], seed=seed, exam=exam)


async def test_a_kernel_that_takes_everything_is_right_and_so_is_one_that_launches_over_nothing(
    pool: DevicePool, task: Task
) -> None:
    found = await judged(pool, BASELINE, task)
    assert (found.verdict, found.error) == (Verdict.CORRECT, None)
    names = {margin.case for margin in found.margins}
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
    assert [one.case for one in found.traffic] == ["plain", "wide"]
    assert {one.case for rows in found.resources.values() for one in rows} == {"plain"}
    launching = changed(("    if out.numel():\n        doubled_kernel", "    doubled_kernel"))
    assert (await judged(pool, launching, task)).verdict is Verdict.CORRECT


MASK, VALUE, SHAPE = "mask = offsets < columns", "2 * x, mask=mask", "rows, columns = x.shape\n"
STRIDES = "x.stride(0), x.stride(1)"


@pytest.mark.parametrize(
    ("right", "wrong", "case"),
    [
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
    ],
)  # fmt: skip
async def test_what_is_wrong_in_one_kind_alone_is_found_there(
    pool: DevicePool, task: Task, right: str, wrong: str, case: str
) -> None:
    found = await judged(pool, changed((right, wrong)), task)
    assert found.verdict in (Verdict.WRONG, Verdict.CALL_ERROR), found.error
    assert found.error is not None
    assert case in found.error.message
    assert found.error.message.startswith("case hidden: ")


async def test_padded_and_stepped_inputs_tell_kernels_that_transposed_ones_do_not(
    pool: DevicePool, tmp_path: Path
) -> None:
    """A kernel that asks which dimension is dense and takes the other stride from the shape."""
    assuming = changed(("x.stride(0), x.stride(1)", "*((columns, 1) if x.stride(1) == 1 else (1, rows))"))
    found = await judged(pool, assuming, write_doubled(tmp_path))
    assert found.error is not None
    assert found.error.message.startswith("case hidden: padded rows, rows=")
    halfway = changed(("x.stride(0), x.stride(1)", "x.stride(0), 1 if x.stride(0) > 1 else x.stride(1)"))
    found = await judged(pool, halfway, write_doubled(tmp_path / "again"))
    assert found.error is not None
    assert "hidden: every second element" in found.error.message


async def test_without_the_tasks_word_nothing_but_sizes_and_offsets_varies(
    pool: DevicePool, tmp_path: Path
) -> None:
    text = TASK.replace('allows = ["offset", "unaligned", "non-contiguous", "special-values"]\n', "")
    plain = write_doubled(tmp_path, task=text.replace("min = 0", "min = 1"))
    dense = changed(
        ("x.stride(0), x.stride(1)", "columns, 1"),
        ("2 * x, mask=mask", "tl.where(x == x, 2 * x, 0), mask=mask"),
        ("    if out.numel():\n", "    if 1024 // columns >= 0:\n"),
    )
    found = await judged(pool, dense, plain)
    assert found.verdict is Verdict.CORRECT, found.error
    kinds = {margin.case.partition(" ")[2] for margin in found.margins if margin.case.startswith("hidden")}
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


@pytest.mark.parametrize(
    ("top", "before", "kind"),
    [
        (
            "calls = []",
            "calls.append(1)\n    if len(calls) > CALLS: x = x[:, :0]; columns = 0",
            "no_launch mismatch shape",
        ),
        (
            "kept = {}",
            "key = (x.data_ptr(), x.shape)\n    x = kept.setdefault(key, x.clone())",
            "stale_output mismatch not_repeatable",
        ),
        ("kept = {}", "x = kept.setdefault(x.shape, x.clone())", "stale_output"),
        (
            "last = [None]",
            "old, last[0] = last[0], x.clone()\n    x = x if old is None or old.shape != x.shape else old",
            "",
        ),
    ],
)
async def test_state_between_calls_is_found(
    pool: DevicePool, task: Task, top: str, before: str, kind: str
) -> None:
    # Where special values are allowed, a case of the same sizes has some, and what is kept by shape is wrong there at once.
    mild = msgspec.structs.replace(task, allows=tuple(set(task.allows) - {Allowance.SPECIAL_VALUES}))
    cases = len(make_plan(mild, 1, "", exam=False).execution)
    source = changed((WRAPPER, f"{top}\n\n\n{WRAPPER}    {before}\n".replace("CALLS", str(cases))))
    found = await judged(pool, source, mild)
    assert found.verdict in (Verdict.WRONG, Verdict.REJECTED), found.error
    assert found.error is not None
    assert not kind or found.error.kind in kind.split()
    assert found.stages[3].ok is True or not kind, "right once in every case"


async def test_every_call_is_compared_and_the_closest_one_is_the_margin(pool: DevicePool, task: Task) -> None:
    found = await judged(pool, BASELINE, task)
    calls = next(fact for fact in found.facts if fact.name == "calls with right answers")
    assert (int(calls.value) >= 20, calls.basis) == (True, Basis.PROOF)
    worse = changed(("2 * x, mask=mask", "x * 2.000001, mask=mask"))
    found = await judged(pool, worse, task)
    assert found.verdict is Verdict.CORRECT
    used = {margin.case: margin.used for margin in found.margins if margin.measure == "elementwise"}
    assert 0.3 < used["plain"] < 1
    assert set(used) == {margin.case for margin in found.margins}


async def test_a_hidden_case_that_the_tasks_code_does_not_take_is_left_out_and_told(
    pool: DevicePool, tmp_path: Path
) -> None:
    refusing = PROBLEM.replace("    return {", "    assert sizes['rows'] != 1\n    return {")
    found = await judged(pool, BASELINE, write_doubled(tmp_path, problem=refusing))
    assert found.verdict is Verdict.CORRECT
    left_out = {fact.name for fact in found.facts if fact.name.endswith("left out")}
    assert left_out == {"hidden: rows=1: left out"}


async def test_the_exam_judges_its_own_cases_and_nothing_else_does(pool: DevicePool) -> None:
    task = load_task("softmax")
    source = baseline_source(task)
    exam, usual = await judged(pool, source, task, exam=True), await judged(pool, source, task)
    assert (exam.verdict, exam.exam) == (Verdict.CORRECT, True)
    assert (usual.verdict, usual.exam) == (Verdict.CORRECT, False)
    names = [case.name for case in task.exam_cases]
    assert [one.case for one in exam.traffic] == names
    assert [one.case for one in usual.traffic] == [case.name for case in task.open_cases]
    assert {one.case for one in exam.resources["gfx942"]} <= set(names)
    margins = {margin.case for margin in exam.margins}
    assert set(names) < margins
    assert not margins & {case.name for case in task.open_cases}
    told = str(usual)
    assert not any(name in told for name in names)
    sizes = [margin.case for margin in exam.margins if margin.case.startswith("hidden: ")]
    assert sizes


async def test_the_exam_finds_a_kernel_made_for_the_open_cases(pool: DevicePool, tmp_path: Path) -> None:
    """A task that marks no case: the judge makes an exam, of sizes that no evaluation before it has had."""
    task = write_doubled(tmp_path)
    exam = await judged(pool, BASELINE, task, exam=True)
    assert exam.verdict is Verdict.CORRECT
    assert [one.case for one in exam.traffic] == ["exam: standard float32"]
    found = await judged(pool, changed(("[(rows,)]", "[(rows // 4 * 4,)]")), task, exam=True)
    assert found.verdict is Verdict.WRONG
    assert found.exam


async def test_an_operator_that_the_task_allows_computes_and_copies_nothing(
    pool: DevicePool, tmp_path: Path
) -> None:
    adding = changed(
        (LAUNCH, "twice = torch.add(x, x)\n        " + LAUNCH.replace("x", "twice")),
        ("2 * x, mask=mask", "x, mask=mask"),
    )
    allowing = TASK.replace(
        'outlier_inputs = ["x"]\n', 'outlier_inputs = ["x"]\nallowed_operators = ["add"]\n'
    )
    found = await judged(pool, adding, write_doubled(tmp_path, task=allowing))
    assert (found.verdict, found.error) == (Verdict.CORRECT, None)
    found = await judged(pool, adding, write_doubled(tmp_path / "again"))
    assert found.error is not None
    assert (found.verdict, found.error.kind) == (Verdict.REJECTED, "operator")
