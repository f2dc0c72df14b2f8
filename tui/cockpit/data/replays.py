"""A session played again from its events: a clock with a speed, steps, jumps, and any moment's state on demand."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from harness import Verdict
from sessions.events import (
    AnyEvent,
    AttemptJudged,
    AttemptStarted,
    DecisionMade,
    DecisionUndone,
    WinnerExamined,
)
from sessions.journal.codec import Skipped
from sessions.journal.reader import JournalReader
from sessions.state.copying import copy_state
from sessions.state.folding import apply
from sessions.state.state import SessionState
from tui.cockpit.data.sources import MOST_EVENTS, EventBatch
from tui.facts.vocabulary import ACCEPTED, REJECTED, letter, verdict_style

EVERY = 2500
"""Events between two copies. A jump folds fewer, which takes some 10 ms."""


class Checkpoints:
    """Folds a session's events from the first to the last, and jumps to any of them afterwards."""

    def __init__(self, events: JournalReader) -> None:
        self._events = events
        self._counts = [0]
        self._states = [SessionState(journal=events)]

    def build(self) -> Iterator[tuple[int, AnyEvent | Skipped, SessionState]]:
        """Fold all events and keep copies; yields after each folded event: the count so far, the event, the state."""
        state = copy_state(self._states[0])
        for start in range(0, len(self._events), EVERY):
            stop = min(start + EVERY, len(self._events))
            for count, event in enumerate(self._events[start:stop], start + 1):
                apply(state, event)
                yield count, event, state
            self._counts.append(stop)
            self._states.append(copy_state(state))

    def state_after(self, count: int) -> SessionState:
        """Return the state after the first `count` events, the same that folding each of them gives."""
        nearest = bisect_right(self._counts, count) - 1
        state = copy_state(self._states[nearest])
        for event in self._events[self._counts[nearest] : count]:
            apply(state, event)
        return state


SPEEDS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
LONGEST_GAP_S = 30.0
"""A stretch in which nothing happened (a night between crash and resume) plays as this long at most."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Places worth jumping to: how many events have happened right after each, rising."""

    starts: Mapping[str, int] = field(default_factory=dict)
    """Beginnings of the attempts, by name."""
    judged: Mapping[str, int] = field(default_factory=dict)
    """Latest verdicts of the attempts, by name."""
    failures: tuple[int, ...] = ()
    """Verdicts that are failures."""
    bests: tuple[int, ...] = ()
    decisions: tuple[int, ...] = ()

    @property
    def attempts(self) -> tuple[int, ...]:
        """Beginnings of the attempts."""
        return tuple(self.starts.values())


class Landmark(NamedTuple):
    """A sign on the time line."""

    attempt: str
    sign: str
    """Letter of a verdict, `*` a new best of the instance, `+`, `x` or `u` undone by a person."""
    style: str
    moment: float = 0.0
    """Share of the duration."""


@dataclass(frozen=True, slots=True)
class Story:
    """A session's events, ready to be played; made by `open_story`. The events stay on the disk."""

    session: str
    events: JournalReader
    offsets: Sequence[float]
    """Seconds from the session's start to each event, long silences cut."""
    marks: Marks
    checkpoints: Checkpoints
    mark: tuple[int, ...] = ()
    """The store's mark of the session before its events were read."""
    is_whole: bool = True
    """False if only the beginning of the session was read."""
    landmarks: tuple[Landmark, ...] = ()
    """Signs of the time line, in order."""
    worked_s: float | None = None
    """The session's clock at the end, in seconds: how long engines worked; `None` before the marks are known."""

    @property
    def duration_s(self) -> float:
        """Length of the whole."""
        return self.offsets[-1] if self.offsets else 0.0

    def with_marks(self) -> Story:
        """Return the story with the places worth jumping to; folds all events once, which also makes jumps fast."""
        checkpoints = Checkpoints(self.events)
        marks, landmarks = _marks(checkpoints)
        duration_s = self.duration_s or 1.0
        placed = tuple(
            landmark._replace(moment=self.offsets[mark - 1] / duration_s) for mark, landmark in landmarks
        )
        worked_s = checkpoints.state_after(len(self.events)).worked_s
        return replace(self, marks=marks, checkpoints=checkpoints, landmarks=placed, worked_s=worked_s)

    def state_after(self, count: int) -> SessionState:
        """The state after the first `count` events, the same that folding each of them gives."""
        return self.checkpoints.state_after(count)


def open_story(
    session: str, journal: JournalReader, *, mark: tuple[int, ...] = (), most_bytes: int | None = None
) -> Story:
    """Return the story of a journal, or of about so many bytes of its beginning, without its marks: it can be played at once."""
    offsets = array("d", _offsets(journal.scan(most_bytes)))
    is_whole = journal.size >= journal.file.size
    return Story(session, journal, offsets, Marks(), Checkpoints(journal), mark, is_whole)


def _offsets(walls: Iterable[float]) -> Iterator[float]:
    offset, last_wall = 0.0, None
    for wall in walls:
        if wall:
            offset += min(max(wall - last_wall, 0.0), LONGEST_GAP_S) if last_wall is not None else 0.0
            last_wall = wall
        yield offset


def _marks(checkpoints: Checkpoints) -> tuple[Marks, list[tuple[int, Landmark]]]:
    """Fold all events; returns the marks, and the landmarks with their marks, still without their moments."""
    starts: dict[str, int] = {}
    judged: dict[str, int] = {}
    failures: list[int] = []
    bests: list[int] = []
    decisions: list[int] = []
    landmarks: list[tuple[int, Landmark]] = []
    best: dict[str, str | None] = {}
    """Best attempt so far, by instance."""
    for mark, event, state in checkpoints.build():
        match event:
            case AttemptStarted():
                starts[event.attempt] = mark
            case AttemptJudged() | WinnerExamined() | DecisionMade() | DecisionUndone():
                key = event.attempt.rpartition("/")[0]
                before = best.get(key)
                now = best[key] = state.instances[key].best if key in state.instances else None
                if isinstance(event, DecisionMade | DecisionUndone):
                    is_accept = isinstance(event, DecisionMade) and event.accepted
                    sign = "u" if isinstance(event, DecisionUndone) else ACCEPTED if is_accept else REJECTED
                    decisions.append(mark)
                    landmarks.append((mark, Landmark(event.attempt, sign, "warn")))
                    continue
                if isinstance(event, AttemptJudged):
                    verdict = event.evaluation.verdict
                    judged[event.attempt] = mark
                    failures += [mark] if verdict.is_failure else []
                    landmarks.append((mark, Landmark(event.attempt, letter(verdict), verdict_style(verdict))))
                # An exam that is failed makes another attempt the best.
                if now is not None and now != before and state.attempt(now).verdict is Verdict.CORRECT:
                    bests.append(mark)
                    landmarks.append((mark, Landmark(now, "*", "key")))
            case _:
                pass
    return Marks(starts, judged, tuple(failures), tuple(bests), tuple(decisions)), landmarks


class Replay:
    """A story being played. It reads, and writes nothing."""

    def __init__(self, story: Story, *, speed: float = 1.0, playing: bool = True) -> None:
        self.story = story
        self.speed = min(max(speed, SPEEDS[0]), SPEEDS[-1])
        self.playing = playing
        self.position = 0
        """Events that have happened."""
        self.offset_s = 0.0
        """Where the clock stands."""
        self._shown = 0
        self._last_now: float | None = None

    @property
    def session(self) -> str:
        """The session's name."""
        return self.story.session

    @property
    def at_end(self) -> bool:
        """Whether everything has happened."""
        return self.story.is_whole and self.position >= len(self.story.events)

    def extend(self, story: Story) -> None:
        """Play on in a newer story of the same session; who paused at the end of the older one stays at the end."""
        at_end = self.position >= len(self.story.events) and not self.playing
        self.story = story
        if at_end:
            self.seek(len(story.events))

    def start(self) -> None:
        """Nothing to do: all is read."""

    def close(self) -> None:
        """Nothing to let go."""

    def take(self, now: float) -> EventBatch:
        """What happened since the last call, at the clock's speed; after a jump a whole state."""
        if self.playing and not self.at_end:
            passed = 0.0 if self._last_now is None else max(0.0, now - self._last_now)
            self.offset_s = min(self.offset_s + passed * self.speed, self.story.duration_s)
            due = bisect_right(self.story.offsets, self.offset_s)
            self.position = max(self.position, min(due, self.position + MOST_EVENTS))
            if self.at_end:
                self.playing = False
        self._last_now = now
        shown, self._shown = self._shown, self.position
        if self.position == shown:
            return EventBatch()
        if shown < self.position <= shown + MOST_EVENTS:
            return EventBatch(self.story.events[shown : self.position], journal=self.story.events)
        return EventBatch(state=self.story.state_after(self.position))

    def toggle(self) -> None:
        """Play or pause; at the end, play again from the start."""
        if self.at_end and not self.playing:
            self.seek(0)
        self.playing = not self.playing

    def faster(self, steps: int) -> None:
        """Up or down the ladder of speeds."""
        place = bisect_left(SPEEDS, self.speed)
        self.speed = SPEEDS[min(max(place + steps, 0), len(SPEEDS) - 1)]

    def seek(self, position: int) -> None:
        """Go to the moment after the first `position` events."""
        self.position = min(max(position, 0), len(self.story.events))
        self.offset_s = self.story.offsets[self.position - 1] if self.position else 0.0

    def step(self, events: int) -> None:
        """Some events on or back, paused."""
        self.playing = False
        self.seek(self.position + events)

    def jump(self, marks: Sequence[int], *, back: bool = False) -> bool:
        """To the next (or last) of some marks, paused; `False` when there is none."""
        place = bisect_left(marks, self.position) - 1 if back else bisect_right(marks, self.position)
        if not 0 <= place < len(marks):
            return False
        self.playing = False
        self.seek(marks[place])
        return True
