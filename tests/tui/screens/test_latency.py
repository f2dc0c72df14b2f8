"""Protects the Latency screen: every mark of its table, what its words claim, its keys and its states without times."""

from __future__ import annotations

import msgspec
import pytest
from textual.pilot import Pilot

from harness import ErrorReport, Evaluation, Latency, Outcome
from harness.wire.results.latency import Bound, Efficiency, Timed, Window
from sessions import events as ev
from sessions.state.folding import fold
from sessions.state.state import SessionState
from tests.support.cockpit.cockpits import NARROW, RecordingDecider, live, until
from tests.support.sessions.journals import RIGHT_SOURCE, EventLog, correct, wrong
from tui.cockpit.app import Cockpit
from tui.cockpit.desk.messages import OpenLatency
from tui.cockpit.dialogs.dialogs import TextDialog
from tui.cockpit.draw.grid import places
from tui.cockpit.draw.lines import Line, plain
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.latency.captions import absence_lines, caption_lines, footnotes, title_lines
from tui.cockpit.screens.latency.cell_facts import detail_lines
from tui.cockpit.screens.latency.latency import LatencyScreen
from tui.cockpit.screens.latency.plotted import PLOTS, plot_lines
from tui.cockpit.screens.latency.time_table import Shown, time_table
from tui.cockpit.screens.latency.timings import Timings, timings_of
from tui.cockpit.terminal.terminal import to_ascii
from tui.cockpit.viewer import ExitNote
from tui.facts.evaluation.counted import steps_table
from tui.facts.evaluation.times import case_style

ATTEMPT = "softmax#1/1"
SHORT_MS = 0.0205
"""Five times the floor of `measured`: the shortest time that counts as exact."""


def measured(
    case: str, base_ms: float, this_ms: float, device: str = "2", *, throttled: bool = False
) -> Latency:
    """Return a timed case, with the bound that the judge gives to short kernels."""
    short = [base_ms < SHORT_MS, this_ms < SHORT_MS]
    speedup = None if all(short) else base_ms / this_ms
    rate = 1e9 / this_ms * 1e3
    return Latency(
        device, case, base_ms, this_ms, speedup,
        None if speedup is None else (speedup * 0.98, speedup * 1.02), "tape",
        Outcome.TOO_SHORT if speedup is None else Outcome.FASTER, against="triton", pairs=5, floor_ms=0.0041,
        baseline=Timed(base_ms, base_ms * 0.99, base_ms * 1.01, 640),
        candidate=Timed(this_ms, this_ms * 0.99, this_ms * 1.01, 50),
        efficiency=Efficiency("MI300X", 10**9, 10**8, "fp32", rate, rate / 10, rate / 8e12, 0.01, rate / 7e12),
        window=Window("amdsmi", 0.6, clock_mhz=1610 if throttled else 2100, power_w=640.0,
                      throttled={"power cap": 0.42} if throttled else {}),
        bound=Bound.AT_LEAST if short[1] and not short[0] else Bound.NONE,
    )  # fmt: skip


CASES = (("fp32", 0.251, 0.1302), ("narrow", 0.219, 0.0041), ("one-row", 0.0041, 0.0041))


def evaluated(device: str = "2", *, throttled: bool = False, later: float = 1.0) -> Evaluation:
    """Return a correct evaluation with an exact case, a lower bound and a case without a ratio."""
    latency = tuple(
        measured(case, base, this * later, device, throttled=throttled) for case, base, this in CASES
    )
    return msgspec.structs.replace(correct(speed=latency[:2]), latency=latency, device=device)


def opened(*devices: str) -> EventLog:
    log = EventLog()
    log.open(devices=devices)
    log.add(ev.InstanceStarted(task="starter/softmax", instance=1))
    return log


def eight_gpus() -> list[ev.AnyEvent]:
    """Return a session with a cell for every mark."""
    log = opened(*map(str, range(8)))
    log.attempt(ATTEMPT, RIGHT_SOURCE, evaluated())
    failed = msgspec.structs.replace(wrong(), error=ErrorReport("mismatch", "y[3] is nan"), device="4")
    for device, again in (
        ("0", evaluated("0", later=1.01)),
        ("3", evaluated("3", throttled=True, later=1.2)),
        ("4", failed),
    ):
        log.add(ev.WinnerMeasured(attempt=ATTEMPT, device=device, evaluation=again))
    log.add(ev.DeviceAwaited(device="6", holders=("kim: python, 141 GiB",)))
    log.add(ev.DeviceQuarantined(device="7", why="hang: no reply for 30 s"))
    log.add(ev.MeasureAsked(attempt=ATTEMPT, devices=("5",)))
    return log.events


def of(events: list[ev.AnyEvent]) -> tuple[SessionState, Timings]:
    state = fold(events)
    timings = timings_of(state, state.attempt(ATTEMPT))
    return state, timings


def table(timings: Timings, shown: Shown = Shown.TIME, width: int = 158) -> dict[str, dict[str, str]]:
    """Return the texts by case and title."""
    drawn = time_table(timings, shown)
    placed = places(drawn.columns, drawn.rows, width)
    return {
        row.key: {drawn.columns[place.column].title: row.cells[place.column].text for place in placed}
        for row in drawn.rows
    }


def text(lines: list[Line]) -> str:
    return "\n".join(map(plain, lines))


def test_each_cell_says_what_is_known_of_its_gpu() -> None:
    rows = table(of(eight_gpus())[1])
    fp32 = rows["fp32"]
    assert [fp32[f"GPU{number}"] for number in range(8)] == [
        "131.5", "-", "130.2", "156.2!", "W", "t", "-", "lost",
    ]  # fmt: skip
    assert fp32["base"] == "251.0"
    assert (fp32["speedup"], fp32["95 %"]) == ("1.93", "[1.89, 1.97]")
    assert (fp32["roof"], fp32["limit"]) == ("110 %", "memory")


def test_the_range_leaves_out_throttled_gpus() -> None:
    timings = of(eight_gpus())[1]
    assert table(timings)["fp32"]["range"] == "1.0%"
    assert timings.gpu_range(timings.cases[1]) is None, "the launch hides these times"


def test_times_that_the_launch_hides_are_bounds_and_no_figures() -> None:
    rows = table(of(eight_gpus())[1])
    assert rows["narrow"]["GPU2"] == "<4.10"
    assert rows["narrow"]["speedup"].startswith(">= 53.4")
    assert (rows["narrow"]["roof"], rows["narrow"]["limit"]) == ("-", "launch")
    assert rows["one-row"]["base"] == "<4.10"
    assert (rows["one-row"]["speedup"], rows["one-row"]["95 %"]) == ("too short", "-")


def test_footnotes_explain_the_marks_that_are_present_and_no_others() -> None:
    timings = of(eight_gpus())[1]
    marks = [cell for row in table(timings).values() for cell in row.values()]
    notes = text(footnotes(timings, 200, marks, can_measure=True))
    for words in (
        "! GPU3 power cap 42 %, 1.61 GHz: not in range",
        "- GPU6 in use: kim: python, 141 GiB",
        "- GPU1 not timed",
        "lost GPU7 hang: no reply for 30 s",
        "t GPU5 asked for",
        "W GPU4 wrong: y[3] is nan",
        "too short on both sides: no ratio",
        "t measures ! and - again",
    ):
        assert words in notes
    log = opened("2")
    log.attempt(ATTEMPT, RIGHT_SOURCE, msgspec.structs.replace(evaluated(), latency=evaluated().latency[:1]))
    alone = of(log.events)[1]
    marks = [cell for row in table(alone).values() for cell in row.values()]
    assert text(footnotes(alone, 200, marks, can_measure=True)) == ""


def test_the_title_gives_the_bound_and_the_measured_part_beside_each_other() -> None:
    timings = of(eight_gpus())[1]
    title = text(title_lines(timings.attempt, 200))
    assert ">= 4.68x; 1.93x [1.89, 1.97] exact, 1 of 3" in title
    assert "against triton" in title
    assert "not examined" in title
    caption = text(caption_lines(timings, Shown.TIME, 200, ["range", *(f"GPU{n}" for n in range(8))]))
    assert "cold cache" in caption
    assert "speedup: GPU2" in caption
    assert "copy measured here 7.00 TB/s = 88 % of the vendor's peak" in caption


def test_times_are_those_of_the_exam_where_the_speedup_is_the_exams() -> None:
    log = opened("0", "2")
    log.attempt(ATTEMPT, RIGHT_SOURCE, evaluated("2"))
    log.exam(ATTEMPT, msgspec.structs.replace(evaluated("0", later=1.5), exam=True))
    state, timings = of(log.events)
    speed = state.attempt(ATTEMPT).speed
    assert speed.words in text(title_lines(state.attempt(ATTEMPT), 200))
    assert "speedup: GPU0" in text(caption_lines(timings, Shown.TIME, 200, ()))
    row = table(timings)["fp32"]
    assert (row["GPU0"], row["GPU2"]) == ("195.3", "130.2"), "the verdict's time is on its own GPU"
    assert row["speedup"] == "1.29", "as in the report: 251.0 us over 195.3 us"
    before = state.attempt(ATTEMPT).found_speed.figure
    assert f"timed by its exam, {before} before" in text(title_lines(state.attempt(ATTEMPT), 200))


def test_decision_of_a_person_is_in_the_title_and_beside_its_attempt_in_the_plot() -> None:
    log = opened("2")
    log.attempt(ATTEMPT, RIGHT_SOURCE, evaluated())
    log.add(ev.DecisionMade(attempt=ATTEMPT, accepted=False, why="too long", by="ada"))
    state, timings = of(log.events)
    assert f"{ATTEMPT}   rejected by ada" in text(title_lines(timings.attempt, 200))
    number = ATTEMPT.rpartition("/")[2]
    assert f"# {number} Cx" in text(plot_lines("attempts", state, timings, 80, 12))
    assert f"{number} Cx" in steps_table(state.instances["softmax#1"]).rows[0].cells[0].text


def test_caption_says_why_cases_have_no_time() -> None:
    log = opened("2")
    why = msgspec.structs.replace(evaluated(), why_not_timed="603 samples were disturbed")
    log.attempt(ATTEMPT, RIGHT_SOURCE, why)
    caption = text(caption_lines(of(log.events)[1], Shown.TIME, 200, ()))
    assert "not timed: 603 samples were disturbed" in caption


def test_of_more_gpus_than_fit_those_around_the_cursor_are_shown() -> None:
    log = opened(*map(str, range(64)))
    log.attempt(ATTEMPT, RIGHT_SOURCE, evaluated())
    timings = of(log.events)[1]
    drawn = time_table(timings, Shown.TIME)
    names = [column.title for column in drawn.columns]
    titles = [names[place.column] for place in places(drawn.columns, drawn.rows, 78, at=names.index("GPU63"))]
    assert "GPU63" in titles
    assert "GPU0" not in titles
    assert "of 64 GPUs" in text(caption_lines(timings, Shown.TIME, 200, titles))


def test_values_turn_to_speedups_and_clocks() -> None:
    timings = of(eight_gpus())[1]
    assert table(timings, Shown.SPEEDUP)["fp32"]["GPU2"] == "1.93"
    assert "base" not in table(timings, Shown.SPEEDUP)["fp32"]
    assert table(timings, Shown.CLOCK)["fp32"]["GPU3"] == "1.61!"
    assert Shown.CLOCK.next is Shown.TIME


def test_a_later_time_on_the_gpu_of_the_speedup_does_not_replace_it() -> None:
    events = eight_gpus()
    log = EventLog(events=events)
    log.add(ev.WinnerMeasured(attempt=ATTEMPT, device="2", evaluation=evaluated("2", later=1.5)))
    timings = of(log.events)[1]
    assert table(timings)["fp32"]["GPU2"] == "130.2"
    assert "timed again: 195.3 us" in text(detail_lines(timings, timings.cases[0], "GPU2", 200))


@pytest.mark.parametrize("name", [name for name, _ in PLOTS])
def test_every_plot_draws_or_says_why_not(name: str) -> None:
    state, timings = of(eight_gpus())
    lines = plot_lines(name, state, timings, 78, 14)
    assert 1 < len(lines) <= 14
    assert "?" not in to_ascii(text(lines)), "a terminal without Unicode shows each sign"
    if name == "roof":
        assert "launch: too short for a share" in text(lines)


def test_states_without_times_have_words() -> None:
    log = opened("0")
    assert "softmax#1 has no attempt yet" in text(absence_lines(None, "softmax#1", 80))
    assert "softmax#1/9 has not begun" in text(absence_lines(None, "softmax#1/9", 80))
    log.add(ev.AttemptStarted(attempt=ATTEMPT, origin=ev.Origin.FRESH))
    attempt = fold(log.events).attempt(ATTEMPT)
    assert "no verdict yet" in text(absence_lines(attempt, "softmax#1", 80))
    log.add(ev.AttemptJudged(attempt=ATTEMPT, evaluation=wrong()))
    attempt = fold(log.events).attempt(ATTEMPT)
    assert "The verdict is wrong" in text(absence_lines(attempt, "softmax#1", 80))
    log.add(ev.AttemptJudged(attempt=ATTEMPT, evaluation=correct()))
    attempt = fold(log.events).attempt(ATTEMPT)
    without_gpu = text(absence_lines(attempt, "softmax#1", 120))
    assert "bytes moved, counted by the interpreter at CPU sizes" in without_gpu
    assert " us " not in without_gpu
    assert "correct, not timed: no GPU judged it" in text(title_lines(attempt, 120))


def test_a_bound_alone_is_not_green() -> None:
    timings = of(eight_gpus())[1]
    exact, bound, _ = timings.cases
    assert (case_style(exact), case_style(bound)) == ("good", "")


async def shown(app: Cockpit, attempt: str, pilot: Pilot[ExitNote]) -> LatencyScreen:
    """Open the screen of an attempt."""
    await until(pilot, lambda: app.feed is not None and app.feed.state.last_seq > 0, "the session is read")
    app.post_message(OpenLatency(attempt))
    await until(pilot, lambda: isinstance(app.screen, LatencyScreen), "the screen opens")
    screen = app.screen
    panes = (screen.times, screen.steps, screen.plots)
    await until(pilot, lambda: screen.focused in panes, "the keys have a place")
    return screen


async def test_keys_move_the_cell_and_open_its_figures() -> None:
    decider = RecordingDecider()
    app, _ = live(eight_gpus(), decider=decider)
    async with app.run_test(size=NARROW) as pilot:
        screen = await shown(app, ATTEMPT, pilot)
        assert screen.times.cell_key == "GPU2"
        await pilot.press("l", "j")
        assert (screen.times.cell_key, screen.times.cursor_key) == ("GPU3", "narrow")
        assert "GPU3 B: <4.92 us" in screen.notes.text
        await pilot.press("k", "tab", "tab")
        await pilot.pause()
        assert "Best speedup of softmax over time" in screen.plots.text
        await pilot.press("v")
        assert "speedup on each GPU" in screen.above.text
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TextDialog), "the figures open")
        await pilot.press("escape", "t")
        await pilot.pause()
        words = f"measure: not possible: {ATTEMPT} is already being measured; wait for its result"
        assert [toast.message for toast in app._notifications] == [words]
        assert decider.decisions == []
        assert "130.2" not in screen.times.copy_text, "speedups are shown"
        assert "GPU7 hang" in screen.times.copy_text


async def test_brackets_walk_to_an_attempt_without_times() -> None:
    events = eight_gpus()
    log = EventLog(events=events)
    log.attempt("softmax#1/2", RIGHT_SOURCE, wrong())
    app, _ = live(log.events)
    async with app.run_test(size=NARROW) as pilot:
        screen = await shown(app, ATTEMPT, pilot)
        await pilot.press("greater_than_sign")
        assert "The verdict is wrong" in screen.plots.text
        assert not screen.times.display
        await pilot.press("less_than_sign")
        assert screen.times.display
        assert screen.focused is screen.times
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, LatencyScreen), "the screen closes")


async def test_without_a_gpu_the_attempts_stand_beside_each_other() -> None:
    wasteful = correct(waste=3.0)
    twice = tuple(msgspec.structs.replace(row, launches=2) for row in wasteful.traffic)
    log = opened()
    log.attempt(ATTEMPT, RIGHT_SOURCE, correct())
    log.attempt("softmax#1/2", RIGHT_SOURCE, wrong(), base=ATTEMPT)
    log.attempt("softmax#1/3", RIGHT_SOURCE, msgspec.structs.replace(wasteful, traffic=twice), base=ATTEMPT)
    app, _ = live(log.events)
    async with app.run_test(size=NARROW) as pilot:
        screen = await shown(app, ATTEMPT, pilot)
        titles = [column.title for column in screen.steps.columns]
        texts = [[cell.text.strip() for cell in row.cells] for row in screen.steps.rows]
        rows = [dict(zip(titles, row, strict=True)) for row in texts]
        assert [row["attempt"] for row in rows] == ["1 C*", "2 W", "3 C"]
        assert [row["launches"] for row in rows] == ["1", "-", "2▴"]
        assert rows[2]["moved/needed"].endswith("▴")
        assert rows[1]["strategy, or error"]
        assert screen.steps.has_focus
        await pilot.press("tab")
        assert screen.plots.has_focus, "the text below can be scrolled"
        await pilot.press("tab", "j")
        await pilot.pause()
        assert "The verdict is wrong" in screen.plots.text
        await pilot.press("greater_than_sign")
        await pilot.pause()
        assert screen.steps.cursor_key == "softmax#1/3"
        views = (screen.above, screen.steps, screen.notes, screen.plots)
        assert " us " not in "\n".join(view.text for view in views)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AgentScreen), "the attempt opens")
        assert app.screen.attempt.number == 3
