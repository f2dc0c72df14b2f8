"""What every method that asks a model does: the setting of its prompts, its examples, and a candidate out of replies."""

from __future__ import annotations

from engine.candidate import Candidate, Unusable
from engine.profiles import read_answer
from engine.prompting import Setting, corrective_prompt
from engine.retrieval import Corpus
from sessions.events import Message, Role

from .context import Context

REPLIES = 2
"""That may be asked for in one iteration until one holds code."""


def setting_of(context: Context) -> Setting:
    """What all prompts of an instance have in common; without the module `knowledge` no page of it."""
    knows = "knowledge" not in context.options.without
    return Setting(
        context.task, context.targets, context.device, knowledge=knows, profile=context.options.profile
    )


def examples_of(context: Context) -> Corpus:
    """Where 1-shot examples come from; without the module `one-shot` from nowhere."""
    return Corpus(()) if "one-shot" in context.options.without else context.corpus


async def propose(context: Context, role: Role, messages: tuple[Message, ...]) -> Candidate | Unusable:
    """The candidate that a model proposes, or why its last reply held none."""
    asked, found = messages, None
    for _ in range(REPLIES):
        reply = await context.ask(role, asked)
        profile = context.options.profile
        found = read_answer(profile, reply.text, context.task, stop_reason=reply.stop_reason)
        if isinstance(found, Candidate):
            return found
        asked = corrective_prompt(messages, reply.text, found)
    assert isinstance(found, Unusable)
    return found
