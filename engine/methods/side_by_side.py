"""Runs several lanes of one instance at the same time, and cancels the rest when one lane succeeds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from engine.errors import EngineError

from .context import Context


async def side_by_side(
    lanes: Sequence[Context], work: Callable[[int, Context], Awaitable[bool]], *, why: str = ""
) -> bool:
    """Run `work(place, lane)` in all lanes; returns True if one lane returned True.

    When a lane returns True, the others are cancelled and abandoned with the reason `why`.

    A lane that ends with an `EngineError` (model, budget, judge) does not stop the others: their calls are paid for,
    and one of them may still succeed. If none succeeds, the error of the first such lane is raised when all have
    ended. Any other error stops all lanes at once.
    """

    async def run_lane(place: int, lane: Context) -> bool:
        done = await work(place, lane)
        await lane.settle()
        return done

    running = {
        asyncio.create_task(run_lane(place, lane), name=f"lane/{place}"): lane
        for place, lane in enumerate(lanes)
    }
    try:
        pending = set(running)
        while pending:
            ended, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            outcomes = [_succeeded(task) for task in ended]
            if any(outcomes):
                await _cancel(pending)
                for task, lane in running.items():
                    if task.cancelled() or task.exception() is not None:
                        await lane.abandon(why)
                return True
        for task in running:
            task.result()
        return False
    finally:
        await _cancel({task for task in running if not task.done()})


def _succeeded(task: asyncio.Task[bool]) -> bool:
    return not isinstance(task.exception(), EngineError) and task.result()


async def _cancel(tasks: set[asyncio.Task[bool]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
