"""The engine's side of one node's judge: its calls, the loop that follows their reports, and when it counts as lost."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from harness.processes.gpus.quarantine import DeviceEvent, LeaseAwaited, Quarantined
from harness.stages.sheet import OnEvent
from harness.wire.channels.channel import ENCODER
from harness.wire.errors import HarnessError
from harness.wire.results.latency import DeviceReading

from .messages import (
    BATCHES,
    CALLS,
    OPENED,
    Finished,
    JudgeOpened,
    Report,
    ReportBatch,
    Request,
    StageReported,
)
from .node_judge import UNNAMED
from .parcels import Parcel

OPEN_S = 300.0
"""Limit for a node to start its judge: torch is imported from a network file system, perhaps by eight GPUs at once."""
ANSWER_S = 20.0
"""Limit for an answer of an open judge; `follow` waits 2 s for news. A node that hangs is lost then."""
GRACE_S = 8.0
"""A judge that cannot be reached for so long is lost."""
RETRY_S = 0.5
SAFE_S = 10.0
"""A result that the engine has had for so long is in its journal, and the node may forget it."""


class Unreachable(Exception):
    """A judge did not answer; it may come back."""


class Gone(Unreachable):
    """A judge's process or node has died."""


class MemberLost(Exception):
    """The judge of a call is lost, or its device failed; the candidate is judged elsewhere."""


class RemoteJudge(Protocol):
    """The `NodeJudge` of one device, on its node."""

    async def call(self, method: str, *arguments: object, limit_s: float) -> bytes:
        """Call a method of `NodeJudge`; empty if no bytes come back. Raises `Unreachable`, `Gone`, the judge's `HarnessError`."""

    def kill(self) -> None:
        """End the judge's process."""


@dataclass(slots=True)
class _Pending:
    """A call without its result."""

    on_event: OnEvent | None
    finished: asyncio.Future[Finished]


class Member:
    """One judge of the cluster."""

    def __init__(self, name: str, remote: RemoteJudge, on_device: Callable[[DeviceEvent], None]) -> None:
        self.name = name
        """Name of its device, such as `node1/0`."""
        self.opened: JudgeOpened | None = None
        """`None` until the judge takes calls."""
        self.lost = ""
        """Why the judge is lost; empty while it is in service."""
        self.has_failed = False
        """Its GPU failed the probe, so a new judge there would be no better."""
        self.lent = False
        self.used = 0
        """Slots in use."""
        self.state = DeviceReading()
        self.inherited: dict[str, list[StageReported | Finished]] = {}
        """Calls of an earlier engine of the session that this engine has not asked for yet, with their reports."""
        self._remote = remote
        self._on_device = on_device
        self._on_lost: Callable[[Member], None] = lambda _: None
        self._calls: dict[str, _Pending] = {}
        """Calls that wait for their end, by name."""
        self._parcels: set[str] = set()
        """Digests of the task files that the judge has."""
        self._after = 0
        """Number of the last report that arrived."""
        self._forget: list[tuple[float, str]] = []
        """Calls that the judge may forget, and when."""
        self._following: asyncio.Task[None] | None = None
        self._asides: set[asyncio.Task[None]] = set()

    @property
    def free(self) -> int:
        """Slots without a candidate. A candidate of an earlier engine keeps its slot until it ends."""
        inherited = sum(
            not any(isinstance(report, Finished) for report in reports) for reports in self.inherited.values()
        )
        return (self.opened.slots if self.opened else 0) - self.used - inherited

    async def open(self, on_lost: Callable[[Member], None]) -> JudgeOpened:
        """Wait until the judge is ready, take over its calls, and follow it. Raises `Unreachable` or `HarnessError`."""
        opened = OPENED.decode(await self._remote.call("open", limit_s=OPEN_S))
        calls = CALLS.decode(await self._remote.call("attach", limit_s=ANSWER_S))
        self.inherited = {call: [] for call in calls}
        self._on_lost = on_lost
        self._following = asyncio.create_task(self._follow(), name=f"follow/{self.name}")
        self.opened = opened  # not earlier: `attach` drops the calls that it finds
        return opened

    async def ask(self, request: Request, parcel: Parcel, *, on_event: OnEvent | None, key: str) -> Finished:
        """Return the end of a call. `key`: its name if a resumed engine may ask for it again. Raises `MemberLost`."""
        if self.lost:  # after it was chosen
            raise MemberLost(f"{self.name}: {self.lost}")
        forgotten = any(key == call for _, call in self._forget)  # the node would forget the new call as well
        call = key if key and not forgotten else f"{UNNAMED}{secrets.token_hex(8)}"
        pending = _Pending(on_event, asyncio.get_running_loop().create_future())
        self._calls[call] = pending
        try:
            if call in self.inherited:
                for report in self.inherited.pop(call):
                    self._deliver(report)
            else:
                await self._begin(call, request, parcel, pending)
            finished = await pending.finished
        except BaseException:
            self._forget.append((0.0, call))
            raise
        finally:
            del self._calls[call]
        self._forget.append((time.monotonic() + SAFE_S, call))
        if finished.is_out_of_service:
            self.has_failed = True
            self.lose(finished.error)
            raise MemberLost(finished.error)
        return finished

    def lend(self, *, lent: bool) -> None:
        """Lend the device to others, or take it back."""
        if lent != self.lent:
            self.lent = lent
            self._aside("lend", lent)

    def lose(self, why: str) -> None:
        """Judge nothing more here: note why, let calls under way fail with `MemberLost`, and inform the pool.

        A second call does nothing.
        """
        if self.lost:
            return
        self.lost = why
        for pending in self._calls.values():
            if not pending.finished.done():
                pending.finished.set_exception(MemberLost(f"{self.name}: {why}"))
        self.inherited.clear()
        self._on_lost(self)

    async def close(self) -> None:
        """End the judge and its process."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        for aside in self._asides:
            aside.cancel()
        if self.opened is not None and not self.lost:
            with suppress(Unreachable, HarnessError):
                await self._remote.call("close", limit_s=ANSWER_S)
        self._remote.kill()

    async def _begin(self, call: str, request: Request, parcel: Parcel, pending: _Pending) -> None:
        """Send a request, with the task's files if the judge lacks them, and again until it arrives or the judge is lost.

        A request that arrives twice is judged once: the judge knows calls by their name.
        """
        encoded = ENCODER.encode(request)
        while not pending.finished.done():
            try:
                if parcel.digest not in self._parcels:
                    await self._remote.call("put", parcel.digest, parcel.packed, limit_s=OPEN_S)
                    self._parcels.add(parcel.digest)
                await self._remote.call("begin", call, encoded, limit_s=ANSWER_S)
            except Gone as error:
                self.lose(str(error))
            except Unreachable:
                await asyncio.sleep(RETRY_S)  # `_follow` decides when it is lost
            else:
                return

    async def _follow(self) -> None:
        """Fetch the judge's reports and deliver them, until the judge is lost.

        It is lost at once if its process is gone, and otherwise after `GRACE_S` without an answer.
        """
        heard_s = time.monotonic()
        while not self.lost:
            now = time.monotonic()
            forget = tuple(call for due, call in self._forget if due <= now)
            try:
                answer = await self._remote.call("follow", self._after, forget, limit_s=ANSWER_S)
                batch: ReportBatch = BATCHES.decode(answer)
            except Gone as error:
                self.lose(str(error))
            except (Unreachable, HarnessError) as error:
                if time.monotonic() - heard_s > GRACE_S:
                    self.lose(str(error))
                await asyncio.sleep(RETRY_S)
            else:
                heard_s = time.monotonic()
                self._forget = [(due, call) for due, call in self._forget if call not in forget]
                self._after, self.state = batch.last, batch.state
                for report in batch.reports:
                    self._deliver(report)

    def _deliver(self, report: Report) -> None:
        """Pass a report of the judge on to the call that waits for it. A report for a call that has ended is dropped."""
        if isinstance(report, LeaseAwaited):
            self._on_device(report)
        elif isinstance(report, Quarantined):
            self.has_failed = True
            self.lose(report.why)
        elif report.call in self.inherited:
            self.inherited[report.call].append(report)
        elif (pending := self._calls.get(report.call)) is not None and not pending.finished.done():
            if isinstance(report, Finished):
                pending.finished.set_result(report)
            elif pending.on_event is not None:
                pending.on_event(report.event)

    def _aside(self, method: str, *arguments: object) -> None:
        """Call a method of the judge in the background. Errors are ignored: nothing waits for the answer."""

        async def call() -> None:
            with suppress(Unreachable, HarnessError):
                await self._remote.call(method, *arguments, limit_s=ANSWER_S)

        task = asyncio.create_task(call(), name=f"{method}/{self.name}")
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)
