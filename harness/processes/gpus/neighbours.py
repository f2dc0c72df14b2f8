"""Who judges on one GPU, or in one pool: many candidates side by side, or one alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Neighbours:
    """Lets evaluations in, side by side or alone. One that waits to be alone keeps later ones out."""

    def __init__(self) -> None:
        self.count = 0
        """Evaluations that run now."""
        self._waiting_to_be_alone = 0
        self._is_alone = False
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def beside(self) -> AsyncIterator[None]:
        """Wait until none is alone nor waits to be."""
        while self._is_alone or self._waiting_to_be_alone:
            await self._change()
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1
            self._changed.set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Wait until no evaluation runs, and keep others out until the block ends."""
        self._waiting_to_be_alone += 1
        try:
            while self.count:
                await self._change()
            self.count += 1
            self._is_alone = True
        finally:
            self._waiting_to_be_alone -= 1
            self._changed.set()
        try:
            yield
        finally:
            self.count -= 1
            self._is_alone = False
            self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
