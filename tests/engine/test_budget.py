"""Budgets: cost of a call, and when a session may spend no more."""

from __future__ import annotations

import pytest

from engine.budget import Budget
from engine.errors import BudgetSpent
from engine.plan import Price
from sessions.events import Usage

PRICE = Price(input=2.0, cached_input=0.5, output=10.0)
MODEL = "anthropic:test"
PRICES = {MODEL: PRICE}


def test_cached_tokens_cost_their_own_price() -> None:
    budget = Budget(usd=None, tokens=None, prices=PRICES)
    cost = budget.spend(MODEL, Usage(input_tokens=1_000_000, cached_tokens=400_000, output_tokens=100_000))
    assert cost == pytest.approx(0.6 * 2.0 + 0.4 * 0.5 + 0.1 * 10.0)


def test_cached_tokens_without_their_own_price_cost_the_input_price() -> None:
    budget = Budget(usd=None, tokens=None, prices={MODEL: Price(input=2.0, output=10.0)})
    assert budget.cost(MODEL, Usage(1_000_000, 0, 1_000_000)) == pytest.approx(2.0)


def test_cache_writes_cost_their_own_price_or_a_quarter_more() -> None:
    used = Usage(input_tokens=1_000_000, output_tokens=0, cached_tokens=300_000, cache_write_tokens=200_000)
    own = Price(input=2.0, cached_input=0.5, cache_write=3.0, output=10.0)
    budget = Budget(usd=None, tokens=None, prices={MODEL: own, "anthropic:other": PRICE})
    assert budget.cost(MODEL, used) == pytest.approx(0.5 * 2.0 + 0.3 * 0.5 + 0.2 * 3.0)
    assert budget.cost("anthropic:other", used) == pytest.approx(0.5 * 2.0 + 0.3 * 0.5 + 0.2 * 2.5)


def test_call_without_a_price_ends_a_budget_in_usd() -> None:
    budget = Budget(
        usd=100.0, tokens=None, prices={MODEL: PRICE, "openai:dear": Price(input=20.0, output=1.0)}
    )
    assert budget.spend(MODEL, Usage(1_000_000, 0)) == pytest.approx(2.0)
    assert budget.spend("openai:dear", Usage(1_000_000, 0)) == pytest.approx(20.0)
    budget.check()
    assert budget.spend("openai:unknown", Usage(1, 1)) is None
    with pytest.raises(BudgetSpent, match=r"1 call\(s\) have no known price"):
        budget.check()


def test_unknown_price_or_count_gives_unknown_cost() -> None:
    assert Budget(usd=None, tokens=None, prices={}).cost(MODEL, Usage(1, 1, 0)) is None
    assert Budget(usd=None, tokens=None, prices=PRICES).cost(MODEL, Usage(None, 1, 0)) is None


def test_usd_budget_ends_exactly_at_its_limit() -> None:
    budget = Budget(usd=1.0, tokens=None, prices=PRICES)
    budget.spend(MODEL, Usage(input_tokens=499_999, output_tokens=0))
    budget.check()
    budget.spend(MODEL, Usage(input_tokens=1, output_tokens=0))
    with pytest.raises(BudgetSpent, match=r"spent \$1\.00 of \$1\.00; a new run takes another --budget-usd"):
        budget.check()


def test_token_budget_ends_exactly_at_its_limit() -> None:
    budget = Budget(usd=None, tokens=100, prices={})
    budget.spend(MODEL, Usage(input_tokens=90, output_tokens=9))
    budget.check()
    budget.spend(MODEL, Usage(input_tokens=1, output_tokens=0))
    with pytest.raises(BudgetSpent, match="100 of 100 tokens"):
        budget.check()


def test_budget_ends_if_the_server_counts_no_tokens() -> None:
    budget = Budget(usd=None, tokens=100, prices={})
    budget.spend(MODEL, Usage())
    with pytest.raises(BudgetSpent, match="no token counts"):
        budget.check()


def test_session_without_a_budget_has_no_limit() -> None:
    budget = Budget(usd=None, tokens=None, prices={})
    budget.spend(MODEL, Usage())
    budget.spend(MODEL, Usage(10**9, 10**9, 0))
    budget.check()
