"""Several lanes of one instance at work at once, and what becomes of the others when one has what all were after."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from .context import Context


async def side_by_side(
    lanes: Sequence[Context], work: Callable[[int, Context], Awaitable[bool]], *, why: str = ""
) -> None:
    """Do `work(place, lane)` in all lanes. When one comes back with true the others are cancelled and abandoned, for `why`.

    The first error ends them all and is raised alone; what was under way elsewhere is then left for a resume.
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
            for task in running:
                if task in ended and task.exception() is not None:
                    task.result()
            if any(task.result() for task in ended):
                await _cancel(left)
                for task, lane in running.items():
                    if task in left:
                        await lane.abandon(why)
                return
    finally:
        await _cancel({task for task in running if not task.done()})


async def _cancel(tasks: set[asyncio.Task[bool]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
