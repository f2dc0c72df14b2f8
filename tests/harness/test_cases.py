"""Hidden and exam cases: within what a task allows, never one of its own, the same again for the same seed and source."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.worker.judge.cases import JudgedCase, Layout
from harness.worker.judge.hidden import CROWD, exam_cases, open_cases
from harness.worker.judge.plan import make_plan
from harness.worker.judge.seeds import POOL, Draw
from suites import Allowance, Axis, Case, Distribution, EntryPoint, Output, Task, load_suite

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


def test_special_values_are_also_where_each_axis_has_one_element() -> None:
    for task in TASKS:
        special = [case.case.cpu for case in derived(task, 1) if case.special]
        if Allowance.SPECIAL_VALUES in task.allows:
            for axis in task.cases[0].cpu:
                assert any(sizes[axis] == 1 for sizes in special)
            assert any(min(sizes.values()) > 3 for sizes in special)
        else:
            assert not special


def test_a_tiny_parameter_is_also_given_far_above_and_far_below_its_default() -> None:
    task = next(task for task in TASKS if task.name == "layer_norm")
    given = {
        case.name: dict(case.scalars)["eps"]
        for case in derived(task, 1)
        if case.scalars and not is_rough(case)
    }
    assert set(given) == {"hidden: another eps", "hidden: a large eps", "hidden: a small eps"}
    assert 0.25 <= given["hidden: a large eps"] < 0.5
    assert given["hidden: a small eps"] < 1e-8 < 2e-6 < given["hidden: another eps"] < 1e-5


def test_a_share_is_given_a_smaller_one_alone() -> None:
    task = next(task for task in TASKS if task.name == "layer_norm")
    entry = EntryPoint("dropped", "dropped(x, share=0.5)")
    made = derived(msgspec.structs.replace(task, entry_points=(entry,)), 1)
    assert [case.name for case in made if case.scalars and not is_rough(case)] == ["hidden: another share"]
    for case in made:
        for name, value in case.scalars:
            assert name == "share"
            assert 0 < value < 0.5


def is_rough(case: JudgedCase) -> bool:
    return case.name.startswith("hidden: rough values")


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_no_size_of_the_task_has_mild_values_alone(task: Task) -> None:
    """At the sizes of each case there are outliers where the dtype has any, and in cases of many rows all that the task allows."""
    made = derived(task, 1)
    for base in task.open_cases:
        alike = [case for case in made if (case.case.dtype, case.case.cpu) == (base.dtype, base.cpu)]
        known = {one.distribution for one in task.cases if one.dtype == base.dtype}
        assert {case.case.distribution for case in alike} >= known & {Distribution.OUTLIER}
        if "float" in base.dtype and next(iter(base.cpu.values())) >= CROWD:
            for allowance, of in (
                (Allowance.SPECIAL_VALUES, [case.special for case in alike]),
                (Allowance.DEGENERATE_ROWS, [case.degenerate for case in alike]),
            ):
                assert any(of) == (allowance in task.allows)


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
        same, held, again, between, _, back, near = plan.repeats[:7]
        assert (same.case, same.place) == (back.case, back.place)
        assert same.place == first[same.case.name]
        assert (held.hold, again.again) == (True, True)
        assert len({same.place, held.place, again.place}) == 3
        assert between.case.case.cpu != same.case.case.cpu
        assert (back.hold, near.again, near.case.name, near.place) == (
            True,
            True,
            back.case.name,
            POOL + back.place,
        )
        many = plan.repeats[7:]
        assert len(many) >= 8
        assert len({step.case.name for step in many}) == 1
        assert {step.place for step in many} == set(range(POOL))
