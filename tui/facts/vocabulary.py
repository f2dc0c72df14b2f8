"""The words, letters, marks, styles, number formats and next commands of all screens and commands: one word for one thing.

State is never shown by colour alone, and a value that is not known is `-`, never 0.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness import Verdict
from sessions.state import figure_words

if TYPE_CHECKING:
    from sessions import AttemptState
    from sessions.state.speed import Speed

UNKNOWN = figure_words.UNKNOWN
NOT_VISIBLE = "not visible"
"""A value that this machine does not report."""
NO_GPU = "not timed (no GPU)"
NOT_MEASURED = "not measured"

LETTERS: dict[Verdict, str] = {
    Verdict.CORRECT: "C",
    Verdict.WRONG: "W",
    Verdict.COMPILE_ERROR: "E",
    Verdict.CALL_ERROR: "X",
    Verdict.REJECTED: "R",
    Verdict.TIMEOUT: "T",
    Verdict.CRASH: "K",
    Verdict.NO_CODE: "N",
    Verdict.UNSUPPORTED: "U",
    Verdict.CANCELLED: UNKNOWN,
    Verdict.INFRA_ERROR: "I",
}
"""Upper case: a verdict. Lower case (`tui.facts.doing`): what an instance does now."""
ACCEPTED, REJECTED, WAITS, CONFIRMED, FINDING = "+", "x", "?", "=", "!"
"""Marks behind an attempt: accepted, rejected, waits for a person, confirmed by the exam, has findings."""


def letter(verdict: Verdict | None) -> str:
    """Return the letter of a verdict; `-` before there is one."""
    return UNKNOWN if verdict is None else LETTERS[verdict]


def words(verdict: Verdict) -> str:
    """Return a verdict in words: `compile error`."""
    return verdict.value.replace("_", " ")


def decision_mark(attempt: AttemptState) -> str:
    """Return `+` if a person accepted the attempt, `x` if rejected, `?` if it waits for a person; else nothing."""
    if attempt.decision is not None:
        return ACCEPTED if attempt.decision.accepted else REJECTED
    return WAITS if attempt.waiting else ""


def count(number: int) -> str:
    """Return a count in at most five characters: `950`, `12.3k`, `4.56M`."""
    if number < 1000:
        return str(number)
    for unit, divisor in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        scaled = number / divisor
        if scaled < 999.5:
            return f"{scaled:.3g}{unit}" if scaled < 100 else f"{scaled:.0f}{unit}"
    return f"{number:.2e}"


def grouped(number: int | None) -> str:
    """Return a count with all digits: `1,234`."""
    return UNKNOWN if number is None else f"{number:,}"


def seconds(value: float | None) -> str:
    """Return a duration for a column: `0.42 s`, `12.3 s`, `3:05`, `1:02:03`."""
    if value is None:
        return UNKNOWN
    if value < 10:
        return f"{value:.2f} s"
    if value < 60:
        return f"{value:.1f} s"
    return clock(value)


def duration(value: float | None) -> str:
    """Return a duration for a sentence: `0.4 s`, `1 min 12 s`, `2 h 5 min`."""
    if value is None:
        return UNKNOWN
    if value < 10:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def putting_away(since: float, now: float) -> str:
    """Return what an engine does between the last event and its end; both are seconds since the epoch."""
    return f"being stored, {clock(max(0.0, now - since))}"


def clock(value: float) -> str:
    """Return a time since a start: `0:07`, `12:31`, `1:02:03`."""
    minutes, second = divmod(max(0, int(value)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def moment(wall: float | None) -> str:
    """Return an instant in UTC: `2026-11-20 14:03`."""
    return UNKNOWN if wall is None else datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%d %H:%M")


def money(usd: float | None) -> str:
    """Return US dollars; unknown where no price is configured."""
    return UNKNOWN if usd is None else f"${usd:.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.4f}"


def tokens(read: int, written: int) -> str:
    """Return `12.3k in 4.5k out`, or `-` if nothing was counted."""
    return f"{count(read)} in {count(written)} out" if read or written else UNKNOWN


def percent(share: float | None) -> str:
    """Return a share of 0 to 1: `61 %`."""
    return UNKNOWN if share is None else f"{share * 100:.0f} %"


def percent_change(share: float | None) -> str:
    """Return a change as a share of the earlier value: `+6 %`."""
    return UNKNOWN if share is None else f"{round(share * 100):+d} %"


def counted(number: int, noun: str) -> str:
    """Return `1 task`, `2 tasks`."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"


def next_command(session: str, *, running: bool = False, finished: bool) -> str:
    """Return `attach` for a running session, `replay` for a finished session, `resume` for any other."""
    verb = "attach" if running else "replay" if finished else "resume"
    return f"wavedeck {verb} {session}"


def not_stored(session: str) -> str:
    """Return that a finished session is not in the store, and that no engine brings it there."""
    command = next_command(session, finished=False)
    return (
        f"{session} is finished, but not in the store; all its events are kept, move it there with: {command}"
    )


def verdict_style(verdict: Verdict | None) -> str:
    """Return the style word of a verdict's letter."""
    if verdict is None:
        return "busy"
    if verdict is Verdict.CORRECT:
        return "good"
    return "bad" if verdict.counted else "dim"


def speed_style(speed: Speed | None) -> str:
    """Return `good` for a gain (also of the exact cases alone), `bad` if the whole interval is below 1, else the plain style."""
    return "" if speed is None else "good" if speed.is_gain else "bad" if speed.is_loss else ""
