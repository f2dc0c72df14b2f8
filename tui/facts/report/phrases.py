"""Short phrases of a report: speedups, shares of the roof, what people and the exam say of a winner."""

from __future__ import annotations

from sessions.events import Origin
from sessions.state.speed import Speed
from sessions.state.state import Confirmation
from tui.facts.evaluation.roofs import RoofShare
from tui.facts.vocabulary import (
    ACCEPTED,
    CONFIRMED,
    FINDING,
    UNKNOWN,
    WAITS,
    grouped,
    interval,
    percent,
)
from tui.facts.vocabulary import speedup as measured_ratio

from .model import CaseTime, Decided, Winner


def figure_words(speed: Speed | None) -> str:
    """Return `1.84x` or `>= 2.65x`."""
    return UNKNOWN if speed is None else speed.figure


def interval_words(speed: Speed | None) -> str:
    """Return the 95 % interval: `[1.79, 1.88]`."""
    return UNKNOWN if speed is None or speed.interval is None else interval(*speed.interval)


def exact_words(speed: Speed | None) -> str:
    """Return the speed over the exact cases, `1.81x [1.77, 1.84] exact, 4 of 6`, if others are bounds or have none."""
    return UNKNOWN if speed is None else speed.exact_words or UNKNOWN


def cases_words(speed: Speed | None) -> str:
    """Return the cases with a ratio: `6`, or `5 of 6`."""
    if speed is None:
        return UNKNOWN
    return f"{speed.cases}" if speed.cases == speed.all_cases else f"{speed.cases} of {speed.all_cases}"


def speed_words(speed: Speed | None) -> str:
    """Return `1.84x [1.79, 1.88]`, or `>= 2.65x; 1.81x [1.77, 1.84] exact, 4 of 6`."""
    return UNKNOWN if speed is None else speed.words


def roof_words(share: RoofShare | None) -> str:
    """Return `97 % memory`."""
    return UNKNOWN if share is None else f"{percent(share.share)} {share.limit}"


def roof_range_words(roof: tuple[RoofShare, RoofShare] | None) -> str:
    """Return the range over the cases: `84-97 %`."""
    if roof is None:
        return UNKNOWN
    low, high = (f"{share.share * 100:.0f}" for share in roof)
    return f"{low} %" if low == high else f"{low}-{high} %"


def decision_words(winner: Winner) -> str:
    """Return `accepted`, `accepted: softmax#1/3` if it is another attempt, `waits`, or unknown if no person decided."""
    if winner.accepted_instead:
        return f"{'accepted, then' if winner.accepted else 'accepted:'} {winner.accepted_instead}"
    return "accepted" if winner.accepted else "waits" if winner.waiting else UNKNOWN


def decided_words(decided: Decided) -> str:
    """Return `accepted`, `accepted, replaced by softmax#1/3` or `rejected`."""
    if not decided.accepted:
        return "rejected"
    return f"accepted, replaced by {decided.replaced_by}" if decided.replaced_by else "accepted"


def marks(winner: Winner) -> str:
    """Return the marks behind a winner: `!` findings, `?` waits, `+` accepted, `=` confirmed by the exam."""
    decision = ACCEPTED if winner.accepted_file else WAITS if winner.waiting else ""
    finding = FINDING if winner.findings else ""
    return finding + decision + (CONFIRMED if winner.confirmed is Confirmation.CONFIRMED else "")


def case_ratio(case: CaseTime) -> str:
    """Return the speedup of a case: `1.93x`, `>= 12x`."""
    return UNKNOWN if case.ratio is None else measured_ratio(case.ratio, case.bound)


def case_time(time_us: float | None, short_us: float | None) -> str:
    """Return a median in microseconds; `< 18` if it is too short to be timed exactly."""
    if short_us is not None:
        return f"< {short_us:.3g}"
    if time_us is None:
        return UNKNOWN
    return f"{time_us:,.0f}" if time_us >= 1000 else f"{time_us:.1f}" if time_us >= 10 else f"{time_us:.2f}"


def change_words(added: int | None, removed: int | None) -> str:
    """Return the changed lines: `+14 -9`."""
    return UNKNOWN if added is None or removed is None else f"+{grouped(added)} -{grouped(removed)}"


def origin_words(origin: Origin, base: str | None) -> str:
    """Return `fresh`, or `optimize of softmax#3/5`."""
    return f"{origin.value} of {base}" if base else origin.value


def short_commit(commit: str | None) -> str:
    """Return the first characters of a commit, enough for git."""
    return commit[:12] if commit else UNKNOWN
