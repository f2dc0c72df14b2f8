"""`wavedeck compare` and the comparison of two marked sessions at Home."""

from __future__ import annotations

import json

from harness import Verdict
from sessions import Home
from sessions.catalog import journal_of, list_sessions
from tests.support.cockpit.cockpits import NARROW, at_home, until
from tests.support.cockpit.pictures import screen_text
from tests.support.cockpit.stories import read_story
from tests.support.command_line import Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tui.cockpit.screens.home.home import HomeScreen
from tui.cockpit.screens.report.comparison import ComparisonScreen

SENTENCE = "B solved 1 task more of 1 (95 %: -0.9 to 1.0, over the 1 task that only one side solved): the difference is not proven (p = 1)."


def two_sessions(home: Home) -> None:
    """Store a session with two wrong attempts, then a session with a correct second attempt."""
    recorder = stored.begin(home)
    for number in (1, 2):
        stored.attempt(recorder, number, Verdict.WRONG)
    stored.finish(recorder, best="")
    stored.finished(home, stored.SECOND)


def test_page_says_whether_the_difference_is_proven(home: Home, shell: Shell) -> None:
    two_sessions(home)
    for form in ("table", "md"):
        done = shell("compare", stored.FIRST, stored.SECOND, "--format", form)
        assert done.code == 0
        assert SENTENCE in done.out
        assert "Speeds are not compared: no task is solved by both." in done.out


def test_json_has_the_figures(home: Home, shell: Shell) -> None:
    two_sessions(home)
    document = json.loads(
        shell("compare", stored.SECOND, stored.FIRST, "--at", "tokens", "--format", "json").out
    )
    assert document["solved"]["value"] == -1
    assert document["pairs"][0]["budget"] == [2400, 2400]
    assert stored.SECOND in document["sides"]["A"]


def test_what_cannot_be_compared_is_refused(home: Home, shell: Shell) -> None:
    two_sessions(home)
    assert "have the same session" in one_line(shell("compare", "latest", stored.SECOND))
    stored.finish(stored.begin(home, "20260102-050607-geak-cccc"), best="")
    unjudged = one_line(shell("compare", "20260102-050607", stored.FIRST))
    assert "no attempt of 20260102-050607 was judged yet" in unjudged
    refusal = one_line(shell("compare", stored.FIRST, stored.SECOND, "--at", "usd"))
    assert "unknown number of US dollars: 2; compare at equal attempts" in refusal


async def test_two_marked_sessions_are_compared(home: Home) -> None:
    two_sessions(home)
    app = at_home(
        lambda: list_sessions(home), load=lambda name: read_story(name, journal_of(home, name).events)
    )
    async with app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: isinstance(app.screen, HomeScreen) and bool(app.screen.table.rows), "Home")
        await pilot.press("space", "equals_sign")
        assert isinstance(app.screen, HomeScreen), "one marked session is not compared"
        await pilot.press("space", "equals_sign")
        await until(pilot, lambda: isinstance(app.screen, ComparisonScreen), "the comparison")
        await until(pilot, lambda: app.screen.compared is not None, "its figures")
        await pilot.pause()
        assert "B solved 1 task more of 1" in screen_text(app)
        await pilot.press("b")
        await pilot.pause()
        assert "2,400 tokens an instance; 1 pair of instances of 1 task" in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen), "Home again")
