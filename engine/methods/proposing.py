"""What every method that asks a model does: the setting of its prompts, its examples, and a candidate out of replies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from engine.candidate import Candidate, Unusable
from engine.errors import ContextTooLong
from engine.models import Reply
from engine.profiles import read_answer
from engine.prompting import Setting, corrective_prompt
from engine.retrieval import Corpus
from sessions.events import Message, Role

from .context import Context

Messages = tuple[Message, ...]
REPLIES = 2
"""That may be asked for in one iteration until one holds code."""


def setting_of(context: Context) -> Setting:
    """What all prompts of an instance have in common; without the module `knowledge` no page of it."""
    knows = "knowledge" not in context.options.without
    return Setting(
        context.task,
        context.targets,
        context.device if context.product is None else context.product.name,
        product=context.product,
        knowledge=knows,
        profile=context.options.profile,
    )


def examples_of(context: Context) -> Corpus:
    """Where 1-shot examples come from; without the module `one-shot` from nowhere."""
    return Corpus(()) if "one-shot" in context.options.without else context.corpus


async def propose(
    context: Context, role: Role, setting: Setting, build: Callable[[Setting], Messages]
) -> Candidate | Unusable:
    """The candidate that a model proposes, or why its last reply held none. `build` makes the prompt in a setting.

    Where the prompt does not fit the model's context a shorter one is tried, once: without example, and of a history the
    best and the latest alone (`Setting.short`). When that does not fit either, `ContextTooLong`.
    """
    messages = build(setting)
    try:
        reply = await context.ask(role, messages)
    except ContextTooLong:
        shorter = build(replace(setting, short=True))
        if shorter == messages:
            raise
        messages = shorter
        reply = await context.ask(role, messages)
    found = answer_in(context, reply)
    for _ in range(REPLIES - 1):
        if isinstance(found, Candidate):
            break
        reply = await context.ask(role, corrective_prompt(messages, reply.text, found))
        found = answer_in(context, reply)
    return found


def answer_in(context: Context, reply: Reply) -> Candidate | Unusable:
    """What a reply holds, read as the session's prompt profile says."""
    return read_answer(context.options.profile, reply.text, context.task, stop_reason=reply.stop_reason)
