"""The best configuration of each case: only a measured gain leaves the start."""

from __future__ import annotations

from engine.tuning.best_by_case import best_by_case
from sessions import fold
from tests.support.sessions.tuned_sessions import tuned_events
from tui.facts.report.model import report_of
from tui.facts.report.panes import sections_of

TASK = "starter/matmul"


def test_each_case_has_the_attempt_that_was_measured_as_fastest_there() -> None:
    bests = best_by_case(fold(tuned_events()), TASK)
    assert [(best.row.case, best.attempt, best.is_faster) for best in bests] == [
        ("M16", "matmul#1/1", False),  # 1.005x is inside of its interval
        ("M64", "matmul#1/2", True),
        ("M1024", "matmul#1/3", True),
    ]
    assert [best.config["BLOCK_SIZE_M"] for best in bests] == [64, 32, 128]
    assert (bests[2].config["num_warps"], bests[2].config["GROUP_SIZE_M"]) == (8, 8)


def test_report_has_the_table_and_says_that_a_choice_without_times_is_a_guess() -> None:
    section = next(
        section
        for section in sections_of(report_of(fold(tuned_events())))
        if section.title == "Best configuration of each case"
    )
    _, rows = section.printed()
    assert rows[1][1:] == [
        "BLOCK_SIZE_M=32 BLOCK_SIZE_N=64 BLOCK_SIZE_K=64 GROUP_SIZE_M=8 num_warps=4",
        "matmul#1/2",
        "30.0",
        "20.0",
        "1.50x [1.47, 1.53]",
    ]
    assert best_by_case(fold(tuned_events(is_timed=False)), TASK) == []
