"""Fleet screen: one row per instance with its work and figures, devices, leaders and keys."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from tui.cockpit.device_rows import device_row

from harness import Latency, Verdict
from sessions.events import (
    AttemptJudged,
    AttemptStarted,
    CallFinished,
    CallRetried,
    CallStarted,
    Continued,
    DeviceQuarantined,
    DeviceSampled,
    EndReason,
    EngineStarted,
    EngineStopped,
    InstanceFinished,
    InstanceStarted,
    MeasureAsked,
    Notice,
    Origin,
    Paused,
    ReplyPiece,
    Role,
    StopAsked,
    WaitingForPerson,
    WinnerExamined,
    WinnerMeasured,
)
from sessions.fold import apply, fold
from sessions.state import Decision
from tests.support.cockpits import NARROW, WIDE, live, until
from tests.support.journals import (
    RIGHT_SOURCE,
    SESSION,
    EventLog,
    at_once,
    call_error,
    correct,
    examined,
    finished,
    latencies,
    running,
)
from tui.cockpit import standing, views
from tui.cockpit.lines import Span, cells, plain
from tui.cockpit.screens.agent import AgentScreen
from tui.cockpit.screens.fleet import FleetScreen
from tui.cockpit.screens.home import HomeScreen
from tui.tables import Row


def row(instance: str, events: list[object]) -> dict[str, str]:
    state = fold(events)
    cells = views.agent_row(state, state.instances[instance]).cells
    return {column.title: cell.text for column, cell in zip(views.AGENT_COLUMNS, cells, strict=True)}


def test_row_shows_work_and_figures_of_an_instance() -> None:
    shown = row("softmax#1", running())
    assert shown["attempt"] == "3/5"
    assert shown["last"] == "C correct"
    assert shown["tokens"] == "5.52k in 1.84k out"
    assert shown["cost"] == "-", "no configured price"


def test_estimate_is_marked_and_measurement_has_its_interval() -> None:
    assert row("softmax#1", running())["best"] == "C est 1-1.70x roof"
    assert row("vector_add#1", finished())["best"] == "C 1.22x [0.98-1.47]"


def test_failed_attempt_is_not_the_best() -> None:
    assert row("softmax#2", running())["best"] == "none correct yet"


def test_row_shows_the_streamed_length() -> None:
    assert row("vector_add#1", running())["doing"] == "generate 0.4k"


def test_parallel_attempts_are_counted_and_the_newest_verdict_is_shown() -> None:
    shown = row("softmax#1", at_once())
    assert shown["doing"] == "2 generate +1"
    assert shown["last"] == "W wrong"
    judged_later = AttemptJudged(attempt="softmax#1/2", evaluation=call_error(), seq=999)
    shown = row("softmax#1", [*at_once(), judged_later])
    assert shown["doing"].startswith("2 generate 0.")
    assert shown["last"] == "X call error"
    line, _ = views.last_verdict(fold([*at_once(), judged_later]).instances["softmax#1"], "gfx942", 80)
    assert plain(line).startswith("softmax#1/2  X call error")


def test_row_shows_a_retry() -> None:
    call = "softmax#1/1/generator/1"
    log = EventLog()
    log.open()
    log.add(InstanceStarted(task="starter/softmax", instance=1))
    log.add(CallStarted(call=call, attempt="softmax#1/1", role=Role.GENERATOR, model="m", messages=()))
    log.add(ReplyPiece(call=call, kind="text", text="half"))
    log.add(CallRetried(call=call, reason="cut", message="the stream ended", wait_s=1.0, retry=1))
    assert row("softmax#1", log.events)["doing"] == "no model, try 2"


def test_rows_are_in_the_order_of_tasks_and_instances() -> None:
    log = EventLog()
    log.open()
    for task, number in (("starter/vector_add", 1), ("starter/softmax", 2), ("starter/softmax", 1)):
        log.add(InstanceStarted(task=task, instance=number))
    keys = [instance.key for instance in views.ordered_instances(fold(log.events))]
    assert keys == ["softmax#1", "softmax#2", "vector_add#1"]


def test_unknown_device_figures_are_not_zero() -> None:
    log = EventLog()
    log.device("cpu")
    shown = [cell.text for cell in device_row(fold(log.events).devices["cpu"]).cells]
    assert shown == ["cpu", "Triton's interpreter", "idle", "not visible", "-", "-", "-", "-"]


def test_row_shows_what_a_person_ordered() -> None:
    log = EventLog()
    log.open(devices=("0",))
    log.add(InstanceStarted(task="starter/softmax", instance=1))
    log.attempt("softmax#1/1", RIGHT_SOURCE, correct())
    log.add(Paused(by="ada"))
    assert row("softmax#1", log.events)["doing"] == "paused"
    log.add(MeasureAsked(attempt="softmax#1/1", devices=("0",), by="ada"))
    assert row("softmax#1", log.events)["doing"] == "timed again"
    log.add(WinnerMeasured(attempt="softmax#1/1", device="0", evaluation=correct()))
    assert row("softmax#1", log.events)["doing"] == "paused"
    log.add(Continued(by="ada"))
    log.add(StopAsked(instance="softmax#1", by="ada"))
    assert row("softmax#1", log.events)["doing"] == "stopping"
    log.add(InstanceFinished(task="starter/softmax", instance=1, reason="stopped", best="softmax#1/1"))
    assert row("softmax#1", log.events)["doing"] == "stopped"


def test_lent_device_says_so() -> None:
    log = EventLog()
    log.device("0", "softmax#1/4", share=0.9)
    device = fold(log.events).devices["0"]
    assert "lent, finishes softmax#1/4" in [cell.text for cell in device_row(device, lent=True).cells]
    log.device("0", share=0.0)
    device = fold(log.events).devices["0"]
    assert "lent to others" in [cell.text for cell in device_row(device, lent=True).cells]


def test_lost_device_has_a_cause_and_no_figures() -> None:
    log = EventLog()
    log.device("0", "softmax#1/4", share=0.9)
    log.add(DeviceQuarantined(device="0", why="the probe hung"))
    shown = [cell.text for cell in device_row(fold(log.events).devices["0"]).cells]
    assert shown == ["0", "MI300X gfx942", "lost: the probe hung", "not visible", "-", "-", "-", "-"]


async def test_devices_leave_the_screen_with_their_engine() -> None:
    log = EventLog()
    log.open(devices=("0", "1"))
    log.device("0", "softmax#1/1", share=0.9)
    log.device("1", share=0.0)
    app, source = live(log.events)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        screen = app.screen
        assert isinstance(screen, FleetScreen)
        assert [row.key for row in screen.devices.rows] == ["0", "1"]
        source.pending = [EngineStopped(reason="stopped by ada", seq=900)]
        await until(pilot, lambda: not screen.devices.rows, "no device")
        assert screen.devices.empty == "No engine runs."
        source.pending = [
            EngineStarted(host="node17", pid=1, resumed=True, seq=901),
            DeviceSampled(device="0", description="MI300X", seq=902),
        ]
        await until(pilot, lambda: [row.key for row in screen.devices.rows] == ["0"], "the other engine's")


def test_only_a_certain_speedup_is_green() -> None:
    fast, unclear = latencies()
    state = fold(finished())
    attempt = state.attempt("vector_add#1/1")
    assert attempt.evaluation is not None

    def style(latency: tuple[Latency, ...], *, speedup: float | None = 1.2) -> str:
        evaluation = msgspec.structs.replace(attempt.evaluation, latency=latency, speedup=speedup)
        return standing.standing(evaluation, None).style

    assert style((fast,)) == "good"
    assert style((fast, unclear)) == "", "the interval of one case contains 1"
    assert style((), speedup=None) == "", "an estimate"


def test_header_names_the_cause_while_the_model_gives_no_words() -> None:
    log = EventLog()
    log.open()
    for number in (1, 2):
        name = f"softmax#{number}/1"
        call = f"{name}/generator/1"
        log.add(InstanceStarted(task="starter/softmax", instance=number))
        log.add(AttemptStarted(attempt=name, origin=Origin.FRESH))
        log.add(CallStarted(call=call, attempt=name, role=Role.GENERATOR, model="m", messages=()))
        log.add(CallRetried(call=call, reason="rate_limited", message="429", wait_s=20.0, retry=1))
    line = views.header(fold(log.events), name=SESSION, word=Span("running"), extra=[], width=100)
    assert "MODEL rate limited, 2 wait" in plain(line)
    log.add(ReplyPiece(call="softmax#1/1/generator/1", kind="text", text="def"))
    log.add(ReplyPiece(call="softmax#2/1/generator/1", kind="reasoning", text="so"))
    line = views.header(fold(log.events), name=SESSION, word=Span("running"), extra=[], width=100)
    assert "MODEL" not in plain(line)


def test_leaders_are_ranked_by_task_and_rank() -> None:
    rows = views.Leaders().rows(fold(finished()))
    assert [row.key for row in rows] == ["softmax#1/3", "softmax#1/2", "vector_add#1/1"]
    assert [cell(rows[0], "exam"), cell(rows[1], "exam"), cell(rows[2], "exam")] == [
        "confirmed",
        "-",
        "not confirmed",
    ]
    assert cell(rows[1], "decision") == "+ accepted"
    assert cell(rows[0], "margin") == "62 %"


def test_attempt_with_a_failed_exam_ranks_after_other_correct_attempts() -> None:
    state = fold([*finished(), WinnerExamined(attempt="softmax#1/3", evaluation=examined(Verdict.WRONG))])
    rows = views.Leaders().rows(state)
    assert [row.key for row in rows][:2] == ["softmax#1/2", "softmax#1/3"]
    assert state.instances["softmax#1"].best == "softmax#1/2"


def test_row_of_an_ended_instance_shows_the_exam() -> None:
    assert row("softmax#1", running())["exam"] == "-", "the instance still runs"
    assert row("softmax#1", finished())["exam"] == "confirmed"
    assert row("vector_add#1", finished())["exam"] == "not confirmed"
    assert row("softmax#2", finished())["exam"] == "-", "nothing to examine"
    older = [event for event in finished() if not isinstance(event, WinnerExamined)]
    assert row("softmax#1", older)["exam"] == "not examined"


def cell(row: Row, title: str) -> str:
    return dict(zip([column.title for column in views.LEADER_COLUMNS], row.cells, strict=True))[title].text


def test_rejected_attempt_is_the_last_leader() -> None:
    state = fold(finished())
    first = views.Leaders().rows(state)[0].key
    attempt = state.attempt(first)
    attempt.decision = Decision(accepted=False, why="too clever", by="ada", wall=0.0)
    rows = [row for row in views.Leaders().rows(state) if row.key.startswith("softmax")]
    assert [row.key for row in rows][-1] == first
    assert cell(rows[-1], "decision") == "! rejected"


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_header_fits_its_width(width: int) -> None:
    line = views.header(fold(running()), name=SESSION, word=Span("running"), extra=[], width=width)
    assert cells(line) <= width
    assert plain(line).startswith(SESSION)
    assert "running" in plain(line)


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "160x48"])
def test_picture_of_the_fleet(size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    app, _ = live(running())
    assert snap_compare(app, terminal_size=size)
    assert app.feed is not None
    assert app.feed.state.instances["softmax#2"].word == "reflect"


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "160x48"])
def test_picture_of_the_fleet_at_the_end(size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    app, _ = live(finished()[:-1])
    assert snap_compare(app, terminal_size=size)


async def test_eighteen_instances_fit_into_a_small_terminal() -> None:
    log = EventLog()
    log.open()
    for number in range(1, 19):
        log.add(InstanceStarted(task="starter/softmax", instance=number))
    app, _ = live(log.events)
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        screen = app.screen
        assert isinstance(screen, FleetScreen)
        assert screen.agents.size.height >= 1 + 18


async def test_rows_change_with_events_and_the_cursor_stays() -> None:
    app, source = live(running())
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        screen = app.screen
        assert isinstance(screen, FleetScreen)
        await pilot.press("down", "down")
        assert screen.agents.cursor_key == "vector_add#1"
        call = "vector_add#1/1/generator/1"
        source.pending = [
            CallFinished(call=call, text="done", seq=900),
            InstanceStarted(task="starter/softmax", instance=3, seq=901),
            Notice(level="warning", message="model answered 429; slowing down", seq=902),
        ]
        await until(pilot, lambda: "softmax#3" in screen.agents.text, "the new row")
        assert "generate" not in screen.agents.text
        assert screen.agents.cursor_key == "vector_add#1"
        assert "slowing down" in screen.banner.text


async def test_only_changed_cells_are_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    app, source = live(running())
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        screen = app.screen
        assert isinstance(screen, FleetScreen)
        await pilot.pause()
        refreshed: list[object] = []
        refresh = type(screen.agents).refresh

        def listening(widget: object, *regions: object, **options: object) -> object:
            if widget is screen.agents:
                refreshed.extend(regions or ["everything"])
            return refresh(widget, *regions, **options)

        monkeypatch.setattr(type(screen.agents), "refresh", listening)
        source.pending = [ReplyPiece(call="vector_add#1/1/generator/1", kind="text", text="x" * 200, seq=900)]
        await until(pilot, lambda: "generate 0.6k" in screen.agents.text, "the counter")
        (region,) = refreshed
        assert region.height == 1
        assert region.width <= 16


async def test_glance_shows_the_selected_instance_if_space_allows() -> None:
    app, source = live(running())
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        screen = app.screen
        assert isinstance(screen, FleetScreen)
        glance = screen.glance
        await until(pilot, lambda: "C est 1-1.70x roof" in glance.verdict.text, "the first agent's verdict")
        await pilot.press("j")
        await until(pilot, lambda: "X call error at kernel.py line" in glance.verdict.text, "the second's")
        assert glance.why.text
        await pilot.press("j")
        await until(pilot, lambda: "vector_add#1" in str(glance.border_title), "the third")
        source.pending = [ReplyPiece(call="vector_add#1/1/generator/1", kind="text", text="\nnews", seq=900)]
        await until(pilot, lambda: glance.words.text.endswith("news"), "the newest words")
        await pilot.press("5")
        assert screen.focused is glance.words


async def test_many_instances_hide_the_glance() -> None:
    log = EventLog()
    log.open()
    for number in range(1, 41):
        log.add(InstanceStarted(task="starter/softmax", instance=number))
    app, _ = live(log.events)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        screen = app.screen
        assert isinstance(screen, FleetScreen)
        await pilot.pause()
        assert not screen.glance.display
        assert screen.agents.size.height > 30
        assert screen.leaders.region.y == screen.devices.region.y, "side by side"
        await pilot.press("5")
        assert screen.focused is screen.agents, "the fifth pane is hidden"


async def test_enter_opens_the_instance_and_escape_returns_to_the_sessions() -> None:
    app, _ = live(running())
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        await pilot.press("j", "enter")
        assert isinstance(app.screen, AgentScreen)
        assert app.screen.key == "softmax#2"
        await pilot.press("escape")
        assert isinstance(app.screen, FleetScreen)
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)
        assert app.feed is None


async def test_leader_opens_at_its_attempt() -> None:
    app, _ = live(running())
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        await pilot.press("2", "down", "enter")
        assert isinstance(app.screen, AgentScreen)
        assert app.screen.attempt is not None
        assert app.screen.attempt.attempt == "softmax#1/2"


async def test_digits_select_panes_in_a_small_terminal() -> None:
    app, _ = live(running())
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        screen = app.screen
        assert isinstance(screen, FleetScreen)
        await pilot.press("3")
        assert screen.devices.display
        assert not screen.agents.display
        assert "[3 devices]" in screen.tab_bar.text
        await pilot.press("1")
        assert screen.agents.display


async def test_waiting_instance_opens_at_the_waiting_attempt() -> None:
    events = running()
    events.append(WaitingForPerson(attempt="softmax#1/3", seq=900, wall=events[-1].wall))
    events.append(
        AttemptStarted(attempt="softmax#1/4", origin=Origin.OPTIMIZE, seq=901, wall=events[-1].wall)
    )
    app, _ = live(events)
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        await pilot.press("enter")
        assert isinstance(app.screen, AgentScreen)
        assert app.screen.attempt is not None
        assert app.screen.attempt.attempt == "softmax#1/3"


@pytest.mark.parametrize("size", [(40, 10), (20, 5), (10, 3), (300, 90)])
async def test_fleet_draws_at_any_terminal_size(size: tuple[int, int]) -> None:
    app, _ = live(finished())
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        for key in (
            "1",
            "2",
            "3",
            "4",
            "1",
            "enter",
            "1",
            "2",
            "d",
            "s",
            "3",
            "4",
            "5",
            "6",
            "7",
            "z",
            "z",
            "question_mark",
        ):
            await pilot.press(key)
        await pilot.resize_terminal(80, 24)
        await pilot.resize_terminal(*size)


def test_every_end_reason_has_words() -> None:
    state = fold(running())
    for reason in (*EndReason, "of a newer writer"):
        apply(state, InstanceFinished(task="starter/softmax", instance=1, reason=reason))
        words = views.doing(state.instances["softmax#1"]).text
        assert words
        assert len(words) <= 16 or reason not in set(EndReason)


def test_header_counts_unknown_events() -> None:
    events = msgspec.structs.replace(running()[0])
    state = fold([events])
    state.skipped_events = 3
    line = views.header(state, name=SESSION, word=Span("running"), extra=[], width=300)
    assert "3 events unread" in plain(line)
