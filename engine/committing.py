"""When the attempts of an instance are committed: in the order of their numbers, whichever was judged first.

A branch is one line of commits, so one that came after a later attempt's would leave that one out of it.
"""

from __future__ import annotations

import asyncio

from sessions.recorder import Recorder
from sessions.state import AttemptState


class Commits:
    """The commits of one instance."""

    def __init__(self, recorder: Recorder, key: str) -> None:
        self._recorder = recorder
        self._key = key
        self._open: set[int] = set()
        self._lacking: set[int] = set()
        self._lock = asyncio.Lock()
        self._moved = asyncio.Condition()

    def begin(self, number: int) -> None:
        """An attempt is under way: more may be asked for it."""
        self._open.add(number)
        self._lacking.discard(number)

    def changed(self, number: int) -> None:
        """An attempt has something that its commit may lack."""
        self._lacking.add(number)

    async def judged(self) -> None:
        """An attempt has its verdict, and who waits for it may look again."""
        async with self._moved:
            self._moved.notify_all()

    async def end(self, number: int) -> None:
        """Nothing more is asked for an attempt; commits what can be now."""
        self._open.discard(number)
        async with self._lock:
            for attempt in self._attempts():
                if attempt.number in self._open:
                    break
                await self._commit(attempt)

    async def end_all(self) -> None:
        """The instance is over."""
        self._open.clear()
        await self.end(0)

    async def up_to(self, number: int) -> None:
        """Commit this attempt though more may be asked for it, as a person has to see it; first all before it, once judged."""
        async with self._moved:
            await self._moved.wait_for(lambda: not any(self._unjudged(one) for one in self._before(number)))
        async with self._lock:
            for attempt in (*self._before(number), *self._attempts(number)):
                await self._commit(attempt)

    def _before(self, number: int) -> list[AttemptState]:
        return [attempt for attempt in self._attempts() if attempt.number < number]

    def _attempts(self, number: int | None = None) -> list[AttemptState]:
        instance = self._recorder.state.instances.get(self._key)
        known = sorted(instance.attempts, key=lambda one: one.number) if instance is not None else []
        return [attempt for attempt in known if number is None or attempt.number == number]

    def _unjudged(self, attempt: AttemptState) -> bool:
        return attempt.number in self._open and attempt.evaluation is None

    async def _commit(self, attempt: AttemptState) -> None:
        if attempt.evaluation is None or attempt.source is None:
            return  # abandoned before it had a candidate: the journal alone tells of it
        if attempt.number in self._lacking or attempt.commit is None:
            await self._recorder.commit_attempt(attempt.attempt)
            self._lacking.discard(attempt.number)
