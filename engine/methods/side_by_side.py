"""Several lanes of one instance at work at once, and what becomes of the others when one has what all were after."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from engine.errors import EngineError

from .context import Context


async def side_by_side(
    lanes: Sequence[Context], work: Callable[[int, Context], Awaitable[bool]], *, why: str = ""
) -> bool:
    """Do `work(place, lane)` in all lanes; whether one came back with true. When one comes back with true the others are cancelled and abandoned, for `why`.

    A lane that the model, the budget or the judge ended does not hold up the others: what they have under way is paid for,
    and one of them may still have what all were after. Otherwise the error of the first such lane is raised once all have
    ended. Any other error ends them at once.
    """

    async def one(place: int, lane: Context) -> bool:
        done = await work(place, lane)
        await lane.settle()
        return done

    running = {
        asyncio.create_task(one(place, lane), name=f"lane/{place}"): lane for place, lane in enumerate(lanes)
    }
    try:
        left = set(running)
        while left:
            ended, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            found = [_found(task) for task in ended]
            if any(found):
                await _cancel(left)
                for task, lane in running.items():
                    if task.cancelled() or task.exception() is not None:
                        await lane.abandon(why)
                return True
        for task in running:
            task.result()
        return False
    finally:
        await _cancel({task for task in running if not task.done()})


def _found(task: asyncio.Task[bool]) -> bool:
    """Whether a lane that ended has what all were after."""
    return not isinstance(task.exception(), EngineError) and task.result()


async def _cancel(tasks: set[asyncio.Task[bool]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
