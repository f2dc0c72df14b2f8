"""Players: processes of a GPU that play launch tapes for all timings of this pool, one timing after the other.

No foreign code runs in a player, so it outlives a candidate: a GPU context costs the whole node 0.2 s. A baseline's calls are
recorded once, and played in every timing against the same baseline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.failures import first_failure
from harness.wire import limits
from harness.wire.device import Device
from harness.wire.errors import WorkerDied
from harness.wire.messages.clock import BASELINE, Measure
from harness.wire.messages.timer import TapedCall

from .servers import Child
from .spares import TIMER, Spares, Worker

MOST_TAPES = 200
"""A player is replaced after it played as many tapes."""
MOST_BASELINES = 64
"""Baselines kept; the least recently used goes first."""


@dataclass(slots=True)
class Player:
    """A player, and what it did."""

    worker: Worker
    served: bool = False
    """A clock has talked to it."""
    tapes: int = 0

    def end(self) -> None:
        """End the process."""
        self.worker.end.close()
        self.worker.child.end()


class Players:
    """The players of one pool, by GPU."""

    def __init__(self, spares: Spares) -> None:
        self._spares = spares
        self._kept: dict[str, list[Player]] = {}
        self._lent: dict[str, list[Player]] = {}
        """Players that a timing uses now."""

    def count(self, device: Device) -> int:
        """Number of players of a GPU."""
        return len(self._kept.get(device.name, ())) + len(self._lent.get(device.name, ()))

    async def prepare(self, device: Device, count: int) -> None:
        """Keep `count` more players, ready for their first timing. The caller holds the GPU's shared lease."""
        try:
            await self._spares.fill(device, [TIMER] * count)
        except TimeoutError:
            raise WorkerDied(f"players were not ready after {limits.GUEST_START_S:.0f} s") from None
        started = [Player(await self._spares.take(TIMER, device)) for _ in range(count)]
        self._kept.setdefault(device.name, []).extend(started)

    async def take(self, device: Device, count: int) -> Sequence[Player]:
        """Lend `count` players to a timing, which has the GPU's exclusive lease. Missing players are started."""
        lent = self._lent[device.name] = []
        kept = self._kept.get(device.name, [])
        while kept and len(lent) < count:
            player = kept.pop()
            if player.worker.child.ended.done():
                player.end()
            else:
                lent.append(player)

        async def start() -> None:
            lent.append(Player(await self._spares.take(TIMER, device)))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(count - len(lent)):
                    group.create_task(start(), name=f"player/{device.name}")
        except ExceptionGroup as failures:
            self.give_back(device)
            raise first_failure(failures) from None
        except BaseException:
            self.give_back(device)
            raise
        return lent

    def give_back(self, device: Device, *, tapes: int = 0, reusable: bool = False) -> None:
        """End a timing's use of its players, which played so many tapes. Worn players end, and all if not `reusable`."""
        for player in self._lent.pop(device.name, ()):
            player.served = True
            player.tapes += tapes
            if reusable and player.tapes < MOST_TAPES:
                self._kept.setdefault(device.name, []).append(player)
            else:
                player.end()

    def drop(self, device: Device | None = None) -> list[Child]:
        """End the players of one GPU, or of all, that no timing uses now, and return them."""
        names = [device.name] if device is not None else list(self._kept)
        dropped = [player for name in names for player in self._kept.pop(name, ())]
        for player in dropped:
            player.end()
        return [player.worker.child for player in dropped]


class BaselineCalls:
    """The calls that the timings of one pool recorded."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], dict[str, TapedCall]] = {}

    def find(self, measure: Measure) -> dict[str, TapedCall]:
        """Return the calls for such a timing by case; empty if none are kept."""
        key = _key(measure)
        calls = self._kept.pop(key, {})
        if calls:
            self._kept[key] = calls  # the newest is last
        return calls

    def has(self, source: str, target: str, seed: int) -> bool:
        """Whether a timing with this seed recorded calls of this baseline."""
        return any(key[1:4] == (source, target, seed) for key in self._kept)

    def keep(self, measure: Measure, calls: Mapping[str, TapedCall]) -> None:
        """Keep the calls that a timing recorded."""
        self._kept[_key(measure)] = dict(calls)
        while len(self._kept) > MOST_BASELINES:
            del self._kept[next(iter(self._kept))]


def _key(measure: Measure) -> tuple[Any, ...]:
    cases = tuple(
        (case.name, case.dtype, tuple(sorted(case.gpu.items()))) for case in measure.task.open_cases
    )
    return measure.task.folder, measure.sources[BASELINE], measure.target, measure.seed, cases
