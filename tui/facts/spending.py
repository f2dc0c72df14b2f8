"""Tokens, money and time on devices that attempts and sessions spent, as values and in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sessions.settings import AGENT
from sessions.state.state import AttemptState, SessionState, known_sum
from tui.facts.vocabulary import counted, duration, grouped, money


class Spending(NamedTuple):
    """Sums over attempts. `None`: no call reported it."""

    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    """Cost of the calls with a known price."""
    device_s: float
    """Seconds in which the judge held devices."""

    @property
    def tokens(self) -> int | None:
        """Tokens in and out, as far as they are known."""
        return known_sum([self.input_tokens, self.output_tokens])

    @property
    def token_words(self) -> str:
        """Return `1,840 tokens in, 612 out`, with `unknown` for a side that no call reported; empty if both are unknown."""
        sides = [self.input_tokens, self.output_tokens]
        read, written = ("unknown" if side is None else grouped(side) for side in sides)
        return "" if sides == [None, None] else f"{read} tokens in, {written} out"


def spending_of(attempts: Sequence[AttemptState]) -> Spending:
    """Return what the attempts spent."""
    calls = [call for attempt in attempts for call in attempt.calls]
    usages = [call.usage for call in calls if call.finished]
    costs = [call.cost_usd for call in calls if call.cost_usd is not None]
    return Spending(
        known_sum([usage.input_tokens for usage in usages]),
        known_sum([usage.output_tokens for usage in usages]),
        sum(costs) if costs else None,
        sum(attempt.device_s for attempt in attempts),
    )


def spent_words(attempts: Sequence[AttemptState]) -> str:
    """Return `11,447 tokens in, 4,252 out, $0.02, 12 s on devices`; parts without a known figure are left out."""
    spent = spending_of(attempts)
    parts = [
        spent.token_words,
        money(spent.cost_usd) if spent.cost_usd is not None else "",
        device_words(spent.device_s),
    ]
    return ", ".join(filter(None, parts))


def session_spent_words(state: SessionState) -> str:
    """Return `1,840 tokens in, 612 out; cost $0.02`, or why nothing was spent."""
    attempts = list(state.attempts())
    tokens = spending_of(attempts).token_words or "tokens unknown (none reported)"
    if state.started is not None and state.started.method == AGENT:
        cost = f"; cost {money(state.cost_usd)}" if state.cost_usd is not None else ""
        is_known = state.input_tokens or state.output_tokens or cost
        return (
            f"{tokens}{cost}, as the agent reports"
            if is_known
            else "tokens and cost unknown: the agent asks its models itself"
        )
    if not any(attempt.calls for attempt in attempts):
        return "no model was asked; nothing was spent"
    if state.started is not None and state.started.model.startswith("recorded:"):
        return f"{tokens} (as recorded); nothing was spent"
    if state.started is not None and state.started.budget_tokens and state.assumed.tokens:
        tokens += (
            f", and {grouped(state.assumed.tokens)} that the provider did not count: the budget assumes them"
        )
    if state.cost_usd is None:
        return f"{tokens}; cost unknown (no price configured)"
    unpriced = state.unpriced_calls
    more = f" and {counted(unpriced, 'call')} without a known price" if unpriced else ""
    return f"{tokens}; cost {money(state.cost_usd)}{more}"


def session_device_words(state: SessionState) -> str:
    """Return `3 min 2 s on devices, 21 s of it for baselines`; attempts and tasks do not count baselines."""
    baselines = state.baselines_device_s
    part = f", {duration(baselines)} of it for baselines" if baselines else ""
    words = device_words(state.device_s)
    return f"{words}{part}" if words else ""


def device_words(device_s: float) -> str:
    """Return `3 min 2 s on devices`; empty if the events have no device times."""
    return f"{duration(device_s)} on devices" if device_s else ""
