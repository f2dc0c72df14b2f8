"""Sessions on a real Ray cluster of three nodes on loopback, judged by the interpreter. Needs the extra `ray`."""

from __future__ import annotations

import importlib.util
import os
import signal
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.process import launch
from sessions import Home, fold
from sessions.events import AttemptJudged, EngineStarted, Event, SessionFinished, StageFinished, StageStarted
from tests.faults.person import assert_nothing_is_paid_twice
from tests.support.engine.live_engines import info_of, journal, plan_for, repaired, started, until_left
from tests.support.engine.model_server import model_server
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.judge,
    pytest.mark.soak,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs pip install 'wavedeck[ray]'"),
]
STORE_BYTES = 100 << 20
ELSEWHERE_S = 30.0


class Raylets:
    """A cluster of `node1` (the head), `node2` and `node3`."""

    def __init__(self, cluster: Any) -> None:
        self.address: str = cluster.address
        self._cluster = cluster
        self._nodes = {
            name: cluster.add_node(num_cpus=1, node_name=name, object_store_memory=STORE_BYTES)
            for name in ("node2", "node3")
        }

    def kill(self, name: str) -> None:
        """Kill a node's raylet, as a node that loses its power."""
        self._cluster.remove_node(self._nodes.pop(name), allow_graceful=False)


@pytest.fixture
def raylets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Raylets]:
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    head = {
        "num_cpus": 1,
        "include_dashboard": False,
        "node_name": "node1",
        "object_store_memory": STORE_BYTES,
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        raylets = Raylets(cluster)
        monkeypatch.setenv("RAY_ADDRESS", raylets.address)
        yield raylets
    finally:
        cluster.shutdown()


def judged_on(node: str, events: list[Event]) -> list[str]:
    """Return the attempts that a node is judging."""
    judging: dict[str, str] = {}
    for event in events:
        if isinstance(event, StageStarted):
            judging[event.attempt] = event.device
        elif isinstance(event, AttemptJudged):
            judging.pop(event.attempt, None)
    return [attempt for attempt, device in judging.items() if device.startswith(f"{node}/")]


def evaluations(events: list[Event]) -> dict[tuple[str, bool], int]:
    """Return how often each candidate was judged. An evaluation that a resumed engine took over reports equal seconds again."""
    seconds: dict[tuple[str, bool], set[float]] = defaultdict(set)
    for event in events:
        if isinstance(event, StageFinished) and event.stage.name == "call" and event.stage.ok is not None:
            seconds[event.attempt, event.exam].add(event.stage.seconds)
    return {candidate: len(different) for candidate, different in seconds.items()}


def test_a_lost_node_and_a_killed_engine_change_no_verdict(raylets: Raylets, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    size = {"instances": 4, "iterations": 2}
    with model_server(answer=repaired) as server:
        with started(plan_for(server, devices=("cpu",), **size), home) as on_one_machine:
            until_left(home, on_one_machine)
        expected, requests = outcomes(journal(home, on_one_machine)), len(server.requests)

        with started(plan_for(server, devices=("ray",), **size), home) as session:
            wait_until(lambda: judged_on("node3", journal(home, session)), "node3 to judge")
            raylets.kill("node3")
            lost = judged_on("node3", journal(home, session))
            killed_at = journal(home, session)[-1].wall
            wait_until(
                lambda: not judged_on("node3", journal(home, session)), "its candidates to go on elsewhere"
            )
            count = len(journal(home, session))
            wait_until(
                lambda: any(isinstance(event, StageStarted) for event in journal(home, session)[count:]),
                "an evaluation to interrupt",
            )
            os.kill(info_of(home, session).pid, signal.SIGKILL)
            until_left(home, session)
            launch.resume(home, session)
            until_left(home, session)
        events = journal(home, session)
        assert_nothing_is_paid_twice(events, len(server.requests) - requests)
    assert isinstance(events[-1], SessionFinished)
    assert sum(isinstance(event, EngineStarted) for event in events) == 2
    assert outcomes(events) == expected
    elsewhere = [
        event.wall - killed_at
        for event in events
        if isinstance(event, StageStarted) and event.attempt in lost and "node3" not in event.device
    ]
    assert lost
    assert min(elsewhere) < ELSEWHERE_S
    twice = {attempt for (attempt, _), count in evaluations(events).items() if count > 1}
    assert twice <= set(lost)


def outcomes(events: Sequence[Event]) -> dict[str, tuple[object, ...]]:
    """Return what the attempts of a session are, without times: prompts, lineage, candidates and verdicts."""
    state = fold(events)  # type: ignore[arg-type]
    return {
        attempt.attempt: (
            attempt.origin,
            attempt.base,
            attempt.source,
            attempt.strategy,
            attempt.verdict,
            attempt.exam.verdict if attempt.exam else None,
            [(call.call, call.messages, call.text) for call in attempt.calls],
        )
        for attempt in state.attempts()
    }
