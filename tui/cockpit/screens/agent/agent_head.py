"""The head of the Agent screen: which attempt, where it comes from, what runs now, and the strip of all attempts."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Verdict
from sessions.state.findings import findings_of
from sessions.state.state import AttemptState, Confirmation, InstanceState, SessionState
from tui.cockpit.data import attempts
from tui.cockpit.draw.lines import Line, Span, cells, clean, fit, joined, plain
from tui.facts import vocabulary
from tui.facts.attention import Concern
from tui.facts.doing import WORDS, Doing
from tui.facts.endings import ending_words
from tui.facts.instance import FactsCache
from tui.facts.vocabulary import speed_style, verdict_style

DOT = Span(" · ", "dim")


def head_line(
    state: SessionState,
    instance: InstanceState | None,
    key: str,
    shown: AttemptState | None,
    *,
    wall: float,
    width: int,
    facts: FactsCache,
) -> Line:
    """Return `softmax#3 · optimize of #3/5 · attempt 7 of 10 · judge: timing 0:12`.

    `wall` is the present time in seconds since the epoch. If the line is too long, the lineage goes first.
    """
    head = Span(f" {key}", "key")
    if instance is None or shown is None:
        if instance is None or instance.finished is None:
            return (head, DOT, Span("not started", "dim"))
        cause = f" ({instance.message})" if instance.message else ""
        words = f"ended without an attempt: {ending_words(instance.finished)}{cause}"
        room = width - cells((head, DOT))
        return (head, DOT, Span(fit(clean(words), room).rstrip(), "bad" if instance.curable else "dim"))
    limit = state.most_attempts(instance.key)
    lineage = (DOT, Span(attempts.lineage(state, shown)))
    count = (DOT, Span(f"attempt {shown.number} of {len(instance.attempts)}"))
    most = (Span(f" (limit {limit})", "dim"),) if limit else ()
    now = facts.of(state, instance).doing
    long, brief = ((DOT, _now(now, instance, shown, wall, is_short=short)) for short in (False, True))
    line: Line = (head, *brief)
    for parts in (
        (*lineage, *count, *most, *long),
        (*lineage, *count, *most, *brief),
        (*lineage, *count, *brief),
        (*count, *brief),
        brief,
    ):
        line = (head, *parts)
        if cells(line) < width:
            break
    return line


def _now(now: Doing, instance: InstanceState, shown: AttemptState, wall: float, *, is_short: bool) -> Span:
    """Work of the instance with the time since its begin, and the attempt, unless that is the shown one."""
    running = attempts.newest(instance)
    word = now.letter if is_short else now.word
    if now.letter == "q" and running is not None and running.verdict is not None:
        return Span("next attempt queued", "dim")
    if now.letter in ".xs" or running is None or running.word == "wait":
        return Span(now.word, now.style)
    busy = [attempt for attempt in instance.attempts if attempt.word not in ("wait", "exam", "person")]
    name = f"now #{running.number} " if running is not shown else ""
    more = f", {len(busy)} attempts run" if len(busy) > 1 and not is_short else ""
    since = f" {vocabulary.clock(wall - running.word_wall)}" if running.word_wall else ""
    return Span(f"{name}{word}{since}{more}", now.style)


def head_tail(status: Line, concerns: Sequence[Concern], width: int) -> Line:
    """Return the session in a few cells, for a screen without its header: status, and `! 3` for what needs a person.

    A status that is longer than `width` cells is cut.
    """
    text, style = plain(status), status[0].style if status else ""
    status_part = Span(fit(text, width).rstrip(), style)
    parts = [status_part, Span(f"! {len(concerns)}" if concerns else "", "warn")]
    return joined([(part,) for part in parts if part.text])


def strip_line(instance: InstanceState, shown: AttemptState, width: int, *, is_over: bool = False) -> Line:
    """Return the cells of all attempts, `1C 1.00  2W  [7C 1.84]*`; if they do not fit, those around the shown one.

    `is_over`: no engine works on the session, so an attempt without a verdict is stopped.
    """
    strip = [
        _cell(instance, attempt, is_shown=attempt is shown, is_over=is_over) for attempt in instance.attempts
    ]
    place = next(index for index, attempt in enumerate(instance.attempts) if attempt is shown)
    first, last = place, place + 1
    while first > 0 or last < len(strip):
        if first > 0 and cells(strip[first - 1 : last]) <= width:
            first -= 1
        elif last < len(strip) and cells(strip[first : last + 1]) <= width:
            last += 1
        else:
            break
    return tuple(strip[first:last])


def _cell(instance: InstanceState, attempt: AttemptState, *, is_shown: bool, is_over: bool) -> Span:
    speed = attempt.speed
    factor = f" {speed.figure.replace(' ', '').removesuffix('x')}" if speed is not None else ""
    best = "*" if attempt is instance.best_correct else ""
    finding = vocabulary.FINDING if findings_of(attempt) else ""
    is_stopped = is_over and attempt.verdict is None
    letter = "s" if is_stopped else _letter(attempt)
    text = f"{attempt.number}{letter}{finding}{factor}{_mark(attempt)}{best}"
    style = "dim" if is_stopped else _style(attempt)
    return Span(f"[{text}]", f"{style} bold cursor".strip()) if is_shown else Span(f" {text} ", style)


def _letter(attempt: AttemptState) -> str:
    """The verdict's letter; before the verdict the lower case letter of what the attempt does."""
    if attempt.verdict is None and attempt.word != "wait":
        return WORDS.get(attempt.word, ("j", "", ""))[0]
    return vocabulary.letter(attempt.verdict)


def _mark(attempt: AttemptState) -> str:
    decided = vocabulary.decision_mark(attempt)
    return decided + (vocabulary.CONFIRMED if attempt.confirmation is Confirmation.CONFIRMED else "")


def _style(attempt: AttemptState) -> str:
    if attempt.waiting or findings_of(attempt):
        return "warn"
    if attempt.verdict is Verdict.CORRECT:
        return speed_style(attempt.speed)
    if attempt.verdict is None and attempt.word == "wait":
        return "dim"
    return verdict_style(attempt.verdict)
