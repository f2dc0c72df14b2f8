"""Prices of models: the shipped table, and the cost of a call at a price."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from sessions.events import Usage

TOKENS_A_PRICE = 1_000_000
CACHE_WRITE = 1.25
"""Price of tokens written to the cache over the full price, at Anthropic (five minutes) and OpenAI (since GPT-5.6)."""

Dollars = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Prices of a model in USD per million tokens."""

    input: Dollars
    output: Dollars
    cached_input: Dollars | None = None
    """For tokens read from the provider's cache; if unknown, the full price counts."""
    cache_write: Dollars | None = None
    """For tokens written to the cache; if unknown, `CACHE_WRITE` times the full price counts."""
    date: str = ""
    """The day on which the provider's page showed these prices; empty if unknown."""

    @property
    def written_input(self) -> float:
        """Price of tokens written to the cache."""
        return self.input * CACHE_WRITE if self.cache_write is None else self.cache_write

    def cost(self, usage: Usage) -> float | None:
        """Returns the cost of a call in USD; `None` if a token count is unknown."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = min(usage.cached_tokens or 0, usage.input_tokens)
        written = min(usage.cache_write_tokens or 0, usage.input_tokens - cached)
        cached_price = self.input if self.cached_input is None else self.cached_input
        fresh = usage.input_tokens - cached - written
        dollars = fresh * self.input + cached * cached_price + written * self.written_input
        return (dollars + usage.output_tokens * self.output) / TOKENS_A_PRICE

    def highest_cost(self, input_tokens: int, output_tokens: int) -> float:
        """Returns the most that a call with at most these tokens can cost, whatever the cache does."""
        highest_input = max(self.input, self.written_input, self.cached_input or 0.0)
        return (input_tokens * highest_input + output_tokens * self.output) / TOKENS_A_PRICE


def _anthropic(input_price: float, output: float, cached_input: float) -> Price:
    return Price(input_price, output, cached_input, input_price * CACHE_WRITE, "2026-10-24")


SHIPPED: Mapping[str, Price] = {
    "anthropic:claude-fable-5-1": _anthropic(10.0, 50.0, 0.25),
    "anthropic:claude-fable-5": _anthropic(10.0, 50.0, 1.0),
    "anthropic:claude-opus-5": _anthropic(5.0, 25.0, 0.5),
    "anthropic:claude-opus-4-8": _anthropic(5.0, 25.0, 0.5),
    "anthropic:claude-opus-4-7": _anthropic(5.0, 25.0, 0.5),
    "anthropic:claude-opus-4-6": _anthropic(5.0, 25.0, 0.5),
    "anthropic:claude-opus-4-5": _anthropic(5.0, 25.0, 0.5),
    "anthropic:claude-sonnet-5-5": _anthropic(2.0, 10.0, 0.1),
    "anthropic:claude-sonnet-5": _anthropic(2.0, 10.0, 0.2),
    "anthropic:claude-haiku-4-5": _anthropic(1.0, 5.0, 0.1),
}
"""Prices by model, as people name it. Source: https://platform.claude.com/docs/en/about-claude/pricing."""


def with_shipped(prices: Mapping[str, Price]) -> dict[str, Price]:
    """Returns the shipped prices, replaced and extended by a person's own."""
    return {**SHIPPED, **prices}
