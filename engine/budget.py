"""The budget of a session: its limits in USD or tokens, and what its calls cost so far."""

from __future__ import annotations

from collections.abc import Mapping

from engine.errors import BudgetSpent
from sessions.events import Usage
from sessions.state import SessionState

from .plan import CACHE_WRITE, Price

TOKENS_A_PRICE = 1_000_000


class Budget:
    """Counts finished calls and refuses the next call at the limit.

    The check runs before each call. A session can therefore pass its limit by the cost of the calls in progress (at
    most `model_calls` of the plan). Failed tries that a provider bills are not counted, because no reply reports
    them.
    """

    def __init__(self, *, usd: float | None, tokens: int | None, prices: Mapping[str, Price]) -> None:
        """`prices` maps a model, as people name it, to its price."""
        self._usd_limit = usd
        self._token_limit = tokens
        self._prices = prices
        self._usd = 0.0
        self._tokens = 0
        self._uncounted = 0
        self._unpriced = 0

    def restore(self, state: SessionState) -> None:
        """Count the calls that the session finished before it was resumed."""
        for attempt in state.attempts():
            for call in attempt.calls:
                if call.finished:
                    self._count(call.usage, call.cost_usd)

    def check(self) -> None:
        """Raise `BudgetSpent` if no further call may start."""
        if self._uncounted and (self._usd_limit is not None or self._token_limit is not None):
            raise BudgetSpent(
                f"the server reported no token counts for {self._uncounted} call(s), so the budget cannot be kept; "
                "run without a budget or ask the server for usage"
            )
        if self._unpriced and self._usd_limit is not None:
            raise BudgetSpent(
                f"{self._unpriced} call(s) have no known price, so the budget cannot be kept; run with --budget-tokens instead"
            )
        if self._usd_limit is not None and self._usd >= self._usd_limit:
            raise BudgetSpent(
                f"spent ${self._usd:.2f} of ${self._usd_limit:.2f}; a new run takes another --budget-usd"
            )
        if self._token_limit is not None and self._tokens >= self._token_limit:
            raise BudgetSpent(
                f"used {self._tokens} of {self._token_limit} tokens; a new run takes another --budget-tokens"
            )

    def spend(self, model: str, usage: Usage) -> float | None:
        """Count a finished call and return its cost in USD; `None` if the price or a token count is unknown."""
        cost = self.cost(model, usage)
        self._count(usage, cost)
        return cost

    def cost(self, model: str, usage: Usage) -> float | None:
        """Returns the cost of a call in USD; `None` if the price or a token count is unknown."""
        price = self._prices.get(model)
        if price is None or usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = min(usage.cached_tokens or 0, usage.input_tokens)
        written = min(usage.cache_write_tokens or 0, usage.input_tokens - cached)
        cached_price = price.input if price.cached_input is None else price.cached_input
        write_price = price.input * CACHE_WRITE if price.cache_write is None else price.cache_write
        fresh = usage.input_tokens - cached - written
        dollars = fresh * price.input + cached * cached_price + written * write_price
        return (dollars + usage.output_tokens * price.output) / TOKENS_A_PRICE

    def _count(self, usage: Usage, cost_usd: float | None) -> None:
        if usage.input_tokens is None or usage.output_tokens is None:
            self._uncounted += 1
        elif cost_usd is None:
            self._unpriced += 1
        self._tokens += (usage.input_tokens or 0) + (usage.output_tokens or 0)
        self._usd += cost_usd or 0.0
