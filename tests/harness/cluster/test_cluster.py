"""Judging on a cluster, without Ray: who gets a candidate, what happens when a node is lost, and what `--devices ray` means."""

from __future__ import annotations

import asyncio
import hashlib
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from harness import Device, Evaluation, Verdict, target
from harness.cluster import node_judge, ray_cluster
from harness.cluster.choice import Look, choose
from harness.cluster.cluster_pool import ClusterPool
from harness.cluster.node_facts import ClusterNodeFacts, Node, judge_digest, name_nodes
from harness.cluster.parcels import Parcel, keep_parcel, pack_folder
from harness.cluster.ray_cluster import ClusterUnavailable, connect
from harness.processes.gpus.quarantine import DeviceEvent, Quarantined
from harness.stages.modes import Attempt
from harness.wire.channels.channel import ENCODER
from harness.wire.errors import HarnessError, NoDeviceLeft, UnknownDevice
from suites import load_task
from tests.support.judge.cluster_nodes import LocalCluster, ScriptedNode
from tests.support.waiting import await_until

ROOT = Path(__file__).parents[3]
TASK = load_task("vector_add")


class Watched:
    """A pool on scripted nodes, with what it reported."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.events: list[DeviceEvent] = []
        self.warnings: list[str] = []
        self.cluster = cluster
        self.pool = ClusterPool(
            cluster,
            list(cluster.judges),
            tasks=[TASK],
            session="s",
            on_device=self.events.append,
            on_warning=self.warnings.append,
        )

    def judge(self, candidate: str, *, name: str = "", device: str = "") -> asyncio.Task[Evaluation]:
        mode = Attempt(device)
        work = self.pool.evaluate(candidate, TASK, mode, targets=[target("gfx942")], seed=1, name=name)
        return asyncio.create_task(work)


def nodes(*names: str) -> list[ScriptedNode]:
    return [ScriptedNode(name) for name in names or ("node1", "node2", "node3")]


async def test_candidates_of_a_lost_node_are_judged_elsewhere() -> None:
    first, second = nodes("node1", "node2")
    watched = Watched(LocalCluster(first, second))
    async with watched.pool:
        judging = [watched.judge("a"), watched.judge("b")]
        await await_until(lambda: first.judged and second.judged, "both nodes to judge")
        watched.cluster.kill("node1/cpu")
        second.go.set()
        evaluations = [await evaluation for evaluation in judging]
        assert [evaluation.device for evaluation in evaluations] == ["node2/cpu"] * 2
        assert sorted(second.judged) == ["a", "b"]
        await await_until(lambda: watched.events, "the loss")
        assert watched.events == [Quarantined("node1/cpu", "its node is not in the cluster")]
        assert "judged again on another node" in watched.warnings[0]
        assert not any(evaluation.notes for evaluation in evaluations), "no prompt depends on a lost node"


async def test_device_that_fails_its_probe_gets_no_candidate_and_no_new_judge() -> None:
    first, second = nodes("node1", "node2")
    second.go.set()
    watched = Watched(LocalCluster(first, second))
    async with watched.pool:
        failed = Quarantined("node1/cpu", "3 of 8 sums came back wrong")
        first._on_device(failed)
        await await_until(lambda: watched.events, "the loss")
        assert watched.events == [failed]
        assert (await watched.judge("a")).device == "node2/cpu"
        assert len(watched.cluster.remotes) == 2


async def test_candidate_that_loses_every_node_is_our_failure() -> None:
    judges = nodes("node1", "node2", "node3", "node4")
    watched = Watched(LocalCluster(*judges))
    async with watched.pool:
        judging = watched.judge("poison")
        for _ in range(3):
            await await_until(lambda: any(j.judged and not j.is_dead for j in judges), "a node to judge")
            watched.cluster.kill(next(j.name for j in judges if j.judged and not j.is_dead))
        evaluation = await judging
    assert evaluation.verdict is Verdict.INFRA_ERROR
    assert evaluation.judged_again, "the engine does not ask again"
    assert sum(bool(judge.judged) for judge in judges) == 3


async def test_resumed_engine_takes_over_what_is_judged() -> None:
    (node,) = nodes("node1")
    cluster = LocalCluster(node)
    killed, resumed = Watched(cluster), Watched(cluster)
    async with killed.pool:
        lost = killed.judge("a", name="a#1/1")
        await await_until(lambda: node.judged, "the node to judge")
        cluster.remotes[0].cut = True
        async with resumed.pool:
            new = resumed.judge("a", name="a#2/1")
            taken = resumed.judge("a", name="a#1/1")
            node.go.set()
            assert (await taken).verdict is Verdict.CORRECT
            assert (await new).verdict is Verdict.CORRECT
        lost.cancel()
    assert node.judged == ["a", "a"], "once for each attempt"


async def test_attempt_that_the_judge_failed_on_is_judged_once_more_on_the_same_node() -> None:
    (node,) = nodes("node1")
    node.failing = 1
    node.go.set()
    watched = Watched(LocalCluster(node))
    async with watched.pool:
        verdicts = []
        for _ in range(2):
            judging = watched.judge("a", name="a#1/1")
            await await_until(judging.done, "the judgement")
            verdicts.append((await judging).verdict)
    assert verdicts == [Verdict.INFRA_ERROR, Verdict.CORRECT]


async def test_judge_that_no_engine_follows_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_judge, "ORPHAN_S", 0.05)
    (node,) = nodes("node1")
    await node.open()
    await node.has_ended.wait()


async def test_lent_and_lost_devices_get_no_candidate() -> None:
    first, second = nodes("node1", "node2")
    for node in (first, second):
        node.go.set()
    watched = Watched(LocalCluster(first, second))
    async with watched.pool:
        watched.pool.lend({"node1/cpu"})
        for candidate in ("a", "b"):
            assert (await watched.judge(candidate)).device == "node2/cpu"
        await await_until(lambda: first.lendings == [True], "the node to hear of it")
        watched.pool.lend(())
        assert (await watched.judge("c", device="node1/cpu")).device == "node1/cpu"
        for name in ("node1/cpu", "node2/cpu"):
            watched.cluster.kill(name)
        await await_until(lambda: len(watched.events) == 2, "both losses")
        assert "is lost" in str((await watched.judge("d", device="node1/cpu")).error)
        with pytest.raises(NoDeviceLeft, match="bring its nodes back, then resume"):
            await watched.judge("e")


async def test_survey_asks_no_judge_that_is_still_opening() -> None:
    first, second, new = nodes("node1", "node2", "node1")
    new.attached.clear()
    watched = Watched(LocalCluster(first, second))
    async with watched.pool:
        watched.cluster.replace("node1/cpu", new)
        await await_until(lambda: len(watched.cluster.remotes) == 3, "the new judge")
        survey = watched.pool.survey(TASK, target("gfx942"))
        surveying = asyncio.create_task(survey.compile(["a", "b"]))
        await await_until(surveying.done, "the survey")
        assert (sorted(second.judged), new.judged) == (["a", "b"], [])
        new.attached.set()
        await await_until(lambda: watched.warnings, "the new judge in service")
        await survey.compile(["c", "d"])
        assert len(new.judged) == 1, "it takes its turn"


async def test_versions_are_compared_before_the_first_candidate() -> None:
    strange = LocalCluster(ScriptedNode("node1"), ScriptedNode("node2", wavedeck="0123"))
    with pytest.raises(HarnessError, match=r"^node2 has another Wavedeck \(0123, here \w+\)"):
        async with Watched(strange).pool:
            pass
    mixed = Watched(LocalCluster(ScriptedNode("node1"), ScriptedNode("node2", triton="3.7.0")))
    async with mixed.pool:
        assert "triton (3.6.0 on node1; 3.7.0 on node2): their figures are kept apart" in mixed.warnings[0]


def facts(name: str, *gpus: str, problem: str = "", labels: dict[str, str] | None = None) -> ClusterNodeFacts:
    cpu = Device(name="cpu", kind="cpu")
    devices = [Device(name=str(number), kind="hip", target=gpu) for number, gpu in enumerate(gpus)]
    return ClusterNodeFacts(
        node=Node(name=name, id=name, cores=8, labels=labels or {}),
        devices=(cpu, *devices),
        cores=8,
        versions={"wavedeck": judge_digest(), "triton": "3.6.0"},
        problem=problem,
    )


LOOK = Look(
    "head:6379",
    (
        facts("head", problem="torch not installed there"),
        facts("node1", "gfx942", "gfx942", labels={"pool": "b"}),
        facts("node2", "gfx950"),
    ),
)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("", "node1/0 node1/1 node2/0"),
        ("node1", "node1/0 node1/1"),
        ("node2/0", "node2/0"),
        ("gfx942", "node1/0 node1/1"),
        ("pool=b", "node1/0 node1/1"),
        ("node2 node1/1", "node2/0 node1/1"),
    ],
)
def test_names_after_ray_choose_devices(words: str, names: str) -> None:
    assert [device.name for device in choose(LOOK, words.split()).devices] == names.split()


def test_name_that_no_node_has_is_an_error_that_offers_names() -> None:
    for word in ("gfx90a", "pool=c", "node9"):
        with pytest.raises(UnknownDevice, match=rf"head:6379 has '{word}'; it has .*node1/0 \(gfx942\)"):
            choose(LOOK, [word])
    with pytest.raises(HarnessError, match="node head cannot judge: torch not installed there"):
        choose(LOOK, ["head"])


def test_nodes_of_one_host_have_different_names() -> None:
    row = {"NodeManagerAddress": "10.0.0.1", "NodeManagerHostname": "gpu7.cluster"}
    rows = [{**row, "NodeID": "a1b2c3", "NodeName": "10.0.0.1"}, {**row, "NodeID": "d4e5f6", "NodeName": ""}]
    assert name_nodes([*rows, {**row, "NodeID": "ffff00", "NodeName": "left/b"}]) == {
        "a1b2c3": "gpu7-a1b2",
        "d4e5f6": "gpu7-d4e5",
        "ffff00": "left-b",
    }


def test_task_folder_arrives_whole_or_not_at_all(tmp_path: Path) -> None:
    parcel = pack_folder(TASK.folder)
    folder = keep_parcel(parcel)
    assert pack_folder(folder) == parcel
    with pytest.raises(HarnessError, match="damaged"):
        keep_parcel(Parcel("0" * 64, parcel.packed))
    escaping = ENCODER.encode({"../outside": b"x"})
    with pytest.raises(HarnessError, match="outside itself"):
        keep_parcel(Parcel(hashlib.sha256(escaping).hexdigest(), escaping))


async def test_cluster_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ClusterUnavailable, match=r"^--devices ray needs Ray.*pip install 'wavedeck\[ray\]'$"):
        await connect("", "s")
    monkeypatch.setattr(ray_cluster.importlib.util, "find_spec", lambda _: object())
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(
        ClusterUnavailable, match=r"^no Ray cluster answers at 127.0.0.1:1 \(Connection refused\)"
    ):
        await connect("", "s")


def test_files_of_the_page_are_whole_and_name_the_extras_ray() -> None:
    page = (ROOT / "docs/cluster.md").read_text(encoding="utf-8")
    script, manifest = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("bash", "yaml"))
    assert script is not None
    assert manifest is not None
    subprocess.run(["bash", "-n"], input=script[1].encode(), check=True)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    spec = yaml.safe_load(manifest[1])["spec"]
    assert extras["optional-dependencies"]["ray"] == [f"ray=={spec['rayVersion']}"]
