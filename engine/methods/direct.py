"""The method `direct`: one prompt, one answer; 1-shot, or 0-shot without the module `one-shot`.

A reply without code gets one corrective request. The method shows the performance of the model alone: the baseline
for every method with a loop. More instances give more samples.
"""

from __future__ import annotations

from functools import partial

from engine.corpus.retrieval import Corpus
from engine.prompting.judged import JudgedCandidate
from engine.prompting.prompting import Setting, first_prompt, optimize_prompt, repair_prompt
from sessions.events import METHOD_FACTS, EndReason, Message, Origin, Role

from .context import Context
from .proposing import examples_of, judge_start, setting_of, try_candidate


class Direct:
    """The method `direct`."""

    name = "direct"
    asks_model = True
    takes = frozenset({"without", "show_reference", "prompt_style", "corpus", "start"})
    modules = frozenset({"knowledge", "one-shot", "examples"})
    roles, iterations = METHOD_FACTS["direct"]

    async def run(self, context: Context) -> EndReason:
        """See `Method`."""
        start = await judge_start(context)
        setting = await setting_of(context)
        build = partial(prompt_from, start=start, examples=await examples_of(context))
        if start is None:
            origin, best = Origin.FRESH, None
        else:
            origin, best = (Origin.OPTIMIZE, start) if start.passed else (Origin.REPAIR, None)
        await try_candidate(context, Role.GENERATOR, setting, build, origin=origin, base=start, best=best)
        return EndReason.ANSWERED


def prompt_from(setting: Setting, *, start: JudgedCandidate | None, examples: Corpus) -> tuple[Message, ...]:
    """Returns the only prompt: for a first kernel, or to improve or repair the kernel that a person gave."""
    if start is None:
        return first_prompt(setting, example=examples.by_instruction(setting.task))
    if start.passed:
        return optimize_prompt(setting, history=[start])
    example = examples.by_code(start.source)
    return repair_prompt(setting, failed=start, failures=1, trap=None, example=example)
