"""The tokens and the cost that programs of agents state in their output, and the budgets that can be held by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sessions.events import Usage

TOKENS, USD = "tokens", "usd"
WORDS = {TOKENS: "tokens", USD: "cost"}
STATES = {"claude": {TOKENS: True, USD: False}, "codex": {TOKENS: False}, "gemini": {TOKENS: False}}
"""The counts that a format of output has. True: the program states it while it works; false: when it ends."""


Budgets = Mapping[str, float | None]
"""Amounts by name, `None` without a limit."""


class Stated(NamedTuple):
    """Tokens and cost of a program since its start; `None`: it stated none."""

    usage: Usage = Usage()
    cost_usd: float | None = None

    def since(self, earlier: Stated) -> Stated:
        """Returns what was stated after `earlier`."""
        if self == earlier:
            return Stated()
        before = earlier.usage
        usage = Usage(
            input_tokens=difference(self.usage.input_tokens, before.input_tokens),
            output_tokens=difference(self.usage.output_tokens, before.output_tokens),
            cached_tokens=difference(self.usage.cached_tokens, before.cached_tokens),
            cache_write_tokens=difference(self.usage.cache_write_tokens, before.cache_write_tokens),
        )
        cost = None if self.cost_usd is None else max(0.0, self.cost_usd - (earlier.cost_usd or 0.0))
        return Stated(usage, cost)


def difference(count: int | None, before: int | None) -> int | None:
    """Returns what was added to a count; `None` if the count is unknown."""
    return None if count is None else max(0, count - (before or 0))


def missing_budget(program: str, output: str, budgets: Budgets) -> str:
    """Returns why one of these budgets cannot be held for an agent, in one line; empty if all can.

    `output` is the format of the program's output; without a name of a program a person starts the agent.
    """
    for option, amount in budgets.items():
        if amount is None or option in STATES.get(output, {}):
            continue
        subject = f"the output of {program}" if program else "an agent that you start yourself"
        subject += f" states no {WORDS[option]} to the engine"
        return (
            f"--budget-{option} cannot be held: {subject}; limit the agent with --iterations, --budget-device-s or "
            "--budget-wall-s, or with its own options in --agent-command"
        )
    return ""


def late_budgets(program: str, output: str, budgets: Budgets) -> list[str]:
    """Returns a line for each budget that is held only when the program ends."""
    states = STATES.get(output, {})
    return [
        f"{program} states its {WORDS[option]} only when it ends: --budget-{option} is held from then on"
        for option, amount in budgets.items()
        if amount is not None and not states.get(option)
    ]


def unstated_budgets(program: str, budgets: Budgets, stated: Stated) -> list[str]:
    """Returns a line for each budget that lacks the work of a program, because it ended without stating it."""
    is_stated = {TOKENS: stated.usage != Usage(), USD: stated.cost_usd is not None}
    return [
        f"{program} ended without stating its {WORDS[option]}: --budget-{option} lacks this work"
        for option, amount in budgets.items()
        if amount is not None and not is_stated[option]
    ]
