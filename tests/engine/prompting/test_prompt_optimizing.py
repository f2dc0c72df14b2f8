"""Prompts for the optimizer: the best kernel in full, the others as changes to it, and figures that were measured."""

from __future__ import annotations

import re

import msgspec

from engine.prompting.baseline_facts import baseline_facts
from engine.prompting.judged import JudgedCandidate
from engine.prompting.prompting import Setting, optimize_prompt
from harness.wire.results.provenance import Provenance
from tests.support.engine.prompts import SETTING, changed, text
from tests.support.judge.judged_attempts import judged_attempt
from tests.support.judge.judged_candidates import passing


def test_optimizer_prompt_shows_the_best_in_full_and_others_in_short_without_invented_latency() -> None:
    slow = passing("softmax#1/2", requested=9000, spills=12, width=32, strategy="Two passes.")
    fast = passing("softmax#1/4", requested=3000, strategy="One pass.")
    prompt = text(optimize_prompt(SETTING, history=[slow, fast]))
    for fact in (
        "# The best kernel so far: softmax#1/4\n\nrequests 1.50 times the needed bytes",
        "> Two passes.",
        "> One pass.",
        fast.source,
        "| fp32 | 0.003 | 1.5 | 1 |",
        "Bytes of global memory, counted by the interpreter; nothing was timed:",
        "From the binaries (*occupancy*: waves per SIMD that fit at once, and their limit; *loads*: load instructions",
        "- `softmax_kernel` in fp32: 77 registers, occupancy 6 (vgprs), loads: 9 of 128 bits",
        "## softmax#1/2 ranks below softmax#1/4: 4.50 against 1.50 times the needed bytes; worse in fp32\n",
        "No latency can be measured here",
        "faster** than softmax#1/4. In the order of the rank, these figures can get better: 1.50 times the needed bytes.",
    ):
        assert fact in prompt
    assert "time, us |" not in prompt
    assert "speedup" not in prompt.partition("# The best kernel so far")[2]
    spilling = text(optimize_prompt(SETTING, history=[slow]))
    assert "`softmax_kernel` spills 12 vector registers in fp32 on gfx942" in spilling
    assert "`softmax_kernel` loads at most 32 bits per lane in fp32 (128 are possible)" in spilling


def test_other_kernels_are_shown_as_changes_to_the_best() -> None:
    source = "\n".join(f"line_{number} = {number}" for number in range(40))
    best = passing("softmax#1/4", requested=3000, source=source)
    variant = passing("softmax#1/2", source=source.replace("line_20 = 20", "line_20 = 77"))
    prompt = text(optimize_prompt(SETTING, history=[variant, best]))
    assert "-line_20 = 20\n+line_20 = 77" in prompt
    assert prompt.count("line_35 = 35") == 1


def test_weights_of_cases_and_the_time_weighted_speedup_are_named() -> None:
    first, *remaining = SETTING.task.cases
    weights = [3.0, *(1.0 for case in remaining if not case.exam)]
    cases = [
        case if case.exam else msgspec.structs.replace(case, weight=weights.pop(0))
        for case in SETTING.task.cases
    ]
    task = msgspec.structs.replace(SETTING.task, cases=tuple(cases))
    attempt = passing(speedup=1.25)
    weighted = msgspec.structs.replace(
        attempt.evaluation, case_weights={latency.case: 1.0 for latency in attempt.evaluation.latency}
    )
    messages = optimize_prompt(
        Setting(task, SETTING.targets, device="MI300X"),
        history=[JudgedCandidate(judged_attempt(weighted, attempt.attempt, attempt.source))],
    )
    assert f"by case: `{first.name}` {300 / (2 + len(task.open_cases)):.1f} %, `" in messages[0].content
    assert "the baseline by time-weighted mean" in text(messages)
    assert "geometric mean" not in text(messages)


def test_equal_figures_are_called_a_tie() -> None:
    first, second = passing("softmax#1/2"), passing("softmax#1/4", source="a = 1\n")
    prompt = text(optimize_prompt(SETTING, history=[second, first]))
    why = "ranks below softmax#1/2: no figure differs, and the earlier attempt is kept"
    assert f"## softmax#1/4 {why}\n" in prompt
    assert "by fewer" not in prompt, "length is no figure of the rank"


def test_other_timed_kernels_name_ratios_and_slower_cases() -> None:
    best, other = passing("softmax#1/1", speedup=1.44), passing("softmax#1/2", speedup=1.31)
    messages = optimize_prompt(SETTING, history=[other, best], last=other)
    assert "## softmax#1/2 ranks below softmax#1/1: 1.31x against 1.44x; slower in fp32\n" in text(messages)
    assert "**The latest candidate ranks no higher.** It is softmax#1/2." in text(messages)
    assert text(messages).count("ranks below") == 1


def test_optimizer_prompt_shows_measured_latency_with_interval() -> None:
    setting = Setting(SETTING.task, SETTING.targets, device="MI300X")
    messages = optimize_prompt(setting, history=[passing(speedup=1.25)])
    assert "| fp32 | 160 | 1.25x [1.24, 1.26] | - |" in text(messages)
    assert "1.25x [1.24, 1.26] the baseline by geometric mean" in text(messages)
    assert "No latency can be measured" not in text(messages)
    assert "has no GPU" not in messages[0].content


def test_optimizer_prompt_names_the_cases_in_which_another_attempt_is_faster() -> None:
    best = passing("softmax#1/3", speedup=1.5)
    faster_in_one = passing(
        "softmax#1/2", speedup=1.25, source=best.source.replace("return x", "return x + 0")
    )
    (row,) = faster_in_one.evaluation.latency
    ragged = msgspec.structs.replace(row, case="fp32-ragged", speedup=2.0)
    slower = msgspec.structs.replace(ragged, speedup=1.4)
    changed(faster_in_one, latency=(row, ragged))
    changed(best, latency=(*best.evaluation.latency, slower))
    prompt = text(optimize_prompt(SETTING, history=[faster_in_one, best]))
    assert re.search(r"\| fp32-ragged \| .* \| 2.00x in softmax#1/2 \|", prompt)
    assert "Compose: in fp32-ragged another attempt is faster." in prompt
    assert "def softmax(x):\n    return x + 0" in prompt, (
        "its code is too different for a diff, and it is needed"
    )
    assert prompt.count("import triton") == 1, "what both have stands once"
    assert "Compose" not in text(optimize_prompt(SETTING, history=[passing(speedup=1.1), best]))


def test_prompt_has_figures_of_the_best_attempts_provenance_alone() -> None:
    old, new = passing("softmax#1/1", speedup=1.37), passing("softmax#1/2", speedup=1.52)
    for candidate, driver in ((old, "1"), (new, "2")):
        changed(candidate, provenance=Provenance(driver=driver))
    timed = baseline_facts("triton", "# the baseline\n", old.evaluation)
    setting = Setting(SETTING.task, SETTING.targets, device="MI300X", baseline=timed)
    prompt = text(optimize_prompt(setting, history=[old, new]))
    assert "1.52x" in prompt
    assert "1.37x" not in prompt
    assert (
        "## softmax#1/1 ranks below softmax#1/2; its figures are from other hardware or software\n" in prompt
    )
    assert "baseline, us" not in prompt


def test_two_rounds_without_gain_ask_for_a_different_strategy() -> None:
    best, last = passing("softmax#1/2", requested=3000), passing("softmax#1/5", requested=5000)
    once = text(optimize_prompt(SETTING, history=[best], last=last, without_gain=1))
    assert "The latest candidate ranks no higher." in once
    assert "softmax#1/5 is correct, but ranks below softmax#1/2" in once
    assert "different strategy" not in once
    twice = text(optimize_prompt(SETTING, history=[best], last=last, without_gain=2))
    assert "The last 2 correct candidates brought no gain." in twice
    assert "Choose a different strategy" in twice
    assert "no gain" not in text(optimize_prompt(SETTING, history=[best], last=best))
