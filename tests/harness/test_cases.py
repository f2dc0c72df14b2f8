"""Hidden and exam cases: within what a task allows, never one of its own, the same again for the same seed and source."""

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
        multiple_of=draw(st.sampled_from([1, 1, 2, 8, 64])),
        vary=draw(st.booleans()),
    )


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """Any task as far as its cases go: some axes said, some left to what the cases show."""
    names = draw(st.sampled_from([("n",), ("rows", "columns"), ("m", "n", "k")]))
    said = {name: draw(axes()) for name in names if draw(st.booleans())}

    def sizes() -> dict[str, int]:
        made = {}
        for name in names:
            axis = said.get(name, Axis(min=1))
            step = axis.multiple_of
            least = -(-axis.min // step) * step
            made[name] = least + step * (draw(SIZES) // step)
        return made

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
        axes=said,
    )


def derived(task: Task, seed: int, source: str = "", *, exam: bool = False) -> tuple[JudgedCase, ...]:
    made = exam_cases if exam else open_cases
    return made(task, Draw(seed, task.id, source, "exam" if exam else "open"))


def plain(case: JudgedCase) -> tuple[object, ...]:
    return (case.case.dtype, case.case.cpu, case.case.distribution)


@given(task=tasks(), seed=SEEDS, exam=st.booleans())
def test_hidden_sizes_are_within_what_the_task_allows(task: Task, seed: int, *, exam: bool) -> None:
    own = [case for case in task.cases if case.exam is exam] or task.open_cases
    for case in derived(task, seed, exam=exam):
        for axis in task.cases[0].cpu:
            size = case.case.cpu[axis]
            said = task.axes.get(axis)
            kept = size in {one.cpu[axis] for one in own}
            if said is None:
                shown = {one[axis] for each in task.open_cases for one in (each.cpu, each.gpu)}
                assert kept or min(shown) <= size <= max(shown)
            elif not said.vary:
                assert kept
            else:
                assert kept or (size >= said.min and size % said.multiple_of == 0)


@given(tasks(), SEEDS)
def test_a_hidden_case_is_never_one_of_the_tasks_own(task: Task, seed: int) -> None:
    known = [(case.dtype, case.cpu, case.distribution) for case in task.cases]
    for case in derived(task, seed):
        other = case.special or case.extreme or case.masked or case.degenerate or case.parameters
        if case.hidden and case.layout is Layout.DENSE and not other:
            assert plain(case) not in known


@given(task=tasks(), seed=SEEDS, exam=st.booleans())
def test_names_are_told_apart_and_say_what_is_hidden(task: Task, seed: int, *, exam: bool) -> None:
    cases = derived(task, seed, exam=exam)
    names = [case.name for case in cases]
    assert len(set(names)) == len(names)
    assert all(case.hidden is case.name.startswith("hidden: ") for case in cases)


@given(tasks(), SEEDS, st.text())
def test_the_same_seed_and_source_give_the_same_plan(task: Task, seed: int, source: str) -> None:
    for exam in (False, True):
        assert make_plan(task, seed, source, exam=exam) == make_plan(task, seed, source, exam=exam)


@given(tasks(), SEEDS)
def test_exam_cases_are_in_no_open_plan_and_open_ones_in_no_exam(task: Task, seed: int) -> None:
    for exam, own in ((False, task.open_cases), (True, task.exam_cases)):
        plan = make_plan(task, seed, "", exam=exam)
        steps = (*plan.execution, *plan.repeats)
        assert all(step.case.case.exam is exam for step in steps)
        if own:
            assert sorted(plan.declared, key=str) == sorted(own, key=str)
        assert plan.declared
        assert all(0 <= step.place < 2 * POOL for step in steps)


def test_hidden_sizes_differ_from_candidate_to_candidate_and_from_session_to_session() -> None:
    task = TASKS[-1]
    seen = {
        str([case.sizes for case in derived(task, seed, source)])
        for seed, source in ((1, "a"), (1, "b"), (2, "a"), (2, "b"))
    }
    assert len(seen) == 4


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_starter_task_has_every_kind_that_its_instruction_allows(task: Task) -> None:
    names = {case.name for case in derived(task, 1)}
    wanted = {f"hidden: ragged {case.dtype}" for case in task.open_cases}
    wanted |= {f"hidden: {axis}=1" for axis in task.cases[0].cpu} | {
        "hidden: small, of parameters",
        "hidden: offset, without gradients",
    }
    assert wanted <= names
    assert not any("=0" in name for name in names)
    ragged = [case for case in derived(task, 1) if "ragged" in case.name]
    assert all(size % 8 for case in ragged for size in case.case.cpu.values())


def test_special_values_are_in_rows_of_their_own_and_where_the_last_axis_has_one_element() -> None:
    for task in TASKS:
        special = [case.case.cpu for case in derived(task, 1) if case.special]
        if Allowance.SPECIAL_VALUES in task.allows:
            *others, last = task.cases[0].cpu
            assert any(sizes[last] == 1 for sizes in special) or not others
            assert any(min(sizes.values()) > 3 for sizes in special)
        else:
            assert not special


def test_a_tiny_parameter_is_also_given_far_above_and_far_below_its_default() -> None:
    task = next(task for task in TASKS if task.name == "layer_norm")
    fixed = {name: msgspec.structs.replace(axis, vary=False) for name, axis in task.axes.items()}
    for asked in (task, msgspec.structs.replace(task, axes=fixed)):
        (rough, large), small = [
            (case.name, dict(case.scalars)["eps"]) for case in derived(asked, 1) if case.scalars
        ]
        assert rough.startswith("hidden: rough values, ")
        assert 0.25 <= large < 0.5
        assert small[0] == "hidden: a small eps"
        assert small[1] < 1e-8


def test_a_share_is_given_a_smaller_one_alone() -> None:
    task = next(task for task in TASKS if task.name == "layer_norm")
    entry = EntryPoint("dropped", "dropped(x, share=0.5)")
    made = derived(msgspec.structs.replace(task, entry_points=(entry,)), 1)
    assert [case for case in made if case.scalars]
    for case in made:
        for name, value in case.scalars:
            assert name == "share"
            assert 0 < value < 0.5


def test_what_is_kept_by_shape_meets_the_same_sizes_in_every_dtype() -> None:
    for task in TASKS:
        ragged = [case for case in derived(task, 1) if case.name.startswith("hidden: ragged")]
        dtypes = [case.case.dtype for case in ragged]
        assert sorted(dtypes) == sorted({case.dtype for case in task.open_cases})
        assert len({str(case.case.cpu) for case in ragged}) == 1


def test_a_hidden_case_asks_for_little_more_work_than_the_tasks_own() -> None:
    """Rotary embeddings over four axes: a product of four drawn sizes is soon a hundred times the largest case."""
    sizes = (
        {"batch": 2, "heads": 4, "rows": 64, "columns": 64},
        {"batch": 1, "heads": 3, "rows": 77, "columns": 128},
    )
    cases = tuple(
        Case(name=str(place), dtype="float32", cpu=one, gpu=one | {"rows": 8192})
        for place, one in enumerate(sizes)
    )
    rope = msgspec.structs.replace(
        TASKS[0],
        name="rope",
        cases=cases,
        axes={axis: Axis(min=1) for axis in sizes[0]},
        folder=Path("nowhere"),
    )
    for seed in range(50):
        made = derived(rope, seed)
        assert {"hidden: multiples of 16", "hidden: between"} <= {case.name for case in made}
        for case in made:
            assert math.prod(case.case.cpu.values()) <= 1 << 20, case
            assert math.prod(list(case.case.cpu.values())[:-1]) <= 2 * 2 * 4 * 64, case


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_no_hidden_case_of_a_starter_task_asks_for_more_than_twice_its_largest(task: Task) -> None:
    most = max(task_cost(task, case.cpu, case.dtype).minimal_bytes for case in task.cases)
    for seed in range(5):
        for case in derived(task, seed):
            cost = task_cost(task, case.case.cpu, case.case.dtype)
            assert cost.minimal_bytes <= max(2 * most, 1 << 20), case


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_default_evaluation_of_a_starter_task_makes_few_calls(task: Task) -> None:
    assert make_plan(task, 1, "source", exam=False).calls <= 25
    assert make_plan(task, 1, "source", exam=True).calls > 25


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_size_of_the_task_has_rough_values_in_each_evaluation_and_all_have_them_by_and_by(
    task: Task,
) -> None:
    """There are outliers where the dtype has any, and in cases of many rows all that the task allows."""
    by_name = {case.name: case for case in task.open_cases}
    seen = set()
    for seed in range(40):
        rough = [case for case in derived(task, seed) if case.name.startswith("hidden: rough values, ")]
        assert len(rough) == 1
        base = by_name[rough[0].name.partition(", ")[2]]
        seen.add(base.name)
        assert rough[0].case.cpu == base.cpu
        known = {one.distribution for one in task.cases if one.dtype == base.dtype}
        assert rough[0].case.distribution is Distribution.OUTLIER or Distribution.OUTLIER not in known
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
def test_an_exam_has_rough_values_at_the_sizes_of_each_of_its_cases(task: Task) -> None:
    names = {case.name for case in derived(task, 1, exam=True)}
    floating = [case for case in task.exam_cases if "float" in case.dtype]
    assert {f"hidden: rough values, {case.name}" for case in floating} <= names


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_starter_task_keeps_two_cases_for_the_exam(task: Task) -> None:
    assert len(task.exam_cases) >= 2
    assert {case.distribution for case in task.exam_cases} == set(Distribution)
    sizes = [case.cpu for case in task.open_cases]
    assert all(case.cpu not in sizes for case in task.exam_cases)


def test_a_task_without_exam_cases_gets_some() -> None:
    task = TASKS[0]
    unmarked = msgspec.structs.replace(task, cases=task.open_cases)
    made = [case for case in derived(unmarked, 1, exam=True) if not case.hidden]
    assert {case.case.distribution for case in made} == set(Distribution)
    assert {case.case.dtype for case in made} == {case.dtype for case in task.cases}
    assert all(case.case.exam and case.case.cpu not in [one.cpu for one in task.cases] for case in made)


def test_an_axis_that_is_always_a_multiple_stays_as_the_cases_have_it() -> None:
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
    shown = msgspec.structs.replace(task, cases=cases, axes={})
    for case in derived(shown, 5):
        assert case.case.cpu["columns"] in (64, 128, 256)
    assert any(case.name == "hidden: rows=1" for case in derived(shown, 5))
    assert any(case.case.cpu["rows"] not in (1, 7, 32) for case in derived(shown, 5))


def test_repeats_go_back_to_what_was_asked_before_and_reuse_its_tensors() -> None:
    for task in TASKS:
        plan = make_plan(task, 3, "source", exam=False)
        first = {step.case.name: step.place for step in plan.execution}
        same, other, near, between, back = plan.repeats
        assert (same.case, same.place) == (back.case, back.place)
        assert same.place == first[same.case.name]
        assert [step.hold for step in plan.repeats] == [True, True, False, False, False]
        assert [step.again for step in plan.repeats] == [False, True, True, False, False]
        assert {step.case.name for step in (same, other, near)} == {same.case.name}
        assert (other.place != same.place, near.place) == (True, POOL + same.place)
        assert between.case.case.cpu != same.case.case.cpu
        assert between.place != first[between.case.name]


def test_an_exam_goes_on_with_a_small_case() -> None:
    for task in TASKS:
        many = make_plan(task, 3, "source", exam=True).repeats[5:]
        assert len(many) >= 8
        assert len({step.case.name for step in many}) == 1
        assert {step.place for step in many} == set(range(POOL))
