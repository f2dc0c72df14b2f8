"""Shared steps of the methods: the setting of prompts, examples, the start kernel, and a candidate from reply to reflection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.corpus.retrieval import Corpus
from engine.errors import ContextTooLong
from engine.prompting.baseline_facts import BaselineFacts
from engine.prompting.judged import JudgedCandidate
from engine.prompting.profiles import CHAT, read_answer
from engine.prompting.prompting import Setting, corrective_prompt, reflect_prompt
from engine.reply.candidate import Candidate, Unusable
from harness.wire.device import own_name
from sessions.events import EndReason, Message, Origin, Role

from .context import Context

Messages = tuple[Message, ...]


async def setting_of(context: Context) -> Setting:
    """Returns the common setting of all prompts of an instance."""
    profile = context.options.prompt_style
    return Setting(
        context.task,
        context.targets,
        own_name(context.device) if context.product is None else context.product.name,
        product=context.product,
        language=context.language,
        knowledge="knowledge" not in context.options.without,
        examples="examples" not in context.options.without,
        profile=profile,
        baseline=await context.baseline() if profile == CHAT else BaselineFacts(),
    )


def with_pin(setting: Setting, attempt: str) -> Setting:
    """Returns the setting of a prompt whose base a person chose; the prompt shows no code that ranks above it."""
    line = f"a person chose {attempt} as the kernel to improve; code that ranks above it is not shown"
    return replace(setting, words=(*setting.words, line))


async def examples_of(context: Context) -> Corpus:
    """Returns the corpus of the 1-shot examples; empty without the module `one-shot`.

    Its indices are built, in another thread: a search in the event loop must not wait for them.
    """
    if "one-shot" in context.options.without:
        return Corpus(())
    await asyncio.to_thread(context.corpus.prepare)
    return context.corpus


async def run_edit(context: Context) -> EndReason:
    """Judge a person's edit and make no other attempt."""
    await judge_start(context)
    return EndReason.EDITED


async def judge_start(context: Context) -> JudgedCandidate | None:
    """Make an attempt of the kernel that the instance starts from; `None` if it starts from none.

    It is no iteration. It is not reviewed, because a person gave the kernel.
    """
    start = context.start()
    if start is None:
        return None
    await context.attempt(start.origin, start.base)
    return JudgedCandidate(await context.judge(start.source, start.strategy))


async def try_candidate(
    context: Context,
    role: Role,
    setting: Setting,
    build: Callable[[Setting], Messages],
    *,
    origin: Origin,
    base: JudgedCandidate | None,
    best: JudgedCandidate | None = None,
) -> JudgedCandidate | Unusable:
    """Make an attempt that is derived from `base`; returns its candidate, or why the last reply had none.

    `build` makes the prompt. A person reviews the candidate if it is better than `best`.
    """
    await context.attempt(origin, base.attempt if base is not None else None)
    proposal = await propose(context, role, setting, build)
    if isinstance(proposal, Unusable):
        await context.judge("", "", unusable=proposal.reason)
        return proposal
    return await judge_candidate(context, proposal, base=base, best=best)


async def judge_candidate(
    context: Context,
    candidate: Candidate,
    *,
    base: JudgedCandidate | None = None,
    best: JudgedCandidate | None = None,
) -> JudgedCandidate:
    """Judge the candidate of the current attempt; a person reviews it if it is correct and better than `best`."""
    judged = JudgedCandidate(await context.judge(candidate.source, candidate.strategy), base)
    if judged.passed:
        review = await context.review(best.evaluation if best is not None else None)
        judged.rejection = None if review.accepted else review.why
    return judged


async def reflect(
    context: Context,
    setting: Setting,
    failed: JudgedCandidate,
    *,
    earlier: Sequence[JudgedCandidate] = (),
    best: JudgedCandidate | None = None,
) -> None:
    """Ask why a candidate failed, unless the module `reflection` is off; for the rest see `reflect_prompt`."""
    if "reflection" not in context.options.without:
        messages = reflect_prompt(setting, failed=failed, earlier=earlier, best=best)
        reply = await context.ask(Role.REFLECTOR, messages)
        # The next prompts have all of a reflection.
        failed.reflection = "" if reply.is_cut else reply.text


async def propose(
    context: Context, role: Role, setting: Setting, build: Callable[[Setting], Messages]
) -> Candidate | Unusable:
    """Returns the candidate that a model proposes, or why its last reply had none. `build` makes the prompt.

    If the prompt does not fit the model's context, a shorter prompt is tried once (`Setting.short`): no example, and
    only the best and the latest of the history. If that does not fit either, raises `ContextTooLong`. A reply without code
    is followed by one corrective request, unless its size limit cut it.
    """
    setting = replace(setting, words=context.words)
    messages = build(setting)
    try:
        reply = await context.ask(role, messages)
    except ContextTooLong:
        shorter = build(replace(setting, short=True))
        if shorter == messages:
            raise
        messages = shorter
        reply = await context.ask(role, messages)
    proposal = read_answer(setting.profile, reply.text, context.task, stop_reason=reply.stop_reason)
    if isinstance(proposal, Candidate) or reply.is_cut:
        return proposal
    reply = await context.ask(role, corrective_prompt(messages, reply.text, proposal))
    return read_answer(setting.profile, reply.text, context.task, stop_reason=reply.stop_reason)
