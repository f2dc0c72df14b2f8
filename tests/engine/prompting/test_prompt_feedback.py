"""Judge results in prompts: bounds, figures with their sizes, and shorter prompts on request."""

from __future__ import annotations

import re

import msgspec
import pytest

from engine.knowledge import Subject, pages_for
from engine.prompting.judged import JudgedCandidate
from engine.prompting.prompting import (
    Example,
    Place,
    Setting,
    descend_prompt,
    escape_prompt,
    first_prompt,
    optimize_prompt,
    refine_prompt,
    repair_prompt,
)
from engine.prompting.standouts import standouts
from harness import ErrorReport, Verdict, target
from harness.hardware.product_tables import find_product
from harness.wire.results.evaluation import FullSize, GridFit
from suites import load_task
from tests.support.engine.prompts import SETTING, changed, text
from tests.support.judge.assemblies import AMD, with_assembly
from tests.support.judge.judged_attempts import judge_again
from tests.support.judge.judged_candidates import failing, passing
from tui.facts.report.tables.contamination import shown_example

SIZES = {"rows": 8192, "columns": 8192}


def with_short_case(judged: JudgedCandidate, name: str = "tiny") -> JudgedCandidate:
    return changed(judged, full_sizes=(*judged.evaluation.full_sizes, FullSize(name, SIZES, 1000)))


def fit(**fields: object) -> GridFit:
    defaults: dict[str, object] = {
        "case": "fp32", "grid": (64, 10, 1), "workgroups": 640, "compute_units": 304, "per_unit": 2,
        "rounds": 2, "tail_idle": 0.947, "idle": 0.474, "idle_units": 272, "dies": 8, "die_most": 80,
        "die_least": 80,
    }  # fmt: skip
    return GridFit(**(defaults | fields))  # type: ignore[arg-type]


def fitted(judged: JudgedCandidate, *fits: GridFit) -> JudgedCandidate:
    rows = judged.evaluation.resources["gfx942"]
    return changed(judged, resources={"gfx942": (msgspec.structs.replace(rows[0], fits=fits), *rows[1:])})


def test_a_binary_is_shown_with_all_its_cases() -> None:
    judged = with_short_case(fitted(passing(width=32), fit(case="tiny"), fit(case="fp32")))
    (kernel,) = judged.evaluation.resources["gfx942"]
    judged = changed(judged, resources={"gfx942": (msgspec.structs.replace(kernel, case="tiny"),)})
    prompt = text(optimize_prompt(SETTING, history=[judged]))
    assert "- `softmax_kernel` in tiny, fp32: 77 registers" in prompt
    assert "`softmax_kernel` loads at most 32 bits per lane in fp32 (128" in prompt


def test_where_no_byte_is_requested_twice_no_faster_kernel_is_asked_for() -> None:
    prompt = text(optimize_prompt(SETTING, history=[passing(requested=2000)]))
    assert "At the interpreter's sizes no kernel requests fewer bytes than softmax#1/2" in prompt
    assert "correct in every case and faster" not in prompt
    assert "No figure of the rank can get better." in prompt
    spilling = passing(requested=2000, spills=12, width=32)
    prompt = text(optimize_prompt(SETTING, history=[spilling]))
    assert (
        "by a better figure than spilled registers: 12, widest loads, geometric mean of the kernels: 32 bits. Write"
        in prompt
    )


def test_a_case_that_was_not_counted_is_not_called_worse() -> None:
    best = passing("softmax#1/3", requested=2000)
    better = passing("softmax#1/2")
    counted = msgspec.structs.replace(better.evaluation.traffic[0], case="ragged", requested_read_bytes=1000)
    better = changed(better, traffic=(*better.evaluation.traffic, counted))
    prompt = text(optimize_prompt(SETTING, history=[better, best]))
    assert "better elsewhere" not in prompt
    assert "Compose" not in prompt


def test_fault_of_a_gpu_is_told_with_what_its_line_hides() -> None:
    fault = ErrorReport(kind="gpu_fault", message="case ragged: illegal instruction", line=5)
    failed = changed(
        failing(verdict=Verdict.CRASH, error=fault),
        not_sampled={
            "ragged": "with made-up values it raised AssertionError: block offset must be aligned",
            "fp32": "the sample took 1 s: programs are long",
        },
        raised_at_full_sizes=("ragged",),
    )
    prompt = text(repair_prompt(SETTING, failed=failed, failures=1, trap=5))
    assert (
        "- a GPU reports a fault late: any launch of the call up to the named line can be the cause" in prompt
    )
    assert "- ragged in the interpreter: with made-up values it raised AssertionError: block offset" in prompt
    assert "programs are long" not in prompt
    raised = failing(error=ErrorReport(kind="exception", message="a name is missing", line=5))
    assert "reports a fault late" not in text(repair_prompt(SETTING, failed=raised, failures=1, trap=5))


def test_prompt_for_a_known_device_names_its_product() -> None:
    task = load_task("vector_add")
    h200 = find_product("H200 SXM")
    setting = Setting(task, (target("sm_90"),), h200.name, product=h200)
    system, user = first_prompt(setting)
    assert "the vendor's peaks of H200 SXM (4.80 TB/s of memory)" in user.content
    assert "# Target `sm_90` (H200 SXM)" in system.content
    assert "4.80 TB/s" in system.content
    elsewhere = Setting(task, (target("gfx942"),), h200.name, product=h200)
    assert "the vendor's peaks of MI300X (5.30 TB/s" in first_prompt(elsewhere)[1].content


def test_standouts_name_a_grid_that_leaves_much_of_the_device_idle() -> None:
    few = fitted(passing(), fit(workgroups=64, rounds=1, idle=0.93, idle_units=240))
    words = "In fp32 `softmax_kernel` has 64 workgroups for 304 units: 240 of them have no work."
    assert words in standouts(few.evaluation)
    nearly_full = fitted(passing(), fit(workgroups=300, rounds=1, idle=0.5, idle_units=4))
    assert not standouts(nearly_full.evaluation), "a few idle units are noise"
    small = FullSize("small", SIZES, 10_000_000, is_long=True)
    judged = fitted(passing(), fit(case="small", workgroups=1, rounds=1, idle=0.99, idle_units=303))
    judged = changed(judged, full_sizes=(*judged.evaluation.full_sizes, small))
    assert not standouts(judged.evaluation), "the case needs 10 of 547 MB"


def test_standouts_name_failed_configs_and_notes() -> None:
    judged = passing()
    row = msgspec.structs.replace(judged.evaluation.resources["gfx942"][0], failure="needs 128 KiB of LDS")
    judged = changed(judged, resources={"gfx942": (row,)}, notes=("kernel `spare` is never launched",))
    words = standouts(judged.evaluation)
    assert "Config BLOCK=1024 of `softmax_kernel` on gfx942: needs 128 KiB of LDS" in words
    assert "kernel `spare` is never launched" in words


def test_repair_prompt_contains_the_notes_of_the_judge() -> None:
    failed = changed(failing(), notes=("`row` was read at line 9 before anyone wrote it",))
    prompt = text(repair_prompt(SETTING, failed=failed, failures=1, trap=5))
    assert "The judge also noted:\n\n- `row` was read at line 9" in prompt
    assert "also noted" not in text(repair_prompt(SETTING, failed=failing(), failures=1, trap=5))


def test_repair_prompt_without_a_trap_mentions_no_drop() -> None:
    prompt = text(repair_prompt(SETTING, failed=failing(), failures=2, trap=None))
    assert "failed 2 times in a row." in prompt
    assert "dropped" not in prompt


def test_descendant_prompt_contains_parent_lineage_and_its_own_idea() -> None:
    parent, best = passing("softmax#1/3"), passing("softmax#1/8", requested=3000)
    lineage = [
        passing("softmax#1/3", strategy="One\nrow."),
        failing("softmax#1/6", strategy="Two rows.", reflection="The mask is missing."),
    ]
    prompts = [
        text(
            descend_prompt(
                SETTING, history=[parent, best], parent=parent, lineage=lineage, place=Place(number, 8)
            )
        )
        for number in range(1, 9)
    ]
    for number, prompt in enumerate(prompts, 1):
        assert "one descendant of **softmax#1/3**" in prompt
        assert "faster** than softmax#1/8" in prompt
        assert "The best kernel so far: softmax#1/8" in prompt
        assert "- softmax#1/3: One row.\n  Result: correct, requests" in prompt
        assert "- softmax#1/6: Two rows.\n  Result: wrong: words of the judge" in prompt
        assert "  > The mask is missing." in prompt
        assert f"this is number {number}" in prompt
    assert len({prompt.partition("start from this idea")[2] for prompt in prompts}) == 8
    stale = descend_prompt(
        SETTING, history=[best], parent=best, lineage=[], place=Place(9, 9), without_gain=2
    )
    assert "**The last 2 rounds brought no gain.**" in text(stale)
    assert "Earlier attempts of this line" not in text(stale)
    with pytest.raises(ValueError, match="no correct candidate"):
        descend_prompt(SETTING, history=[], parent=best, lineage=[], place=Place(1, 2))


def test_worker_prompt_shows_its_attempts_and_the_latest_source() -> None:
    first = failing("softmax#1/1", strategy="Rows.", source="# the first\n")
    second = failing("softmax#1/5", verdict=Verdict.COMPILE_ERROR, stage="compile", source="# the second\n")
    prompt = text(refine_prompt(SETTING, attempts=[first, second]))
    assert "- softmax#1/1: wrong in execution: words of the judge" in prompt
    assert "# the second" in prompt
    assert "# the first" not in prompt
    assert "Verdict **compile_error** in stage *compile*" in prompt
    assert "**This change lost ground.** softmax#1/5 passed fewer stages than softmax#1/1" in prompt
    assert "Earlier failures" not in text(refine_prompt(SETTING, attempts=[first]))
    with pytest.raises(ValueError, match="no attempt to refine"):
        refine_prompt(SETTING, attempts=[])


def test_workers_start_from_different_ideas() -> None:
    prompts = {text(first_prompt(SETTING, place=Place(number, 4))) for number in range(1, 5)}
    assert len(prompts) == 4
    assert "written independently" not in text(first_prompt(SETTING))


def test_example_of_a_prompt_is_found_again() -> None:
    source = "def vector_add(x, y):\n    return x\n"
    example = Example("Sum of two vectors", source)
    for messages in (
        first_prompt(SETTING, example=example),
        repair_prompt(SETTING, failed=failing(), failures=1, trap=5, example=example),
        refine_prompt(SETTING, attempts=[failing(), failing()], example=example),
    ):
        assert shown_example(messages) == source
    assert shown_example(first_prompt(SETTING)) == ""


def test_short_prompt_keeps_only_the_best_and_the_latest_source() -> None:
    short = Setting(SETTING.task, SETTING.targets, short=True)
    example = Example("Sum of two vectors", "def vector_add(x, y): ...\n")
    history = [passing(f"softmax#1/{number}", source=f"# kernel {number}\n") for number in range(1, 6)]
    prompt = text(optimize_prompt(short, history=history, last=history[1]))
    assert re.findall(r"# kernel (\d)", prompt) == ["5", "2"]
    assert "(3 more are left out.)" in prompt
    assert re.findall(r"# kernel (\d)", text(optimize_prompt(short, history=history))) == ["5"]
    escape = escape_prompt(short, given_up=[], trap=5, history=history)
    assert re.findall(r"# kernel (\d)", text(escape)) == ["5"]
    from_parent = descend_prompt(
        short, history=history, parent=history[0], lineage=history, place=Place(1, 2)
    )
    assert re.findall(r"# kernel (\d)", text(from_parent)) == ["5", "1"]
    assert text(from_parent).count("  Result: ") == 1
    for messages in (
        first_prompt(short, example=example),
        repair_prompt(short, failed=failing(), failures=1, trap=5, example=example),
        escape_prompt(short, given_up=[], trap=5, example=example),
        refine_prompt(short, attempts=[failing(), failing()], example=example),
    ):
        assert example.source not in text(messages)
    assert "left out" not in text(optimize_prompt(SETTING, history=history, last=history[1]))


@pytest.mark.parametrize(
    ("name", "products", "expected"),
    [
        ("fused attention", True, ["matmul.md", "general.md"]),
        ("rms norm fused", False, ["reductions.md"]),
        ("embedding lookup", False, ["indexing.md"]),
        ("gelu and mul", False, ["elementwise.md"]),
    ],
)
def test_topics_follow_from_the_name_where_the_category_says_little(
    name: str, *, products: bool, expected: list[str]
) -> None:
    pages = pages_for(Subject("Fusion", name, products))
    assert [page.name for page in pages if page.has_topic] == expected


def compiled(judged: JudgedCandidate, assembly: str) -> JudgedCandidate:
    judge_again(judged.record, with_assembly(judged.evaluation, assembly))
    return judged


def test_optimizer_learns_how_the_assembly_of_best_and_latest_differs_from_their_bases() -> None:
    base = compiled(passing("softmax#1/1", requested=3000.0), AMD)
    best = compiled(passing("softmax#1/2", requested=1500.0), AMD.replace("\ts_barrier\n", ""))
    last = compiled(passing("softmax#1/3", requested=9000.0), AMD.replace("dwordx4", "dwordx2"))
    best.before = base
    shown = text(optimize_prompt(SETTING, history=[last, base, best], last=last))
    assert "Compiled code, softmax#1/1 -> softmax#1/2: In fp32 `kernel`: loop at line 5: barriers" in shown
    assert "Compiled code, softmax#1/2 -> softmax#1/3: In fp32 `kernel`: loop at line 5:" in shown
    judge_again(best.record, base.evaluation)
    assert "Compiled code" not in text(optimize_prompt(SETTING, history=[base, best], last=best))
