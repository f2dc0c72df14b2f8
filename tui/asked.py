"""Which models a session asked, as whom, and what that took."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sessions import SessionState
from sessions.state import CallState

from .plain import UNKNOWN, Column, count, money, table


class Asked(msgspec.Struct, frozen=True):
    """One role's calls of one model."""

    role: str
    model: str
    calls: int
    """Finished ones; only these have counts."""
    failed: int
    input_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cost_usd: float | None
    """Of the calls with a known price; `None` where there is none."""
    unpriced_calls: int
    own_temperature: bool
    """Whether a call went without a temperature because the model refuses one."""


def asked(state: SessionState) -> list[Asked]:
    """One for each role and model, in the order in which they were first asked."""
    calls: dict[tuple[str, str], list[CallState]] = {}
    for attempt in state.attempts():
        for call in attempt.calls:
            calls.setdefault((call.role.value, call.model), []).append(call)
    return [_summed(role, model, each) for (role, model), each in calls.items()]


def _summed(role: str, model: str, calls: Sequence[CallState]) -> Asked:
    finished = [call for call in calls if call.finished]
    costs = [call.cost_usd for call in finished if call.cost_usd is not None]
    return Asked(
        role=role,
        model=model,
        calls=len(finished),
        failed=sum(bool(call.failed) for call in calls),
        input_tokens=sum(call.usage.input_tokens or 0 for call in finished),
        cached_tokens=sum(call.usage.cached_tokens or 0 for call in finished),
        cache_write_tokens=sum(call.usage.cache_write_tokens or 0 for call in finished),
        output_tokens=sum(call.usage.output_tokens or 0 for call in finished),
        cost_usd=sum(costs) if costs else None,
        unpriced_calls=len(finished) - len(costs),
        own_temperature=any(call.own_temperature for call in finished),
    )


def asked_table(found: Sequence[Asked]) -> str:
    """The same for people."""
    columns = [
        Column("role", keep=True),
        Column("model", keep=True),
        Column("calls", right=True),
        Column("tokens in", right=True),
        Column("cached", right=True, drop=1),
        Column("out", right=True),
        Column("cost", right=True, if_known=True),
        Column("temperature", if_known=True, drop=2),
    ]
    rows = [
        (
            each.role,
            each.model,
            str(each.calls),
            count(each.input_tokens),
            count(each.cached_tokens),
            count(each.output_tokens),
            UNKNOWN
            if each.cost_usd is None
            else money(each.cost_usd) + (f" + {each.unpriced_calls} unpriced" if each.unpriced_calls else ""),
            "its own" if each.own_temperature else UNKNOWN,
        )
        for each in found
    ]
    return table(columns, rows)
