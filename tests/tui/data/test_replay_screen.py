"""Replay screens: time line, playback keys and jumps; a replay writes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot

from sessions.state.folding import fold
from tests.support.cockpit.cockpits import USUAL, Clock, replayed, until
from tests.support.sessions.journals import finished
from tui.cockpit.data.replays import Replay
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.viewer import ExitNote

EVENTS = finished()
Opened = tuple[Pilot[ExitNote], FleetScreen, Replay]


async def loaded(pilot: Pilot[ExitNote]) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, FleetScreen), "the replay")


@asynccontextmanager
async def playing(
    clock: Clock, *, size: tuple[int, int] = USUAL, speed: float = 1.0
) -> AsyncIterator[Opened]:
    app = replayed(EVENTS, clock=clock, speed=speed)
    async with app.run_test(size=size) as pilot:
        await loaded(pilot)
        yield pilot, app.screen, app.feed.replay


async def test_replay_plays_at_its_speed_and_pauses() -> None:
    clock = Clock()
    async with playing(clock, speed=10.0) as (pilot, screen, replay):
        assert "playing 10x" in screen.timeline.text
        clock.now += 2.0
        await until(pilot, lambda: replay.offset_s > 19.9, "twenty seconds")
        await pilot.press("p")
        assert "paused" in screen.timeline.text
        clock.now += 5.0
        await pilot.press("minus")
        assert replay.offset_s == pytest.approx(20.0)
        assert replay.speed == 5.0
        await pilot.press("plus", "plus")
        assert replay.speed == 20.0


async def test_keys_jump_to_marks_and_show_their_state() -> None:
    async with playing(Clock()) as (pilot, _, replay):
        await pilot.press("p")
        for keys, mark in (
            (("x",), "failures"),
            (("b",), "bests"),
            (("w",), "decisions"),
            (("right_parenthesis",), "attempts"),
            (("x", "x", "X"), "failures"),
            (("right_parenthesis", "right_parenthesis", "left_parenthesis"), "attempts"),
        ):
            await pilot.press("0", *keys)
            marks = getattr(replay.story.marks, mark)
            assert replay.position == marks[0], keys
            assert not replay.playing
            assert pilot.app.feed.state == fold(EVENTS[: marks[0]])


async def test_keys_step_single_events_and_reach_both_ends() -> None:
    async with playing(Clock()) as (pilot, screen, replay):
        await pilot.press("dollar_sign")
        assert replay.at_end
        assert f"event {len(EVENTS)}/{len(EVENTS)}" in screen.timeline.text
        await pilot.press("comma", "comma", "full_stop")
        assert replay.position == len(EVENTS) - 1
        await pilot.press("x")
        assert any(
            "no failure after this" in notification.message for notification in pilot.app._notifications
        )
        await pilot.press("p")
        assert replay.playing
        await pilot.press("0")
        assert replay.position == 0
        assert screen.tasks.cell_key is None


async def test_agent_screen_follows_the_replay_position() -> None:
    async with playing(Clock()) as (pilot, _, replay):
        await pilot.press("dollar_sign", "enter")
        screen = pilot.app.screen
        assert isinstance(screen, AgentScreen)
        assert screen.timeline.display
        assert "3C" in screen.strip.text
        await pilot.press("0")
        assert "not started" in screen.head.text
        await pilot.press("x")
        assert "[1W]" in screen.strip.text
        assert replay.position == replay.story.marks.failures[0]


async def test_screen_shows_the_attempt_that_a_jump_went_to() -> None:
    async with playing(Clock()) as (pilot, fleet, replay):
        await pilot.press("p", "$")
        for key in ("X", "B", "W", "left_parenthesis"):
            await pilot.press("$", key)
            jumped = EVENTS[replay.position - 1].attempt
            assert fleet.tasks.cell_key == jumped.rpartition("/")[0], key
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, AgentScreen), "its screen")
        for key in ("X", "B", "W", "left_parenthesis"):
            await pilot.press("$", key)
            assert pilot.app.screen.attempt.attempt == EVENTS[replay.position - 1].attempt, key


async def test_attempt_is_reached_by_its_number_and_by_its_name() -> None:
    async with playing(Clock()) as (pilot, _, replay):
        moments = {**replay.story.marks.starts, **replay.story.marks.judged}

        async def arrives(attempt: str) -> None:
            await until(pilot, lambda: replay.position == moments[attempt], attempt)
            await until(pilot, lambda: isinstance(pilot.app.screen, AgentScreen), "its screen")
            assert pilot.app.screen.attempt.attempt == attempt
            assert pilot.app.screen.attempt.verdict is not None, "as it was judged"
            assert not replay.playing

        await pilot.press("$", "number_sign", "2", "enter")
        await arrives("softmax#1/2")
        await pilot.press("number_sign", *"vector_add", "number_sign", *"1/1", "enter")
        await arrives("vector_add#1/1")
        await pilot.press(
            "colon", *(key if key != " " else "space" for key in "attempt softmax#1/3"), "enter"
        )
        await arrives("softmax#1/3")
        await pilot.press("number_sign", "9", "enter")
        await until(
            pilot,
            lambda: any(
                "softmax#1 has the attempts 1, 2, 3" in toast.message for toast in pilot.app._notifications
            ),
            "what there is",
        )
        assert replay.position == moments["softmax#1/3"]
