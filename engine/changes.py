"""Wakes the instances that wait for a command of a person."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Changes:
    """Announces that the state of the session changed in a way that someone may wait for."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def announce(self) -> None:
        """Wake everyone who waits."""
        self._next.set()
        self._next = asyncio.Event()

    async def next(self) -> None:
        """Wait for the next announcement."""
        await self._next.wait()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until an announcement after which the condition holds; returns at once if it holds now."""
        while not condition():
            await self._next.wait()
