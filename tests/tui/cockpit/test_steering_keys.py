"""Keys that steer a session from the cockpit."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Static

from sessions.events import (
    AnyEvent,
    AttemptJudged,
    HintGiven,
    MeasureAsked,
    Paused,
    ProfileAsked,
    RetireAsked,
    Unpaused,
)
from tests.support.cockpit.cockpits import (
    USUAL,
    RecordingDecider,
    ScriptedSource,
    live,
    on_fleet,
    on_home,
    replayed,
    until,
)
from tests.support.cockpit.pictures import picture
from tests.support.cockpit.stories import read_story
from tests.support.sessions import story
from tests.support.sessions.journals import RIGHT_SOURCE, SESSION, EventLog, correct, finished, running
from tui.cockpit.app import Cockpit
from tui.cockpit.desk.desk import NotEdited, edited
from tui.cockpit.dialogs.dialogs import ConfirmDialog
from tui.cockpit.dialogs.line_prompt import LinePrompt
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.viewer import ExitNote
from tui.cockpit.widgets.key_bar import KeyBar, active_hints

Opened = tuple[Pilot[ExitNote], Cockpit, RecordingDecider, ScriptedSource]


def judged_on_gpu(event: AnyEvent) -> AnyEvent:
    """Return the event, with GPU 0 as the device of a verdict."""
    if not isinstance(event, AttemptJudged):
        return event
    return replace(event, evaluation=replace(event.evaluation, device="0"))


@asynccontextmanager
async def fleet(*, refusal: str = "", readonly: bool = False) -> AsyncIterator[Opened]:
    decider = RecordingDecider(refusal=refusal)
    started, *events = running()
    on_gpu = [story.changed(started, devices=("0",)), *map(judged_on_gpu, events)]
    app, source = live(on_gpu, decider=decider, readonly=readonly)
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        yield pilot, app, decider, source


async def test_key_p_pauses_the_instance_under_the_cursor_and_lets_it_go_on() -> None:
    async with fleet() as (pilot, app, decider, source):
        await pilot.press("l", "p")
        await until(pilot, lambda: len(decider.decisions) == 1, "the pause")
        source.pending = [Paused(instance="softmax#2", by="ada", seq=900)]
        await until(pilot, lambda: "p unpause" in app.screen.query_one(KeyBar).text, "the event")
        await pilot.press("p")
        await until(pilot, lambda: len(decider.decisions) == 2, "the end of the pause")
        assert decider.decisions == [
            (SESSION, Paused(instance="softmax#2")),
            (SESSION, Unpaused(instance="softmax#2")),
        ]


async def test_keys_act_on_all_marked_instances() -> None:
    async with fleet() as (pilot, app, decider, _):
        await pilot.press("space", "l", "space", "j", "p")
        await until(pilot, lambda: len(decider.decisions) == 2, "both pauses")
        await pilot.press("i")
        assert isinstance(app.screen, LinePrompt)
        about = str(app.screen.query_one("#about", Static).content)
        assert "acts on softmax#1, softmax#2\n" in about
        assert "The model is recorded: its next reply was made without your words." in about
        await pilot.press(*"wide", "enter")
        await until(pilot, lambda: len(decider.decisions) == 4, "both hints")
        assert {command for _, command in decider.decisions} == {
            Paused(instance="softmax#1"),
            Paused(instance="softmax#2"),
            HintGiven(instance="softmax#1", text="wide"),
            HintGiven(instance="softmax#2", text="wide"),
        }


async def test_key_t_measures_and_key_p_profiles_the_best_attempt_of_the_cell() -> None:
    async with fleet() as (pilot, _, decider, _source):
        await pilot.press("l", "t", "h", "t")
        await until(pilot, lambda: bool(decider.decisions), "the measurement")
        again = MeasureAsked(attempt="softmax#1/3", devices=("all",))
        assert decider.decisions == [(SESSION, again)], "softmax#2 has no correct attempt"
        await pilot.press("P")
        await until(pilot, lambda: len(decider.decisions) == 2, "the profile")
        assert decider.decisions[1] == (SESSION, ProfileAsked(attempt="softmax#1/3"))


async def test_retire_asks_once() -> None:
    async with fleet() as (pilot, app, decider, _):
        for answer in ("escape", "enter"):
            await pilot.press("colon", *"retire", "enter")
            await until(pilot, lambda: isinstance(app.screen, ConfirmDialog), "the question")
            await pilot.press(answer)
            await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the answer")
        await until(pilot, lambda: bool(decider.decisions), "the command")
        assert decider.decisions == [(SESSION, RetireAsked(instance="softmax#1"))]


async def test_line_is_about_what_the_cursor_was_on_when_it_began() -> None:
    async with fleet() as (pilot, app, decider, source):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AgentScreen), "the agent")
        await pilot.press("colon")
        await until(pilot, lambda: isinstance(app.screen, LinePrompt), "the line")
        assert "acts on softmax#1/3\n" in str(app.screen.query_one("#about", Static).content)
        await pilot.press(*"reject", "space", *"slow")
        log = EventLog(events=[*running()])
        before = len(log.events)
        log.attempt("softmax#1/4", RIGHT_SOURCE, correct())
        source.pending = log.events[before:]
        await until(pilot, lambda: "softmax#1/4" in str(app.feed.state.attempts()), "another attempt")
        await pilot.press("enter")
        await until(pilot, lambda: bool(decider.decisions), "the decision")
        assert decider.decisions == [(SESSION, "softmax#1/3", False, "slow")]


async def test_key_that_can_do_nothing_says_why() -> None:
    async with on_fleet(running()) as (pilot, app):
        words = "the session has no GPU, only cpu; start a session on a machine with a GPU"
        for key, name in {"P": "profile", "t": "measure"}.items():
            await pilot.press(key)
            await until(pilot, lambda: bool(app._notifications), "the words")
            assert [toast.message for toast in app._notifications] == [f"{name}: not possible: {words}"]
            app.clear_notifications()
    async with fleet(readonly=True) as (pilot, app, _, _source):
        for key, name in {"i": "hint", "p": "pause"}.items():
            await pilot.press(key)
            await until(pilot, lambda: bool(app._notifications), "the words")
            assert [toast.message for toast in app._notifications] == [
                f"{name}: not possible: this view is for reading only"
            ]
            app.clear_notifications()


async def test_readonly_view_and_past_of_a_replay_have_no_steering() -> None:
    async with fleet(readonly=True) as (pilot, app, decider, _):
        await pilot.press("p", "enter", "i", "t", "E")
        assert isinstance(app.screen, AgentScreen)
        await pilot.press("question_mark")
        await until(pilot, lambda: ":find TEXT" in picture(app), "the help")
        assert ":hint" not in picture(app)
        assert ":fork" not in picture(app)
        assert not decider.decisions
    app = replayed(finished())
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the replay")
        await pilot.press("question_mark")
        await until(pilot, lambda: ":find TEXT" in picture(app), "the help")
        assert ":fork" not in picture(app)


async def test_example_offers_no_command() -> None:
    started, *events = finished()
    log = [story.changed(started, devices=("0",)), *map(judged_on_gpu, events)]
    async with on_home(list, load=lambda name: read_story(name, log)) as (pilot, app):
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the example")
        await pilot.press("dollar_sign")
        await until(pilot, lambda: app.feed.replay.at_end, "its end")
        for opens in ("", "enter", "V"):
            await pilot.press(*opens.split())
            offered = {hint.name for hint in active_hints(app.screen, hidden=True)}
            assert not {name for name in offered if name.startswith(("steer.", "decide."))}
            assert "screen.pause" not in offered, "the key plays the replay"
            assert "replay.play" in offered
        await pilot.press("t")
        await until(pilot, lambda: bool(app._notifications), "the words")
        assert "from another machine" in [toast.message for toast in app._notifications][-1]


def test_editor_gives_the_edited_kernel(tmp_path: Path) -> None:
    script = tmp_path / "editor.py"
    script.write_text(
        "import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.write_text(p.read_text() + '# wide')"
    )
    assert edited("x = 1\n", {"EDITOR": f"{sys.executable} {script}"}) == "x = 1\n# wide"
    with pytest.raises(NotEdited, match="set EDITOR"):
        edited("x = 1\n", {"EDITOR": str(tmp_path / "missing")})
    with pytest.raises(NotEdited, match="nothing is sent"):
        edited("x = 1\n", {"EDITOR": "false"})
