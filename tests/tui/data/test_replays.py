"""Replays: the shown state equals the fold of the events, at any speed and after any jump."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.generated_session.eighty_instances import session
from harness import Verdict
from sessions.events import (
    AttemptJudged,
    DecisionMade,
    DecisionUndone,
    DeviceSampled,
    EndReason,
    EngineStarted,
    InstanceFinished,
    WaitingForPerson,
    WinnerExamined,
)
from sessions.state.folding import apply, fold
from sessions.state.state import SessionState
from tests.support.cockpit.stories import open_story, read_story
from tests.support.sessions.journals import SESSION, examined, finished
from tui.cockpit.data import replays
from tui.cockpit.data.feed import Feed
from tui.cockpit.data.replays import LONGEST_GAP_S, SPEEDS, Replay
from tui.cockpit.data.timeline import timeline_lines
from tui.cockpit.draw.lines import plain

EVENTS = finished()
STORY = read_story(SESSION, EVENTS)


@given(st.integers(0, len(EVENTS)))
def test_state_at_any_moment_is_the_fold_of_its_events(count: int) -> None:
    assert STORY.state_after(count) == fold(EVENTS[:count])


@given(st.lists(st.integers(0, len(EVENTS)), max_size=6))
def test_jumps_end_in_the_same_state_as_playback(places: list[int]) -> None:
    replay = Replay(STORY, playing=False)
    feed = Feed(replay)
    for place in places:
        replay.seek(place)
        feed.drain(0.0)
    assert feed.state == fold(EVENTS[: places[-1]] if places else [])


def test_failed_exam_that_changes_the_best_is_a_mark() -> None:
    failed = WinnerExamined(attempt="softmax#1/3", evaluation=examined(Verdict.WRONG))
    before = [event for event in EVENTS if not isinstance(event, WinnerExamined)]
    marks = read_story(SESSION, [*before, failed]).marks
    assert marks.bests[-1] == len(before) + 1
    assert marks.judged == read_story(SESSION, before).marks.judged, "an exam adds no verdict mark"


@pytest.mark.parametrize("speed", SPEEDS)
def test_replay_clock_runs_at_its_speed(speed: float) -> None:
    replay = Replay(STORY, speed=speed)
    replay.take(100.0)
    replay.take(100.5)
    assert replay.offset_s == pytest.approx(min(0.5 * speed, STORY.duration_s))
    assert all(offset <= replay.offset_s for offset in STORY.offsets[: replay.position])
    assert all(offset > replay.offset_s for offset in STORY.offsets[replay.position :])


def test_replay_stops_at_the_end_and_starts_again() -> None:
    replay = Replay(STORY, speed=100.0)
    for second in range(10):
        replay.take(float(second))
    assert replay.at_end
    assert not replay.playing
    replay.toggle()
    assert replay.playing
    assert replay.position == 0


def test_story_plays_before_its_marks_are_found() -> None:
    story = open_story(SESSION, EVENTS)
    replay = Replay(story, speed=100.0)
    replay.take(0.0)
    replay.take(0.2)
    place = replay.position
    assert 0 < place < len(EVENTS)
    replay.extend(story.with_marks())
    assert replay.position == place
    assert replay.story.marks == STORY.marks
    assert replay.story.state_after(place) == story.state_after(place)


def test_beginning_plays_on_in_the_whole_story() -> None:
    beginning = open_story(SESSION, EVENTS[:20], is_whole=False)
    replay = Replay(beginning, speed=100.0)
    feed = Feed(replay)
    for second in range(1000):
        feed.drain(float(second))
    assert (replay.position, replay.playing, replay.at_end) == (20, True, False), "it waits for the rest"
    assert "reading the rest" in "".join(drawn(replay))
    replay.extend(STORY)
    feed.drain(1001.0)
    assert replay.position > 20
    assert feed.state == fold(EVENTS[: replay.position])
    assert "reading" not in "".join(drawn(replay))


def test_end_of_the_beginning_leads_to_the_end_of_the_story() -> None:
    replay = Replay(open_story(SESSION, EVENTS[:20], is_whole=False), playing=False)
    replay.seek(20)
    replay.extend(STORY)
    assert replay.at_end


def test_marks_point_to_their_events() -> None:
    verdicts = [EVENTS[place - 1] for place in STORY.marks.judged.values()]
    assert [type(event) for event in verdicts] == [AttemptJudged] * 5
    decisions = [type(EVENTS[place - 1]) for place in STORY.marks.decisions]
    assert decisions == [DecisionMade, DecisionMade, DecisionUndone]
    bests = [EVENTS[place - 1] for place in STORY.marks.bests]
    assert [event.attempt for event in bests if isinstance(event, AttemptJudged)] == [
        "softmax#1/2",
        "softmax#1/3",
        "vector_add#1/1",
    ]


def test_long_gaps_between_events_are_shortened() -> None:
    late = [msgspec.structs.replace(event, wall=event.wall + 40_000.0) for event in EVENTS[50:]]
    story = read_story(SESSION, [*EVENTS[:50], *late])
    assert story.duration_s < STORY.duration_s + LONGEST_GAP_S + 1


def test_unknown_events_are_counted() -> None:
    story = read_story(SESSION, [*EVENTS, b'{"type":"of_tomorrow","seq":999}\n'])
    assert story.state_after(len(story.events)).skipped_events == 1


def test_empty_session_can_be_replayed() -> None:
    replay = Replay(read_story(SESSION, []))
    assert not replay.take(1.0).events
    replay.step(1)
    assert replay.position == 0


def drawn(replay: Replay, width: int = 160, *, is_tall: bool = True, task: str = "") -> list[str]:
    """Return the time line as it is at the replay's position."""
    state = replay.story.state_after(replay.position)
    return list(map(plain, timeline_lines(replay, state, width, is_fleet=False, is_tall=is_tall, task=task)))


def test_time_line_has_a_lane_for_each_task_with_the_numbers_of_its_attempts() -> None:
    replay = Replay(STORY, playing=False)
    softmax, vector_add, playback, legend = drawn(replay)
    assert softmax.split()[0] == "softmax"
    assert vector_add.split()[0] == "vector_add"
    places = [softmax.index(sign) for sign in ("1W", "2C*", "3C*")]
    assert places == sorted(places)
    assert "1C*" in vector_add
    assert f"event   0/{len(EVENTS)}" in playback
    for meaning in ("* best", "+ accepted", "W wrong", "C correct"):
        assert meaning in legend
    moments = {(mark.attempt, mark.sign): mark.moment for mark in STORY.landmarks}
    start = softmax.index("█")
    share = (places[1] - start) / (160 - start)
    assert share == pytest.approx(moments["softmax#1/2", "C"], abs=0.03), "to scale where there is room"


def test_time_line_has_a_fixed_width_and_ends_in_words() -> None:
    replay = Replay(STORY, speed=0.5)
    first = drawn(replay, 100)
    replay.speed = 100.0
    replay.seek(len(EVENTS) // 2)
    assert [len(line) for line in drawn(replay, 100)[:2]] == [len(line) for line in first[:2]] == [99, 99]
    assert drawn(replay, 100)[2].index("event") == first[2].index("event")
    replay.step(len(EVENTS))
    assert "at end" in drawn(replay, 100)[2]
    assert "2 of 2 tasks solved" in drawn(replay, 100)[2]


def test_few_lines_have_the_lane_of_the_task_on_screen_else_one_of_all() -> None:
    replay = Replay(STORY, playing=False)
    (lane, _) = drawn(replay, is_tall=False, task="vector_add")
    assert lane.split()[0] == "vector_add"
    (lane, _) = drawn(replay, is_tall=False)
    assert lane.startswith(" 2 tasks ")


@pytest.mark.parametrize("width", [30, 60, 100, 200])
def test_dense_time_line_keeps_what_matters_most(width: int) -> None:
    story = read_story(SESSION, session(2, 4, 0, pieces=1))
    (lane, _) = drawn(Replay(story, playing=False), width, is_tall=False)
    assert len(lane) == width - 1
    signs = [mark.sign for mark in story.landmarks]
    seen = lane.removeprefix(" 2 tasks ").translate(str.maketrans("", "", "━─█"))
    if len(signs) < width - 12:
        assert seen == "".join(signs), "each sign has a cell, in order"
    else:
        assert seen.count("*") > signs.count("*") / 2, "a best is not covered by a verdict"


def test_jumps_over_checkpoints_end_in_the_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "EVERY", 97)
    events = session(3, 4, 8, pieces=2)
    middle = len(events) // 2
    crashed = EngineStarted(
        host="node17", pid=4343, resumed=True, seq=9000, wall=events[middle].wall, mono=0.1
    )
    ends = InstanceFinished(task="starter/softmax", instance=1, reason=EndReason.RETIRED)
    samples = [event for event in events[middle:] if isinstance(event, DeviceSampled)]
    waits = WaitingForPerson(attempt="softmax#1/2")
    events = [*events[:middle], crashed, waits, *samples, ends, *samples[:200]]
    story = read_story(SESSION, events)
    state = SessionState()
    for count, event in enumerate(events):
        if count % 41 == 0:
            assert story.state_after(count) == state
        apply(state, event)
    assert story.state_after(len(events)) == state
    assert story.state_after(100) == fold(events[:100]), "a jump must not change a checkpoint"
