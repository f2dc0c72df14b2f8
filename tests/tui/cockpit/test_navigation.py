"""Ways through the screens: the line of their names, `esc` and `q`, the help."""

from __future__ import annotations

import pytest
from textual.widgets._toast import Toast

from tests.support.cockpit.cockpits import NARROW, USUAL, WIDE, live, on_fleet, on_home, until
from tests.support.cockpit.pictures import screen_text
from tests.support.sessions import fleets
from tests.support.sessions.journals import running
from tests.tui.screens.test_home import INFOS
from tests.tui.screens.test_latency import eight_gpus
from tui.cockpit import explaining
from tui.cockpit.app import Cockpit
from tui.cockpit.explaining import HelpDialog
from tui.cockpit.keymap import key_names
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.screens.home.home import HomeScreen
from tui.cockpit.screens.review.review import ReviewScreen
from tui.config import Preferences

NAMED = {"F": "[F Fleet]", "A": "[A Agent]", "L": "[L Latency]", "V": "[V Review]", "R": "[R Report]"}
"""Words in brackets on the screen of each key."""


def line_of_screens(app: Cockpit) -> str:
    return app.screen.screens_bar.text


async def test_each_screen_names_all_screens_and_marks_itself() -> None:
    async with on_fleet(running(), size=NARROW) as (pilot, app):
        for size, keys in ((NARROW, "ALVRF"), (WIDE, "RF")):
            await pilot.resize_terminal(*size)
            for key in keys:
                await pilot.press(key)
                await until(pilot, lambda: NAMED[key] in line_of_screens(app), f"the screen of {key}")  # noqa: B023
                row = 0 if not app.screen.header_bar.display else 1
                assert screen_text(app).split("\n")[row].rstrip() == line_of_screens(app).rstrip()


async def test_review_has_the_number_of_attempts_that_wait() -> None:
    async with on_fleet(fleets.busy().events, size=NARROW) as (_, app):
        assert " V Review 1 " in line_of_screens(app)


async def test_click_on_a_name_goes_there_and_escape_goes_back_to_home() -> None:
    async with on_fleet(running(), size=NARROW) as (pilot, app):
        await pilot.click("#screens", offset=(line_of_screens(app).index("Review"), 0))
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen), "Review")
        await pilot.click("#screens", offset=(line_of_screens(app).index("Fleet"), 0))
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "Fleet")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, AgentScreen), "Agent")
        await pilot.press("escape")
        assert isinstance(app.screen, FleetScreen)
        await pilot.press("escape", "escape", "escape")
        assert isinstance(app.screen, HomeScreen)
        assert app.is_running


async def test_line_of_screens_has_the_keys_of_the_configuration() -> None:
    async with on_fleet(running(), preferences=Preferences(keys={"go.review": "f2"}), size=NARROW) as (
        pilot,
        app,
    ):
        assert " f2 Review " in line_of_screens(app)
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(app.screen, ReviewScreen), "Review")


@pytest.mark.parametrize("keys", [(), ("enter",), ("V",), ("question_mark",), ("escape",)])
async def test_q_leaves_from_anywhere(keys: tuple[str, ...]) -> None:
    async with on_fleet(running(), size=NARROW) as (pilot, app):
        await pilot.press(*keys)
        await pilot.pause()
        await pilot.press("q")
    assert app.return_value.lines


def test_every_key_of_a_screen_has_a_group_in_the_help() -> None:
    in_windows = ("choice.", "confirm.", "dialog.", "prompt.", "reason.")
    assert [
        name for name in key_names() if not explaining.group_of(name) and not name.startswith(in_windows)
    ] == []


async def test_each_screen_and_pane_has_a_help() -> None:
    async with on_fleet(eight_gpus(), size=NARROW) as (pilot, app):
        for screen in ("F", "A", "L", "V", "R"):
            await pilot.press(screen)
            name = NAMED[screen][:3]
            await until(pilot, lambda name=name: name in line_of_screens(app), f"the screen of {name}")
            for pane in range(1, 1 + len(app.screen.PANES)):
                await pilot.press(str(pane), "question_mark")
                await until(pilot, lambda: isinstance(app.screen, HelpDialog), f"help of {screen} {pane}")
                await pilot.press("escape")


async def test_home_and_form_have_a_help() -> None:
    async with on_home(lambda: INFOS, size=NARROW) as (pilot, app):
        for keys in ((), ("c",), ("2",)):
            await pilot.press(*keys, "question_mark")
            await until(pilot, lambda: isinstance(app.screen, HelpDialog), f"help after {keys}")
            await pilot.press("escape")
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)


async def test_help_is_beside_the_screen_and_says_what_it_answers_then_keys_signs_and_lines() -> None:
    async with on_fleet(running(), size=NARROW) as (pilot, app):
        for size in (NARROW, USUAL, WIDE):
            await pilot.resize_terminal(*size)
            await pilot.press("question_mark")
            await until(
                pilot,
                lambda: isinstance(app.screen, HelpDialog) and bool(app.screen.query_one("LineView").lines),
                "help",
            )
            view = app.screen.query_one("LineView")
            assert view.region.x >= 20, "the screen is still there"
            assert app.screen.query_one("#dialog").region.right == size[0]
            rows = view.text.split("\n")
            assert max(map(len, rows)) < view.region.width
            assert "what every instance does" in rows[0]
            order = ["One row is a task", "q leave", ":find TEXT", "g generate", "C correct", "g6C "]
            places = [next(place for place, row in enumerate(rows) if words in row) for words in order]
            assert places == sorted(places)
            assert places[1] < size[1]
            assert "pgdn: more" in screen_text(app)
            await pilot.press("G")
            await until(pilot, lambda: "pgdn: more" not in screen_text(app), "the end")
            titles = {row.partition(" ")[0] for row in rows}
            assert titles >= {"open", "back", "jump", "find", "look", "steer", "take", "move"}
            await pilot.press("escape")


async def test_help_that_fits_says_of_no_further_page() -> None:
    async with on_home(list, size=USUAL) as (pilot, app):
        await pilot.press("question_mark")
        await until(pilot, lambda: "One row a session" in screen_text(app), "help")
        await until(pilot, lambda: "pgdn: more" not in screen_text(app), "no foot")


async def test_line_goes_to_an_attempt_by_its_number_in_the_instance_under_the_cursor() -> None:
    async with on_fleet(running(), size=NARROW) as (pilot, app):
        assert app.screen.subject.instances == ("softmax#1",)
        await pilot.press("colon", *"attempt", "space", "2", "enter")
        await until(pilot, lambda: isinstance(app.screen, AgentScreen), "the attempt opens")
        assert app.screen.attempt.attempt == "softmax#1/2"


@pytest.mark.parametrize("size", [NARROW, USUAL])
async def test_messages_cover_neither_header_nor_rows(size: tuple[int, int]) -> None:
    app, _ = live(running())
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "Fleet")
        for message in ("an old message", "short", "one that is much longer", "w " * 50):
            app.notify(message, title="not possible", timeout=60)
            await until(pilot, lambda: f"not possible: {message[:10]}" in screen_text(app), message)  # noqa: B023
            toasts = [toast for toast in app.screen.query(Toast) if toast.region.height]
            for pane in (app.screen.header_bar, app.screen.tasks, app.screen.next):
                assert not any(toast.region.overlaps(pane.region) for toast in toasts)
            assert app.screen.tasks.region.height == 3, "all tasks stay in sight"
            assert sum(toast.region.height for toast in toasts) <= 2
            assert all(toast.region.width == size[0] for toast in toasts)
