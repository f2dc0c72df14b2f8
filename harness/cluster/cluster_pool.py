"""Judges candidates on the nodes of a cluster. If a judge is lost, its candidates are judged again elsewhere."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from harness.failures import first_failure
from harness.processes.gpus.capacity import largest_case_bytes
from harness.processes.gpus.quarantine import OnDevice, Quarantined
from harness.stages.evaluator import KeepTexts
from harness.stages.modes import USUAL_MODE, Attempt, Exam, Mode
from harness.stages.retries import LOST_NODE, MOVED
from harness.stages.sheet import OnEvent, Sheet
from harness.stages.survey import Compiled, Surveying
from harness.stages.timing.baselines import USUAL, Against
from harness.wire.channels.channel import ENCODER
from harness.wire.device import Device, Target
from harness.wire.errors import HarnessError, NoDeviceLeft
from harness.wire.messages.server import Language
from harness.wire.results.evaluation import ErrorReport, Evaluation, Stage, StageEvent
from harness.wire.results.latency import DeviceReading
from harness.wire.results.provenance import Provenance
from suites.task import Task

from .member import RETRY_S, Gone, Member, MemberLost, RemoteJudge, Unreachable
from .messages import (
    COMPILED,
    EVALUATION,
    CompileSources,
    JudgeCandidate,
    SentTask,
    Setup,
)
from .node_facts import Node, check_wavedeck, different_versions, versions_of
from .parcels import Parcel, pack_folder

MOST_STARTS = 3
"""Starts of one device's judge in a session."""
ENDING_S = 1.0
"""Time until Ray has forgotten an actor that was ended."""
GONE = "its node is not in the cluster"


class Cluster(Protocol):
    """The nodes of a cluster, and the judges on them."""

    async def nodes(self) -> Sequence[Node]:
        """Return the nodes, also dead ones."""

    async def judge(self, node: Node, device: str, setup: Setup) -> RemoteJudge:
        """Return the session's judge of a device: the one that is there, or a new one."""

    async def close(self) -> None:
        """Leave the cluster."""


@dataclass(slots=True)
class _Waiter:
    """A caller who waits for a slot."""

    on: str
    avoid: str
    member: asyncio.Future[Member]


class ClusterPool:
    """See `harness.stages.evaluator.Evaluator`. Use it as `async with ClusterPool(...) as pool`.

    `names` are devices such as `node1/0`. `on_device` is called from the event loop with waits and lost devices,
    `on_warning` with warnings for a person. Raises `HarnessError` in one line if no judge starts, or if a node has another
    Wavedeck.
    """

    def __init__(
        self,
        cluster: Cluster,
        names: Sequence[str],
        *,
        tasks: Iterable[Task],
        session: str,
        python: str = "",
        on_device: OnDevice,
        on_warning: Callable[[str], None],
    ) -> None:
        self._cluster = cluster
        self._names = tuple(names)
        self._case_bytes = largest_case_bytes(tasks)
        self._session = session
        self._python = python
        self._on_device = on_device
        self._on_warning = on_warning
        self._members: dict[str, Member] = {}
        self._devices: dict[str, Device] = {}
        self._starts: dict[str, int] = {}
        """How often the judge of a device was started."""
        self._starting: dict[str, asyncio.Task[None]] = {}
        """Tasks that start lost judges again, by device."""
        self._waiters: deque[_Waiter] = deque()
        self._parcels: dict[str, tuple[Task, Parcel]] = {}
        """Packed files of tasks, by the task's id."""

    @property
    def devices(self) -> Sequence[Device]:
        """See `Evaluator`."""
        return tuple(self._devices[name] for name in self._names if name in self._devices)

    @property
    def language(self) -> Language | None:
        """The language of the first node's Triton."""
        return next((member.opened.language for member in self._members.values() if member.opened), None)

    async def __aenter__(self) -> ClusterPool:
        try:
            await self._open()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _open(self) -> None:
        """Start a judge for each device on the cluster's nodes. A device on a node that is gone is reported as quarantined.

        Raises `HarnessError` if no node of the run is there, if no judge starts, or if a node has another version of Wavedeck.
        """
        nodes = {node.name: node for node in await self._cluster.nodes() if node.is_alive}
        here = [name for name in self._names if _node_of(name) in nodes]
        if not here:
            raise HarnessError(
                f"no node of this run is in the cluster ({', '.join(map(_node_of, self._names))}); it has "
                f"{', '.join(nodes) or 'none'}"
            )
        try:
            async with asyncio.TaskGroup() as group:
                for name in here:
                    group.create_task(self._start_or_lose(name, nodes[_node_of(name)]), name=f"open/{name}")
        except ExceptionGroup as failures:
            raise first_failure(failures) from None
        self._check_service()
        opened = {name: member.opened for name, member in self._members.items() if member.opened}
        check_wavedeck({_node_of(name): judge.wavedeck for name, judge in opened.items()})
        for line in different_versions(
            {_node_of(name): versions_of(judge.provenance) for name, judge in opened.items()}
        ):
            self._on_warning(line)
        for name in self._names:
            if name not in here:
                self._on_device(Quarantined(name, GONE))

    async def _start_or_lose(self, name: str, node: Node) -> None:
        """Start the judge of a device. If its node cannot be reached, the device counts as lost, and nothing is raised.

        Raises `HarnessError` if the judge itself refuses to start.
        """
        try:
            try:
                await self._start(name, node)
            except Gone:  # the judge of an earlier engine is just ending
                await asyncio.sleep(ENDING_S)
                await self._start(name, node)
        except Unreachable as error:
            self._members[name].lost = f"it did not start: {error}"
            self._on_device(Quarantined(name, self._members[name].lost))
        except HarnessError as error:
            raise HarnessError(f"{name} cannot judge: {error}") from error

    async def _start(self, name: str, node: Node) -> None:
        """Start the judge of a device, or find it. Raises `Unreachable` or `HarnessError`."""
        self._starts[name] = self._starts.get(name, 0) + 1
        judges = sum(_node_of(device) == node.name for device in self._names)
        setup = Setup(
            node=node.name,
            device=name.rpartition("/")[2],
            cores=max(node.cores // judges, 1),
            session=self._session,
            case_bytes=self._case_bytes,
            python=self._python,
        )
        remote = await self._cluster.judge(node, name, setup)
        member = Member(name, remote, self._on_device)
        self._members[name] = member
        opened = await member.open(self._replace)
        self._devices[name] = opened.device
        self._serve()

    def _replace(self, lost: Member) -> None:
        """Start a new judge for a lost one if its node is alive; report the device as lost if not."""

        async def replace() -> None:
            try:
                if lost.has_failed or self._starts[lost.name] >= MOST_STARTS:
                    raise HarnessError(lost.lost)
                nodes = {node.name: node for node in await self._cluster.nodes() if node.is_alive}
                if _node_of(lost.name) not in nodes:
                    raise HarnessError(GONE)
                await lost.close()
                await self._start(lost.name, nodes[_node_of(lost.name)])
                self._on_warning(f"the judge of {lost.name} ended and was started again: {lost.lost}")
            except (HarnessError, Unreachable) as error:
                self._members[lost.name].lost = str(error)
                self._on_device(Quarantined(lost.name, str(error)))
            finally:
                del self._starting[lost.name]
                self._serve()

        self._starting[lost.name] = asyncio.create_task(replace(), name=f"replace/{lost.name}")
        self._serve()

    async def evaluate(
        self,
        candidate: str,
        task: Task,
        mode: Mode = USUAL_MODE,
        *,
        targets: Sequence[Target],
        seed: int,
        against: Against | None = USUAL,
        on_event: OnEvent | None = None,
        keep_texts: KeepTexts | None = None,
        name: str = "",
    ) -> Evaluation:
        """See `Evaluator`. If the judge of a candidate is lost, it is judged again elsewhere, at most `LOST_NODE.times` times."""
        sent, parcel = await self.pack(task)
        request = JudgeCandidate(
            task=sent,
            candidate=candidate,
            mode=mode,
            targets=tuple(targets),
            seed=seed,
            against=against,
            wants_texts=keep_texts is not None,
            name=name,
        )
        key = hashlib.sha256(ENCODER.encode(request)).hexdigest() if name else ""
        stages = _Stages(on_event)
        moves: list[str] = []
        while True:
            on = mode.device if isinstance(mode, Attempt) else ""
            if on and (lost := self._lost(on)):
                return self._infra(task, on, mode, moves, f"GPU {on} is lost: {lost}")
            avoid = mode.avoid if isinstance(mode, Exam) else ""
            member = self._inherit(key) or await self._take(on=on, avoid=avoid, first=bool(moves))
            try:
                finished = await member.ask(request, parcel, on_event=stages.report, key=key)
            except MemberLost as lost:
                stages.leave(str(lost))
                moves.append(str(lost))
                if len(moves) > LOST_NODE.times:
                    return self._infra(task, member.name, mode, moves, "every node that judged this was lost")
                self._on_warning(f"{name or 'a candidate'} is judged again on another node: {lost}")
                continue
            finally:
                self._give_back(member)
            if finished.error:
                raise HarnessError(f"{member.name}: {finished.error}")
            evaluation = EVALUATION.decode(finished.result)
            if keep_texts is not None and finished.texts:
                await asyncio.to_thread(keep_texts, finished.texts)
            return evaluation

    def survey(self, task: Task, target: Target) -> Surveying:
        """See `Evaluator`."""
        return _ClusterSurvey(self, task, target)

    async def survey_on_any(self, request: CompileSources, parcel: Parcel, turn: int) -> bytes:
        """Return the result of a part of a survey, from one of the judges in service by turns. It takes no slot."""
        lost = 0
        while lost <= LOST_NODE.times:
            members = [member for member in self._members.values() if member.opened and not member.lost]
            if not members:
                self._check_service()
                await asyncio.sleep(RETRY_S)
                continue
            try:
                finished = await members[turn % len(members)].ask(request, parcel, on_event=None, key="")
            except MemberLost:
                lost += 1
                continue
            if finished.error:
                raise HarnessError(finished.error)
            return finished.result
        raise HarnessError("every node that compiled these sources was lost")

    @property
    def judge_count(self) -> int:
        """Number of judges in service."""
        return sum(not member.lost for member in self._members.values())

    def lend(self, names: Collection[str]) -> None:
        """See `Evaluator`."""
        for member in self._members.values():
            member.lend(lent=member.name in names)
        self._serve()

    async def provenance(self, device: Device) -> Provenance:
        """See `Evaluator`."""
        opened = self._members[device.name].opened
        return opened.provenance if opened is not None else Provenance()

    def state(self, name: str) -> DeviceReading:
        """Return the newest state of a device."""
        return self._members[name].state

    async def pack(self, task: Task) -> tuple[SentTask, Parcel]:
        """Return a task as it travels. Reads its folder once."""
        packed = self._parcels.get(task.id)
        if packed is None or packed[0].folder != task.folder:
            packed = (task, await asyncio.to_thread(pack_folder, task.folder))
            self._parcels[task.id] = packed
        return SentTask(task, packed[1].digest), packed[1]

    def _inherit(self, key: str) -> Member | None:
        """The judge that has this call of an earlier engine, with the call's slot."""
        member = next((member for member in self._members.values() if key in member.inherited), None)
        if member is not None:
            member.used += 1
        return member

    def _lost(self, name: str) -> str:
        member = self._members.get(name)
        return GONE if member is None else "" if name in self._starting else member.lost

    async def _take(self, *, on: str, avoid: str, first: bool) -> Member:
        """Wait for a free slot, with `first` ahead of all other callers; returns its judge, which counts it as used."""
        waiter = _Waiter(on, avoid, asyncio.get_running_loop().create_future())
        self._waiters.insert(0 if first else len(self._waiters), waiter)
        self._serve()
        try:
            return await waiter.member
        except asyncio.CancelledError:
            if waiter.member.done() and not waiter.member.cancelled() and waiter.member.exception() is None:
                self._give_back(waiter.member.result())
            raise

    def _give_back(self, member: Member) -> None:
        member.used -= 1
        self._serve()

    def _serve(self) -> None:
        """Give free slots to the waiting callers, in their order; end their wait if no judge is left."""
        try:
            self._check_service()
        except NoDeviceLeft as error:
            for waiter in self._waiters:
                if not waiter.member.done():
                    waiter.member.set_exception(NoDeviceLeft(str(error)))
            self._waiters.clear()
            return
        free = [
            member
            for member in self._members.values()
            if member.free > 0 and not member.lost and not member.lent
        ]
        for waiter in list(self._waiters):
            if not free:
                return
            member = None if waiter.member.done() else _choose(free, waiter)
            if member is not None:
                member.used += 1
                waiter.member.set_result(member)
                if member.free == 0:
                    free.remove(member)
            if waiter.member.done():
                self._waiters.remove(waiter)

    def _check_service(self) -> None:
        """Raise `NoDeviceLeft` if every judge is lost and none is being started."""
        if self._members and not self._starting and not self.judge_count:
            lost = "; ".join(f"{member.name}: {member.lost}" for member in self._members.values())
            raise NoDeviceLeft(
                f"every judge of the cluster is lost ({lost}); bring its nodes back, then resume"
            )

    def _infra(self, task: Task, device: str, mode: Mode, moves: Sequence[str], why: str) -> Evaluation:
        sheet = Sheet(task, device, mode)
        sheet.notes += (MOVED.format(why=why) for why in moves)
        sheet.judged_again = bool(moves)
        return sheet.conclude(ErrorReport(kind="infra", message=why))

    async def _close(self) -> None:
        for task in list(self._starting.values()):
            task.cancel()
        async with asyncio.TaskGroup() as group:
            for member in self._members.values():
                group.create_task(member.close(), name=f"close/{member.name}")
        await self._cluster.close()


class _Stages:
    """The stages of a candidate as its caller knows them."""

    def __init__(self, on_event: OnEvent | None) -> None:
        self._on_event = on_event
        self._entered: dict[str, str] = {}

    def report(self, event: StageEvent) -> None:
        """Pass an event on."""
        if event.result is None:
            self._entered[event.stage] = event.device
        else:
            self._entered.pop(event.stage, None)
        if self._on_event is not None:
            self._on_event(event)

    def leave(self, why: str) -> None:
        """Leave every open stage, because the judge is lost."""
        for stage, device in list(self._entered.items()):
            self.report(StageEvent(stage, device, Stage(name=stage, ok=None, seconds=0.0, detail=why)))


class _ClusterSurvey:
    """A survey that shares its sources among the judges."""

    def __init__(self, pool: ClusterPool, task: Task, target: Target) -> None:
        self._pool = pool
        self._task = task
        self._target = target

    async def compile(self, sources: Sequence[str]) -> tuple[Compiled, ...]:
        """Compile the sources, in equal parts on all judges; return the results in their order.

        See `Surveying`. Raises the first error of a part, `HarnessError` if every judge of it was lost.
        """
        sent, parcel = await self._pool.pack(self._task)
        size = -(-len(sources) // max(self._pool.judge_count, 1)) or 1
        parts = [tuple(sources[start : start + size]) for start in range(0, len(sources), size)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(
                        self._pool.survey_on_any(
                            CompileSources(task=sent, target=self._target, sources=part), parcel, turn
                        )
                    )
                    for turn, part in enumerate(parts)
                ]
        except ExceptionGroup as failures:
            raise first_failure(failures) from None
        return tuple(row for task in tasks for row in COMPILED.decode(task.result()))


def _choose(free: Sequence[Member], waiter: _Waiter) -> Member | None:
    """Return the judge with the largest share of free slots among those that the caller may use; `None` if none is free.

    The judge that the caller avoids is returned only if no other is free.
    """
    allowed = [member for member in free if waiter.on in ("", member.name)]
    preferred = [member for member in allowed if member.name != waiter.avoid]

    def free_share(member: Member) -> float:
        return member.free / (member.opened.slots if member.opened else 1)

    return max(preferred or allowed, key=free_share, default=None)


def _node_of(name: str) -> str:
    return name.rpartition("/")[0]
