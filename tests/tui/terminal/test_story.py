"""A person's way through the real program in tmux, with a scripted judge: from the form of a new run to the replay."""

from __future__ import annotations

import sys

import pytest

from sessions import Home
from sessions.catalog import journal_of
from sessions.events import DecisionMade, HintGiven
from tests.support.command_line import scripted_judge
from tests.support.sessions import stored_sessions as stored
from tests.tui.terminal.tmux import PROMPT, Tmux, tmux

__all__ = ["scripted_judge"]
HINT = "Look at the sign."
REASON = "not readable"


@pytest.mark.usefixtures("engines", "scripted_judge")
def test_from_the_form_to_the_replay(home: Home) -> None:
    stored.vector_add_recording(home, "mine", instances=2)
    with tmux((120, 40)) as pane:
        pane.run("wavedeck")
        pane.wait_for("No session yet")
        fill_the_form(pane)
        session = start(home, pane)
        pause_hint_and_go(pane)
        read_the_wrong_attempt(pane)
        reject_one(pane)
        pane.press("q")
        pane.wait_for("goes on without the cockpit", PROMPT)

        pane.run(f"wavedeck attach {session}")
        pane.wait_for("! 1 review", "REVIEW")
        decide_the_last(pane)
        pane.press("q")
        pane.wait_for(f"wavedeck replay {session}", PROMPT)

        pane.run(f"wavedeck replay {session}")
        pane.wait_for("REPLAY ", "playing")
        pane.press("$")
        pane.wait_for("at end", "1/1 solved", "done 2")
        pane.press("Escape")
        pane.wait_for("Finished", "vector_add")
        pane.press("q")
        pane.wait_for("replay again with", PROMPT)
    events = journal_of(home, session).events
    decisions = [(event.accepted, event.why) for event in events if isinstance(event, DecisionMade)]
    assert decisions == [(False, REASON), (True, "")]
    assert [(event.instance, event.text) for event in events if isinstance(event, HintGiven)] == [
        ("vector_add#1", HINT)
    ]


def test_suspended_cockpit_leaves_the_shell_and_comes_back(home: Home) -> None:
    with tmux((80, 24)) as pane:
        pane.run(f'"{sys.executable}" -m tui')
        pane.wait_for("No session yet")
        pane.press("C-z")
        pane.wait_until(lambda text: PROMPT in text and "No session yet" not in text, "the shell")
        pane.type("fg")
        pane.press("Enter")
        pane.wait_for("No session yet", "new run")


def fill_the_form(pane: Tmux) -> None:
    pane.press("c")
    pane.wait_for("> suite", "3 tasks")
    pane.press("Down", "Enter")
    pane.wait_for("> flip")
    pane.press("Down")
    pane.wait_for("> vector_add")
    pane.press("Enter")
    pane.wait_for("recorded:starter has no reply for vector_add")
    pane.press(*["Down"] * 4)
    pane.wait_for("> model")
    pane.press("Enter")
    pane.wait_for("> recorded:mine")
    pane.press("Enter")
    pane.wait_for("at most 4 (1 x 2 instances x 2)")
    pane.press(*["Down"] * 5)
    pane.wait_for("> review")
    pane.press("Enter")
    pane.wait_for("> auto")
    pane.press("Down")
    pane.wait_for("> manual")
    pane.press("Enter")
    pane.wait_for("each better attempt waits for you", "wavedeck run vector_add --model recorded:mine")


def start(home: Home, pane: Tmux) -> str:
    pane.press("C-r")
    pane.wait_for("Tasks 1", "#1")
    (live,) = home.session_folders()
    return live.session


def pause_hint_and_go(pane: Tmux) -> None:
    pane.press("p")
    pane.wait_for("paused 1", "! 1 review")
    pane.press(":")
    pane.wait_for_line(":")
    pane.type(f"hint vector_add#1 {HINT}")
    pane.wait_for_line(f":hint vector_add#1 {HINT}")
    pane.press("Enter")
    pane.wait_for("the next attempt gets the hint")
    pane.press("p")
    pane.wait_for("review 2", "! 2 reviews")


def read_the_wrong_attempt(pane: Tmux) -> None:
    pane.press("Enter")
    pane.wait_for("steps #1/2", "[2C?*]", "decision   waits for you")
    pane.press("[")
    pane.wait_for("[1W]", "WRONG", "It subtracts; it should add.", "x - y, mask=mask")
    pane.press("]")
    pane.wait_for("[2C?*]")
    pane.press("d")
    pane.wait_for("diff base #1/1 -> #1/2", "x - y, mask=mask", "x + y, mask=mask")


def reject_one(pane: Tmux) -> None:
    pane.press("V")
    pane.wait_for("Review: 2 wait", "if accepted")
    pane.press("r")
    pane.wait_for("Reject vector_add#", "enter: reject")
    pane.type(REASON)
    pane.wait_for(REASON)
    pane.press("Enter")
    pane.wait_for("Review: 1 wait")


def decide_the_last(pane: Tmux) -> None:
    pane.press("V")
    pane.wait_for("Review: 1 wait", "if accepted")
    pane.press("a")
    pane.wait_for("Accept vector_add#", "enter: accept")
    pane.press("Enter")
    pane.wait_for("finished", "nothing to decide", "confirmed by exam")
