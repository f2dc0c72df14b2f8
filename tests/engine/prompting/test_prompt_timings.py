"""Measured figures in prompts: limits, clocks and autotuned binaries, as sessions on four H100 met them."""

from __future__ import annotations

import msgspec

from engine.prompting.baseline_facts import baseline_facts
from engine.prompting.facts import below_words
from engine.prompting.figures import measurements, roof_words
from engine.prompting.history_facts import optimizer_facts
from engine.prompting.judged import JudgedCandidate
from engine.prompting.prompting import optimize_prompt
from engine.prompting.standouts import standouts
from harness import KernelResources, Latency
from harness.wire.results.latency import Bound, Efficiency, Timed, Window
from sessions.state.cases import case_rows
from tests.support.engine.prompts import SETTING, changed, text
from tests.support.judge.judged_candidates import passing

CHOSEN = "BLOCK: 128, num_warps: 8, num_ctas: 1, num_stages: 2, maxnreg: None"


def timed(**fields: object) -> Latency:
    """Return the timing of `passing(speedup=1.25)`, 0.16 ms against 0.2 ms, with these fields."""
    (row,) = passing(speedup=1.25).evaluation.latency
    return msgspec.structs.replace(row, **fields)


def used(**shares: float) -> Efficiency:
    return Efficiency(
        "H100 SXM5",
        1,
        1,
        "int8",
        4e11,
        2e14,
        **({"io_utilisation": None, "mfu": None} | shares),  # type: ignore[arg-type]
    )


def with_latency(*rows: Latency, **fields: object) -> JudgedCandidate:
    return changed(passing(speedup=1.25), latency=rows, **fields)


def tuned(case: str, block: str, **fields: object) -> KernelResources:
    """Return the binary of one config of an autotuned kernel."""
    (kernel,) = passing().evaluation.resources["gfx942"]
    config = CHOSEN.replace("128", block)
    changes = {
        "case": case,
        "config": {"BLOCK": block},
        "autotune_index": 0,
        "autotune_config": config,
    } | fields
    return msgspec.structs.replace(kernel, **changes)


def roof_of(latency: Latency) -> str:
    (row,) = case_rows(with_latency(latency).evaluation)
    return roof_words(row)


def test_an_empty_kernel_is_the_limit_of_a_case_that_is_shorter_at_its_roof() -> None:
    # 4 % of a copy of 4 us: at the roof it would take 0.16 us, less than an empty kernel.
    short = timed(candidate_ms=0.004, floor_ms=0.0008, efficiency=used(io_measured=0.04))
    assert roof_of(short) == "5.00x an empty kernel"
    long = timed(candidate_ms=0.04, floor_ms=0.0008, efficiency=used(io_measured=0.04))
    assert roof_of(long) == "4% of a copy"
    judged = with_latency(short)
    facts = baseline_facts("triton", "", judged.evaluation)
    assert facts.times == {"fp32": "4 (5.00x an empty kernel)"}
    assert facts.roofs == "Measured on this device: a copy moves 10.00 TB/s; an empty kernel takes 0.80 us."


def test_clocks_are_those_of_the_samples_that_count() -> None:
    window = Window(source="nvml", seconds=1.0, clock_mhz=1620, power_w=247.2, throttled={"power cap": 0.5})
    side = Timed(0.16, 0.15, 0.17, 9, clock_mhz=1980)
    slow = msgspec.structs.replace(side, clock_mhz=1800)
    near = msgspec.structs.replace(side, clock_mhz=1965)
    rows = [timed(case=case, window=window, candidate=clock) for case, clock in (("a", side), ("b", near))]
    assert measurements(with_latency(*rows).evaluation).device_state == "at 1980 MHz and 247 W"
    rows.append(timed(case="square", window=window, candidate=slow))
    words = "at 1980 MHz (square 1800) and 247 W; held back by: power cap"
    assert measurements(with_latency(*rows).evaluation).device_state == words


def test_cases_without_an_exact_ratio_are_explained() -> None:
    rows = (timed(), timed(case="short", bound=Bound.AT_LEAST), timed(case="thin", speedup=None, ci=None))
    figures = measurements(with_latency(*rows).evaluation)
    assert "(cases with an exact ratio alone: 1.25x [1.24, 1.26] exact, 1 of 3)" in figures.summary
    assert figures.timed[1].speedup == ">= 1.25x (too short for an exact ratio)"
    assert figures.too_short == ["thin (160.0 us, baseline 200.0 us)"]
    at_most = measurements(with_latency(timed(bound=Bound.AT_MOST)).evaluation)
    assert at_most.timed[0].speedup == "<= 1.25x (the baseline is too short for an exact ratio)"
    precise = measurements(with_latency(timed(candidate_ms=0.298592001)).evaluation)
    assert precise.timed[0].time_us == 298.6


def test_only_the_chosen_config_of_an_autotuned_kernel_is_described() -> None:
    rows = tuple(timed(case=case, configs={"softmax_kernel": CHOSEN}) for case in ("fp32", "fp16"))
    binaries = (
        tuned("fp32", "64", vgprs=40, vgpr_spills=9, load_widths={"16": 1}),
        tuned("fp32", "128", vgprs=60),
        tuned("fp16", "64", vgprs=50, load_widths={"16": 1}),
    )
    evaluation = with_latency(*rows, resources={"gfx942": binaries}, full_sizes=()).evaluation
    assert [line.partition(" registers")[0] for line in measurements(evaluation).resources] == [
        "`softmax_kernel` (BLOCK=128) in fp32: 60",
        "`softmax_kernel` (BLOCK=64, not the chosen config) in fp16: 50",
    ]
    alone = msgspec.structs.replace(evaluation, resources={"gfx942": binaries[2:]})
    [line] = measurements(alone).resources
    assert line.startswith("`softmax_kernel` (BLOCK=64, not the chosen config) in fp16: 50")
    chosen = text(optimize_prompt(SETTING, history=[with_latency(*rows, resources={"gfx942": binaries})]))
    words = "- The autotuner chose for `softmax_kernel`: BLOCK=128 num_warps=8 num_stages=2 in fp32, fp16\n"
    assert words in chosen
    words = " ".join(standouts(evaluation))
    assert "spills" not in words
    assert "loads at most" not in words
    unknown = msgspec.structs.replace(evaluation, latency=(timed(), timed(case="fp16")), full_sizes=())
    words = " ".join(standouts(unknown))
    assert "`softmax_kernel` spills 9 vector registers in fp32 on gfx942" in words
    assert "`softmax_kernel` loads at most 16 bits per lane in fp16 (128" in words, (
        "in fp32 a config loads widely"
    )


def test_a_wide_load_of_an_index_does_not_hide_narrow_loads_of_rows() -> None:
    (kernel,) = passing().evaluation.resources["gfx942"]
    for widths, words in (
        ({"64": 1, "16": 17}, "`softmax_kernel` loads mostly 16 bits per lane in fp32 (128 are possible)"),
        ({"128": 8, "64": 1, "32": 2}, ""),
    ):
        binary = msgspec.structs.replace(kernel, load_widths=widths)
        sentences = " ".join(standouts(with_latency(timed(), resources={"gfx942": (binary,)}).evaluation))
        assert words in sentences
        assert ("loads" in sentences) is bool(words)


def test_a_kernel_that_copies_tiles_by_a_descriptor_does_not_load_narrowly() -> None:
    judged = passing(width=32)
    assert "loads at most 32 bits" in " ".join(standouts(judged.evaluation))
    (kernel,) = judged.evaluation.resources["gfx942"]
    tiles = msgspec.structs.replace(kernel, tile_loads=6, vgprs=None, registers=180, spill_bytes=1112)
    evaluation = msgspec.structs.replace(judged.evaluation, resources={"gfx942": (tiles,)})
    assert "loads at most" not in " ".join(standouts(evaluation))
    [line] = measurements(evaluation).resources
    assert "180 registers, 1112 bytes spilled" in line
    assert "copies of tiles by descriptor: 6, loads: 9 of 32 bits" in line


def test_cases_without_a_time_are_named() -> None:
    evaluation = with_latency(timed(), not_timed=("narrow", "fp16")).evaluation
    assert "Not timed, and counted as 1.00x: narrow, fp16." in standouts(evaluation)
    assert not [words for words in standouts(with_latency(timed()).evaluation) if "ot timed" in words]


def test_a_case_that_was_not_timed_is_not_called_slower() -> None:
    best = with_latency(timed(), timed(case="narrow", speedup=57.0), timed(case="fp16", speedup=1.5))
    lower = with_latency(timed(), timed(case="fp16", speedup=1.2))
    lower.record.attempt = "softmax#1/3"
    words = below_words(lower, best)
    assert words.endswith("; slower in fp16; not timed, and counted as 1.00x, in narrow")
    untimed = optimizer_facts([lower, best], lower, 0, short=False)
    assert untimed["lost_ground"] == "", "it may be a gain"
    changed(lower, latency=(*lower.evaluation.latency, timed(case="narrow")))
    assert optimizer_facts([lower, best], lower, 0, short=False)["lost_ground"] == "It is softmax#1/3."
