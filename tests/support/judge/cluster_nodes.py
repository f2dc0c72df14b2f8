"""A cluster in this process: real judges of nodes, with scripted evaluations instead of a pool, and without Ray."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from harness import Device, StageEvent, Verdict
from harness.cluster.member import Gone, RemoteJudge, Unreachable
from harness.cluster.messages import (
    CompileSources,
    Finished,
    JudgeCandidate,
    JudgeOpened,
    Setup,
    StageReported,
)
from harness.cluster.node_facts import Node, judge_digest
from harness.cluster.node_judge import NodeJudge
from harness.wire.channels.channel import ENCODER
from harness.wire.results.provenance import Provenance

from .evaluations import correct, failed


class ScriptedNode(NodeJudge):
    """The judge of `NODE/cpu`. Evaluations wait until `go` is set, and are correct, after as many failures as `failing` says."""

    def __init__(self, node: str, *, wavedeck: str = "", triton: str = "3.6.0") -> None:
        setup = Setup(node=node, device="cpu", cores=1, session="s", case_bytes=1)
        self.has_ended = asyncio.Event()
        super().__init__(ENCODER.encode(setup), end=self.has_ended.set)
        self.name = f"{node}/cpu"
        self.go = asyncio.Event()
        self.attached = asyncio.Event()
        """While it is not set, `attach` waits."""
        self.attached.set()
        self.judged: list[str] = []
        self.failing = 0
        self.is_dead = False
        self.lendings: list[bool] = []
        self._wavedeck = wavedeck or judge_digest()
        self._triton = triton

    async def attach(self) -> bytes:
        """See `NodeJudge`."""
        await self.attached.wait()
        return await super().attach()

    async def lend(self, lent: bool) -> None:  # noqa: FBT001
        """See `NodeJudge`."""
        self.lendings.append(lent)

    async def _open(self) -> bytes:
        return ENCODER.encode(
            JudgeOpened(
                device=Device(name=self.name, kind="cpu"),
                slots=1,
                language=None,
                provenance=Provenance(triton=self._triton),
                wavedeck=self._wavedeck,
            )
        )

    async def _judge(self, call: str, request: JudgeCandidate) -> Finished:
        self.judged.append(request.candidate)
        self._report(StageReported(call, StageEvent("call", self.name)))
        await self.go.wait()
        evaluation = failed(Verdict.INFRA_ERROR) if self.failing else correct()
        self.failing = max(self.failing - 1, 0)
        return Finished(
            call=call, result=ENCODER.encode(msgspec.structs.replace(evaluation, device=self.name))
        )

    async def _survey(self, call: str, request: CompileSources) -> Finished:
        self.judged += request.sources
        return Finished(call=call, result=ENCODER.encode(()))


class InProcess:
    """See `RemoteJudge`. `cut` breaks the connection, as the end of the engine does."""

    def __init__(self, node: ScriptedNode) -> None:
        self._node = node
        self.cut = False

    async def call(self, method: str, *arguments: object, limit_s: float) -> bytes:
        """See `RemoteJudge`."""
        if self.cut:
            raise Unreachable("cut")
        if self._node.is_dead:
            raise Gone("the node died")
        answer = await getattr(self._node, method)(*arguments)
        if self._node.is_dead:
            raise Gone("the node died")
        return answer or b""

    def kill(self) -> None:
        """See `RemoteJudge`."""


class LocalCluster:
    """See `Cluster`."""

    def __init__(self, *judges: ScriptedNode) -> None:
        self.judges = {judge.name: judge for judge in judges}
        self.remotes: list[InProcess] = []

    async def nodes(self) -> Sequence[Node]:
        """See `Cluster`."""
        return [
            Node(name=name.rpartition("/")[0], id=name, cores=1, is_alive=not judge.is_dead)
            for name, judge in self.judges.items()
        ]

    async def judge(self, node: Node, device: str, setup: Setup) -> RemoteJudge:
        """See `Cluster`."""
        self.remotes.append(InProcess(self.judges[device]))
        return self.remotes[-1]

    async def close(self) -> None:
        """See `Cluster`."""

    def kill(self, name: str) -> None:
        """Let a node die."""
        self.judges[name].is_dead = True
        self.judges[name]._news.set()  # ends the wait of `follow`, as a broken connection does

    def replace(self, name: str, judge: ScriptedNode) -> None:
        """Let a judge end on a node that lives; `judge` is the one that starts next."""
        self.kill(name)
        self.judges[name] = judge
