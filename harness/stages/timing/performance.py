"""The performance stage on a GPU: timers for the clock, the lease, and what the times say."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Collection, Coroutine, Sequence
from contextlib import AsyncExitStack

import msgspec

from harness.hardware.product import Product
from harness.hardware.recognition import product_of
from harness.node.telemetry import Watched
from harness.processes.pool import DevicePool, Slot
from harness.processes.servers import Child
from harness.processes.spares import TIMER, Worker
from harness.wire import limits
from harness.wire.async_channel import AsyncChannel
from harness.wire.clock_messages import (
    BASELINE,
    CANDIDATE,
    CLOCK_REPORTS,
    RIVAL,
    ClockRequest,
    Leased,
    LeaseWanted,
    Measure,
    Measured,
    NeedTimers,
    Timer,
)
from harness.wire.device import Target
from harness.wire.effort import WHOLE, Effort
from harness.wire.encoding import ENCODER
from harness.wire.errors import HarnessError, WorkerDied
from harness.wire.judge_messages import Alive
from harness.wire.latency import DeviceState, Window
from suites.errors import SuiteError
from suites.task import Task

from .baselines import Against, timing_baseline
from .conclusions import Timing, concluded, tape_facts, undisturbed
from .efficiency import flush_bytes
from .energy import DRAWN_S, with_energy
from .larger_sizes import Larger, doubted, larger
from .rough_estimates import roughly_concluded

MOST_REPORT_BYTES = 64 << 20


class Crowded(Exception):
    """Processes of the candidate are left on the device, where nothing may be timed beside them."""


class Performance:
    """Times one source against the timing baseline, and against a rival where there is one."""

    def __init__(
        self,
        pool: DevicePool,
        slot: Slot,
        task: Task,
        target: Target,
        *,
        seed: int,
        alone: Awaitable[int] | None = None,
    ) -> None:
        """Timers are started at once; nothing is timed before `alone` is done, and has found no process."""
        self._pool = pool
        self._slot = slot
        self._task = task
        self._target = target
        self._seed = seed
        self._alone = alone
        self._children: list[tuple[str, Child]] = []
        """Timers, each with its side."""
        self._telemetry = pool.telemetry(slot.device)
        self._before: DeviceState | None = None
        self._watching = False

    async def measure(
        self,
        channel: AsyncChannel,
        source: str,
        *,
        rival: str | None,
        against: Against,
        compiled: Collection[str] = (),
        effort: Effort = WHOLE,
    ) -> Timing:
        """What timing says; `WorkerDied` when the judge was lost, `Crowded` where the device is not its own. Timers end by themselves after it.

        `compiled` are digests of the code that the compile stage made of the source.
        """
        try:
            baseline = against.baseline
            if baseline is None:
                baseline = await asyncio.to_thread(timing_baseline, self._task)
        except HarnessError as error:
            return Timing((), f"not timed: {error}")
        recognised = product_of(self._slot.device)
        sources = {BASELINE: baseline.source, CANDIDATE: source}
        if rival is not None and rival != source:
            sources[RIVAL] = rival
        measure = Measure(
            task=self._task,
            sources=sources,
            seed=self._seed,
            target=self._target.name,
            limits=self._pool.limits(self._slot.device),
            cold=against.cold,
            against=baseline.name,
            flush_bytes=flush_bytes(recognised.product),
            budget_s=effort.budget_s,
            effort=effort,
            energy_s=DRAWN_S if effort.energy and await self._counts_energy() else 0.0,
        )
        timing = await self._timed(channel, measure, recognised.product, compiled)
        suspects = {one.case for one in timing.latency if one.efficiency and one.efficiency.suspect}
        return (
            await self._again(channel, measure, recognised.product, timing, suspects) if suspects else timing
        )

    async def _again(
        self,
        channel: AsyncChannel,
        measure: Measure,
        product: Product | None,
        first: Timing,
        suspects: Collection[str],
    ) -> Timing:
        """The first timing, once its suspects were timed at several times their size."""
        asked: list[Larger] = []
        why_not: dict[str, str] = {}
        for case in (one for one in self._task.open_cases if one.name in suspects):
            try:
                found = await asyncio.to_thread(larger, self._task, case)
            except SuiteError as error:
                found = str(error)
            if isinstance(found, Larger):
                asked.append(found)
            else:
                why_not[case.name] = found
        if not asked:
            return doubted(first, Timing((), ""), (), why_not)
        measure = msgspec.structs.replace(measure, energy_s=0.0)
        task = msgspec.structs.replace(self._task, cases=tuple(one.case for one in asked))
        sources = {side: measure.sources[side] for side in (BASELINE, CANDIDATE)}
        async with self._pool.using(self._slot):
            again = await self._timed(
                channel, msgspec.structs.replace(measure, task=task, sources=sources), product, ()
            )
        return doubted(first, again, tuple(asked), why_not)

    async def _timed(
        self, channel: AsyncChannel, measure: Measure, product: Product | None, compiled: Collection[str]
    ) -> Timing:
        """What one run of the clock says; whatever becomes of it, timers end, and the lease with the last of them."""
        async with AsyncExitStack() as held:
            # The device stays leased until the timers are gone: whoever times next must not meet them.
            try:
                measured = await self._follow(channel, measure, held)
                watched, after = await self._looked_back()
            except BaseException:
                await self._end()
                await self._look_away()
                raise
            self._pool.release_after(self._slot, self._end())
        kept, left_out = undisturbed(measured.times, watched)
        measured = msgspec.structs.replace(measured, times=kept)
        if measure.effort.rough:
            return roughly_concluded(self._slot.device, measure, measured, left_out)
        timing = concluded(self._slot.device, product, measure, measured, watched.window, left_out)
        latency, no_energy = (
            with_energy(timing.latency, measured.times, watched.points)
            if measure.energy_s
            else (timing.latency, "")
        )
        return msgspec.structs.replace(
            timing,
            latency=latency,
            facts=(*timing.facts, *tape_facts(measured, compiled)),
            notes=(*timing.notes, *filter(None, (watched.note, no_energy))),
            before=self._before,
            after=after,
        )

    async def _counts_energy(self) -> bool:
        return self._telemetry is not None and await self._telemetry.counts_energy()

    async def _look(self) -> None:
        """The device is the clock's: what it is now, and what it tells from here on."""
        if self._telemetry is not None:
            own = (os.getpid(),)
            self._before = await self._telemetry.state(own)
            await self._telemetry.begin(own)
            self._watching = True

    async def _looked_back(self) -> tuple[Watched, DeviceState | None]:
        if self._telemetry is None or not self._watching:
            return Watched(Window(source="", seconds=0.0)), None
        self._watching = False
        watched = await self._telemetry.end()
        return watched, await self._telemetry.state((os.getpid(),))

    async def _look_away(self) -> None:
        """Ends a window that nobody asks for any more."""
        if self._telemetry is not None and self._watching:
            self._watching = False
            await self._telemetry.end()

    async def _follow(self, channel: AsyncChannel, measure: Measure, held: AsyncExitStack) -> Measured:
        """Serves the clock until it is done."""
        pairs = 0
        await self._tell(channel, measure)
        while True:
            try:
                async with asyncio.timeout(measure.limits.call_s + limits.ORACLE_S):
                    report = CLOCK_REPORTS.decode(await channel.receive(MOST_REPORT_BYTES))
            except EOFError as error:
                raise WorkerDied("the judge was lost while it timed") from error
            match report:
                case NeedTimers(sides=sides, count=count, instead=instead):
                    if instead:
                        await self._end()
                    await self._start(channel, measure, sides, range(pairs, pairs + count))
                    pairs += count
                case LeaseWanted():
                    if self._alone is not None and await self._alone:
                        raise Crowded
                    self._alone = None
                    await held.enter_async_context(self._pool.timing(self._slot))
                    await self._look()
                    await self._tell(channel, Leased())
                case Alive():
                    continue
                case Measured():
                    await self._keep_kernels(measure.sources[BASELINE])
                    return report

    async def _keep_kernels(self, baseline: str) -> None:
        """The next candidate is timed against the same."""
        child = next((child for side, child in self._children if side == BASELINE), None)
        if child is not None and child.scratch is not None and not self._pool.kernels.holds(baseline):
            await asyncio.to_thread(self._pool.kernels.keep, baseline, child.scratch, libraries=True)

    def _end(self) -> Coroutine[None, None, None]:
        """Has all timers end; to be awaited until their trees are gone, which their server sees to in `END_S`."""
        children, self._children = self._children, []
        for _, child in children:
            child.end()

        async def ended() -> None:
            if children:
                await asyncio.wait([child.ended for _, child in children], timeout=2 * limits.END_S)

        return ended()

    async def _start(
        self, channel: AsyncChannel, measure: Measure, sides: Sequence[str], pairs: range
    ) -> None:
        wanted = [(side, pair) for pair in pairs for side in sides]
        taking: list[asyncio.Task[Worker]] = []
        try:
            async with asyncio.TaskGroup() as group:
                for side, pair in wanted:
                    taken = self._take(side, measure.sources.get(side))
                    taking.append(group.create_task(taken, name=f"timer/{side}/{pair}"))
            for (side, pair), task in zip(wanted, taking, strict=True):
                _, pid, end = task.result()
                await self._tell(channel, Timer(side=side, pair=pair, pid=pid), (end.fileno(),))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            for task in taking:
                if not task.cancelled() and task.exception() is None:
                    task.result().end.close()

    async def _take(self, side: str, source: str | None) -> Worker:
        """A timer, with what was compiled of its source."""
        worker = await self._pool.spares.take(TIMER, self._slot.device)
        self._children.append((side, worker.child))
        try:
            if source is not None and worker.child.scratch is not None:
                await asyncio.to_thread(self._pool.kernels.lay, source, worker.child.scratch)
        except BaseException:
            worker.end.close()
            raise
        return worker

    async def _tell(
        self, channel: AsyncChannel, request: ClockRequest, descriptors: tuple[int, ...] = ()
    ) -> None:
        try:
            await channel.send(ENCODER.encode(request), descriptors)
        except EOFError as error:
            raise WorkerDied("the judge was lost while it timed") from error
