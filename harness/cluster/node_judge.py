"""The judge of one device of a node: the class of an actor, without Ray.

It owns a `DevicePool` as an engine on this node would, and is the parent of its processes. An engine hands it calls, follows
their reports by number, and forgets a call once its result is safe. A call and its reports stay until then, so that an engine
that was killed and resumed takes over what is judged already. Without an engine for `ORPHAN_S` the judge ends.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec
import psutil

from harness.node.telemetry.watcher import Telemetry
from harness.processes.gpus.quarantine import DeviceEvent, LeaseAwaited, Quarantined
from harness.processes.pool import DevicePool
from harness.processes.starting.judge_python import find_python
from harness.stages.cascade import evaluate
from harness.stages.survey import Survey
from harness.wire.channels.channel import ENCODER
from harness.wire.errors import HarnessError, NoDeviceLeft
from harness.wire.results.evaluation import StageEvent
from harness.wire.results.latency import DeviceReading
from suites.task import Task

from .messages import (
    REQUESTS,
    SETUP,
    CompileSources,
    Finished,
    JudgeCandidate,
    JudgeOpened,
    Report,
    ReportBatch,
    Request,
    SentTask,
    StageReported,
)
from .node_facts import judge_digest
from .parcels import Parcel, keep_parcel, kept_folder, node_cache

FOLLOW_S = 2.0
"""Longest wait of `follow` for a report. It is the engine's sign of life too."""
ORPHAN_S = 300.0
"""A judge without an engine for so long ends itself. Until then a resumed engine finds it warm."""
SAMPLE_S = 1.0
UNNAMED = "-"
"""Begins the name of a call that no resumed engine will ask for again."""


def _end_process() -> None:
    os._exit(0)  # Ray's own exit would wait for calls that no engine reads


class NodeJudge:
    """See the module. Arguments and results are bytes or plain values; `open` comes first."""

    def __init__(self, setup: bytes, end: Callable[[], None] = _end_process) -> None:
        self._setup = SETUP.decode(setup)
        self._end = end
        self._opening = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None
        self._pool: DevicePool | None = None
        self._opened = b""
        """The answer to `open`; empty until the pool is open."""
        self._calls: dict[str, asyncio.Task[None]] = {}
        self._reports: dict[int, Report] = {}
        """Reports that the engine may still ask for, by number."""
        self._last = 0
        """Number of the last report."""
        self._news = asyncio.Event()
        """Set by each report."""
        self._heard_s = time.monotonic()
        """When the engine called last."""
        self._state = DeviceReading()
        self._sampling: asyncio.Task[None] | None = None

    async def open(self) -> bytes:
        """Start the pool, unless it is open; returns a `JudgeOpened`. Raises `HarnessError`, as text in the exception."""
        self._heard_s = time.monotonic()
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch_engine(), name="engine")
        async with self._opening:
            if not self._opened:
                self._opened = await self._open()
        return self._opened

    async def attach(self) -> bytes:
        """A new engine takes over: returns the names of the calls that it may still ask for, and drops all others."""
        self._heard_s = time.monotonic()
        for call in list(self._calls):
            if call.startswith(UNNAMED):
                self._forget(call)
        self._reports = {
            number: report for number, report in self._reports.items() if not isinstance(report, LeaseAwaited)
        }
        return ENCODER.encode(tuple(self._calls))

    async def put(self, digest: str, packed: bytes) -> None:
        """Keep a parcel on the node."""
        await asyncio.to_thread(keep_parcel, Parcel(digest, packed))

    async def begin(self, call: str, request: bytes) -> None:
        """Begin a call; a call of this name that is known goes on."""
        if call not in self._calls:
            work = self._run(call, REQUESTS.decode(request))
            self._calls[call] = asyncio.create_task(work, name=f"call/{call}")

    async def follow(self, after: int, forget: tuple[str, ...] = ()) -> bytes:
        """Return a `ReportBatch` of the reports after a number; waits for one, at most `FOLLOW_S`."""
        self._heard_s = time.monotonic()
        for call in forget:
            self._forget(call)
        if self._last <= after:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(FOLLOW_S):
                    await self._news.wait()
        reports = tuple(report for number, report in self._reports.items() if number > after)
        return ENCODER.encode(ReportBatch(reports, self._last, self._state))

    async def lend(self, lent: bool) -> None:  # noqa: FBT001 - Ray passes positions
        """Free the device's memory for others, or use the device again."""
        if self._pool is not None:
            device = self._pool.devices[0].name
            self._pool.lend((device,) if lent and self._pool.devices[0].kind != "cpu" else ())

    async def close(self) -> None:
        """End all calls and the pool."""
        for helper in (self._watching, self._sampling):
            if helper is not None and helper is not asyncio.current_task():
                helper.cancel()
        for call in list(self._calls):
            self._forget(call)
        pool, self._pool, self._opened = self._pool, None, b""
        if pool is not None:
            await pool.__aexit__(None, None, None)

    async def _open(self) -> bytes:
        """Open the pool of the device and start to sample its telemetry; return what the engine must know of both, encoded."""
        setup = self._setup
        python = await asyncio.to_thread(find_python, setup.python, node_cache() / "judge-packages")
        pool = DevicePool(
            (setup.device,),
            case_bytes=setup.case_bytes,
            session=setup.session,
            on_device=self._on_device,
            python=python,
            node=setup.node,
            cores=setup.cores,
        )
        await pool.__aenter__()
        self._pool = pool
        device = pool.devices[0]
        self._sampling = asyncio.create_task(self._sample(), name="sample")
        return ENCODER.encode(
            JudgeOpened(
                device=device,
                slots=pool.slots,
                language=pool.language,
                provenance=await pool.provenance(device),
                wavedeck=judge_digest(),
            )
        )

    def _report(self, report: Report) -> None:
        self._last += 1
        self._reports[self._last] = report
        self._news.set()

    def _on_device(self, event: DeviceEvent) -> None:
        if isinstance(event, LeaseAwaited | Quarantined):
            self._report(event)

    def _forget(self, call: str) -> None:
        """Cancel a call, if it runs, and drop its reports that the engine has not fetched."""
        task = self._calls.pop(call, None)
        if task is not None:
            task.cancel()
        self._reports = {
            number: report for number, report in self._reports.items() if getattr(report, "call", "") != call
        }

    async def _run(self, call: str, request: Request) -> None:
        """Answer one call and report its end.

        An error of any kind becomes the text of the report, so that the actor goes on.
        """
        try:
            if isinstance(request, JudgeCandidate):
                finished = await self._judge(call, request)
            else:
                finished = await self._survey(call, request)
        except NoDeviceLeft as error:
            finished = Finished(call=call, error=str(error), is_out_of_service=True)
        except HarnessError as error:
            finished = Finished(call=call, error=str(error))
        except Exception as error:  # noqa: BLE001 - the engine reports it, and its session goes on
            finished = Finished(call=call, error=f"bug in the judge: {type(error).__name__}: {error}")
        self._report(finished)

    async def _judge(self, call: str, request: JudgeCandidate) -> Finished:
        """Judge a candidate: report each stage as it happens, and return the evaluation. Raises like `evaluate`."""

        def on_event(event: StageEvent) -> None:
            self._report(StageReported(call, event))

        texts: dict[str, bytes] = {}
        evaluation = await evaluate(
            request.candidate,
            self._task(request.task),
            self._open_pool,
            request.mode,
            targets=request.targets,
            seed=request.seed,
            against=request.against,
            on_event=on_event,
            keep_texts=texts.update if request.wants_texts else None,
        )
        return Finished(call=call, result=ENCODER.encode(evaluation), texts=texts)

    async def _survey(self, call: str, request: CompileSources) -> Finished:
        survey = Survey(self._open_pool, self._task(request.task), request.target)
        return Finished(call=call, result=ENCODER.encode(await survey.compile(request.sources)))

    @property
    def _open_pool(self) -> DevicePool:
        if self._pool is None:
            raise HarnessError("the judge of this node is closed")
        return self._pool

    def _task(self, sent: SentTask) -> Task:
        """Return a task with its folder on this node. Raises `HarnessError` if the node lacks the task's package."""
        folder = kept_folder(sent.parcel)
        task = msgspec.structs.replace(sent.task, folder=folder)
        if task.package is not None and (problem := task.package.problem(folder)):
            raise HarnessError(
                f"{task.id} is in a package that node {self._setup.node} does not have at the same path: {problem}"
            )
        return task

    async def _sample(self) -> None:
        """Keep `_state` up to date. A sampler of its own: the pool's watches the timings."""
        device = self._open_pool.devices[0]
        if device.kind == "cpu":
            while True:
                memory = psutil.virtual_memory()
                self._state = DeviceReading(
                    busy_percent=psutil.cpu_percent(),
                    memory_used_bytes=memory.total - memory.available,
                    memory_total_bytes=memory.total,
                )
                await asyncio.sleep(SAMPLE_S)
        if device.address:
            async with Telemetry(device.address, device.kind) as telemetry:
                while True:
                    self._state = await telemetry.state()
                    await asyncio.sleep(SAMPLE_S)

    async def _watch_engine(self) -> None:
        """End the process once no engine has asked for anything for `ORPHAN_S`."""
        while True:
            left_s = self._heard_s + ORPHAN_S - time.monotonic()
            if left_s <= 0:
                break
            await asyncio.sleep(left_s)
        try:
            await self.close()
        finally:
            self._end()
