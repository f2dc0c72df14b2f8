"""Calls, tokens, cost and device time: of a session by role and model, and of some attempts in words."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sessions import SessionState
from sessions.state.state import CallState, known_sum
from tui.facts.tables import Column, Field, Number
from tui.facts.vocabulary import UNKNOWN, grouped, money


class ModelUsage(msgspec.Struct, frozen=True):
    """Calls of one model in one role. Counts cover finished calls only."""

    role: str
    model: str
    calls: int
    """Finished calls."""
    failed: int
    input_tokens: int | None
    """`None` if no call says how many it read; so for the other counts."""
    cached_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    """Sum over the calls with a known price; `None` if no price is known."""
    unpriced_calls: int
    own_temperature: bool
    """True if a call set no temperature because the model refuses one."""
    served: tuple[str, ...]
    """The ids that the server gave for the model."""


def model_usage(state: SessionState) -> list[ModelUsage]:
    """Return one entry for each role and model, in the order of their first calls."""
    calls: dict[tuple[str, str], list[CallState]] = {}
    for attempt in state.attempts():
        for call in attempt.calls:
            calls.setdefault((call.role.value, call.model), []).append(call)
    return [_sum_calls(role, model, group) for (role, model), group in calls.items()]


def _sum_calls(role: str, model: str, calls: Sequence[CallState]) -> ModelUsage:
    finished = [call for call in calls if call.finished]
    costs = [call.cost_usd for call in finished if call.cost_usd is not None]
    return ModelUsage(
        role=role,
        model=model,
        calls=len(finished),
        failed=sum(bool(call.failed) for call in calls),
        input_tokens=known_sum([call.usage.input_tokens for call in finished]),
        cached_tokens=known_sum([call.usage.cached_tokens for call in finished]),
        cache_write_tokens=known_sum([call.usage.cache_write_tokens for call in finished]),
        output_tokens=known_sum([call.usage.output_tokens for call in finished]),
        cost_usd=sum(costs) if costs else None,
        unpriced_calls=sum(call.cost_usd is None and not call.is_of_agent for call in finished),
        own_temperature=any(call.own_temperature for call in finished),
        served=tuple(sorted({call.served.model for call in finished if call.served} - {""})),
    )


USAGE: tuple[Field[ModelUsage], ...] = (
    Field(Column("role", keep=True), lambda usage: usage.role),
    Field(Column("model", keep=True), lambda usage: usage.model),
    Field(Column("served as", if_known=True, drop=3), lambda usage: ", ".join(usage.served)),
    Field(Number("calls"), lambda usage: str(usage.calls)),
    Field(Number("tokens in"), lambda usage: grouped(usage.input_tokens)),
    Field(Number("cached", if_known=True, drop=1), lambda usage: grouped(usage.cached_tokens)),
    Field(Number("out"), lambda usage: grouped(usage.output_tokens)),
    Field(Number("cost", if_known=True), lambda usage: _cost(usage)),
    Field(
        Column("temperature", if_known=True, drop=2),
        lambda usage: "the model's own" if usage.own_temperature else "",
    ),
)


def _cost(usage: ModelUsage) -> str:
    if usage.cost_usd is None:
        return UNKNOWN
    return money(usage.cost_usd) + (f" + {usage.unpriced_calls} unpriced" if usage.unpriced_calls else "")
