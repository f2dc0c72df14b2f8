"""The method `geak` (AMD, 2025): generate, judge, reflect, optimize.

One iteration is one evaluated candidate. The paper has an analysis agent for the optimizer; here the analysis is part
of the call that returns strategy and code. A reply without code gets one corrective request. If that fails too, the
iteration ends as `no_code` and counts as a failure; the reflector is not asked, because there is neither code nor
trace.

A candidate that this device cannot judge (`unsupported`) counts as a failure of the line, and the prompt names the
reason; no metric counts it. Without timings, the history ranks by traffic and resources (`sessions.state.ranking.rank`), and
the prompt says so.

Each module can be switched off (`--without`), as in the paper's ablation. Without a module:

- knowledge: the system message has no knowledge page.
- one-shot: no prompt shows an example.
- examples: no prompt shows values of a call, where the instruction leaves open what is computed.
- reflection: no call asks why a candidate failed; a repair sees only code and error.
- optimizer: the first correct candidate ends the instance.

With `--tune` a sweep over its launch parameters follows each correct attempt (`engine.methods.tune`). A variant that
looks better becomes one more attempt and enters the history. Such an attempt asked no model, so it is no iteration,
costs no tokens, does not count as a gain of the model, and is not repaired if it fails.
"""

from __future__ import annotations

from functools import partial

from engine.corpus.retrieval import Corpus
from engine.prompting.prompting import Setting, escape_prompt, first_prompt, optimize_prompt, repair_prompt
from engine.reply.candidate import Unusable
from sessions.events import METHOD_FACTS, EndReason, Message
from sessions.settings import MODULES

from .context import Context
from .history import up_to
from .progress import TRAP, Move, NextRequest, Progress
from .proposing import examples_of, judge_start, reflect, setting_of, try_candidate, with_pin
from .tune import better_variant


class Geak:
    """The method `geak`."""

    name = "geak"
    asks_model = True
    takes = frozenset({"without", "show_reference", "tune", "corpus", "start"})
    modules = frozenset(MODULES)
    roles, iterations = METHOD_FACTS["geak"]

    async def run(self, context: Context) -> EndReason:
        """See `Method`."""
        without = context.options.without
        setting, corpus = await setting_of(context), await examples_of(context)
        progress = Progress()
        start = await judge_start(context)
        if start is not None and start.passed:
            progress.passed(start)
            if "optimizer" in without:
                return EndReason.SOLVED
        elif start is not None:
            progress.failed(start)
            await reflect(context, setting, start)
        for iteration in range(1, context.iterations + 1):
            progress.obey(await context.orders())
            step, best = progress.next_step(), progress.history.best
            build = partial(next_prompt, corpus=corpus, progress=progress, step=step)
            made = await try_candidate(
                context, step.role, setting, build, origin=step.origin, base=step.base, best=best
            )
            if isinstance(made, Unusable):
                progress.brought_no_code(made.message)
            elif made.passed:
                progress.passed(made)
                if context.options.tune:
                    progress.tuned(await better_variant(context, made, best or made))
                if "optimizer" in without:
                    return EndReason.SOLVED
            else:
                progress.failed(made)
                if iteration < context.iterations:
                    await reflect(context, setting, made, earlier=made.failures_before, best=best)
        return EndReason.ITERATIONS


def next_prompt(
    setting: Setting, *, corpus: Corpus, progress: Progress, step: NextRequest
) -> tuple[Message, ...]:
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
                earlier=progress.line.failures_before,
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
