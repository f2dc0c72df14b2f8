"""The method `geak` (AMD, 2025): generate, judge, reflect, optimize.

One iteration is one evaluated candidate. The paper has an analysis agent for the optimizer; here the analysis is part
of the call that returns strategy and code. A reply without code gets one corrective request. If that fails too, the
iteration ends as `no_code` and counts as a failure; the reflector is not asked, because there is neither code nor
trace.

A candidate that this device cannot judge (`unsupported`) counts as a failure of the line, and the prompt names the
reason; no metric counts it. If nothing can be timed, the history ranks by estimates (`sessions.state.ranking.rank`), and
the prompt says so.

Each module can be switched off (`--without`), as in the paper's ablation. Without a module:

- knowledge: the system message has no knowledge page.
- one-shot: no prompt shows an example.
- reflection: no call asks why a candidate failed; a repair sees only code and error.
- optimizer: the first correct candidate ends the instance.

With `--tune` a sweep over its launch parameters follows each correct attempt (`engine.methods.tune`). A variant that
looks better becomes one more attempt and enters the history. Such an attempt asked no model, so it is no iteration,
costs no tokens, does not count as a gain of the model, and is not repaired if it fails.
"""

from __future__ import annotations

from functools import partial

from engine.corpus.retrieval import Corpus
from engine.prompting.prompting import (
    Setting,
    escape_prompt,
    first_prompt,
    optimize_prompt,
    reflect_prompt,
    repair_prompt,
)
from engine.reply.candidate import Unusable
from harness import Verdict
from sessions.events import EndReason, Message, Role

from .context import MODULES, Context
from .history import Ancestor, up_to
from .progress import TRAP, Failure, Move, Progress, Step, failures_before
from .proposing import examples_of, propose, setting_of, with_pin
from .starting import judge_start
from .tune import better_variant


class Geak:
    """The method `geak`."""

    name = "geak"
    asks_model = True
    takes = frozenset({"without", "tune", "corpus", "start"})
    roles = frozenset(Role)
    modules = frozenset(MODULES)
    iterations: int | None = None

    async def run(self, context: Context) -> EndReason:
        """See `Method`."""
        without = context.options.without
        setting, corpus = await setting_of(context), await examples_of(context)
        progress = Progress()
        start = await judge_start(context)
        if isinstance(start, Ancestor):
            progress.passed(start)
            if "optimizer" in without:
                return EndReason.SOLVED
        elif start is not None:
            progress.failed(start)
            await reflect(context, setting, start, None)
        for iteration in range(1, context.iterations + 1):
            progress.obey(await context.orders())
            step = progress.next_step()
            attempt = await context.attempt(step.origin, step.base.attempt if step.base else None)
            build = partial(next_prompt, corpus=corpus, progress=progress, step=step)
            proposal = await propose(context, step.role, setting, build)
            if isinstance(proposal, Unusable):
                await context.judge("", "", unusable=proposal.reason)
                progress.brought_no_code(proposal.message)
                continue
            evaluation = await context.judge(proposal.source, proposal.strategy)
            rejection = None
            if evaluation.verdict is Verdict.CORRECT:
                best = progress.history.best
                review = await context.review(best.evaluation if best else None)
                if review.accepted:
                    newcomer = Ancestor(attempt, proposal.source, proposal.strategy, evaluation)
                    progress.passed(newcomer)
                    if context.options.tune:
                        progress.tuned(await better_variant(context, newcomer, best or newcomer))
                    if "optimizer" in without:
                        return EndReason.SOLVED
                    continue
                rejection = review.why
            failure = Failure(attempt, proposal.source, proposal.strategy, evaluation, step.base, rejection)
            progress.failed(failure)
            if iteration < context.iterations:
                await reflect(context, setting, failure, progress.history.best)
        return EndReason.ITERATIONS


async def reflect(context: Context, setting: Setting, failure: Failure, best: Ancestor | None) -> None:
    """Ask why a candidate failed, unless the module `reflection` is off."""
    if "reflection" not in context.options.without:
        messages = reflect_prompt(setting, failed=failure, earlier=failures_before(failure), best=best)
        failure.reflection = (await context.ask(Role.REFLECTOR, messages)).text


def next_prompt(setting: Setting, *, corpus: Corpus, progress: Progress, step: Step) -> tuple[Message, ...]:
    """Returns the prompt of a step."""
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
                earlier=failures_before(progress.line),
                before=progress.line.before,
                best=best,
                example=corpus.by_code(progress.line.source),
                unusable=unusable,
            )
        case Move.OPTIMIZE if progress.pinned is not None:
            return optimize_prompt(
                with_pin(setting, progress.pinned.attempt),
                history=up_to(progress.pinned, progress.history),
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
                trap=TRAP,
                history=list(progress.history),
                example=None if best else corpus.by_instruction(setting.task),
                unusable=unusable,
            )
