"""The method `reflexion` (Shinn et al., 2023): generate, test, reflect, retry, until a candidate is correct.

It repairs and does not optimize. The difference of its results to `geak` is the effect of the optimizer and the
debugging trap. A line is never dropped.
"""

from __future__ import annotations

from functools import partial

from engine.prompting.prompting import first_prompt, repair_prompt
from engine.reply.candidate import Unusable
from sessions.events import METHOD_FACTS, EndReason, Origin, Role

from .context import Context
from .proposing import examples_of, judge_start, reflect, setting_of, try_candidate


class Reflexion:
    """The method `reflexion`."""

    name = "reflexion"
    asks_model = True
    takes = frozenset({"without", "show_reference", "prompt_style", "corpus", "start"})
    modules = frozenset({"knowledge", "one-shot", "examples", "reflection"})
    roles, iterations = METHOD_FACTS["reflexion"]

    async def run(self, context: Context) -> EndReason:
        """See `Method`."""
        setting, examples = await setting_of(context), await examples_of(context)
        failures, unusable = 0, ""
        failed = await judge_start(context)
        if failed is not None and failed.passed:
            return EndReason.SOLVED
        if failed is not None:
            failures = 1
            await reflect(context, setting, failed)
        for iteration in range(1, context.iterations + 1):
            if failed is None:
                example = examples.by_instruction(context.task)
                build = partial(first_prompt, example=example, unusable=unusable)
            else:
                build = partial(
                    repair_prompt,
                    failed=failed,
                    failures=failures,
                    trap=None,
                    before=failed.before,
                    example=examples.by_code(failed.source),
                    unusable=unusable,
                )
            origin = Origin.FRESH if failed is None else Origin.REPAIR
            made = await try_candidate(context, Role.GENERATOR, setting, build, origin=origin, base=failed)
            failures += 1
            if isinstance(made, Unusable):
                unusable = made.message
                continue
            if made.passed:
                return EndReason.SOLVED
            failed, unusable = made, ""
            if iteration < context.iterations:
                await reflect(context, setting, failed)
        return EndReason.ITERATIONS
