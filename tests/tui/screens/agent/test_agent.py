"""The Agent screen as a whole: pictures, head and strip, walking and jumping between attempts, tabs."""

from __future__ import annotations

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from sessions.events import AttemptStarted, CallRetried, Origin
from tests.support.cockpit.agent_screens import chain, opened
from tests.support.cockpit.cockpits import NARROW, WIDE
from tests.support.cockpit.cockpits import until as until_true
from tests.support.cockpit.pictures import picture
from tests.support.sessions.journals import at_once, running
from tui.cockpit.screens.agent.agent import AgentScreen

SIZES = {"80x24": NARROW, "120x40": (120, 40), "160x48": WIDE}


@pytest.mark.parametrize(
    ("size", "number", "keys"),
    [
        ("80x24", 2, ("e", "d")),
        ("120x40", 5, ("d",)),
        ("160x48", 5, ("d",)),
        ("160x48", 4, ("e", "e")),
        ("80x24", 6, ()),
    ],
    ids=["wrong", "correct", "correct-wide", "trace-wide", "writing"],
)
async def test_picture(size: str, number: int, keys: tuple[str, ...], snapshot: SnapshotAssertion) -> None:
    async with opened("softmax#1", number, size=SIZES[size], events=chain()) as (pilot, screen, _):
        await pilot.press(*keys)
        await pilot.pause()
        assert screen.attempt.number == number
        assert middle(screen) == snapshot


def middle(screen: AgentScreen) -> str:
    """Return the picture without the session's header and the line of keys, which all screens share."""
    first = 1 if screen.header_bar.display else 0
    text, _, colours = picture(screen.app).partition("\n-- colours\n")
    return "\n".join([*text.split("\n")[first:-1], "-- colours", *colours.split("\n")[first:-1]])


async def test_screen_follows_running_attempts_and_brackets_reach_every_attempt() -> None:
    async with opened("softmax#1", events=at_once()) as (pilot, screen, _):
        assert (screen.number, screen.attempt.number) == (None, 3)
        numbers = []
        for key in ("right_square_bracket", "left_square_bracket", *["left_square_bracket"] * 2):
            await pilot.press(key)
            await pilot.pause()
            numbers.append((screen.number, screen.attempt.number))
        assert numbers == [(4, 4), (None, 3), (2, 2), (1, 1)]


async def test_brackets_select_attempts_and_the_last_follows_the_newest() -> None:
    async with opened("softmax#1") as (pilot, screen, source):
        assert screen.number is None
        await pilot.press("left_square_bracket")
        assert screen.attempt.number == 2
        assert "[2C+]" in screen.strip.text
        source.pending = [
            AttemptStarted(
                attempt="softmax#1/4", origin=Origin.OPTIMIZE, base="softmax#1/3", seq=900, wall=1.0
            )
        ]
        await until_true(pilot, lambda: "4-" in screen.strip.text, "attempt 4")
        assert screen.attempt.number == 2, "the selected attempt stays"
        await pilot.press("right_square_bracket", "right_square_bracket")
        assert (screen.number, screen.attempt.number) == (None, 4)


async def test_w_b_and_x_go_to_the_next_waiting_best_and_failed_attempt() -> None:
    async with opened("softmax#1", 1, events=chain()) as (pilot, screen, _):
        numbers = []
        for key in ("x", "x", "w", "X", "b"):
            await pilot.press(key)
            numbers.append(screen.attempt.number)
        assert numbers == [2, 4, 5, 4, 5]
        await pilot.press("x")
        assert screen.attempt.number == 5
        assert any(
            "no failure after this; X looks before it" in note.message for note in pilot.app._notifications
        )


async def test_digits_choose_tabs_and_a_missing_profile_has_a_reason() -> None:
    async with opened("softmax#1") as (pilot, screen, _):
        for digit, words in (
            ("4", "bytes moved, counted by the interpreter at CPU sizes"),
            ("5", "VGPRs"),
            ("6", "no GPU judged it. On a GPU, P takes a profile."),
            ("7", "active  landlock"),
            ("8", "Solve softmax."),
            ("3", "correct · traffic 1.70x · not timed (no GPU)"),
        ):
            await pilot.press(digit)
            await until_true(pilot, lambda words=words: words in screen.page.text, words)


async def test_larger_terminal_shows_all_panes_zoom_one_and_escape_ends_it() -> None:
    async with opened("softmax#1", size=NARROW) as (pilot, screen, _):
        await pilot.press("2")
        await pilot.resize_terminal(*WIDE)
        await until_true(pilot, lambda: "correct" in screen.page.text, "the verdict")
        assert screen.steps.display
        assert screen.code.display
        await pilot.press("z")
        await pilot.pause()
        assert screen.code.size.width > 150
        assert not screen.steps.display
        await pilot.press("escape")
        assert screen.steps.display
        assert pilot.app.screen is screen


async def test_silent_model_leaves_room_for_the_attempt() -> None:
    call = "softmax#1/6/optimizer/1"
    refused = CallRetried(call=call, reason="rate_limited", message="429", wait_s=60, retry=1)
    events = chain()
    refused = msgspec.structs.replace(refused, seq=len(events) + 1, wall=events[-1].wall)
    async with opened("softmax#1", 5, size=NARROW, events=[*events, refused]) as (_, screen, _source):
        assert "MODEL 429" in screen.screens_bar.text
        assert "attempt 5 of 6" in screen.head.text
        assert len(screen.screens_bar.text) <= 80


async def test_clock_in_the_head_goes_on_without_events() -> None:
    async with opened("vector_add#1", events=running()) as (pilot, screen, _):
        before = screen.head.text
        wall = pilot.app.wall()  # type: ignore[attr-defined]
        pilot.app.wall = lambda: wall + 5  # type: ignore[attr-defined]
        await until_true(pilot, lambda: screen.head.text != before, "the later time")
