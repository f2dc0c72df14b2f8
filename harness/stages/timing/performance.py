"""The performance stage on a GPU: gives the clock its timers and the exclusive lease, and concludes from its samples.

The clock runs in the judge's process and decides what is sampled; `Performance._serve_clock` answers its requests.
"""

from __future__ import annotations

import asyncio
import os
from asyncio import FIRST_COMPLETED
from collections.abc import Awaitable, Collection, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import msgspec

from harness.failures import end_task, first_failure
from harness.hardware.product import Product
from harness.hardware.recognition import product_of
from harness.node.telemetry.samples import Watched
from harness.node.telemetry.watcher import Telemetry
from harness.processes.pool import DevicePool
from harness.processes.process_endings import doubt_end, error_of_end
from harness.processes.slot import Slot
from harness.processes.starting.players import Players
from harness.processes.starting.servers import Child
from harness.processes.starting.spares import TIMER, Worker
from harness.stages.judged_task import MOST_REPORT_BYTES, script_worker, with_calls
from harness.stages.retries import DISTURBED
from harness.wire import limits
from harness.wire.channels.async_channel import AsyncChannel
from harness.wire.channels.channel import ENCODER
from harness.wire.device import Target
from harness.wire.errors import HarnessError, WorkerDied
from harness.wire.messages.clock import (
    BASELINE,
    CANDIDATE,
    CLOCK_REPORTS,
    EXAM,
    PLAYERS,
    WHOLE,
    BaselineRecorded,
    ClockRequest,
    Effort,
    Measure,
    Measured,
    NeedTimers,
    Timer,
)
from harness.wire.messages.guest import Alive
from harness.wire.messages.judge import Proceed, TurnWanted
from harness.wire.results.latency import DeviceReading, Window
from suites.errors import SuiteError
from suites.task import Task

from .baselines import Against, timing_baseline
from .conclusions import Timing, conclude_timing, not_timed, tape_facts
from .efficiency import flush_bytes, matmul_dtype
from .larger_sizes import Larger, enlarge_case, judge_suspects
from .rough_estimates import conclude_roughly
from .steady_blocks import drop_disturbed_blocks


class Crowded(Exception):
    """The candidate left processes behind, and nothing may be timed beside them."""


@dataclass(slots=True)
class Performance:
    """Times one source against the timing baseline."""

    pool: DevicePool
    slot: Slot
    task: Task
    target: Target
    seed: int
    alone: Awaitable[int] | None = None
    """Counts the processes that the candidate left behind. Timers start before it is done, timing after it."""
    exam: bool = False
    """An exam gets players of its own, which start before it waits for the exclusive lease."""
    _children: list[tuple[str, Child]] = field(default_factory=list)
    """Timers, each with its side."""
    _before: DeviceReading | None = None
    _watching: bool = False
    _players: list[Child] = field(default_factory=list)
    """The players that the clock uses now."""
    _preparing: asyncio.Task[None] | None = None
    """Starts the players of an exam."""
    _lender: Players = field(init=False)

    def __post_init__(self) -> None:
        self._lender = Players(self.pool.spares) if self.exam else self.pool.players

    @property
    def _product(self) -> Product | None:
        return product_of(self.slot.device).product

    @property
    def _telemetry(self) -> Telemetry | None:
        return self.pool.telemetry(self.slot.device)

    async def measure(
        self,
        channel: AsyncChannel,
        source: str,
        *,
        against: Against,
        compiled: Collection[str] = (),
        effort: Effort = WHOLE,
    ) -> Timing:
        """Time the source; `WorkerDied` if a process of ours is lost, `Crowded` if processes of the candidate are left.

        All cases are timed once more if a disturbance of the device left one without a time.

        `compiled` are digests of the code that the compile stage made of the source. Timers may still be ending on return.
        """
        try:
            baseline = against.baseline
            if baseline is None:
                baseline = await asyncio.to_thread(timing_baseline, self.task)
        except HarnessError as error:
            return not_timed(str(error))
        measure = Measure(
            task=self.task,
            sources={BASELINE: with_calls(self.task, baseline.source), CANDIDATE: source},
            seed=self.seed,
            target=self.target.name,
            limits=self.pool.limits(self.slot.device),
            cold=against.cold,
            against=baseline.name,
            flush_bytes=flush_bytes(self._product),
            graph_nodes=await self.pool.graph_nodes(self.slot.device),
            budget_s=effort.budget_s,
            effort=effort,
            matmul_dtype=""
            if effort.rough
            else await asyncio.to_thread(matmul_dtype, self.task, self._product),
        )
        timing = await self._time(channel, measure, compiled)
        for _ in range(DISTURBED.times if timing.disturbed else 0):
            timing = await self._time_again(channel, measure, timing, compiled)
        suspects = {
            latency.case for latency in timing.latency if latency.efficiency and latency.efficiency.suspect
        }
        if not suspects:
            return timing
        return await self._time_suspects_again(channel, measure, timing, suspects)

    async def _time_again(
        self, channel: AsyncChannel, measure: Measure, first: Timing, compiled: Collection[str]
    ) -> Timing:
        """A second timing of all cases; the first, if the second has fewer times and no error of the candidate."""
        measure = msgspec.structs.replace(measure, new_floor=True)
        async with self.pool.leases.using(self.slot):
            second = await self._time(channel, measure, compiled)
        names = ", ".join(first.disturbed)
        if second.error is None and _timed_cases(second) < _timed_cases(first):
            note = f"{names}: timed a second time, when the device was disturbed even more"
            return msgspec.structs.replace(first, notes=(*first.notes, note))
        note = f"timed twice: the first time the device was disturbed, and {names} got no time"
        return msgspec.structs.replace(second, notes=(note, *second.notes))

    async def _time_suspects_again(
        self, channel: AsyncChannel, measure: Measure, first: Timing, suspects: Collection[str]
    ) -> Timing:
        """The first timing, judged by timing its suspects at several times their size."""
        larger: list[Larger] = []
        why_not: dict[str, str] = {}
        for case in self.task.open_cases:
            if case.name not in suspects:
                continue
            try:
                enlarged = await asyncio.to_thread(enlarge_case, self.task, case)
            except SuiteError as error:
                enlarged = str(error)
            if isinstance(enlarged, Larger):
                larger.append(enlarged)
            else:
                why_not[case.name] = enlarged
        if not larger:
            return judge_suspects(first, Timing((), ""), (), why_not)
        task = msgspec.structs.replace(self.task, cases=tuple(enlarged.case for enlarged in larger))
        measure = msgspec.structs.replace(measure, task=task, effort=WHOLE)
        async with self.pool.leases.using(self.slot):
            again = await self._time(channel, measure, ())
        return judge_suspects(first, again, tuple(larger), why_not)

    async def _time(self, channel: AsyncChannel, measure: Measure, compiled: Collection[str]) -> Timing:
        """Run the clock over all cases. Timers end even if it fails, and the lease ends with the last timer."""
        calls = self.pool.baseline_calls.find(measure)
        measure = msgspec.structs.replace(measure, baseline_calls=calls)
        async with AsyncExitStack() as leases:
            # The next timing begins when the timers are gone. Other work on the device goes on before.
            try:
                async with script_worker(self.slot, channel, measure.task, self.target.name):
                    measured = await self._serve_clock(channel, measure, leases)
                measured, doubt = await self._judge_timer_end(measured)
                self._give_players_back(tapes=measured.tapes_played, reusable=measured.players_reusable)
                watched, after = await self._end_watch()
            except BaseException:
                self._give_players_back(reusable=False)
                await self._end_timers()
                await self._end_watch(look=False)
                raise
            self.pool.leases.release_after(self.slot, self._end_timers())
        timing = self._conclude(measure, measured, watched, after, compiled)
        return msgspec.structs.replace(timing, doubt=doubt)

    async def _judge_timer_end(self, measured: Measured) -> tuple[Measured, str]:
        """The result, with the error of a candidate's process or player that ended in its timing, and the doubt about it.

        Raises like `doubt_end`.
        """
        if not measured.ended:
            return measured, ""
        own = [child for side, child in self._children if side == measured.ended]
        dismissed = [child for child in own if child.ended.done() and child.ended.result().status == 0]
        children = [child for child in (*own, *self._players) if child not in dismissed]
        if children:
            await asyncio.wait(
                [child.ended for child in children], timeout=limits.END_S, return_when=FIRST_COMPLETED
            )
        ended = next((child.ended.result() for child in children if child.ended.done()), None)
        if ended is None:
            return measured, ""
        if measured.ended == BASELINE or measured.error is None:
            return measured, doubt_end(ended, "a timer of the baseline")
        blame = error_of_end(ended, measured.error.place)
        return msgspec.structs.replace(measured, error=blame.error), blame.doubt

    def _conclude(
        self,
        measure: Measure,
        measured: Measured,
        watched: Watched,
        after: DeviceReading | None,
        compiled: Collection[str],
    ) -> Timing:
        device = self.slot.device
        kept, left_out = drop_disturbed_blocks(measured.times, watched)
        measured = msgspec.structs.replace(measured, times=kept)
        if measure.effort.rough:
            return conclude_roughly(device, measure, measured, left_out)
        timing = conclude_timing(device, self._product, measure, measured, watched.window, left_out)
        return msgspec.structs.replace(
            timing,
            facts=(*timing.facts, *tape_facts(measured, compiled)),
            notes=(*timing.notes, *filter(None, [watched.note])),
            before=self._before,
            after=after,
            served=measured.served,
        )

    async def _begin_watch(self) -> None:
        """Read the device's state and start sampling it; the device is the clock's alone from here on."""
        if self._telemetry is not None:
            own = (os.getpid(),)
            self._before = await self._telemetry.state(own)
            await self._telemetry.begin(own)
            self._watching = True

    async def _end_watch(self, *, look: bool = True) -> tuple[Watched, DeviceReading | None]:
        """The device's samples and, with `look`, its state now; empty if it is not watched."""
        if self._telemetry is None or not self._watching:
            return Watched(Window(source="", seconds=0.0)), None
        self._watching = False
        watched = await self._telemetry.end()
        after = await self._telemetry.state((os.getpid(),)) if look else None
        return watched, after

    async def _serve_clock(self, channel: AsyncChannel, measure: Measure, leases: AsyncExitStack) -> Measured:
        """Answer the clock's requests until it sends `Measured`; the exclusive lease goes into `leases`."""
        if self.exam:
            preparing = self._lender.prepare(self.slot.device, EXAM.looks * PLAYERS)
            self._preparing = asyncio.create_task(preparing, name="players of an exam")
        await self._send(channel, measure)
        while True:
            try:
                async with asyncio.timeout(measure.limits.call_s + limits.ORACLE_S):
                    report = CLOCK_REPORTS.decode(await channel.receive(MOST_REPORT_BYTES))
            except EOFError as error:
                raise WorkerDied("the judge was lost while it timed") from error
            match report:
                case NeedTimers(sides=(), count=count):
                    await self._lend_players(channel, count)
                case NeedTimers(sides=sides, count=count):
                    await self._start_timers(channel, measure, [side for side in sides for _ in range(count)])
                case BaselineRecorded(calls=calls):
                    self.pool.baseline_calls.keep(measure, calls)
                    await self._keep_kernels(measure.sources[BASELINE])
                    await self._send(channel, Proceed())
                case TurnWanted():
                    if self.alone is not None and await self.alone:
                        raise Crowded
                    self.alone = None
                    if self._preparing is not None:
                        await self._preparing
                    await leases.enter_async_context(self.pool.leases.timing(self.slot))
                    await self._begin_watch()
                    await self._send(channel, Proceed())
                case Alive():
                    continue
                case Measured():
                    return report

    async def _keep_kernels(self, baseline: str) -> None:
        """Keep the baseline's compiled kernels, because the next candidate is timed against the same baseline.

        Those of its recorder replace those of the compile stage, which lack kernels of other modules and libraries.
        """
        child = next((child for side, child in self._children if side == BASELINE), None)
        if child is not None and child.scratch is not None:
            await asyncio.to_thread(self.pool.kernels.keep, baseline, child.scratch, libraries=True)

    def _end_timers(self) -> Coroutine[None, None, None]:
        """End all timers at once; awaiting the result waits until their process trees are gone."""
        children, self._children = [child for _, child in self._children], []
        for child in children:
            child.end()
        preparing, self._preparing = self._preparing, None
        if preparing is not None:
            preparing.cancel()  # from now on it keeps no player
            children += self._lender.drop(self.slot.device)

        async def wait() -> None:
            if preparing is not None:
                await end_task(preparing)
            if children:
                await asyncio.wait([child.ended for child in children], timeout=2 * limits.END_S)

        return wait()

    async def _start_timers(self, channel: AsyncChannel, measure: Measure, sides: Sequence[str]) -> None:
        taking: list[asyncio.Task[Worker]] = []
        try:
            async with asyncio.TaskGroup() as group:
                for number, side in enumerate(sides):
                    timer = self._take_timer(side, measure.sources[side])
                    taking.append(group.create_task(timer, name=f"timer/{side}/{number}"))
            for side, task in zip(sides, taking, strict=True):
                _, pid, end = task.result()
                await self._send(channel, Timer(side=side, pid=pid), (end.fileno(),))
        except ExceptionGroup as failures:
            raise first_failure(failures) from None
        finally:
            for task in taking:
                if not task.cancelled() and task.exception() is None:
                    task.result().end.close()

    async def _lend_players(self, channel: AsyncChannel, count: int) -> None:
        """Give the clock the ends of the players' channels too; they stay open here. Players that it had before end first."""
        before = self._players
        self._give_players_back(reusable=False)
        if before:  # a process that ends delays those that time
            await asyncio.wait([child.ended for child in before], timeout=limits.END_S)
        players = await self._lender.take(self.slot.device, count)
        self._players = [player.worker.child for player in players]
        for player in players:
            timer = Timer(side="", pid=player.worker.pid, served=player.served)
            await self._send(channel, timer, (player.worker.end.fileno(),))

    def _give_players_back(self, *, tapes: int = 0, reusable: bool) -> None:
        if self._players:
            self._players = []
            self._lender.give_back(self.slot.device, tapes=tapes, reusable=reusable)

    async def _take_timer(self, side: str, source: str) -> Worker:
        """A timer with the compiled kernels of its source."""
        worker = await self.pool.spares.take(TIMER, self.slot.device, self.task.package_view)
        self._children.append((side, worker.child))
        try:
            if worker.child.scratch is not None:
                await asyncio.to_thread(self.pool.lay, source, worker.child.scratch, self.slot.device)
        except BaseException:
            worker.end.close()
            raise
        return worker

    async def _send(
        self, channel: AsyncChannel, request: ClockRequest | Proceed, descriptors: tuple[int, ...] = ()
    ) -> None:
        try:
            await channel.send(ENCODER.encode(request), descriptors)
        except EOFError as error:
            raise WorkerDied("the judge was lost while it timed") from error


def _timed_cases(timing: Timing) -> int:
    return len(timing.latency) + len(timing.rough)
