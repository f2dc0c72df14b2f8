"""The method `reflexion` (Shinn et al., 2023): generate, test, reflect, retry, until a candidate is correct.

It repairs and does not optimize. The difference of its results to `geak` is the effect of the optimizer and the
debugging trap. A line is never dropped.
"""

from __future__ import annotations

from functools import partial

from engine.prompting.prompting import Setting, first_prompt, reflect_prompt, repair_prompt
from engine.reply.candidate import Unusable
from harness import Verdict
from sessions.events import EndReason, Origin, Role

from .context import Context
from .history import Ancestor
from .progress import Failure
from .proposing import examples_of, propose, setting_of
from .starting import judge_start


class Reflexion:
    """The method `reflexion`."""

    name = "reflexion"
    asks_model = True
    takes = frozenset({"without", "profile", "corpus", "start"})
    roles = frozenset({Role.GENERATOR, Role.REFLECTOR})
    modules = frozenset({"knowledge", "one-shot", "reflection"})
    iterations: int | None = None

    async def run(self, context: Context) -> EndReason:
        """See `Method`."""
        setting, examples = await setting_of(context), await examples_of(context)
        failed: Failure | None = None
        failures, unusable = 0, ""
        start = await judge_start(context)
        if isinstance(start, Ancestor):
            return EndReason.SOLVED
        if start is not None:
            failed, failures = start, 1
            await reflect(context, setting, start)
        for iteration in range(1, context.iterations + 1):
            if failed is None:
                attempt = await context.attempt(Origin.FRESH, None)
                build = partial(
                    first_prompt, example=examples.by_instruction(context.task), unusable=unusable
                )
            else:
                attempt = await context.attempt(Origin.REPAIR, failed.attempt)
                build = partial(
                    repair_prompt,
                    failed=failed,
                    failures=failures,
                    trap=None,
                    before=failed.before,
                    example=examples.by_code(failed.source),
                    unusable=unusable,
                )
            proposal = await propose(context, Role.GENERATOR, setting, build)
            if isinstance(proposal, Unusable):
                await context.judge("", "", unusable=proposal.reason)
                unusable = proposal.message
                failures += 1
                continue
            unusable = ""
            evaluation = await context.judge(proposal.source, proposal.strategy)
            rejection = None
            if evaluation.verdict is Verdict.CORRECT:
                review = await context.review()
                if review.accepted:
                    return EndReason.SOLVED
                rejection = review.why
            failures += 1
            failed = Failure(attempt, proposal.source, proposal.strategy, evaluation, failed, rejection)
            if iteration < context.iterations:
                await reflect(context, setting, failed)
        return EndReason.ITERATIONS


async def reflect(context: Context, setting: Setting, failed: Failure) -> None:
    """Ask why a candidate failed, unless the module `reflection` is off."""
    if "reflection" not in context.options.without:
        reflection = await context.ask(Role.REFLECTOR, reflect_prompt(setting, failed=failed))
        failed.reflection = reflection.text
