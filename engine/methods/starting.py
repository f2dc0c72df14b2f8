"""The first attempt of an instance that starts from a given kernel: the kernel is judged, and no model is asked."""

from __future__ import annotations

from engine.prompting.judged import JudgedCandidate
from sessions.events import EndReason

from .context import Context


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
    attempt = await context.attempt(start.origin, start.base)
    evaluation = await context.judge(start.source, start.strategy)
    return JudgedCandidate(attempt, start.source, start.strategy, evaluation)
