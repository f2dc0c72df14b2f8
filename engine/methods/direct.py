"""The method `direct`: one prompt, one answer; 1-shot, or 0-shot without the module `one-shot`.

A reply without code gets one corrective request. The method shows the performance of the model alone: the baseline
for every method with a loop. More instances give more samples.
"""

from __future__ import annotations

from engine.candidate import Unusable
from engine.prompting import first_prompt
from harness import Verdict
from sessions.events import EndReason, Origin, Role

from .context import Context
from .proposing import examples_of, propose, setting_of


class Direct:
    """The method `direct`."""

    name = "direct"
    asks_model = True
    takes = frozenset({"without", "profile", "corpus"})
    roles = frozenset({Role.GENERATOR})
    modules = frozenset({"knowledge", "one-shot"})
    iterations: int | None = 1

    async def run(self, context: Context) -> EndReason:
        """See `Method`."""
        example = examples_of(context).by_instruction(context.task)
        await context.attempt(Origin.FRESH, None)
        proposal = await propose(
            context,
            Role.GENERATOR,
            await setting_of(context),
            lambda setting: first_prompt(setting, example=example),
        )
        if isinstance(proposal, Unusable):
            await context.judge("", "", unusable=proposal.reason)
            return EndReason.ANSWERED
        evaluation = await context.judge(proposal.source, proposal.strategy)
        if evaluation.verdict is Verdict.CORRECT:
            await context.review()
        return EndReason.ANSWERED
