"""Methods that ask no model, because the candidates exist: predictions from a file, and attempts of another session."""

from __future__ import annotations

from sessions.events import METHOD_FACTS, EndReason

from .context import Context


class Rejudge:
    """The method `rejudge`: the attempts of another session, in their order, with their origins."""

    name = "rejudge"
    asks_model = False
    takes: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    roles, iterations = METHOD_FACTS["rejudge"]

    async def run(self, context: Context) -> EndReason:
        """See `Method`."""
        names: dict[str | None, str] = {}
        for candidate in context.candidates:
            names[candidate.attempt] = await context.attempt(candidate.origin, names.get(candidate.base))
            await context.judge(candidate.source, candidate.strategy, unusable=candidate.unusable)
        return EndReason.JUDGED


class Predictions(Rejudge):
    """The method `predictions`: an instance for each prediction, with one attempt."""

    name = "predictions"
