"""The judge of a run with its books: which attempt is on which device, and how long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from engine.judge.judging import Judge, OnStage
from engine.plan.budget import Budget, DeviceUse
from harness import StageEvent
from sessions.store.recorder import Recorder


@dataclass(slots=True, kw_only=True)
class Bench:
    """The judge of a run with its books."""

    recorder: Recorder
    judge: Judge
    budget: Budget
    busy: dict[str, list[str]] = field(default_factory=dict)
    """The attempts that are being judged, by device."""
    timing_baselines: dict[str, asyncio.Lock] = field(default_factory=dict)
    """A lock for each task, which is held while its baseline is timed."""
    unrecorded_s: dict[str, float] = field(default_factory=dict)
    """Seconds in which a judging without a result held a device, by attempt, until an event has them."""

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncIterator[tuple[DeviceUse, OnStage]]:
        """Device time for a candidate; the judge has to report its stages to the yielded function."""
        try:
            async with self.budget.device_time() as use:
                yield use, partial(self.enter, name, use)
        finally:
            self.leave(name)

    def enter(self, name: str, use: DeviceUse, report: StageEvent) -> None:
        """List a candidate under its device and count the time, from the first stage that needs a device."""
        if report.result is None and report.stage != "static":
            use.begin()
            at_work = self.busy.setdefault(report.device, [])
            if name not in at_work:
                at_work.append(name)

    def leave(self, name: str) -> None:
        """List a candidate under no device."""
        for at_work in self.busy.values():
            if name in at_work:
                at_work.remove(name)
