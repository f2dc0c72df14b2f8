"""The method `kernelagent`, after Meta's KernelAgent (2025): parallel workers generate, verify and refine.

Each worker sees only the history of its own attempts and starts from another idea. The first correct candidate stops
the other workers. The iterations of an instance are divided among its workers. The method searches for a correct
kernel and does not optimize.
"""

from __future__ import annotations

from functools import partial

from engine.corpus.retrieval import Corpus
from engine.prompting.judged import JudgedCandidate
from engine.prompting.prompting import Place, Setting, first_prompt, refine_prompt
from engine.reply.candidate import Unusable
from sessions.events import METHOD_FACTS, EndReason, Origin, Role

from .context import Context
from .proposing import examples_of, judge_start, setting_of, try_candidate
from .side_by_side import side_by_side

REMEMBERED = 5
"""Number of its own earlier attempts that a worker's prompt shows."""


class KernelAgent:
    """The method `kernelagent`."""

    name = "kernelagent"
    asks_model = True
    takes = frozenset({"without", "show_reference", "workers", "corpus", "start"})
    modules = frozenset({"knowledge", "one-shot", "examples"})
    roles, iterations = METHOD_FACTS["kernelagent"]

    async def run(self, context: Context) -> EndReason:
        """See `Method`."""
        workers = min(context.options.workers, context.phases[0])
        setting, examples = await setting_of(context), await examples_of(context)
        start = await judge_start(context)
        if start is not None and start.passed:
            return EndReason.SOLVED

        async def work(place: int, lane: Context) -> bool:
            share = len(range(place, context.iterations, workers))
            return await run_worker(lane, setting, examples, share, Place(place + 1, workers), start)

        solved = await side_by_side(context.lanes(workers), work, why="another worker's candidate is correct")
        return EndReason.SOLVED if solved else EndReason.ITERATIONS


async def run_worker(
    context: Context,
    setting: Setting,
    examples: Corpus,
    attempts: int,
    place: Place,
    start: JudgedCandidate | None,
) -> bool:
    """Make one worker's attempts until one is correct; returns True if one is."""
    tried = [start] if start is not None else []
    unusable = ""
    for _ in range(attempts):
        if tried:
            example = examples.by_code(tried[-1].source)
            build = partial(refine_prompt, attempts=tried[-REMEMBERED:], example=example, unusable=unusable)
        else:
            example = examples.by_instruction(context.task)
            build = partial(first_prompt, example=example, unusable=unusable, place=place)
        origin, base = (Origin.REPAIR, tried[-1]) if tried else (Origin.FRESH, None)
        made = await try_candidate(context, Role.GENERATOR, setting, build, origin=origin, base=base)
        if isinstance(made, Unusable):
            unusable = made.message
            continue
        if made.passed:
            return True
        unusable = ""
        tried.append(made)
    return False
