"""GEAK (AMD, 2025): generate, judge, reflect, optimize.

One iteration is one evaluated candidate. The optimizer's analysis, which the paper has as an agent of its own, is part of
the one call that returns strategy and code. An answer without code gets one corrective request; when that fails too, the
iteration ends as `no_code`, counts as a failure, and the reflector is not asked: there is neither code nor trace.
A candidate that this device cannot judge (`unsupported`) failed as far as the line goes, and the model is told why; no
metric counts it. Where nothing can be timed the history ranks by what is known (`sessions.metrics.rank`), and the prompt
says so.

Each module can be switched off (`--without`), as in the paper's ablation. Without knowledge the system message holds no page
of it; without one-shot no prompt shows an example; without reflection nobody is asked why a candidate failed, and a repair
goes by code and error alone; without the optimizer a correct candidate ends the instance, since nobody would make it faster.

With `--tune` a sweep over its launch parameters follows each correct attempt (`engine.methods.tune`). A variant that looks
better becomes one more attempt and enters the history; it asked no model, so it is no iteration, costs no tokens, says
nothing about the model's own gains, and where it fails nothing is repaired.
"""

from __future__ import annotations

from functools import partial

from engine.candidate import Unusable
from engine.prompting import (
    Setting,
    escape_prompt,
    first_prompt,
    optimize_prompt,
    reflect_prompt,
    repair_prompt,
)
from engine.retrieval import Corpus
from harness import Verdict
from sessions.events import EndReason, Message, Role

from .context import MODULES, Context
from .history import Ancestor
from .progress import TRAP, Failure, Move, Progress, Step
from .proposing import examples_of, propose, setting_of
from .tune import better_variant


class Geak:
    """The method `geak`."""

    name = "geak"
    asks_model = True
    takes = frozenset({"without", "tune", "corpus"})
    roles = frozenset(Role)
    modules = frozenset(MODULES)
    iterations: int | None = None

    async def run(self, context: Context) -> EndReason:
        """See `Method`."""
        without = context.options.without
        setting, corpus = setting_of(context), examples_of(context)
        progress = Progress()
        for iteration in range(1, context.iterations + 1):
            step = progress.next_step()
            best = progress.history.best
            attempt = await context.attempt(step.origin, step.base.attempt if step.base else None)
            build = partial(next_prompt, corpus=corpus, progress=progress, step=step)
            found = await propose(context, step.role, setting, build)
            if isinstance(found, Unusable):
                await context.judge("", "", rival=None, unusable=found.reason)
                progress.brought_no_code(found.message)
                continue
            evaluation = await context.judge(
                found.source, found.strategy, rival=best.source if best else None
            )
            rejection = None
            if evaluation.verdict is Verdict.CORRECT:
                review = await context.review()
                if review.accepted:
                    newcomer = Ancestor(attempt, found.source, found.strategy, evaluation)
                    progress.passed(newcomer)
                    if context.options.tune:
                        progress.tuned(await better_variant(context, newcomer, best or newcomer))
                    if "optimizer" in without:
                        return EndReason.SOLVED
                    continue
                rejection = review.why
            failure = Failure(attempt, found.source, found.strategy, evaluation, step.base, rejection)
            progress.failed(failure)
            if iteration < context.iterations and "reflection" not in without:
                asked = reflect_prompt(setting, failed=failure, best=progress.history.best)
                failure.reflection = (await context.ask(Role.REFLECTOR, asked)).text
        return EndReason.ITERATIONS


def next_prompt(setting: Setting, *, corpus: Corpus, progress: Progress, step: Step) -> tuple[Message, ...]:
    """The prompt of a step."""
    best, unusable = progress.history.best, progress.unusable
    match step.move:
        case Move.FIRST:
            return first_prompt(setting, example=corpus.by_instruction(setting.task), unusable=unusable)
        case Move.REPAIR:
            assert progress.line is not None
            return repair_prompt(
                setting,
                failed=progress.line,
                failures=progress.failures,
                trap=TRAP,
                before=progress.line.before,
                best=best,
                example=corpus.by_code(progress.line.source),
                unusable=unusable,
            )
        case Move.OPTIMIZE:
            return optimize_prompt(
                setting,
                history=list(progress.history),
                last=progress.last,
                without_gain=progress.without_gain,
                unusable=unusable,
            )
        case Move.ESCAPE:
            return escape_prompt(
                setting,
                given_up=progress.given_up,
                history=list(progress.history),
                example=None if best else corpus.by_instruction(setting.task),
                unusable=unusable,
            )
