"""Words for what attempts spent: tokens, money, and time on devices."""

from __future__ import annotations

from collections.abc import Sequence

from sessions.state.state import AttemptState

from .vocabulary import duration, grouped, money


def spent_words(attempts: Sequence[AttemptState]) -> str:
    """Return `11,447 tokens in, 4,252 out, $0.02, 12 s on devices`; parts without a known figure are left out."""
    inputs = [attempt.usage.input_tokens for attempt in attempts if attempt.usage.input_tokens is not None]
    outputs = [attempt.usage.output_tokens for attempt in attempts if attempt.usage.output_tokens is not None]
    cost = cost_of(attempts)
    device_s = device_s_of(attempts)
    parts = [
        f"{grouped(sum(inputs))} tokens in, {grouped(sum(outputs))} out" if inputs or outputs else "",
        money(cost) if cost is not None else "",
        f"{duration(device_s)} on devices" if device_s else "",
    ]
    return ", ".join(filter(None, parts))


def cost_of(attempts: Sequence[AttemptState]) -> float | None:
    """Return the cost of the attempts' calls with a known price; `None` if there are none."""
    costs = [attempt.cost_usd for attempt in attempts if attempt.cost_usd is not None]
    return sum(costs) if costs else None


def tokens_of(attempts: Sequence[AttemptState]) -> int:
    """Return the tokens in and out of the attempts' calls, as far as they are known."""
    return sum((attempt.usage.input_tokens or 0) + (attempt.usage.output_tokens or 0) for attempt in attempts)


def device_s_of(attempts: Sequence[AttemptState]) -> float:
    """Return the seconds in which the judge held devices for the attempts."""
    return sum(attempt.device_s for attempt in attempts)
