"""Short phrases of a report: speedups, shares of the roof, what people and the exam say of a winner."""

from __future__ import annotations

from sessions.events import Origin
from sessions.state import Confirmation
from tui.vocabulary import ACCEPTED, CONFIRMED, UNKNOWN, WAITS, grouped, interval, percent
from tui.vocabulary import speedup as measured_ratio

from .model import CaseTime, Winner
from .speedups import Figures, RoofShare


def ratio_words(speedup: Figures | None) -> str:
    """Return `1.84x` or `>= 2.65x`."""
    return UNKNOWN if speedup is None else measured_ratio(speedup.ratio, speedup.bound)


def interval_words(speedup: Figures | None) -> str:
    """Return the 95 % interval: `[1.79, 1.88]`."""
    return UNKNOWN if speedup is None or speedup.interval is None else interval(*speedup.interval)


def exact_words(speedup: Figures | None) -> str:
    """Return the speedup over the cases that are no bounds, `4 measured: 1.81x [1.77, 1.84]`, if some are bounds."""
    if speedup is None or speedup.exact is None:
        return UNKNOWN
    exact = speedup.exact
    return f"{exact.cases} measured: {speedup_words(exact)}"


def cases_words(speedup: Figures | None) -> str:
    """Return the cases that the speedup covers: `6`, or `5 of 6`."""
    if speedup is None or not speedup.cases:
        return UNKNOWN
    return (
        f"{speedup.cases}" if speedup.cases == speedup.of_cases else f"{speedup.cases} of {speedup.of_cases}"
    )


def speedup_words(speedup: Figures | None) -> str:
    """Return `1.84x [1.79, 1.88]`, or `>= 2.65x, 4 measured: 1.81x [1.77, 1.84]`."""
    if speedup is None:
        return UNKNOWN
    if speedup.exact is not None:
        return f"{ratio_words(speedup)}, {exact_words(speedup)}"
    return (
        f"{ratio_words(speedup)} {interval(*speedup.interval)}" if speedup.interval else ratio_words(speedup)
    )


def covered_words(speedup: Figures | None) -> str:
    """Return `1.84x [1.79, 1.88] over 6 cases`, or `>= 2.65x over 5 of 6 cases; 4 measured: 1.81x [1.77, 1.84]`."""
    if speedup is None:
        return UNKNOWN
    covered = cases_words(speedup)
    cases = "" if covered == UNKNOWN else f" over {covered} case{'' if speedup.of_cases == 1 else 's'}"
    if speedup.exact is not None:
        return f"{ratio_words(speedup)}{cases}; {exact_words(speedup)}"
    return f"{speedup_words(speedup)}{cases}"


def roof_words(share: RoofShare | None) -> str:
    """Return `97 % memory`."""
    return UNKNOWN if share is None else f"{percent(share.share)} {share.limit}"


def roof_range_words(roof: tuple[RoofShare, RoofShare] | None) -> str:
    """Return the range over the cases: `84-97 %`."""
    if roof is None:
        return UNKNOWN
    low, high = (f"{share.share * 100:.0f}" for share in roof)
    return f"{low} %" if low == high else f"{low}-{high} %"


def exam_words(winner: Winner) -> str:
    """Return `confirmed`, `failed exam` or `not examined`."""
    return {
        Confirmation.CONFIRMED: "confirmed",
        Confirmation.NOT_CONFIRMED: "failed exam",
        Confirmation.NOT_EXAMINED: "not examined",
    }[winner.confirmed]


def decision_words(winner: Winner) -> str:
    """Return `accepted`, `waits`, or unknown if no person decided."""
    return "accepted" if winner.accepted else "waits" if winner.waiting else UNKNOWN


def marks(winner: Winner) -> str:
    """Return the marks behind a winner: `?` waits, `+` accepted, `=` confirmed by the exam."""
    decision = ACCEPTED if winner.accepted else WAITS if winner.waiting else ""
    return decision + (CONFIRMED if winner.confirmed is Confirmation.CONFIRMED else "")


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


def gain_words(gain: float | None) -> str:
    """Return the gain on the base: `+12 %`."""
    return UNKNOWN if gain is None else f"{gain * 100:+.0f} %"


def change_words(added: int | None, removed: int | None) -> str:
    """Return the changed lines: `+14 -9`."""
    return UNKNOWN if added is None or removed is None else f"+{grouped(added)} -{grouped(removed)}"


def origin_words(origin: Origin, base: str | None) -> str:
    """Return `fresh`, or `optimize of softmax#3/5`."""
    return f"{origin.value} of {base}" if base else origin.value


def short_commit(commit: str | None) -> str:
    """Return the first characters of a commit, enough for git."""
    return commit[:12] if commit else UNKNOWN
