"""Screen of one instance: streamed text, code and diffs, links from errors to lines, tables and decisions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from textual.pilot import Pilot

from harness import Finding, Stage, Verdict
from sessions.events import (
    AnyEvent,
    AttemptJudged,
    AttemptStarted,
    CallFailed,
    CallFinished,
    CallRetried,
    CandidateProposed,
    DecisionMade,
    InstanceStarted,
    Origin,
    ReplyPiece,
    StageFinished,
    StageStarted,
    WinnerExamined,
)
from sessions.fold import fold
from sessions.state import AttemptState, Confirmation, Words
from tests.support.cockpits import NARROW, WIDE, RecordingDecider, ScriptedSource, live, replayed, until
from tests.support.journals import (
    FAST_SOURCE,
    RIGHT_SOURCE,
    EventLog,
    at_once,
    call_error,
    correct,
    examined,
    finished,
    latencies,
    running,
    timed_again,
    wrong,
)
from tui.cockpit import attempts, details, views
from tui.cockpit.app import Cockpit
from tui.cockpit.dialogs import ReasonDialog
from tui.cockpit.diffing import compare
from tui.cockpit.lines import plain
from tui.cockpit.passages import passages
from tui.cockpit.screens.agent import AgentScreen
from tui.cockpit.screens.fleet import FleetScreen
from tui.cockpit.viewer import ExitNote

BOTH = pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "160x48"])
CALL = "vector_add#1/1/generator/1"
PADDING = '''\
def padded(x: torch.Tensor) -> torch.Tensor:
    """Pads rows to a multiple of 16 elements."""
    missing = -x.shape[1] % 16
    return torch.nn.functional.pad(x, (0, missing)) if missing else x'''
CHECK = """\
def square(x: torch.Tensor) -> None:
    assert x.dim() == 2
    assert x.is_contiguous()
"""


@asynccontextmanager
async def opened(
    key: str,
    *,
    size: tuple[int, int] = WIDE,
    events: list[AnyEvent] | None = None,
    decider: RecordingDecider | None = None,
    readonly: bool = False,
) -> AsyncIterator[tuple[Pilot[ExitNote], AgentScreen, ScriptedSource]]:
    app, source = live(running() if events is None else events, decider=decider, readonly=readonly)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        app.open_agent(key)
        await until(
            pilot, lambda: isinstance(app.screen, AgentScreen) and bool(app.screen.words.lines), "the agent"
        )
        screen = app.screen
        assert isinstance(screen, AgentScreen)
        yield pilot, screen, source


def going_to(key: str, *keys: str) -> Callable[[Pilot[ExitNote]], object]:
    """Return a function for `snap_compare` that opens the instance and presses keys."""

    async def go(pilot: Pilot[ExitNote]) -> None:
        app = pilot.app
        assert isinstance(app, Cockpit)
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        app.open_agent(key)
        await until(
            pilot, lambda: isinstance(app.screen, AgentScreen) and bool(app.screen.words.lines), "the agent"
        )
        for pressed in keys:
            await pilot.press(pressed)
            await pilot.pause()

    return go


@BOTH
def test_picture_of_streaming_text(size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    app, _ = live(running())
    assert snap_compare(app, terminal_size=size, run_before=going_to("vector_add#1"))
    assert app.feed is not None
    assert app.feed.state.instances["vector_add#1"].word == "generate"


@BOTH
def test_picture_of_parallel_attempts(size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    app, _ = live(at_once())
    assert snap_compare(app, terminal_size=size, run_before=going_to("softmax#1"))
    assert app.feed is not None
    assert [attempt.word for attempt in app.feed.state.instances["softmax#1"].attempts] == [
        "generate",
        "call",
        "generate",
        "wait",
    ]


async def test_screen_follows_running_attempts_and_brackets_reach_every_attempt() -> None:
    async with opened("softmax#1", events=at_once()) as (pilot, screen, _):
        assert (screen.number, shown_number(screen)) == (None, 3)
        numbers = []
        for key in ("right_square_bracket", "left_square_bracket", *["left_square_bracket"] * 2):
            await pilot.press(key)
            await pilot.pause()
            numbers.append((screen.number, shown_number(screen)))
        assert numbers == [(4, 4), (None, 3), (2, 2), (1, 1)]


def shown_number(screen: AgentScreen) -> int:
    assert screen.attempt is not None
    return screen.attempt.number


@BOTH
def test_picture_of_a_wrong_output(size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    app, _ = live(running())
    assert snap_compare(
        app,
        terminal_size=size,
        run_before=going_to("softmax#1", "left_square_bracket", "left_square_bracket", "3"),
    )
    assert app.feed is not None
    assert app.feed.state.attempt("softmax#1/1").verdict == "wrong"


@BOTH
def test_picture_of_a_trace_and_its_line(size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    app, _ = live(running())
    assert snap_compare(
        app, terminal_size=size, run_before=going_to("softmax#2", "left_square_bracket", "e", "3")
    )
    assert app.feed is not None
    assert app.feed.state.attempt("softmax#2/1").verdict == "call_error"


@BOTH
@pytest.mark.parametrize("pane", ["4", "5"], ids=["resources", "speed"])
def test_picture_of_a_diff_with_tables(
    size: tuple[int, int], pane: str, snap_compare: Callable[..., bool]
) -> None:
    app, _ = live(running())
    assert snap_compare(app, terminal_size=size, run_before=going_to("softmax#1", "d", pane))
    assert app.feed is not None
    assert app.feed.state.attempt("softmax#1/3").verdict == "correct"


def rearranged() -> list[AnyEvent]:
    """Return the events of two attempts: the second moves a function, changes lines far apart and passes a mask."""
    parts = [*RIGHT_SOURCE.split("\n\n\n"), PADDING, CHECK]
    before = "\n\n\n".join(parts)
    after = "\n\n\n".join([parts[0], PADDING, *parts[1:3], CHECK.replace("square", "double")])
    after = after.replace("mask=cols < n_cols", "mask=None if EVEN else cols < n_cols")
    log = EventLog()
    log.open()
    log.add(InstanceStarted(task="starter/softmax", instance=1), after_s=0.1)
    log.attempt("softmax#1/1", before, correct(waste=2.1))
    log.attempt("softmax#1/2", after, correct(waste=1.2), origin=Origin.OPTIMIZE, base="softmax#1/1")
    return log.events


@BOTH
def test_picture_of_a_diff(size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    app, _ = live(rearranged())
    assert snap_compare(app, terminal_size=size, run_before=going_to("softmax#1", "2", "d"))
    assert app.feed is not None
    first, second = (attempt.source for attempt in app.feed.state.instances["softmax#1"].attempts)
    difference = compare(first or "", second or "")
    assert difference is not None
    assert (difference.summary, len(difference.hunks)) == ("+3 -3, 6 moved", 2)


def test_picture_of_a_diff_in_two_columns(snap_compare: Callable[..., bool]) -> None:
    app, _ = live(rearranged())
    assert snap_compare(app, terminal_size=WIDE, run_before=going_to("softmax#1", "2", "d", "z"))


@pytest.mark.parametrize("theme", ["wavedeck-light", "ansi-dark"])
def test_picture_in_other_themes(theme: str, snap_compare: Callable[..., bool]) -> None:
    app, _ = live(running())
    app.theme = theme
    assert snap_compare(app, terminal_size=(120, 34), run_before=going_to("softmax#1", "d"))


async def test_text_is_followed_until_the_user_scrolls_up() -> None:
    async with opened("vector_add#1", size=NARROW) as (pilot, screen, source):
        seq = 1000

        async def stream(text: str) -> None:
            nonlocal seq
            seq += 1
            source.pending = [ReplyPiece(call=CALL, kind="text", text=text, seq=seq)]
            word = text.split()[-1]
            await until(pilot, lambda: word in screen.words.text, word)

        await stream("\n".join(f"line {number}" for number in range(100)) + "\nfirst_end ")
        assert screen.words.scroll_offset.y == screen.words.max_scroll_y > 0
        await pilot.press("g")
        assert screen.words.scroll_offset.y == 0
        await stream("\nmore\nmore\nsecond_end ")
        assert screen.words.scroll_offset.y == 0, "held"
        assert "held" in str(screen.words.border_title)
        await pilot.press("f")
        await stream("\nthird_end ")
        assert screen.words.scroll_offset.y == screen.words.max_scroll_y


async def test_retry_removes_the_streamed_text() -> None:
    async with opened("vector_add#1") as (pilot, screen, source):
        assert "vanish" in screen.words.text
        source.pending = [
            CallRetried(call=CALL, reason="cut", message="the stream ended", wait_s=1, retry=1, seq=900)
        ]
        await until(pilot, lambda: "vanish" not in screen.words.text, "the void words")
        assert "try 2, after cut: the stream ended" in screen.words.text


async def test_text_streamed_in_pieces_gives_the_same_lines() -> None:
    text = "A paragraph that is longer than the pane is wide, again and again. " * 6 + "\n\n    indented\nend"
    async with opened("vector_add#1") as (pilot, screen, source):
        for number, character in enumerate(text):
            source.pending.append(ReplyPiece(call=CALL, kind="text", text=character, seq=1000 + number))
            if number % 37 == 0:
                await pilot.pause(0.01)
        await until(pilot, lambda: screen.words.text.endswith("end"), "the end")
        pieces = screen.words.text
        screen.words._wrapped.clear()
        assert screen.attempt is not None
        screen.words.tell(passages(screen.attempt))
        assert screen.words.text == pieces


async def test_brackets_select_attempts_and_the_last_follows_the_newest() -> None:
    async with opened("softmax#1") as (pilot, screen, source):
        assert screen.number is None
        await pilot.press("left_square_bracket")
        assert screen.attempt is not None
        assert screen.attempt.number == 2
        assert "[2C+]" in screen.strip.text
        source.pending = [
            AttemptStarted(
                attempt="softmax#1/4", origin=Origin.OPTIMIZE, base="softmax#1/3", seq=900, wall=1.0
            )
        ]
        await until(pilot, lambda: "4." in screen.strip.text, "attempt 4")
        assert screen.attempt.number == 2, "the selected attempt stays"
        await pilot.press("right_square_bracket", "right_square_bracket")
        assert screen.number is None
        assert screen.attempt.number == 4


async def test_diff_is_against_the_base_or_a_selected_attempt() -> None:
    async with opened("softmax#1") as (pilot, screen, _):
        await pilot.press("d")
        assert "diff softmax#1/2 -> /3" in str(screen.code.border_title)
        assert "+3 -2" in screen.code.summary
        await pilot.press("less_than_sign")
        assert "diff softmax#1/1 -> /3" in str(screen.code.border_title)
        await pilot.press("greater_than_sign")
        assert "diff softmax#1/2 -> /3" in str(screen.code.border_title)
        assert not screen.code.two_columns
        await pilot.press("s")
        assert screen.code.two_columns
        assert " │ " in screen.code.text
        await pilot.press("d")
        assert screen.code.copy_text == FAST_SOURCE


async def test_braces_go_through_the_hunks() -> None:
    async with opened("softmax#1", size=(80, 14)) as (pilot, screen, _):
        await pilot.press("d")
        assert "hunk 1 of 2" in str(screen.code.border_title)
        assert "24▌+" not in visible(screen)
        await pilot.press("right_curly_bracket", "right_curly_bracket")
        await pilot.pause()
        assert "hunk 2 of 2" in str(screen.code.border_title)
        assert "24▌+" in visible(screen)
        await pilot.press("left_curly_bracket")
        assert "hunk 1 of 2" in str(screen.code.border_title)


def visible(screen: AgentScreen) -> str:
    return "\n".join(screen.code.render_line(y).text for y in range(screen.code.size.height))


async def test_lines_that_go_on_end_in_an_ellipsis_left_of_the_scrollbar() -> None:
    async with opened("softmax#1", size=NARROW) as (pilot, screen, _):
        await pilot.press("2")
        await pilot.pause()
        room = screen.code.scrollable_content_region.width
        long = next(y for y, row in enumerate(screen.code.lines) if len(plain(row)) > room)
        assert screen.code.render_line(long).text[:room].endswith("…")
        await pilot.press(*["l"] * 20)
        await pilot.pause()
        assert (
            screen.code.render_line(long).text[:room].rstrip().endswith(plain(screen.code.lines[long])[-9:])
        )


async def test_code_streams_in_its_pane_and_a_line_stands_in_its_place() -> None:
    async with opened("vector_add#1", size=WIDE) as (pilot, screen, source):
        text = " the sum.\n\n```python\n" + FAST_SOURCE * 2 + "def last_line("
        source.pending = [ReplyPiece(call=CALL, kind="text", text=text, seq=900)]
        await until(pilot, lambda: "code: 51 lines so far, on the right" in screen.words.text, "the mark")
        assert "so that they vanish in the sum." in screen.words.text
        assert "import torch" not in screen.words.text
        assert "51 lines so far" in str(screen.code.border_title)
        await until(pilot, lambda: "def last_line(" in visible(screen), "the end of the code")
        proposed = CandidateProposed(attempt="vector_add#1/1", source=FAST_SOURCE, seq=902)
        finished_call = CallFinished(
            call=CALL, text=f"First.\n```python\n{FAST_SOURCE}```\nLast.", stop_reason="end", seq=901
        )
        source.pending = [finished_call, proposed]
        await until(pilot, lambda: screen.code.copy_text == FAST_SOURCE, "the candidate")
        assert "First.\n\ncode: 25 lines, on the right\n\nLast." in screen.words.text


def test_short_quotations_of_the_code_stay_in_the_reply() -> None:
    attempt = fold(running()).attempt("softmax#1/3")
    attempt.calls[-1].text_words = Words("Set\n```python\n    return y\n```\nas before.")
    assert "    return y" in "\n".join(passage.text for passage in passages(attempt))


async def test_key_e_visits_the_lines_that_the_error_names() -> None:
    async with opened("softmax#2", size=(160, 40)) as (pilot, screen, _):
        await pilot.press("left_square_bracket")
        assert screen.attempt is not None
        links = attempts.verdict_lines(screen.attempt, None, None, 80).links
        assert [number for _, number in links] == [14, 23, 14]
        await pilot.press("e")
        assert "14 >" in screen.code.text
        assert "> exception at kernel.py line 14" in screen.detail.text
        await pilot.press("e")
        assert '> File "kernel.py", line 23' in screen.detail.text
        assert "23 >" in screen.code.text
        assert "14 >" not in screen.code.text


async def test_key_e_in_a_replay_survives_a_step_back_to_before_the_verdict() -> None:
    app = replayed(running())
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        await pilot.press("dollar_sign")
        app.open_agent("softmax#2")
        await until(pilot, lambda: isinstance(app.screen, AgentScreen), "the agent")
        await pilot.press("left_square_bracket", "e")
        screen = app.screen
        assert isinstance(screen, AgentScreen)
        await until(pilot, lambda: "14 >" in screen.code.text, "the marked line")
        assert screen.feed.replay is not None
        events = screen.feed.replay.story.events
        verdict = next(
            place
            for place, event in enumerate(events)
            if isinstance(event, AttemptJudged) and event.attempt == "softmax#2/1"
        )
        screen.feed.replay.seek(verdict)
        app.frame()
        assert screen.attempt is not None
        assert screen.attempt.evaluation is None
        assert "14 >" not in screen.code.text


async def test_digits_select_the_judge_pane() -> None:
    async with opened("softmax#1") as (pilot, screen, _):
        for digit, words in (
            ("4", "vgprs"),
            ("5", "roofline estimate, not a measurement"),
            ("6", "landlock  active"),
            ("7", "Solve softmax."),
            ("3", "C est 1-1.70x roof"),
        ):
            await pilot.press(digit)
            await until(pilot, lambda words=words: words in screen.detail.text, words)


async def test_larger_terminal_shows_all_panes() -> None:
    async with opened("softmax#1", size=NARROW) as (pilot, screen, _):
        await pilot.press("2")
        await pilot.resize_terminal(*WIDE)
        await until(pilot, lambda: "C est" in screen.detail.text, "the verdict")
        assert screen.words.display
        assert screen.code.display


async def test_zoom_shows_one_pane_and_escape_ends_it() -> None:
    async with opened("softmax#1") as (pilot, screen, _):
        await pilot.press("2", "z")
        await pilot.pause()
        assert screen.code.size.width > 150
        assert not screen.words.display
        await pilot.press("escape")
        assert screen.words.display
        assert isinstance(pilot.app.screen, AgentScreen)


async def test_accept_asks_for_a_reason_and_shows_only_recorded_decisions() -> None:
    decider = RecordingDecider()
    async with opened("softmax#1", decider=decider) as (pilot, screen, source):
        await pilot.press("a")
        assert isinstance(pilot.app.screen, ReasonDialog)
        await pilot.press(*"fine", "space", *"q", "enter")
        await until(pilot, lambda: bool(decider.decisions), "the decision")
        assert decider.decisions == [(source.session, "softmax#1/3", True, "fine q")]
        assert "3C+" not in screen.strip.text
        source.pending = [
            DecisionMade(attempt="softmax#1/3", accepted=True, why="fine q", by="ada", seq=900, wall=1.0)
        ]
        await until(pilot, lambda: "3C+" in screen.strip.text, "the fold")


async def test_view_stays_with_a_decided_attempt() -> None:
    async with opened("softmax#1", decider=RecordingDecider()) as (pilot, screen, source):
        await pilot.press("a", "enter")
        source.pending = [
            DecisionMade(attempt="softmax#1/3", accepted=True, why="", by="ada", seq=900, wall=1.0),
            AttemptStarted(
                attempt="softmax#1/4", origin=Origin.OPTIMIZE, base="softmax#1/3", seq=901, wall=1.0
            ),
        ]
        await until(pilot, lambda: "4." in screen.strip.text, "attempt 4")
        assert shown_number(screen) == 3
        await pilot.press("right_square_bracket")
        assert (screen.number, shown_number(screen)) == (None, 4)


async def test_reject_cancel_and_undo_send_the_right_decisions() -> None:
    decider = RecordingDecider()
    async with opened("softmax#1", decider=decider) as (pilot, _, source):
        await pilot.press("r", "escape", "r", *"slow", "enter")
        await until(pilot, lambda: len(decider.decisions) == 1, "the rejection")
        await pilot.press("u")
        assert len(decider.decisions) == 1, "attempt 3 has no decision to undo"
        await pilot.press("left_square_bracket", "u")
        await until(pilot, lambda: len(decider.decisions) == 2, "the undoing")
        assert decider.decisions == [
            (source.session, "softmax#1/3", False, "slow"),
            (source.session, "softmax#1/2", None),
        ]


async def test_refused_decision_is_notified_and_changes_nothing() -> None:
    decider = RecordingDecider(refusal="the engine of this session runs on node18; decide there")
    async with opened("softmax#1", decider=decider) as (pilot, screen, _):
        await pilot.press("a", "enter")
        await until(pilot, lambda: bool(pilot.app._notifications), "the notification")
        assert any("node18" in notification.message for notification in pilot.app._notifications)
        assert "3C+" not in screen.strip.text


async def test_read_only_hides_and_disables_decisions() -> None:
    decider = RecordingDecider()
    async with opened("softmax#1", decider=decider, readonly=True) as (pilot, screen, _):
        await pilot.press("a", "r", "u", "enter")
        assert pilot.app.screen is screen
        assert not decider.decisions
        assert "accept" not in screen.query_one("KeyBar").text
        assert "read only" in screen.header_bar.text


async def test_attempt_without_a_verdict_cannot_be_decided() -> None:
    async with opened("vector_add#1") as (pilot, screen, _):
        await pilot.press("a")
        assert pilot.app.screen is screen


async def test_key_y_copies_the_source_and_notifies() -> None:
    async with opened("softmax#1") as (pilot, _, _source):
        await pilot.press("2", "y")
        await until(pilot, lambda: bool(pilot.app._notifications), "the notification")
        assert pilot.app.clipboard == FAST_SOURCE
        (notification,) = pilot.app._notifications
        assert f"{len(FAST_SOURCE)} B sent to the terminal" in notification.message


def lines_of(name: str, evaluation: object, width: int = 100) -> str:
    attempt = fold(running()).attempt("softmax#1/1")
    attempt.evaluation = evaluation
    return "\n".join(plain(line) for line in details.told(name, attempt, None, "gfx942", width).lines)


def test_verdict_pane_shows_all_facts_of_a_mismatch() -> None:
    shown = lines_of("verdict", wrong())
    for fact in (
        "W wrong", "y[3, 517]", "0.0009765625", "nan", "0.9821 absolute", "1 relative", "6.250%", "got 1000, 0",
        "[16, 1000]", "float16", "masked lanes count in the sum",
    ):  # fmt: skip
        assert fact in shown


def test_latency_row_says_faster_only_if_the_interval_excludes_one() -> None:
    shown = lines_of("speed", correct(speed=latencies())).splitlines()
    assert any("fp32" in line and "faster" in line and "1.390-1.470" in line for line in shown)
    assert any("fp16 outliers" in line and "not resolved" in line for line in shown)


def test_latency_row_shows_the_measurement_conditions() -> None:
    shown = lines_of("speed", correct(speed=latencies()), 200)
    for fact in (
        "speedup against triton, cold caches", "28.5-29.6 us", "640/655", "bound", "4.1 us", "85%",
        "1755 of 1980 MHz", "power cap 12%", "61/54 C", "512 W", "14.7 mJ", "8 MiB",
    ):  # fmt: skip
        assert fact in shown


@BOTH
@pytest.mark.parametrize("pane", ["3", "5"], ids=["verdict", "speed"])
def test_picture_of_a_winner_timed_again(
    size: tuple[int, int], pane: str, snap_compare: Callable[..., bool]
) -> None:
    app, _ = live(timed_again()[:-1])
    assert snap_compare(app, terminal_size=size, run_before=going_to("vector_add#1", pane))
    assert app.feed is not None
    attempt = app.feed.state.attempt("vector_add#1/1")
    assert attempt.speedup == 1.14
    shown = "\n".join(plain(line) for line in details.told("speed", attempt, None, "gfx942", 100).lines)
    assert shown.index("timed again for the exam") < shown.index("mean 1.14x")


def test_speed_pane_says_that_nothing_was_measured() -> None:
    assert "Not measured: no latency on device cpu" in lines_of("speed", correct())


def test_speed_pane_says_why_a_speedup_is_missing() -> None:
    whole = correct(speed=latencies())
    note = "timing was not whole: 2 of 3 cases: ragged: no memory for its inputs"
    part = msgspec.structs.replace(whole, speedup=None, not_timed=("ragged",), notes=(note,))
    shown = lines_of("speed", part, 200)
    assert "without a latency: ragged" in shown
    assert note in shown
    stages = tuple(
        msgspec.structs.replace(stage, detail="not timed: GPU 0 was lost")
        if stage.name == "performance"
        else stage
        for stage in whole.stages
    )
    lost = msgspec.structs.replace(whole, latency=(), speedup=None, stages=stages)
    assert "Not measured: GPU 0 was lost" in lines_of("speed", lost)


def test_lineage_names_the_instance_of_a_fork() -> None:
    fork = AttemptState("softmax#3/1", 1, Origin.FORK, "softmax#1/3")
    repair = AttemptState("softmax#3/2", 2, Origin.REPAIR, "softmax#3/1")
    assert [attempts.lineage(each) for each in (fork, repair)] == ["fork of softmax#1/3", "repair of 1"]


def test_words_pane_names_the_cause_of_a_failed_call() -> None:
    call = "softmax#2/2/reflector/1"
    failed = CallFailed(call=call, reason="gave_up", message="5 tries failed", cause="connection", seq=999)
    (*_, passage) = passages(fold([*running(), failed]).attempt("softmax#2/2"))
    assert passage.text == "no reply: gave_up, connection: 5 tries failed"


def test_target_with_a_compile_error_is_named_with_its_message() -> None:
    evaluation = msgspec.structs.replace(
        correct(), compile_errors={"sm_90": "out of resources: shared memory"}
    )
    assert "sm_90  0 launches compiled" in lines_of("resources", evaluation)
    assert "does not compile: out of resources: shared memory" in lines_of("resources", evaluation)


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
    shown = lines_of("resources", evaluation, width=76)
    table, _, launches = shown.partition("launched as")
    rows = [row for row in table.splitlines() if row.startswith(kernel.kernel[:10])]
    assert len(rows) == 2
    assert "case-0 +23" in rows[0]
    assert "256" in rows[1]
    assert " 12 " in rows[1]
    assert "case-23" in launches, "every case is listed"
    assert "BLOCK=4096" in launches


def test_long_strategy_is_below_the_error_and_the_error_is_shown_once() -> None:
    state = fold(running())
    attempt = state.attempt("softmax#2/1")
    attempt.strategy = "hold the row in registers " * 40
    assert attempt.evaluation is not None
    error = attempt.evaluation.error
    assert error is not None
    attempt.evaluation = msgspec.structs.replace(
        attempt.evaluation,
        compile_errors={"gfx942": "needs 131072 bytes of LDS"},
        error=msgspec.structs.replace(
            error, message="gfx942: needs 131072 bytes of LDS", trace="needs 131072 bytes of LDS\n"
        ),
    )
    shown = "\n".join(plain(row) for row in details.told("verdict", attempt, None, "gfx942", 80).lines)
    assert shown.count("131072") == 1
    assert shown.index("131072") < shown.index("hold the row")


def test_attempt_without_a_verdict_names_its_base() -> None:
    state = fold(running())
    base, instance = state.attempt("softmax#2/1"), state.instances["softmax#2"]
    repair = fold(running()).attempt("softmax#2/1")
    repair.evaluation, repair.base, repair.number, repair.stages = None, base.attempt, 2, []
    shown = "\n".join(plain(row) for row in details.told("verdict", repair, instance, "gfx942", 80).lines)
    assert "no verdict yet" in shown
    assert "made from attempt 1" in shown
    assert base.evaluation is not None
    assert base.evaluation.error is not None
    assert base.evaluation.error.message.split()[0] in shown


def verdict_of(attempt: str, events: list[AnyEvent], width: int = 80) -> list[str]:
    state = fold(events)
    instance = state.instances[attempt.partition("/")[0]]
    pane = details.told("verdict", state.attempt(attempt), instance, "gfx942", width)
    return [plain(row) for row in pane.lines]


def test_verdict_pane_of_a_correct_attempt_shows_margins_and_exam() -> None:
    shown = verdict_of("softmax#1/3", finished(), width=100)
    assert shown[1] == "2 cases pass; closest to its tolerance: 38 % used"
    assert (
        shown[2] == "confirmed correct on the exam cases: 2 cases pass; closest to its tolerance: 59 % used"
    )
    begin = shown.index("margins left to the tolerances, worst first")
    assert [row.split() for row in shown[begin + 1 : begin + 3]] == [
        ["62", "%", "fp16", "outliers", "y", "elementwise", "at", "[3,", "999]"],
        ["88", "%", "fp32", "y", "elementwise", "at", "[4,", "211]"],
    ]
    begin = shown.index("margins left to the tolerances of the exam, worst first")
    assert shown[begin + 1].split()[:4] == ["41", "%", "fp16", "wide"]


def test_verdict_pane_shows_the_findings_of_the_exam() -> None:
    older = [event for event in finished() if not isinstance(event, WinnerExamined)]
    race = Finding(kind="race", message="line 9: two programs store to y", case="fp16 wide", line=9)
    examination = msgspec.structs.replace(examined(), findings=(race,))
    shown = verdict_of("softmax#1/3", [*older, WinnerExamined(attempt="softmax#1/3", evaluation=examination)])
    begin = shown.index("findings of the exam")
    assert shown[begin + 1].strip() == "race: case fp16 wide: line 9: two programs store to y"


def test_failed_or_missing_exam_has_a_reason() -> None:
    assert "not confirmed: wrong on the exam cases: output y of case fp16 wide is 0.0" in " ".join(
        verdict_of("vector_add#1/1", finished())
    )
    before = "exam: the best attempt is examined when the instance ends"
    assert before in verdict_of("softmax#1/3", running())
    only = "exam: only the best attempt of an instance is examined"
    assert only in verdict_of("softmax#1/2", finished())
    older = [event for event in finished() if not isinstance(event, WinnerExamined)]
    assert "not examined" in verdict_of("softmax#1/3", older), "session without exams"
    lost = WinnerExamined(attempt="softmax#1/3", evaluation=examined(Verdict.INFRA_ERROR))
    assert "not examined: the judge is gone: it was killed" in verdict_of("softmax#1/3", [*older, lost])
    assert not any("examined" in row for row in verdict_of("softmax#1/1", finished())), (
        "wrong attempts have no exam"
    )


async def test_running_exam_is_shown_in_fleet_and_verdict_pane() -> None:
    begun = StageStarted(attempt="softmax#1/3", stage="execution", device="cpu", exam=True)
    state = fold([*running(), begun])
    row = views.agent_row(state, state.instances["softmax#1"])
    assert [cell.text for cell in row.cells][1] == "exam"
    assert "under way" in [cell.text for cell in row.cells]
    assert "exam under way: execution" in verdict_of("softmax#1/3", [*running(), begun])


async def test_decision_dialog_shows_margins_and_exam() -> None:
    async with opened("softmax#1", events=finished()[:-1]) as (pilot, _, _source):
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReasonDialog), "the dialog")
        facts = str(pilot.app.screen.query_one("#known").render())
        assert "2 cases pass; closest to its tolerance: 38 % used" in facts
        assert "confirmed correct on the exam cases" in facts
    async with opened("softmax#1") as (pilot, _, _source):
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReasonDialog), "the dialog")
        facts = str(pilot.app.screen.query_one("#known").render())
        assert "the best attempt is examined when the instance ends" in facts


@BOTH
def test_picture_of_margins_and_exam(size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    app, _ = live(finished()[:-1])
    assert snap_compare(app, terminal_size=size, run_before=going_to("softmax#1", "3"))
    assert app.feed is not None
    assert app.feed.state.attempt("softmax#1/3").confirmation is Confirmation.CONFIRMED


@BOTH
def test_picture_of_facts_by_basis(size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    app, _ = live(finished()[:-1])
    assert snap_compare(app, terminal_size=size, run_before=going_to("softmax#1", "6"))


def test_picture_of_the_decision_dialog(snap_compare: Callable[..., bool]) -> None:
    app, _ = live(finished()[:-1])
    assert snap_compare(app, terminal_size=NARROW, run_before=going_to("softmax#1", "a"))


def test_stages_have_words_and_not_only_colours() -> None:
    shown = lines_of("stages", call_error()).splitlines()
    attempt = fold(running()).attempt("softmax#2/1")
    shown = [plain(line) for line in attempts.stage_lines(attempt, 100)]
    assert shown[0].startswith("ok   static")
    assert shown[1].startswith("FAIL call")
    assert shown[2].startswith("-    compile")


async def test_running_stage_is_shown() -> None:
    events = finished()[:-1]
    stage = Stage("static", True, 0.1, "")
    events += [
        AttemptStarted(attempt="softmax#2/3", origin=Origin.FRESH, seq=900, wall=1.0),
        StageStarted(attempt="softmax#2/3", stage="static", device="cpu", seq=901, wall=1.0),
        StageFinished(attempt="softmax#2/3", stage=stage, seq=902, wall=1.0),
        StageStarted(attempt="softmax#2/3", stage="call", device="cpu", seq=903, wall=1.0),
    ]
    async with opened("softmax#2", events=events) as (_, screen, _source):
        assert "judging: call" in screen.detail.text
        assert "..   call" in screen.detail.text


async def test_candidate_text_cannot_control_the_terminal() -> None:
    hostile = "\x1b[2J\x1b[31mnothing to see\x07"
    async with opened("vector_add#1") as (pilot, screen, source):
        source.pending = [ReplyPiece(call=CALL, kind="text", text=hostile, seq=900)]
        await until(pilot, lambda: "to see" in screen.words.text, "the words")
        assert "\x1b" not in screen.words.text
