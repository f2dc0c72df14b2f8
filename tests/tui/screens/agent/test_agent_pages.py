"""The judge's pages of an attempt: verdict, speed, resources, profile, stages."""

from __future__ import annotations

import msgspec
import pytest

from harness import Evaluation, Finding, Outcome, Stage, Verdict
from sessions.events import (
    AnyEvent,
    AttemptStarted,
    InstanceForked,
    Origin,
    ProfileTaken,
    StageFinished,
    StageStarted,
    WinnerExamined,
)
from sessions.state.folding import apply, fold
from sessions.state.state import AttemptState, SessionState
from tests.support.cockpit.agent_screens import chain, opened, wrong_at_line
from tests.support.judge.judged_attempts import judge_again
from tests.support.judge.profiles import softmax_profile
from tests.support.sessions.journals import (
    correct,
    examined,
    finished,
    latencies,
    running,
    wrong,
)
from tui.cockpit.data import attempts
from tui.cockpit.draw.lines import plain
from tui.cockpit.draw.verdict_lines import head_lines, pinned_lines
from tui.cockpit.screens.agent.page import PageSubject
from tui.cockpit.screens.agent.tabs import page_of
from tui.facts.evaluation.verdict import remark_tables
from tui.facts.profiling.profile_tables import shown_profiles


def page(name: str, evaluation: Evaluation, width: int = 100) -> str:
    attempt = fold(running()).attempt("softmax#1/1")
    judge_again(attempt, evaluation)
    return "\n".join(map(plain, page_of(name, PageSubject(attempt), width)))


def verdict_of(name: str, events: list[AnyEvent], width: int = 100) -> list[str]:
    state = fold(events)
    attempt = state.attempt(name)
    instance = state.instances[name.partition("/")[0]]
    subject = PageSubject(attempt, instance, attempts.base_of(state, attempt))
    return list(map(plain, page_of("verdict", subject, width)))


def head(evaluation: Evaluation) -> list[str]:
    attempt = fold(running()).attempt("softmax#1/1")
    judge_again(attempt, evaluation)
    return list(map(plain, head_lines(attempt, None)))


def test_verdict_page_has_the_facts_of_a_mismatch_and_says_how_to_get_to_the_line() -> None:
    shown = page("verdict", wrong_at_line(13))
    for fact in (
        "kernel.py line 13   e goes there", "0.9821, 981 times the tolerance", "1,000 of 16k elements wrong", "1,000, expected 0",
        "[16, 1000]", "float16", "masked lanes count in the sum",
    ):  # fmt: skip
        assert fact in shown
    assert "kernel.py line" not in page("verdict", wrong()), "no line is known"


@pytest.mark.parametrize(
    ("evaluation", "words"),
    [
        (correct(), "traffic 1.50x · not timed (no GPU)"),
        (
            msgspec.structs.replace(
                correct(speed=latencies()),
                traffic=(),
                latency=tuple(
                    msgspec.structs.replace(row, speedup=None, ci=None, outcome=Outcome.TOO_SHORT)
                    for row in latencies()
                ),
            ),
            "no speedup: all cases too short: both sides take about as long as an empty kernel (4.10 us)",
        ),
        (
            msgspec.structs.replace(
                correct(),
                device="0",
                traffic=(),
                stages=(Stage("performance", None, 0.0, "not timed: GPU 0 was lost"),),
                why_not_timed="GPU 0 was lost",
            ),
            "no speedup: GPU 0 was lost",
        ),
    ],
    ids=["no-gpu", "too-short", "lost"],
)
def test_missing_speedup_has_a_reason_in_words(evaluation: Evaluation, words: str) -> None:
    assert head(evaluation)[0] == f"correct · {words}"


def test_pinned_lines_fit_and_keep_the_beginning() -> None:
    attempt = fold(chain()).attempt("softmax#1/2")
    for width in (60, 78):
        lines = list(map(plain, pinned_lines(attempt, None, width)))
        assert all(len(line) <= width for line in lines)
        assert lines[0].startswith("WRONG line 13 · case fp16 outliers")


def test_exam_has_its_words() -> None:
    assert "confirmed by exam" in verdict_of("softmax#1/3", finished())[1]
    assert "failed exam: wrong on the exam cases: output y of case fp16 wide is 0.0" in " ".join(
        verdict_of("vector_add#1/1", finished())
    )
    assert "not examined yet" in verdict_of("softmax#1/3", running())[1]
    assert verdict_of("softmax#1/2", finished())[2].endswith("not examined")
    lost = WinnerExamined(attempt="softmax#1/3", evaluation=examined(Verdict.INFRA_ERROR))
    without = [event for event in finished() if not isinstance(event, WinnerExamined)]
    assert "not examined: the judge is gone: it was killed" in verdict_of("softmax#1/3", [*without, lost])[1]
    assert not any("examined" in row for row in verdict_of("softmax#1/1", finished())), "wrong: no exam"


def test_running_exam_is_shown() -> None:
    begun = StageStarted(attempt="softmax#1/3", stage="execution", device="cpu", exam=True)
    assert "exam runs: execution" in verdict_of("softmax#1/3", [*running(), begun])[1]


def test_tolerances_are_listed_worst_first_for_verdict_and_exam() -> None:
    shown = verdict_of("softmax#1/3", finished())
    begin = shown.index("tolerance used, worst first")
    assert [row.split() for row in shown[begin + 2 : begin + 4]] == [
        ["38", "%", "fp16", "outliers", "y", "elementwise", "at", "[3,", "999]"],
        ["12", "%", "fp32", "y", "elementwise", "at", "[4,", "211]"],
    ]
    begin = shown.index("tolerance used in the exam, worst first")
    assert shown[begin + 2].split()[:4] == ["59", "%", "fp16", "wide"]


def test_findings_of_the_exam_are_shown() -> None:
    without = [event for event in finished() if not isinstance(event, WinnerExamined)]
    race = Finding(kind="race", message="line 9: two programs store to y", case="fp16 wide", line=9)
    examination = msgspec.structs.replace(examined(), findings=(race,))
    shown = verdict_of(
        "softmax#1/3", [*without, WinnerExamined(attempt="softmax#1/3", evaluation=examination)]
    )
    begin = shown.index("findings of the exam")
    assert shown[begin + 1].strip() == "race: case fp16 wide: line 9: two programs store to y"


def test_long_plan_is_below_the_error_and_the_error_is_shown_once() -> None:
    attempt = fold(running()).attempt("softmax#2/1")
    attempt.strategy = "keep the row in registers " * 40
    error = msgspec.structs.replace(
        attempt.evaluation.error,
        message="gfx942: needs 131072 bytes of LDS",
        trace="needs 131072 bytes of LDS\n",
    )
    failed = msgspec.structs.replace(
        attempt.evaluation, compile_errors={"gfx942": "needs 131072 bytes of LDS"}, error=error
    )
    judge_again(attempt, failed)
    shown = "\n".join(map(plain, page_of("verdict", PageSubject(attempt), 80)))
    assert shown.count("131072") == 1
    assert shown.index("131072") < shown.index("keep the row")


def test_attempt_without_a_verdict_shows_the_verdict_of_its_base() -> None:
    shown = "\n".join(verdict_of("softmax#2/2", running()))
    assert "made from #2/1, which has this verdict" in shown
    assert "CALL ERROR line 14 · TypeError: maximum()" in shown


def test_speed_page_shows_the_measurement_conditions() -> None:
    shown = page("speed", correct(speed=latencies()), 200)
    for fact in (
        "cold caches", "speedup against triton: 1.20x", "p10-p90 us", "28.5-29.6", "640+655", "bound",
        "floor us", "4.10", "85%", "lowest MHz", "1755 of 1980", "power cap 12%", "hot/memory C", "61/54",
        "512", "sustained us", "30.7", "8 MiB",
    ):  # fmt: skip
        assert fact in shown


def test_speed_page_says_why_nothing_or_not_all_was_measured() -> None:
    assert "Not measured: no GPU judged it" in page("speed", correct())
    assert "Not measured: timing not reached, the judge stopped at stage execution" in page("speed", wrong())
    note = "timing was not whole: 2 of 3 cases: ragged: no memory for its inputs"
    part = msgspec.structs.replace(
        correct(speed=latencies()),
        speedup=None,
        not_timed=("ragged",),
        why_not_timed="ragged: no memory for its inputs",
        notes=(note,),
    )
    shown = page("speed", part, 200)
    assert "without a latency (ragged: no memory for its inputs): ragged" in " ".join(shown.split())
    assert note in shown


def test_profile_of_the_attempt_and_of_the_baseline_are_beside_each_other_above_the_counted_bytes() -> None:
    state = fold(running())
    for of_baseline in (False, True):
        apply(state, ProfileTaken(attempt="softmax#1/1", of_baseline=of_baseline, profile=softmax_profile()))
    attempt = state.attempt("softmax#1/1")
    subject = PageSubject(attempt, profiles=shown_profiles(state, attempt), is_profiled=True)
    judge_again(attempt, correct())
    lines = [" ".join(plain(line).split()) for line in page_of("profile", subject, 120)]
    assert lines[0] == "A profiler runs one call of it."
    assert "softmax#1/1: softmax_kernel baseline: softmax_kernel" in lines
    assert "memory, of its peak 70 % 70 %" in lines
    assert "bytes moved, counted by the interpreter at CPU sizes" in lines


def test_page_without_a_profile_says_what_takes_one() -> None:
    attempt = fold(running()).attempt("softmax#1/1")
    judge_again(attempt, msgspec.structs.replace(correct(), device="0"))
    subject = PageSubject(attempt, session="20261120-100000-geak-0001", can_act=False)

    def first_line(subject: PageSubject) -> str:
        return plain(page_of("profile", subject, 120)[0])

    assert first_line(subject._replace(can_act=True)) == "No profile yet: P takes one."
    command = "wavedeck profile 20261120-100000-geak-0001 softmax#1/1"
    assert first_line(subject) == f"No profile yet: `{command}` takes one."
    assert first_line(subject._replace(elsewhere="it is elsewhere")) == "No profile: it is elsewhere."
    judge_again(attempt, msgspec.structs.replace(correct(), device="cpu"))
    assert "no GPU judged it" in first_line(subject)


def test_cases_with_equal_code_share_a_row_and_each_launch_is_listed() -> None:
    (kernel, *_) = correct().resources["gfx942"]
    equal = [
        msgspec.structs.replace(kernel, case=f"case-{number}", binary_sha256=str(number))
        for number in range(24)
    ]
    different = msgspec.structs.replace(
        kernel, case="tail", vgprs=256, vgpr_spills=12, config={"BLOCK": "4096"}
    )
    evaluation = msgspec.structs.replace(correct(), resources={"gfx942": (*equal, different)})
    table, _, launches = page("resources", evaluation, width=76).partition(f"{kernel.kernel} for ")
    rows = [row for row in table.splitlines() if row.startswith(kernel.kernel)]
    assert len(rows) == 2
    assert "case-0 +23" in rows[0]
    assert "256" in rows[1]
    assert " 12 " in rows[1]
    assert "case-23" in launches, "every case is listed"
    assert "BLOCK=4096" in launches


def test_stages_have_words_and_not_only_colours() -> None:
    subject = PageSubject(fold(running()).attempt("softmax#2/1"))
    shown = list(map(plain, page_of("stages", subject, 100)))
    assert shown[0].startswith("ok    static")
    assert shown[1].startswith("FAIL  call")
    assert shown[2].startswith("-     compile")


async def test_running_stage_is_shown() -> None:
    stage = Stage("static", True, 0.1, "")
    events = [
        *finished()[:-1],
        AttemptStarted(attempt="softmax#2/3", origin=Origin.FRESH, seq=900, wall=1.0),
        StageStarted(attempt="softmax#2/3", stage="static", device="cpu", seq=901, wall=1.0),
        StageFinished(attempt="softmax#2/3", stage=stage, seq=902, wall=1.0),
        StageStarted(attempt="softmax#2/3", stage="call", device="cpu", seq=903, wall=1.0),
    ]
    async with opened("softmax#2", events=events) as (_, screen, _source):
        assert "judge: call · passed: static" in screen.page.text
        assert "..    call" in screen.page.text


def test_lineage_names_the_instance_of_a_base() -> None:
    fork = AttemptState("softmax#3/1", 1, Origin.FORK, "softmax#1/3")
    assert attempts.lineage(SessionState(), fork) == "fork of #1/3"
    assert (
        attempts.lineage(SessionState(), AttemptState("softmax#3/1", 1, Origin.FRESH, None))
        == "origin: fresh"
    )


def test_edit_of_a_person_says_so() -> None:
    state = SessionState()
    state.forks["softmax#2"] = InstanceForked(base="softmax#1/1", source="x = 1", by="ada")
    edit = AttemptState("softmax#2/1", 1, Origin.HUMAN, "softmax#1/1")
    assert attempts.lineage(state, edit) == "edit by ada of #1/1"


def test_traces_of_the_judge_are_no_words_of_the_candidate() -> None:
    own = """Traceback (most recent call last):
  File "harness/wire/channels/channel.py", line 90, in send
BrokenPipeError: [Errno 32] Broken pipe

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "harness/worker/server/fork_server.py", line 336, in enter
harness.wire.channels.channel.ChannelClosed: [Errno 32] Broken pipe
"""
    of_candidate = own.replace("channels/channel.py", "kernel.py").replace("harness/wire/", "")
    shown = remark_tables(msgspec.structs.replace(correct(), printed=f"hello\n{own}"))[-1]
    assert [cell.text for cell in shown.sentences] == ["hello"]
    assert (
        "kernel.py"
        in remark_tables(msgspec.structs.replace(correct(), printed=of_candidate))[-1].sentences[0].text
    )
