"""Shared steps of the methods that ask a model: prompt setting, examples, and a candidate from the replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from engine.corpus.retrieval import Corpus
from engine.errors import ContextTooLong
from engine.models import Reply
from engine.prompting.baseline_facts import BaselineFacts
from engine.prompting.profiles import CHAT, read_answer
from engine.prompting.prompting import Setting, corrective_prompt
from engine.reply.candidate import Candidate, Unusable
from sessions.events import Message, Role

from .context import Context

Messages = tuple[Message, ...]
REPLIES = 2
"""Replies that one iteration may ask for until one contains code."""


async def setting_of(context: Context) -> Setting:
    """Returns the common setting of all prompts of an instance."""
    profile = context.options.profile
    return Setting(
        context.task,
        context.targets,
        context.device if context.product is None else context.product.name,
        product=context.product,
        knowledge="knowledge" not in context.options.without,
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


async def propose(
    context: Context, role: Role, setting: Setting, build: Callable[[Setting], Messages]
) -> Candidate | Unusable:
    """Returns the candidate that a model proposes, or why its last reply had none. `build` makes the prompt.

    If the prompt does not fit the model's context, a shorter prompt is tried once (`Setting.short`): no example, and
    only the best and the latest of the history. If that does not fit either, raises `ContextTooLong`.
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
    proposal = read_proposal(context, reply)
    for _ in range(REPLIES - 1):
        if isinstance(proposal, Candidate):
            break
        reply = await context.ask(role, corrective_prompt(messages, reply.text, proposal))
        proposal = read_proposal(context, reply)
    return proposal


def read_proposal(context: Context, reply: Reply) -> Candidate | Unusable:
    """Read a reply in the format of the session's prompt profile."""
    return read_answer(context.options.profile, reply.text, context.task, stop_reason=reply.stop_reason)
