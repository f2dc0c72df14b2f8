"""Ray behind `Cluster` and `RemoteJudge`. No other module imports Ray, which is an optional extra.

The judges are detached actors with names in a namespace of the session, so an engine that was killed finds them again. They are
placed on nodes by Ray's identifiers and take none of Ray's own resources: several sessions share a GPU by its lease, as on one
machine, and Ray does not know every GPU anyway. Which GPUs a node has, its own drivers say.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import socket
from collections.abc import Sequence
from typing import Any

from harness.wire.channels.channel import ENCODER
from harness.wire.errors import HarnessError

from .member import Gone, RemoteJudge, Unreachable
from .messages import Setup
from .node_facts import FACTS, NODE, ClusterNodeFacts, Node, describe_this_node, name_nodes
from .node_judge import NodeJudge

VARIABLE = "RAY_ADDRESS"
AUTO = "auto"
CONNECT_S = 5.0
JOIN_S = 15.0
"""Limit for Ray to join a cluster that answers."""
PROBE_S = 60.0
"""Limit for a node to describe itself: a process of Ray starts there, and asks the GPU's driver."""
MISSING = "--devices ray needs Ray, which is not installed here; pip install 'wavedeck[ray]'"


class ClusterUnavailable(HarnessError):
    """There is no Ray cluster, or this machine cannot use it."""


class RayCluster:
    """A connection to a Ray cluster; one at a time in a process."""

    def __init__(self, address: str, session: str) -> None:
        self.address = address
        self._session = session

    async def nodes(self) -> Sequence[Node]:
        """See `Cluster`."""
        return await asyncio.to_thread(_nodes)

    async def judge(self, node: Node, device: str, setup: Setup) -> RemoteJudge:
        """See `Cluster`."""
        return await asyncio.to_thread(self._find_or_make, node, device, setup)

    async def facts(self) -> list[ClusterNodeFacts]:
        """Ask every living node to describe itself, all at once. A node that does not answer gets facts that say so."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_describe(node), name=f"describe/{node.name}")
                for node in await self.nodes()
                if node.is_alive
            ]
        return [task.result() for task in tasks]

    async def close(self) -> None:
        """See `Cluster`."""
        import ray

        await asyncio.to_thread(ray.shutdown)

    def _find_or_make(self, node: Node, device: str, setup: Setup) -> RemoteJudge:
        """Return the judge of a device: an actor that lives already, or a new one on the node. An actor outlives its engine."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        namespace = f"wavedeck-{self._session}"
        try:
            return RayRemote(ray.get_actor(device, namespace=namespace))
        except ValueError:
            pass  # there is none
        actor = ray.remote(NodeJudge).options(
            name=device,
            namespace=namespace,
            lifetime="detached",
            num_cpus=0,
            num_gpus=0,
            max_restarts=0,
            max_concurrency=1000,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
        )
        return RayRemote(actor.remote(ENCODER.encode(setup)))


class RayRemote:
    """See `RemoteJudge`."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    async def call(self, method: str, *arguments: object, limit_s: float) -> bytes:
        """Call a method of the actor and return its bytes.

        Raises `Gone` if the actor has died, `Unreachable` if it does not answer in time, and `HarnessError` with what the
        method raised.
        """
        import ray.exceptions as errors

        try:
            async with asyncio.timeout(limit_s):
                return await getattr(self._actor, method).remote(*arguments) or b""
        except TimeoutError:
            raise Unreachable(f"it did not answer for {limit_s:g} s") from None
        except (errors.ActorDiedError, errors.ActorUnschedulableError) as error:
            raise Gone(_reason(error)) from error
        except errors.RayTaskError as error:
            cause = error.cause
            text = str(cause) if isinstance(cause, HarnessError) else f"bug in the judge: {cause!r}"
            raise HarnessError(text) from error
        except errors.RayError as error:
            raise Unreachable(_reason(error)) from error

    def kill(self) -> None:
        """See `RemoteJudge`."""
        import ray

        ray.kill(self._actor)


async def connect(address: str, session: str) -> RayCluster:
    """Connect to a cluster: `address` is `HOST:PORT`, or empty for `RAY_ADDRESS`, or for the cluster that runs on this machine.

    Raises `ClusterUnavailable` in one line, within seconds.
    """
    if importlib.util.find_spec("ray") is None:
        raise ClusterUnavailable(MISSING)
    target = address or os.environ.get(VARIABLE) or AUTO
    if target != AUTO:
        await asyncio.to_thread(_check_address, target)
    try:
        async with asyncio.timeout(JOIN_S):
            return RayCluster(await asyncio.to_thread(_init, target), session)
    except TimeoutError:
        where = "on this machine" if target == AUTO else f"at {target}"
        raise ClusterUnavailable(
            f"the Ray cluster {where} did not answer within {JOIN_S:g} s; see `ray status`, or start one: docs/cluster.md"
        ) from None


async def reconnect(address: str, session: str) -> RayCluster:
    """Connect to the cluster of a session. If `address` does not answer, use `RAY_ADDRESS`: the cluster may have moved."""
    try:
        return await connect(address, session)
    except ClusterUnavailable:
        if os.environ.get(VARIABLE, address) == address:
            raise
    return await connect("", session)


def _init(address: str) -> str:
    """Connect to a Ray cluster and return its address. Raises `ClusterUnavailable`."""
    import ray

    logging.getLogger("ray").setLevel(logging.ERROR)  # it warns that it leaves our signal handlers alone
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False, logging_level="ERROR")
        return str(ray.get_runtime_context().gcs_address)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        where = "on this machine" if address == AUTO else f"at {address}"
        raise ClusterUnavailable(
            f"no Ray cluster can be used {where} ({_reason(error)}); start Wavedeck on a node of the cluster, such as its head, "
            f"and give its address by --devices ray:HOST:PORT or {VARIABLE}"
        ) from error


def _check_address(address: str) -> None:
    """Fail at once for an address where nothing answers: Ray itself would try for a minute."""
    if "://" in address:
        raise ClusterUnavailable(
            f"{address} is an address of Ray Client, which judging does not use; give HOST:PORT of the head (ray start prints it)"
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ClusterUnavailable(
            f"{address!r} is no address of a Ray cluster; write HOST:PORT, as ray start prints it"
        )
    try:
        with socket.create_connection((host, int(port)), timeout=CONNECT_S):
            pass
    except OSError as error:
        raise ClusterUnavailable(
            f"no Ray cluster answers at {address} ({error.strerror or error}); ray start prints the address of a new one"
        ) from error


def _nodes() -> list[Node]:
    """Return the nodes of the cluster, with their resources among their labels. A node that died is listed too."""
    import ray

    rows = ray.nodes()
    names = name_nodes([row for row in rows if row["Alive"]])
    return [
        Node(
            name=names.get(row["NodeID"], str(row["NodeName"])),
            id=row["NodeID"],
            cores=int(row["Resources"].get("CPU", 0)),
            labels={
                **row.get("Labels", {}),
                **{name: f"{count:g}" for name, count in row["Resources"].items()},
            },
            is_alive=row["Alive"],
        )
        for row in rows
    ]


async def _describe(node: Node) -> ClusterNodeFacts:
    """Ask a node for its devices and versions. A node that fails to answer gets facts that say why."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(_encoded_facts).options(
        num_cpus=0, max_retries=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False)
    )
    try:
        async with asyncio.timeout(PROBE_S):
            return FACTS.decode(await task.remote(ENCODER.encode(node)))
    except TimeoutError:
        return ClusterNodeFacts(node=node, problem=f"it did not answer within {PROBE_S:g} s")
    except ray.exceptions.RayError as error:
        problem = _reason(error)
        if "No module named" in str(error):
            problem = "Wavedeck is not installed in the Python that Ray uses there"
        return ClusterNodeFacts(node=node, problem=problem)


def _encoded_facts(node: bytes) -> bytes:
    return ENCODER.encode(describe_this_node(NODE.decode(node)))


def _reason(error: BaseException) -> str:
    """The first line of an error of Ray, which may fill a screen."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(error).__name__
