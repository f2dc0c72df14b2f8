"""Protects the choice of hidden and exam cases.

They stay within a task's limits, never repeat its open cases, and depend only on seed and source.
"""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cases.call_plan import make_plan
from harness.cases.hidden_cases import CROWD, exam_cases, open_cases
from harness.cases.judged_case import JudgedCase, Layout
from harness.cases.seeds import POOL, Draw
from suites import Allowance, Axis, Case, Distribution, EntryPoint, Output, Task, load_suite
from suites.costs import task_cost

TASKS = load_suite("starter")
SEEDS = st.integers(0, 2**64)
SIZES = st.integers(0, 3000)


@st.composite
def axes(draw: st.DrawFn) -> Axis:
    return Axis(
        min=draw(st.integers(0, 3)),
        max=draw(st.sampled_from([None, 3200])),
        multiple_of=draw(st.sampled_from([1, 1, 2, 8, 64])),
        vary=draw(st.booleans()),
    )


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """Any task: some axes are declared, the limits of other axes follow from the cases."""
    names = draw(st.sampled_from([("n",), ("rows", "columns"), ("m", "n", "k")]))
    declared = {name: draw(axes()) for name in names if draw(st.booleans())}

    def sizes() -> dict[str, int]:
        drawn = {}
        for name in names:
            axis = declared.get(name, Axis(min=1))
            step = axis.multiple_of
            least = -(-axis.min // step) * step
            drawn[name] = least + step * (draw(SIZES) // step)
        return drawn

    cases = tuple(
        Case(
            name=f"case-{place}",
            dtype=draw(st.sampled_from(["float32", "float16", "int32"])),
            cpu=sizes(),
            gpu=sizes(),
            distribution=draw(st.sampled_from(list(Distribution))),
            exam=place > 0 and draw(st.booleans()),
        )
        for place in range(draw(st.integers(1, 6)))
    )
    return Task(
        schema=1,
        name="any",
        title="",
        category="Math",
        difficulty=1,
        instruction="",
        entry_points=(EntryPoint("any", "any(x)"),),
        outputs=(Output("out"),),
        cases=cases,
        outlier_inputs=("x",),
        allows=tuple(draw(st.sets(st.sampled_from(list(Allowance))))),
        axes=declared,
    )


def draw_cases(task: Task, seed: int, source: str = "", *, exam: bool = False) -> tuple[JudgedCase, ...]:
    cases_of = exam_cases if exam else open_cases
    return cases_of(task, Draw(seed, task.id, source, "exam" if exam else "open"))


@given(task=tasks(), seed=SEEDS, exam=st.booleans())
def test_hidden_sizes_stay_within_task_limits(task: Task, seed: int, *, exam: bool) -> None:
    task_cases = [case for case in task.cases if case.exam is exam] or task.open_cases
    for case in draw_cases(task, seed, exam=exam):
        for axis in task.cases[0].cpu:
            size = case.case.cpu[axis]
            declared = task.axes.get(axis)
            unchanged = size in {task_case.cpu[axis] for task_case in task_cases}
            if declared is None:
                sizes = {
                    sizes[axis] for open_case in task.open_cases for sizes in (open_case.cpu, open_case.gpu)
                }
                assert unchanged or min(sizes) <= size <= max(sizes)
            elif not declared.vary:
                assert unchanged
            else:
                most = declared.max or math.inf
                assert unchanged or (declared.min <= size <= most and size % declared.multiple_of == 0)


def test_a_case_says_each_size_once_and_an_open_case_none() -> None:
    sizes = {"rows": 1, "columns": 10}
    case = Case(name="hidden: rows=1", dtype="float32", cpu=sizes, gpu=sizes)
    assert JudgedCase(case, hidden=True).sizes == "columns=10"
    assert JudgedCase(case).sizes == ""
    exam = msgspec.structs.replace(case, name="exam: standard float32", exam=True)
    assert JudgedCase(exam).sizes == "rows=1, columns=10"


@given(tasks(), SEEDS)
def test_hidden_case_never_repeats_a_task_case(task: Task, seed: int) -> None:
    task_identities = [(case.dtype, case.cpu, case.distribution) for case in task.cases]
    for case in draw_cases(task, seed):
        changed = case.special or case.extreme or case.masked or case.degenerate or case.parameters
        if case.hidden and case.layout is Layout.DENSE and not changed:
            assert (case.case.dtype, case.case.cpu, case.case.distribution) not in task_identities


@given(task=tasks(), seed=SEEDS, exam=st.booleans())
def test_case_names_are_unique_and_mark_hidden_cases(task: Task, seed: int, *, exam: bool) -> None:
    cases = draw_cases(task, seed, exam=exam)
    names = [case.name for case in cases]
    assert len(set(names)) == len(names)
    assert all(case.hidden is case.name.startswith("hidden: ") for case in cases)


@given(tasks(), SEEDS, st.sampled_from(["", "a kernel", "another kernel"]))
def test_same_seed_and_source_give_same_plan(task: Task, seed: int, source: str) -> None:
    for exam in (False, True):
        assert make_plan(task, seed, source, exam=exam) == make_plan(task, seed, source, exam=exam)


@given(tasks(), SEEDS)
def test_open_plan_and_exam_plan_share_no_case(task: Task, seed: int) -> None:
    for exam, task_cases in ((False, task.open_cases), (True, task.exam_cases)):
        plan = make_plan(task, seed, "", exam=exam)
        steps = (*plan.execution, *plan.repeats)
        assert all(step.case.case.exam is exam for step in steps)
        if task_cases:
            assert sorted(plan.declared, key=str) == sorted(task_cases, key=str)
        assert plan.declared
        assert all(0 <= step.place < 2 * POOL for step in steps)


def test_hidden_sizes_differ_between_sources_and_seeds() -> None:
    task = TASKS[-1]
    seen = {
        str([case.sizes for case in draw_cases(task, seed, source)])
        for seed, source in ((1, "a"), (1, "b"), (2, "a"), (2, "b"))
    }
    assert len(seen) == 4


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_starter_task_gets_every_kind_of_hidden_case(task: Task) -> None:
    names = {case.name for case in draw_cases(task, 1)}
    wanted = {f"hidden: ragged {case.dtype}" for case in task.open_cases}
    wanted |= {f"hidden: {axis}=1" for axis in task.cases[0].cpu} | {
        "hidden: small, of parameters",
        "hidden: offset, without gradients",
    }
    assert wanted <= names
    assert not any("=0" in name for name in names)
    ragged = [case for case in draw_cases(task, 1) if "ragged" in case.name]
    assert all(size % 8 for case in ragged for size in case.case.cpu.values())


def test_tiny_parameter_is_tried_far_above_and_below_default() -> None:
    task = next(task for task in TASKS if task.name == "layer_norm")
    fixed = {name: msgspec.structs.replace(axis, vary=False) for name, axis in task.axes.items()}
    for variant in (task, msgspec.structs.replace(task, axes=fixed)):
        (rough, large), small = [
            (case.name, dict(case.scalars)["eps"]) for case in draw_cases(variant, 1) if case.scalars
        ]
        assert rough.startswith("hidden: rough values, ")
        assert 0.25 <= large < 0.5
        assert small[0] == "hidden: a small eps"
        assert small[1] < 1e-8


def test_hidden_case_needs_little_more_work_than_open_cases() -> None:
    """Four axes, as in rotary embeddings: a product of four drawn sizes is soon a hundred times the largest case."""
    sizes = (
        {"batch": 2, "heads": 4, "rows": 64, "columns": 64},
        {"batch": 1, "heads": 3, "rows": 77, "columns": 128},
    )
    cases = tuple(
        Case(name=str(place), dtype="float32", cpu=case_sizes, gpu=case_sizes | {"rows": 8192})
        for place, case_sizes in enumerate(sizes)
    )
    rope = msgspec.structs.replace(
        TASKS[0],
        name="rope",
        cases=cases,
        axes={axis: Axis(min=1) for axis in sizes[0]},
        folder=Path("nowhere"),
    )
    for seed in range(50):
        hidden = draw_cases(rope, seed)
        assert {"hidden: multiples of 16", "hidden: between"} <= {case.name for case in hidden}
        for case in hidden:
            assert math.prod(case.case.cpu.values()) <= 1 << 20, case
            assert math.prod(list(case.case.cpu.values())[:-1]) <= 2 * 2 * 4 * 64, case


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_hidden_case_needs_at_most_twice_the_bytes_of_largest_case(task: Task) -> None:
    most = max(task_cost(task, case.cpu, case.dtype).minimal_bytes for case in task.cases)
    for seed in range(5):
        for case in draw_cases(task, seed):
            cost = task_cost(task, case.case.cpu, case.case.dtype)
            assert cost.minimal_bytes <= max(2 * most, 1 << 20), case


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_one_open_size_gets_rough_values_and_seeds_cover_all_sizes(task: Task) -> None:
    """Rough values: outliers if the dtype has outlier cases; cases with many rows get everything that the task allows."""
    by_name = {case.name: case for case in task.open_cases}
    seen = set()
    for seed in range(40):
        rough = [case for case in draw_cases(task, seed) if case.name.startswith("hidden: rough values, ")]
        assert len(rough) == 1
        base = by_name[rough[0].name.partition(", ")[2]]
        seen.add(base.name)
        assert rough[0].case.cpu == base.cpu
        distributions = {case.distribution for case in task.cases if case.dtype == base.dtype}
        assert rough[0].case.distribution is Distribution.OUTLIER or Distribution.OUTLIER not in distributions
        if "float" in base.dtype and next(iter(base.cpu.values())) >= CROWD:
            assert rough[0].special == (Allowance.SPECIAL_VALUES in task.allows)
            assert bool(rough[0].degenerate) == (Allowance.DEGENERATE_ROWS in task.allows)
    changes = Allowance.SPECIAL_VALUES in task.allows or Allowance.DEGENERATE_ROWS in task.allows
    crowded = {
        case.name
        for case in task.open_cases
        if next(iter(case.cpu.values())) >= CROWD and ("float" in case.dtype or not changes)
    }
    assert seen == crowded


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_exam_has_rough_values_at_each_of_its_sizes(task: Task) -> None:
    names = {case.name for case in draw_cases(task, 1, exam=True)}
    floating = [case for case in task.exam_cases if "float" in case.dtype]
    assert {f"hidden: rough values, {case.name}" for case in floating} <= names


def test_task_without_exam_cases_gets_generated_exam_cases() -> None:
    task = TASKS[0]
    without_exam = msgspec.structs.replace(task, cases=task.open_cases)
    generated = [case for case in draw_cases(without_exam, 1, exam=True) if not case.hidden]
    assert {case.case.distribution for case in generated} == set(Distribution)
    assert {case.case.dtype for case in generated} == {case.dtype for case in task.cases}
    assert all(
        case.case.exam and case.case.cpu not in [task_case.cpu for task_case in task.cases]
        for case in generated
    )


def test_undeclared_axis_of_multiples_keeps_its_open_sizes() -> None:
    task = next(task for task in TASKS if task.name == "softmax")
    cases = tuple(
        Case(
            name=f"{rows}",
            dtype="float32",
            cpu={"rows": rows, "columns": size},
            gpu={"rows": rows, "columns": size},
        )
        for rows, size in ((7, 64), (32, 128), (1, 256))
    )
    undeclared = msgspec.structs.replace(task, cases=cases, axes={})
    for case in draw_cases(undeclared, 5):
        assert case.case.cpu["columns"] in (64, 128, 256)
    assert any(case.name == "hidden: rows=1" for case in draw_cases(undeclared, 5))
    assert any(case.case.cpu["rows"] not in (1, 7, 32) for case in draw_cases(undeclared, 5))
