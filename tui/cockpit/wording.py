"""How values are said on screen: short, in fixed forms, and never by colour alone."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from harness import Evaluation, Outcome, Verdict
from sessions.metrics import TimedTwice
from sessions.state import AttemptState, Confirmation, SessionState
from tui.certainty import counted_cases
from tui.cockpit.lines import Span

UNKNOWN = "-"
NOT_VISIBLE = "not visible"

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
    Verdict.CANCELLED: "-",
    Verdict.INFRA_ERROR: "I",
}
RUNNING = "."
"""The letter of an attempt that has no verdict yet."""


def letter(verdict: Verdict | None) -> str:
    """One letter a verdict."""
    return RUNNING if verdict is None else LETTERS[verdict]


def verdict_style(verdict: Verdict | None) -> str:
    """The style word that goes with a verdict's letter."""
    if verdict is None:
        return "busy"
    if verdict is Verdict.CORRECT:
        return "good"
    return "bad" if verdict.counted else "dim"


def confirmation_style(confirmation: Confirmation) -> str:
    """The style word that goes with what the exam said."""
    styles = {Confirmation.CONFIRMED: "good", Confirmation.NOT_CONFIRMED: "bad"}
    return styles.get(confirmation, "dim")


def words(verdict: Verdict) -> str:
    """`compile error`."""
    return verdict.value.replace("_", " ")


def count(number: int) -> str:
    """A count in at most five characters: `950`, `12.3k`, `4.56M`."""
    if number < 1000:
        return str(number)
    for unit, size in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        scaled = number / size
        if scaled < 999.5:
            return f"{scaled:.3g}{unit}" if scaled < 100 else f"{scaled:.0f}{unit}"
    return f"{number:.2e}"


def size(number: float | None) -> str:
    """Bytes in binary units: `1.5 MiB`."""
    if number is None:
        return UNKNOWN
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            return (
                f"{number:.0f} {unit}"
                if unit == "B"
                else f"{number:.3g} {unit}"
                if number < 100
                else f"{number:.0f} {unit}"
            )
        number /= 1024
    return f"{number:.3g} TiB"


def seconds(value: float | None) -> str:
    """A duration: `0.42 s`, `12.3 s`, `3:05`, `1:02:03`."""
    if value is None:
        return UNKNOWN
    if value < 10:
        return f"{value:.2f} s"
    if value < 60:
        return f"{value:.1f} s"
    return clock(value)


def clock(value: float) -> str:
    """A time since a start: `0:07`, `12:31`, `1:02:03`."""
    minutes, second = divmod(max(0, int(value)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def moment(wall: float | None) -> str:
    """An instant in UTC: `2026-11-20 14:03`."""
    return UNKNOWN if wall is None else datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%d %H:%M")


def cost(value: float | None) -> str:
    """US dollars, or `-` where no price is known."""
    return UNKNOWN if value is None else f"${value:.2f}" if value >= 0.1 or value == 0 else f"${value:.4f}"


def tokens(read: int, written: int) -> str:
    """`12.3k in 4.5k out`, or `-` while nothing was counted."""
    return f"{count(read)} in {count(written)} out" if read or written else UNKNOWN


def times(value: float) -> str:
    """A ratio: `1.42x`."""
    return f"{value:.2f}x" if value < 99.5 else f"{value:.0f}x"


def interval(evaluation: Evaluation) -> str:
    """The widest of the cases' 95 % intervals of the speedup, or nothing where none was measured."""
    known = [each.ci for each in evaluation.latency if each.ci is not None]
    if not known:
        return ""
    return f"{min(low for low, _ in known):.2f}-{max(high for _, high in known):.2f}"


def microseconds(value: float) -> str:
    """A latency of any size in three digits: `4.21 us`, `1.20 ms`."""
    if value < 1000:
        return f"{value:.3g} us" if value < 99.95 else f"{value:.0f} us"
    return f"{value / 1000:.3g} ms" if value < 1e6 else f"{value / 1e6:.3g} s"


def roof_factor(evaluation: Evaluation, target: str | None) -> float | None:
    """Upper over lower bound of the roofline estimates, geometric mean over cases: an estimate, never a measurement.

    Only cases of `target` count, or of the first target there is an estimate for when it has none. `None` without estimates.
    """
    known = [each for each in evaluation.estimate if each.low_us > 0 and each.high_us > 0]
    names = [each.target for each in known]
    chosen = target if target in names else names[0] if names else None
    ratios = [each.high_us / each.low_us for each in known if each.target == chosen]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def roof(factor: float) -> str:
    """An estimate between two bounds, as a multiple of the roofline's: `est 1-1.34x roof`, `est 1.00x roof` where both agree."""
    said = f"{factor:.2f}" if factor < 9.995 else f"{factor:.3g}"
    return f"est {'' if said == '1.00' else '1-'}{said}x roof"


def is_faster(evaluation: Evaluation) -> bool:
    """True if every case with a ratio is faster than the baseline, with an interval above 1."""
    compared = [each for each in evaluation.latency if each.speedup is not None]
    return bool(compared) and all(each.outcome is Outcome.FASTER for each in compared)


def standing(
    evaluation: Evaluation,
    target: str | None,
    twice: TimedTwice | None = None,
    exam: Evaluation | None = None,
) -> Span:
    """A verdict with what is known of speed: a measured speedup, or an estimate that says it is one.

    One that was timed again stands first, with what was found beside it, or over how many cases both can be compared. `exam` is
    the evaluation that timed it again. Only a speedup that is certainly one is green.
    """
    mark = letter(evaluation.verdict)
    if evaluation.verdict is not Verdict.CORRECT:
        return Span(f"{mark} {words(evaluation.verdict)}", verdict_style(evaluation.verdict))
    if twice is not None:
        found = "" if twice.found is None else f" (found {times(twice.found)})"
        beside = found if twice.cases is None else f" on {counted_cases(twice.cases)}"
        style = "good" if is_faster(exam if exam is not None else evaluation) else ""
        return Span(f"{mark} {times(twice.confirmed)}{beside}", style)
    if evaluation.speedup is not None:
        known = interval(evaluation)
        covered = f" over {evaluation.in_part}" if evaluation.in_part else ""
        speedup = f"{evaluation.speedup_bound.sign}{times(evaluation.speedup)}"
        style = "good" if is_faster(evaluation) else ""
        return Span(f"{mark} {speedup}{f' [{known}]' if known else ''}{covered}", style)
    factor = roof_factor(evaluation, target)
    return Span(f"{mark} {roof(factor)}" if factor is not None else mark)


def decision_mark(attempt: AttemptState) -> str:
    """`+` accepted, `!` rejected by a person, `?` waiting for one, else nothing."""
    if attempt.decision is not None:
        return "+" if attempt.decision.accepted else "!"
    return "?" if attempt.waiting else ""


def session_word(state: SessionState) -> Span:
    """What the session does, as the events tell it."""
    if state.finished:
        return Span("finished", "dim")
    if state.stopped is not None:
        return Span(f"stopped ({state.stopped})", "warn")
    if state.started is None:
        return Span("no events yet", "dim")
    if "" in state.on_hold:
        return Span("paused", "warn")
    waiting = sum(instance.word == "person" for instance in state.instances.values())
    return Span(f"running, {waiting} wait for you", "warn") if waiting else Span("running", "busy")
