"""The `:` line as a person uses it: its list, its history, lines that fail, and the search over all attempts."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from sessions.events import AttemptStarted, CallFinished, CallStarted, Origin, Role
from sessions.state.state import CallState
from tests.support.cockpit.cockpits import NARROW, on_fleet, until
from tests.support.cockpit.pictures import picture
from tests.support.sessions.journals import EventLog, running
from tests.tui.cockpit.test_keys import obey, type_at_once
from tui.cockpit.app import Cockpit
from tui.cockpit.dialogs import finding
from tui.cockpit.dialogs.finding import FoundDialog
from tui.cockpit.dialogs.line_prompt import LinePrompt
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.viewer import ExitNote
from tui.cockpit.widgets.line_view import LineView


def about(app: Cockpit) -> str:
    """Return the lines above the `:` line."""
    return str(app.screen.query_one("#about").render())


def typed(app: Cockpit) -> str:
    return app.screen.query_one(Input).value


def matches(view: LineView, row: int) -> list[str]:
    """Return the marked texts of a row on the screen."""
    marked = view.style_of("match").bgcolor
    return [text for text, style, _ in view.render_line(row) if style is not None and style.bgcolor == marked]


async def open_line(app: Cockpit, pilot: Pilot[ExitNote]) -> None:
    await pilot.press("colon")
    await until(pilot, lambda: isinstance(app.screen, LinePrompt), "the line")


async def test_each_command_has_a_line_with_what_it_does() -> None:
    async with on_fleet(running(), size=NARROW) as (pilot, app):
        await open_line(app, pilot)
        await pilot.press("p")
        await until(pilot, lambda: "pause" in about(app), "the list")
        subject, *lines = about(app).splitlines()
        assert subject == "acts on softmax#1/3, the best of softmax#1", "Fleet shows newer ones as well"
        assert [line.split()[0] for line in lines] == ["pause", "profile", "pin"]
        assert "only what runs now is finished" in lines[0]
        await pilot.press(*"ause", "space")
        lines = about(app).splitlines()
        assert lines[0] == "pause [INSTANCE... | session] · acts on softmax#1"
        assert [line.split()[0] for line in lines[1:]] == [
            "softmax#1",
            "softmax#2",
            "vector_add#1",
            "session",
        ]


async def test_a_failed_line_stays_with_what_was_meant_until_it_is_corrected() -> None:
    async with on_fleet(running(), size=NARROW) as (pilot, app):
        await open_line(app, pilot)
        for line, words in {
            "revew": "did you mean 'review'?",
            "show softmx#2": "did you mean 'softmax#2'?",
            "accept softmax#1/1": "is wrong",
        }.items():
            app.screen.query_one(Input).value = line
            await pilot.press("enter")
            await until(pilot, lambda: words in about(app), words)  # noqa: B023
            assert typed(app) == line
            await pilot.press("escape", "colon", *"revi")
            assert typed(app) == "revi", "the key of the line types nothing"
            await until(pilot, lambda: words not in about(app), "the words are gone")  # noqa: B023
        assert not app._notifications
        app.screen.query_one(Input).value = "show softmax#2"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AgentScreen), "Agent")


async def test_arrow_keys_bring_earlier_lines_back_and_escape_takes_one_thing_at_a_time() -> None:
    async with on_fleet(running(), size=NARROW) as (pilot, app):
        for line in ("review", "fleet"):
            await obey(app, pilot, line)
        await open_line(app, pilot)
        await pilot.press("s", "up")
        assert typed(app) == "fleet"
        await pilot.press("up", "up")
        assert typed(app) == "review"
        await pilot.press("down", "down")
        assert typed(app) == "s", "the line that was being typed"
        await pilot.press("escape")
        assert isinstance(app.screen, LinePrompt)
        assert typed(app) == ""
        await pilot.press("escape")
        assert isinstance(app.screen, FleetScreen)


async def test_escape_ends_a_filter_before_it_leaves_the_screen() -> None:
    async with on_fleet(running(), size=NARROW) as (pilot, app):
        table = app.screen.tasks
        type_at_once(app, "slash", *"vector", "enter")
        await until(pilot, lambda: len(table.rows) == 1, "the filter")
        await pilot.press("escape")
        await until(pilot, lambda: len(table.rows) == 2, "all tasks")
        assert isinstance(app.screen, FleetScreen)


def thoughts() -> EventLog:
    """Return the running session, in which the model of softmax#2 now writes of bank conflicts."""
    log = EventLog()
    log.events = running()
    log.wall = log.events[-1].wall
    long = "\n".join(["banks", *["one row"] * 60, "LDS banks conflict: pad the rows", *["another"] * 60])
    for number, reasoning in ((8, long), (9, "no such thing")):
        attempt = f"softmax#2/{number}"
        log.add(AttemptStarted(attempt=attempt, origin=Origin.FRESH))
        call = f"{attempt}/generator/1"
        log.add(CallStarted(call=call, attempt=attempt, role=Role.GENERATOR, model="m", messages=()))
        log.add(CallFinished(call=call, text="a reply about banks", reasoning=reasoning))
    return log


async def test_found_attempts_have_their_line_and_enter_opens_one() -> None:
    async with on_fleet(thoughts().events, size=NARROW) as (pilot, app):
        await obey(app, pilot, "find conflict BANKS")
        await until(pilot, lambda: "LDS banks conflict: pad the rows" in picture(app), "the line")
        assert app.screen.table.cursor_key == "softmax#2/8"
        assert "1 attempt" in picture(app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AgentScreen), "Agent")
        assert app.screen.subject.attempt == "softmax#2/8"
        await until(
            pilot, lambda: "LDS banks conflict: pad the rows" in picture(app), "the line in the steps"
        )
        marked = [
            span for row in range(app.screen.steps.size.height) for span in matches(app.screen.steps, row)
        ]
        assert set(marked) == {"banks", "conflict"}
        await pilot.press("escape")
        assert isinstance(app.screen, AgentScreen), "the first escape ends the search"
        assert not any(matches(app.screen.steps, row) for row in range(app.screen.steps.size.height))


async def test_words_that_are_only_in_the_code_are_gone_to_there() -> None:
    async with on_fleet(running(), size=NARROW) as (pilot, app):
        await obey(app, pilot, "find EIGHT waves")
        await until(pilot, lambda: "softmax#1/3" in picture(app), "the attempt")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AgentScreen), "Agent")
        await until(pilot, lambda: "One program a row, eight waves" in picture(app), "the code")
        assert app.focused is app.screen.code


async def test_a_long_search_holds_no_key_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts of 10,000 attempts lie on a disk, which may be slow."""
    going_on = threading.Event()

    def slow(_calls: Iterable[CallState], _words: str) -> Iterator[None]:
        going_on.wait()
        yield None

    monkeypatch.setattr(finding, "find_words", slow)
    async with on_fleet(running(), size=NARROW) as (pilot, app):
        await obey(app, pilot, "find anything")
        await until(pilot, lambda: isinstance(app.screen, FoundDialog), "the window")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "Fleet")
        going_on.set()
