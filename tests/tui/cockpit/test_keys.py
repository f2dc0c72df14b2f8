"""Keys and `:` commands, from the key to the command or the screen that it leads to."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec
import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Input

from sessions import Home
from sessions.events import (
    AttemptBanned,
    AttemptPinned,
    HintGiven,
    InstanceForked,
    MeasureAsked,
    Paused,
    SessionExtended,
    SessionTitled,
    Stop,
    Unpaused,
)
from tests.support.cockpit.cockpits import NARROW, USUAL, RecordingDecider, live, on_fleet, on_home, until
from tests.support.cockpit.pictures import picture
from tests.support.sessions import stored_sessions as stored
from tests.support.sessions import story
from tests.support.sessions.journals import SESSION, finished, running
from tests.tui.cockpit.test_steering_keys import judged_on_gpu
from tests.tui.screens.test_home import INFOS, names
from tests.tui.screens.test_new_run import on_form
from tui.cockpit.app import Cockpit
from tui.cockpit.dialogs import layers
from tui.cockpit.dialogs.dialogs import ConfirmDialog
from tui.cockpit.dialogs.line_prompt import LinePrompt
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.screens.home.home import HomeScreen
from tui.cockpit.screens.latency.latency import LatencyScreen
from tui.cockpit.screens.report.report import ReportScreen
from tui.cockpit.screens.review.review import ReviewScreen
from tui.cockpit.viewer import ExitNote


async def obey(app: Cockpit, pilot: Pilot[ExitNote], text: str) -> None:
    """Type a command on the `:` line."""
    await pilot.press("colon")
    await until(pilot, lambda: isinstance(app.screen, LinePrompt), "the line")
    app.screen.query_one(Input).value = text
    await pilot.press("enter")
    await until(pilot, lambda: not isinstance(app.screen, LinePrompt), "the command")


def steered(decider: RecordingDecider) -> AbstractAsyncContextManager[tuple[Pilot[ExitNote], Cockpit]]:
    """Open a running session with a GPU, on which its correct attempts were judged."""
    started, *events = running()
    return on_fleet([story.changed(started, devices=("0",)), *map(judged_on_gpu, events)], decider=decider)


COMMANDS = {
    "pause": Paused(instance="softmax#1"),
    "pause softmax#2": Paused(instance="softmax#2"),
    "hint softmax#2 use tl.max": HintGiven(instance="softmax#2", text="use tl.max"),
    "pin softmax#1/2": AttemptPinned(attempt="softmax#1/2"),
    "ban softmax#1/2": AttemptBanned(attempt="softmax#1/2"),
    "measure softmax#1/3": MeasureAsked(attempt="softmax#1/3", devices=("all",)),
    "fork wider rows": InstanceForked(base="softmax#1/3", hint="wider rows"),
    "extend 3": SessionExtended(iterations=3),
    "title two words": SessionTitled(title="two words"),
}


async def test_commands_and_decisions_of_the_line_reach_the_engine() -> None:
    decider = RecordingDecider()
    async with steered(decider) as (pilot, app):
        for number, text in enumerate(COMMANDS, start=1):
            await obey(app, pilot, text)
            await until(pilot, lambda: len(decider.decisions) == number, text)  # noqa: B023
        assert dict(zip(COMMANDS, decider.decisions, strict=True)) == {
            text: (SESSION, command) for text, command in COMMANDS.items()
        }
        decider.decisions.clear()
        for number, text in enumerate(
            ("accept softmax#1/3 clean", "reject softmax#1/3 slow", "undo softmax#1/2"), 1
        ):
            await obey(app, pilot, text)
            await until(pilot, lambda: len(decider.decisions) == number, text)  # noqa: B023
        assert decider.decisions == [
            (SESSION, "softmax#1/3", True, "clean"),
            (SESSION, "softmax#1/3", False, "slow"),
            (SESSION, "softmax#1/2", None),
        ]
        decider.decisions.clear()
        await pilot.press("space", "l", "space")
        await obey(app, pilot, "hint use one pass")
        await until(pilot, lambda: len(decider.decisions) == 2, "both hints of the marked instances")
        assert decider.decisions == [
            (SESSION, HintGiven(instance=instance, text="use one pass"))
            for instance in ("softmax#1", "softmax#2")
        ]
        app.feed.state.on_hold.add("")
        await obey(app, pilot, "unpause session")
        await until(pilot, lambda: decider.decisions[2:] == [(SESSION, Unpaused())], "the end of the pause")
        decider.decisions.pop()
        await obey(app, pilot, "stop")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog), "the question")
        assert f"Stop session {SESSION}?" in picture(app)
        await pilot.press("enter")
        await until(pilot, lambda: len(decider.decisions) == 3, "the stop")
        assert decider.decisions[-1] == (SESSION, Stop())


async def test_a_long_question_scrolls_and_keeps_its_keys_in_view() -> None:
    app, _ = live(running())
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the session is read")
        dialog = ConfirmDialog("Make this task?", consequence="\n".join(map(str, range(40))))
        app.push_screen(dialog)
        await until(pilot, lambda: app.screen is dialog and dialog.focused is not None, "the dialog is drawn")
        text, keys = dialog.query_one("#consequence"), dialog.query_one("#hint")
        assert app.size.region.contains_region(keys.region)
        assert text.max_scroll_y > 0
        await pilot.press("end")
        await until(pilot, lambda: text.scroll_y == text.max_scroll_y, "the end of the text")


async def test_line_leads_to_every_screen() -> None:
    app, _ = live(running())
    destinations = {
        "show softmax#1/2": AgentScreen,
        "latency softmax#1/3": LatencyScreen,
        "review": ReviewScreen,
        "report": ReportScreen,
        "fleet": FleetScreen,
        "home": HomeScreen,
    }
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "Fleet")
        for text, screen in destinations.items():
            await obey(app, pilot, text)
            await until(pilot, lambda: isinstance(app.screen, screen), text)  # noqa: B023


async def test_redraw_and_ctrl_c_stop_nothing_and_keys_typed_at_once_after_a_colon_stay_in_the_line() -> None:
    """Over a slow connection the keys of a whole word arrive together."""
    decider = RecordingDecider()
    async with on_fleet(running(), decider=decider, size=NARROW) as (pilot, app):
        for key in ("ctrl+l", "ctrl+c"):
            await pilot.press(key)
            await pilot.pause()
            assert app.is_running
        for key, character in (("colon", ":"), ("s", "s"), ("t", "t"), ("o", "o"), ("p", "p")):
            app.post_message(events.Key(key, character))
        await until(pilot, lambda: isinstance(app.screen, LinePrompt), "the line")
        await until(pilot, lambda: app.screen.query_one(Input).value == "stop", "the word")
        assert decider.decisions == []


def type_at_once(app: Cockpit, *keys: str) -> None:
    """Send keys as a slow connection does: all of them before the cockpit acts on the first."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))


async def test_keys_that_arrive_together_act_one_after_the_other_and_wait_for_no_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layers, "LATE_S", 3600.0)
    decider = RecordingDecider()
    async with on_fleet(running(), decider=decider) as (pilot, app):
        type_at_once(
            app,
            "colon",
            "p",
            "escape",
            "escape",
            "enter",
            "r",
            "a",
            "x",
            "backspace",
            "l",
            "enter",
            "escape",
            "l",
            "A",
            "escape",
        )
        await until(
            pilot, lambda: decider.decisions == [(SESSION, "softmax#1/3", False, "al")], "the decision"
        )
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "Fleet")
        assert app.screen.steered_instance.key == "softmax#2"


async def test_keys_copy_a_line_that_runs_the_attempt_again_and_export_it(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = Cockpit(home, session=stored.finished(home), mode="live")
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "Fleet")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AgentScreen), "Agent")
        await pilot.press("Y")
        await until(pilot, lambda: "wavedeck eval" in app._clipboard, "the line")
        await pilot.press("O")
        await until(pilot, (tmp_path / "softmax-1-2" / "evidence.json").exists, "the export")
    assert (tmp_path / "softmax-1-2" / "softmax_kernel.py").read_text() == stored.FAST


async def test_home_reads_again() -> None:
    shown = list(INFOS[:3])
    async with on_home(lambda: shown) as (pilot, app):
        shown.append(INFOS[3])
        await pilot.press("f5")
        await until(pilot, lambda: len(names(app)) == 4, "the fourth session")


async def test_shift_tab_goes_back_in_the_form_and_in_the_plots(home: Home) -> None:
    async with on_form(home) as (pilot, app, screen):
        await pilot.press("tab", "tab", "shift+tab")
        assert screen.table.cursor_key == "tasks"
    async with on_fleet(finished(), size=NARROW) as (pilot, app):
        await obey(app, pilot, "latency vector_add#1/1")
        await until(pilot, lambda: isinstance(app.screen, LatencyScreen), "Latency")
        before = app.screen.plots.text
        await pilot.press("tab")
        assert app.screen.plots.text != before
        await pilot.press("shift+tab")
        assert app.screen.plots.text == before


async def test_pages_move_the_cursor_of_a_table() -> None:
    infos = [msgspec.structs.replace(INFOS[2], name=f"session-{number}") for number in range(40)]
    async with on_home(lambda: infos, size=NARROW) as (pilot, app):
        first = app.screen.table.cursor_key
        await pilot.press("pagedown")
        assert app.screen.table.cursor_key != first
        await pilot.press("pageup")
        assert app.screen.table.cursor_key == first
