"""The time line of a replay: state of the playback, speed, and what happened when."""

from __future__ import annotations

from tui.cockpit.data.replays import Replay
from tui.cockpit.draw.lines import EMPTY, Line, Span

TIMELINE = """\
The line above the keys is the replay's time, to scale: letters of verdicts
at their moments, `*` a new best of an instance, `+` accepted, `x` rejected
by a person, `u` undone. Where several share a place, the last in this list is
shown.
A stretch without events plays as 30 s at most. The clock in the header counts
the time in which an engine worked.
"""


def timeline_line(replay: Replay, width: int) -> Line:
    """Return the time line: state, speed, a bar with verdicts, bests and decisions at their moments, events."""
    story = replay.story
    word = "playing" if replay.playing else "at end " if replay.at_end else "paused "
    left = f" {word} {replay.speed:g}x  "
    if not story.is_whole:
        return (Span(left, "busy"), Span("reading the rest ...", "dim"))
    right = f"  event {replay.position}/{len(story.events)} "
    room = width - len(left) - len(right)
    if room < 8:
        return (Span(left.rstrip(), "busy"),)
    share = replay.offset_s / story.duration_s if story.duration_s else float(replay.at_end)
    at = min(room - 1, int(share * room))
    bar = ["━" if cell < at else "─" for cell in range(room)]
    for letter, moment in story.landmarks:
        bar[min(room - 1, int(moment * room))] = letter
    bar[at] = "█"
    text = "".join(bar)
    return (
        (Span(left, "busy"), Span(text[: at + 1], "busy"), Span(text[at + 1 :], "dim"), Span(right, "dim"))
        if story.events
        else (Span(" an empty session", "dim"), *EMPTY)
    )
