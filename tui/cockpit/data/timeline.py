"""The time line of a replay: a lane for each task, and below the lanes the playback in words and what the signs mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from harness import Verdict
from sessions.names import short_task
from sessions.state.state import SessionState
from sessions.state.winners import bests_by_task
from tui.cockpit.data.replays import Landmark, Replay
from tui.cockpit.draw.lines import GAP, Line, Span, cells, joined, shorten
from tui.facts import vocabulary

TIMELINE = """\
The lanes above the keys are the replay's time, one lane a task: verdicts with
the number of their attempt, `*` a new best of an instance, `+` accepted, `x`
rejected by a person, `u` undone. Where many are close, they move apart or lose
their numbers. Few lines, or many tasks: one lane for the task on screen, or for
all. A stretch without events plays as 30 s at most.
`#` goes to the verdict of an attempt: type its number in the instance under the
cursor, or its name. `(` and `)` go to the beginnings of attempts. After a jump
the screen shows the attempt that it went to.
The clock in the header counts the time in which an engine worked.
"""
MEANINGS = {"*": "best", vocabulary.ACCEPTED: "accepted", vocabulary.REJECTED: "rejected", "u": "undone"} | {
    vocabulary.letter(verdict): vocabulary.words(verdict)
    for verdict in sorted(Verdict, key=lambda verdict: (not verdict.counted, not verdict.is_failure))
}
"""Meanings of the signs, the most important sign first."""
NAME_CELLS = 14
LANES = {(True, True): 8, (True, False): 4, (False, True): 4, (False, False): 1}
"""Most lanes, by whether the screen is tall, and whether it is Fleet."""


def timeline_lines(
    replay: Replay, state: SessionState, width: int, *, is_fleet: bool, is_tall: bool, task: str
) -> list[Line]:
    """
    Return the lanes and the playback; `task` (short name) is the task of the screen.

    Fleet has more lanes than other screens. If there are more tasks than lanes, the only lane is that of `task`, or that of
    all tasks. On a tall screen the meanings of the signs have a line of their own.
    """
    lanes = LANES[is_tall, is_fleet]
    story = replay.story
    if not story.is_whole:
        return [(Span(_playback(replay), "busy"), Span("  reading the rest ...", "dim"))]
    if not story.events:
        return [(Span(" an empty session", "dim"),)]
    tasks = [*map(short_task, state.tasks()), *map(_task_of, story.marks.starts)]
    by_task: dict[str, list[Landmark]] = {name: [] for name in tasks}
    for landmark in story.landmarks:
        by_task.setdefault(_task_of(landmark.attempt), []).append(landmark)
    is_merged = len(by_task) > lanes and task not in by_task
    if is_merged:
        by_task = {vocabulary.counted(len(by_task), "task"): list(story.landmarks)}
    elif len(by_task) > lanes:
        by_task = {task: by_task[task]}
    names = min(max(map(len, by_task), default=0), NAME_CELLS)
    room = max(width - names - 3, 8)
    share = replay.offset_s / story.duration_s if story.duration_s else float(replay.at_end)
    at = min(room - 1, int(share * room))
    lines: list[Line] = [
        (
            Span(f" {shorten(name, names):<{names}} ", "dim"),
            *_lane(landmarks, room, at, is_task=not is_merged),
        )
        for name, landmarks in by_task.items()
    ]
    return [*lines, *_words(replay, state, width, is_tall=is_tall)]


def _task_of(attempt: str) -> str:
    return attempt.partition("#")[0]


def _playback(replay: Replay) -> str:
    """Return state and speed in a fixed width; the time is in the header, on the session's clock."""
    word = "playing" if replay.playing else "at end" if replay.at_end else "paused"
    return f" {word:<7} {f'{replay.speed:g}x':<4}"


def _words(replay: Replay, state: SessionState, width: int, *, is_tall: bool) -> list[Line]:
    """Return playback, at the end what was reached, and the meanings of the signs: in two lines, or as far as one has room."""
    story = replay.story
    count = len(story.events)
    parts: list[Line] = [(Span(_playback(replay), "busy"),)]
    if replay.at_end:
        parts += [
            (Span(end_words(state, width - cells(parts[0]) - GAP)),),
            (Span("p plays it again", "dim"),),
        ]
    parts.append((Span(f"event {replay.position:>{len(str(count))}}/{count}", "dim"),))
    styles = {landmark.sign: landmark.style for landmark in story.landmarks}
    legend: list[Line] = [
        (Span(sign, styles[sign]), Span(f" {meaning}", "dim"))
        for sign, meaning in MEANINGS.items()
        if sign in styles
    ]
    if is_tall:
        return [_fitting(parts, width), (Span(" "), *_fitting(legend, width - 1))]
    return [_fitting([*parts, *legend], width)]


def _fitting(parts: Sequence[Line], width: int) -> Line:
    """Return as many parts as fit, in order."""
    line: Line = ()
    for part in parts:
        longer = joined((line, part))
        line = longer if cells(longer) < width else line
    return line


def end_words(state: SessionState, room: int) -> str:
    """Return `softmax 2.24x, layer_norm 2.70x` in at most `room` cells, else `2 of 3 tasks solved`."""
    bests = bests_by_task(state)
    speeds = {task: best.speed.figure for task, best in bests.items() if best.speed is not None}
    words = ", ".join(f"{short_task(task)} {figure}" for task, figure in speeds.items())
    tasks = state.tasks()
    if len(words) < room and len(speeds) == len(tasks):
        return words
    solved = {instance.task for instance in state.instances.values() if instance.solved}
    return f"{len(solved)} of {vocabulary.counted(len(tasks), 'task')} solved"


def _lane(landmarks: Sequence[Landmark], room: int, at: int, *, is_task: bool) -> Iterable[Span]:
    """Return `room` cells with the signs of the landmarks, and the present at the cell `at`."""
    drawn = [Span("━", "busy")] * at + [Span("─", "dim")] * (room - at)
    for start, signs in _placed(landmarks, room, is_task=is_task):
        drawn[start : start + len(signs)] = signs
    here = drawn[at]
    drawn[at] = Span("█", "busy") if here.text in "━─" else here._replace(style=f"{here.style} cursor")
    for style, group in groupby(drawn, lambda span: span.style):
        yield Span("".join(span.text for span in group), style)


def _placed(landmarks: Sequence[Landmark], room: int, *, is_task: bool) -> list[tuple[int, list[Span]]]:
    """
    Return the first cell and the signs of each moment, in order and as near to their moment as there is room.

    With enough room a moment has the number of its attempt; if even the signs do not fit, the most important one of each
    cell is left.
    """
    numbers = {mark.attempt: mark.attempt.rpartition("#")[2] for mark in landmarks} if is_task else {}
    if all(number.startswith("1/") for number in numbers.values()):
        numbers = {attempt: number.removeprefix("1/") for attempt, number in numbers.items()}
    moments = [list(group) for _, group in groupby(landmarks, lambda mark: (mark.attempt, mark.moment))]
    for is_numbered, gap in ((True, 1), (False, 1), (False, 0)):
        tokens = [
            [
                *(Span(digit, "dim") for digit in (numbers.get(marks[0].attempt, "") if is_numbered else "")),
                *(Span(mark.sign, mark.style) for mark in marks),
            ]
            for marks in moments
        ]
        if sum(len(token) + gap for token in tokens) <= room:
            starts, end = [], 0
            for token, marks in zip(tokens, moments, strict=True):
                starts.append(max(int(marks[0].moment * room), end))
                end = starts[-1] + len(token) + gap
            limit = room
            for place in reversed(range(len(tokens))):
                starts[place] = min(starts[place], limit - len(tokens[place]))
                limit = starts[place] - gap
            return list(zip(starts, tokens, strict=True))
    by_importance = sorted(landmarks, key=lambda mark: list(MEANINGS).index(mark.sign), reverse=True)
    return [(min(room - 1, int(mark.moment * room)), [Span(mark.sign, mark.style)]) for mark in by_importance]
