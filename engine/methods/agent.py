"""The method `agent`: an agent that is not Wavedeck's own sends the candidates; each is judged in turn.

A person starts the agent, or with `--agent` the engine does.
"""

from __future__ import annotations

from sessions.events import METHOD_FACTS, EndReason
from sessions.settings import AGENT

from .context import Context


class Agent:
    """The method `agent`. It ends when all iterations are used, or when the agent leaves."""

    name = "agent"
    asks_model = False
    takes: frozenset[str] = frozenset({"agent", "agent_command"})
    modules: frozenset[str] = frozenset()
    roles, iterations = METHOD_FACTS[AGENT]

    async def run(self, context: Context) -> EndReason:
        """See `Method`."""
        async with context.agent():
            for _ in range(context.iterations):
                if not await context.judge_sent():
                    return EndReason.SUBMITTED
            return EndReason.ITERATIONS
