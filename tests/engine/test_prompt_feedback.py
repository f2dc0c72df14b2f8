"""Judge results in prompts: bounds, figures with their sizes, and shorter prompts on request."""

from __future__ import annotations

import re

import msgspec
import pytest

from engine import markdown
from engine.figures import achieved, byte_words
from engine.knowledge import pages, pages_for
from engine.measurements import measurements
from engine.prompting import (
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
from engine.standouts import standouts
from harness import Verdict, target
from harness.hardware.product_tables import find_product
from harness.wire.evaluation import Estimate, GridFit, Margin, SampledTraffic
from harness.wire.latency import Efficiency, LaunchTime, Window
from sessions.events import Message
from suites import CATEGORIES, load_task, task_cost
from tests.support.judged_candidates import Judged, failing, passing

SETTING = Setting(load_task("softmax"), (target("gfx942"),))
SIZES = {"rows": 8192, "columns": 8192}


def text(messages: tuple[Message, ...]) -> str:
    return messages[-1].content


def changed(judged: Judged, **fields: object) -> Judged:
    judged.evaluation = msgspec.structs.replace(judged.evaluation, **fields)
    return judged


def sampled(**fields: object) -> SampledTraffic:
    defaults: dict[str, object] = {
        "case": "fp32",
        "sizes": SIZES,
        "target": "gfx942",
        "launches": 1,
        "programs": 1024,
        "sampled": 11,
        "requested_read_bytes": 2_000_000_000,
        "requested_write_bytes": 147_483_648,
        "requested_low_bytes": 2_147_483_648,
        "requested_high_bytes": 2_147_483_648,
        "unique_low_bytes": 14_000_000,
        "unique_high_bytes": 100_663_296,
        "die_bytes": 570_425_344,
        "dies": 8,
        "group": 4,
        "minimal_bytes": 100_663_296,
        "flops": 10,
        "dot_flops": 0,
    }
    return SampledTraffic(**(defaults | fields))  # type: ignore[arg-type]


def fit(**fields: object) -> GridFit:
    defaults: dict[str, object] = {
        "case": "fp32",
        "grid": (64, 10, 1),
        "workgroups": 640,
        "compute_units": 304,
        "per_unit": 2,
        "rounds": 2,
        "tail_idle": 0.947,
        "idle": 0.474,
        "idle_units": 272,
        "dies": 8,
        "die_most": 80,
        "die_least": 80,
    }
    return GridFit(**(defaults | fields))  # type: ignore[arg-type]


def fitted(judged: Judged, *fits: GridFit) -> Judged:
    rows = judged.evaluation.resources["gfx942"]
    return changed(judged, resources={"gfx942": (msgspec.structs.replace(rows[0], fits=fits), *rows[1:])})


def test_sampled_bytes_are_bounds_with_their_sample_size() -> None:
    prompt = text(optimize_prompt(SETTING, history=[changed(passing(), sampled=(sampled(),))]))
    assert "at the full sizes, from a sample of the programs" in prompt
    row = "| fp32 | 2147 MB (11 of 1024 programs) | 14 MB to 100.7 MB | at most 570.4 MB | 100.7 MB | 21.33 |"
    assert row in prompt
    assert "interpreter's small sizes" not in prompt
    assert "each distinct byte is requested at least 21.33 times" in prompt


def test_bytes_without_a_sample_name_the_small_sizes() -> None:
    judged = changed(passing(), not_sampled={"fp32": "its addresses depend on data"})
    prompt = text(optimize_prompt(SETTING, history=[judged]))
    assert "at the interpreter's small sizes, every program counted" in prompt
    assert "rows=8192, columns=8192 (interpreter's)" in prompt
    assert "- fp32: nothing is known of its bytes at the full size (its addresses depend on data)." in prompt


def test_roofline_row_has_three_bounds_and_its_limiting_side() -> None:
    shared = Estimate("gfx942", "fp32", SIZES, 100.0, 400.0, "compute", "memory", "MI300X", shared_us=150.0)
    prompt = text(optimize_prompt(SETTING, history=[changed(passing(), estimate=(shared,))]))
    assert "| gfx942 | fp32 | rows=8192, columns=8192 | 100 | 150 | 400 | 4 | compute / memory |" in prompt
    assert "measured /" not in prompt


def test_measured_latency_is_shown_with_its_bound() -> None:
    judged = passing(speedup=1.25)
    prompt = text(optimize_prompt(SETTING, history=[judged]))
    measured_us, low_us = 160.0, 101.3
    assert f"| 3.949 | {measured_us / low_us:.4g} | memory / memory |" in prompt
    assert "| measured / at least |" in prompt
    assert achieved(judged.evaluation).endswith("; 1.58 times the roofline's estimated bound")
    nvidia = Estimate("sm_90", "fp32", SIZES, 1.0, 2.0, "memory", "memory", "H100")
    both = changed(judged, estimate=(*judged.evaluation.estimate, nvidia))
    assert "| sm_90 | fp32 | rows=8192, columns=8192 | 1 | - | 2 | 2 | - | memory / memory |" in text(
        optimize_prompt(SETTING, history=[both])
    ), "a measurement of one device is not shown for another target"


def test_summary_tells_roofs_clock_and_time_by_launch() -> None:
    judged = passing(speedup=1.25)
    (row,) = judged.evaluation.latency
    known = msgspec.structs.replace(
        row,
        efficiency=Efficiency(
            "H200 SXM", 1, 1, "float32", 1.0, 1.0, io_utilisation=0.5, mfu=None, io_measured=0.625
        ),
        window=Window(source="nvml", seconds=1.0, clock_mhz=1755, power_w=412.4),
        launches=(LaunchTime("partial", 0.0032), LaunchTime("combine", 0.0011)),
    )
    words = achieved(changed(judged, latency=(known,)).evaluation)
    assert "at 1755 MHz and 412 W; of a measured copy's bandwidth: fp32 62%" in words
    assert "fp32 by launch: partial 3.2 us, combine 1.1 us" in words


def test_measurement_is_compared_only_with_peaks_of_the_same_device() -> None:
    judged = passing(speedup=1.25)
    (estimate,) = judged.evaluation.estimate
    reference = changed(judged, estimate=(msgspec.structs.replace(estimate, of_device=False),))
    assert "| 3.949 | - | memory / memory |" in text(optimize_prompt(SETTING, history=[reference]))
    assert "roofline" not in achieved(reference.evaluation)
    judged = passing(speedup=1.25)
    (row,) = judged.evaluation.latency
    second_device = msgspec.structs.replace(row, device="1", candidate_ms=0.001)
    spread = changed(judged, latency=(row, second_device))
    assert [row.measured_us for row in measurements(spread.evaluation).roofline] == [160.0]


def test_prompt_for_a_known_device_names_its_product() -> None:
    task = load_task("vector_add")
    h200 = find_product("H200 SXM")
    setting = Setting(task, (target("sm_90"),), h200.name, product=h200)
    system, user = first_prompt(setting)
    assert "roofline estimate for H200 SXM at the vendor's peaks" in user.content
    assert "# Target `sm_90` (H200 SXM)" in system.content
    assert "4.8 TB/s" in system.content
    case = next(case for case in task.open_cases if case.name == "fp32")
    least_us = task_cost(task, case.gpu, case.dtype).minimal_bytes / h200.memory_bytes_per_s * 1e6
    assert f"| {markdown.number(least_us)} (memory) |" in user.content
    elsewhere = Setting(task, (target("gfx942"),), h200.name, product=h200)
    assert "roofline estimate for MI300X at the vendor's peaks" in first_prompt(elsewhere)[1].content


def test_optimizer_prompt_shows_grid_tails() -> None:
    judged = fitted(passing(), fit(), fit(case="other", idle=0.1))
    prompt = text(optimize_prompt(SETTING, history=[judged]))
    assert (
        "| gfx942 | softmax_kernel | fp32 | 64 x 10 x 1 | 640 | 2 | 2 | 94.7 % | 47.4 % | 272 of 304 |"
        in prompt
    )
    assert "(arithmetic, not measured)" in prompt
    assert "in 2 rounds, the last of them 95% empty; over all, 47% of the places have no work." in prompt


def test_standouts_name_the_most_costly_idle_share() -> None:
    tiny = Estimate("gfx942", "tiny", SIZES, 0.01, 0.02, "memory", "memory", "MI300X")
    empty = fit(case="tiny", grid=(1, 1, 1), workgroups=1, rounds=1, tail_idle=0.99, idle=0.99)
    judged = fitted(passing(), empty, fit(idle=0.1))
    judged = changed(judged, estimate=(*judged.evaluation.estimate, tiny))
    facts = measurements(judged.evaluation)
    assert [row.fit.case for row in facts.fits] == ["fp32", "tiny"]
    assert not [words for words in facts.standouts if "tiny" in words], "a tiny case only measures its launch"
    few = fitted(passing(), fit(workgroups=64, rounds=1, idle=0.93, tail_idle=0.93))
    assert (
        "Case fp32 launches 64 workgroups of `softmax_kernel` on 304 units of gfx942: the others do nothing."
        in measurements(few.evaluation).standouts
    )


def test_standouts_name_failed_configs_small_margins_and_notes() -> None:
    judged = passing()
    row = msgspec.structs.replace(judged.evaluation.resources["gfx942"][0], failure="needs 128 KiB of LDS")
    judged = changed(
        judged,
        resources={"gfx942": (row,)},
        margins=(
            Margin("fp32", "out", "elementwise", 0.02),
            Margin("fp16", "out", "elementwise", 0.93, (3, 4)),
        ),
        notes=("kernel `spare` is never launched",),
    )
    words = measurements(judged.evaluation).standouts
    assert "Config BLOCK=1024 of `softmax_kernel` on gfx942: needs 128 KiB of LDS" in words
    assert "Output `out` of case fp16 uses 93% of its tolerance: any less precision fails." in words
    assert "kernel `spare` is never launched" in words
    assert not [words for words in standouts(passing().evaluation, ()) if "tolerance" in words]


def test_repair_prompt_contains_the_notes_of_the_judge() -> None:
    failed = changed(failing(), notes=("`row` was read at line 9 before anyone wrote it",))
    prompt = text(repair_prompt(SETTING, failed=failed, failures=1, trap=5))
    assert "Also noted by the judge, as a hint:\n\n- `row` was read at line 9" in prompt
    assert "Also noted" not in text(repair_prompt(SETTING, failed=failing(), failures=1, trap=5))


def test_repair_prompt_without_a_trap_mentions_no_drop() -> None:
    prompt = text(repair_prompt(SETTING, failed=failing(), failures=2, trap=None))
    assert "failed 2 times in a row." in prompt
    assert "dropped" not in prompt


def test_descendant_prompt_contains_parent_lineage_and_its_own_idea() -> None:
    parent, best = passing("softmax#1/3"), passing("softmax#1/8", high_us=200)
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
        assert "softmax#1/8 (best)" in prompt
        assert "- softmax#1/3: One row.\n  It is correct: estimate" in prompt
        assert "- softmax#1/6: Two rows.\n  It ended with verdict wrong: words of the judge" in prompt
        assert "  > The mask is missing." in prompt
        assert f"this is number {number}" in prompt
    assert len({prompt.partition("starts from this idea")[2] for prompt in prompts}) == 8
    stale = descend_prompt(
        SETTING, history=[best], parent=best, lineage=[], place=Place(9, 9), without_gain=2
    )
    assert "**The last 2 rounds brought no gain.**" in text(stale)
    assert "What this line" not in text(stale)
    with pytest.raises(ValueError, match="no correct candidate"):
        descend_prompt(SETTING, history=[], parent=best, lineage=[], place=Place(1, 2))


def test_worker_prompt_shows_its_attempts_and_the_latest_source() -> None:
    first = failing("softmax#1/1", strategy="Rows.", source="# the first\n")
    second = failing("softmax#1/5", verdict=Verdict.COMPILE_ERROR, stage="compile", source="# the second\n")
    prompt = text(refine_prompt(SETTING, attempts=[first, second]))
    assert (
        "- softmax#1/1: Rows.\n  It ended with verdict wrong in stage execution: words of the judge" in prompt
    )
    assert "# the second" in prompt
    assert "# the first" not in prompt
    assert "Verdict **compile_error** in stage *compile*" in prompt
    assert "**This change lost ground.** softmax#1/5 came less far than softmax#1/1" in prompt
    assert "earlier attempts, oldest first" not in text(refine_prompt(SETTING, attempts=[first]))
    with pytest.raises(ValueError, match="no attempt to refine"):
        refine_prompt(SETTING, attempts=[])


def test_workers_start_from_different_ideas() -> None:
    prompts = {text(first_prompt(SETTING, place=Place(number, 4))) for number in range(1, 5)}
    assert len(prompts) == 4
    assert "written independently" not in text(first_prompt(SETTING))


def test_prompt_without_knowledge_contains_no_page() -> None:
    bare = Setting(SETTING.task, SETTING.targets, knowledge=False)
    system = first_prompt(bare)[0].content
    for page in pages():
        assert page.text.partition("\n")[0].partition("`")[0] not in system
    assert "exactly one ```python block" in system
    assert text(first_prompt(bare)) == text(first_prompt(SETTING))


def test_short_prompt_keeps_only_the_best_and_the_latest_source() -> None:
    short = Setting(SETTING.task, SETTING.targets, short=True)
    example = Example("Sum of two vectors", "def vector_add(x, y): ...\n")
    history = [passing(f"softmax#1/{number}", source=f"# kernel {number}\n") for number in range(1, 6)]
    prompt = text(optimize_prompt(short, history=history, last=history[1]))
    assert re.findall(r"# kernel (\d)", prompt) == ["2", "5"]
    assert "(3 more are left out to keep this short.)" in prompt
    assert re.findall(r"# kernel (\d)", text(optimize_prompt(short, history=history))) == ["5"]
    assert re.findall(r"# kernel (\d)", text(escape_prompt(short, given_up=[], history=history))) == ["5"]
    from_parent = descend_prompt(
        short, history=history, parent=history[0], lineage=history, place=Place(1, 2)
    )
    assert re.findall(r"# kernel (\d)", text(from_parent)) == ["1", "5"]
    assert text(from_parent).count("  It is correct: ") == 1
    for messages in (
        first_prompt(short, example=example),
        repair_prompt(short, failed=failing(), failures=1, trap=5, example=example),
        escape_prompt(short, given_up=[], example=example),
        refine_prompt(short, attempts=[failing(), failing()], example=example),
    ):
        assert example.source not in text(messages)
    whole = text(optimize_prompt(SETTING, history=history, last=history[1]))
    assert "left out to keep this short" not in whole
    assert re.findall(r"# kernel (\d)", whole) == ["1", "2", "3", "4", "5"]


def test_prompt_on_a_gpu_says_that_nothing_was_timed() -> None:
    gpu = Setting(SETTING.task, (target("sm_90"),), device="NVIDIA H200")
    messages = optimize_prompt(gpu, history=[passing()])
    assert "No latency can be measured here" in text(messages)
    assert "where the figures show none, nothing was timed" in messages[0].content


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_category_has_a_page_or_the_fallback(category: str) -> None:
    named = [page for page in pages_for(category) if page.categories]
    fallback = [page for page in pages_for(category) if page.fallback]
    assert bool(named) != bool(fallback)
    assert [page.name for page in pages_for("SomethingNew") if page.fallback] == ["general.md"]


@pytest.mark.parametrize(
    ("amount", "words"), [(0, "0 B"), (9999, "9999 B"), (32_780, "32.78 kB"), (2_181_038_080, "2181 MB")]
)
def test_byte_counts_have_readable_units(amount: int, words: str) -> None:
    assert byte_words(amount) == words
