"""Nodes with GPUs that tests do not have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.node import discovery
from harness.node.drivers import DriverGpu
from harness.node.leases import VARIABLE
from harness.processes.starting.servers import ForkServer
from harness.wire.device import Device

IdleNode = Callable[..., None]
DriversAnswer = Callable[..., None]


@pytest.fixture
def own_leases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Leases of GPUs lie in this folder, which does not exist yet."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "leases"))
    return tmp_path / "leases"


@pytest.fixture
def idle_node(own_leases: Path, monkeypatch: pytest.MonkeyPatch) -> IdleNode:
    """Returns a function that gives pools these GPUs, by name. Their servers do not run: no candidate is judged."""

    async def start(self: ForkServer) -> None:
        pass

    def begin(*devices: Device) -> None:
        by_name = {device.name: device for device in devices}
        monkeypatch.setattr(
            "harness.processes.pool.choose_devices", lambda names: tuple(by_name[name] for name in names)
        )
        monkeypatch.setattr(ForkServer, "start", start)

    return begin


@pytest.fixture
def drivers_answer(monkeypatch: pytest.MonkeyPatch) -> DriversAnswer:
    """Returns a function that lets the drivers report these GPUs, and the `reachable` ones if no variable hides any."""

    def answer(*visible: DriverGpu, reachable: Sequence[DriverGpu] | None = None) -> None:
        def ask(*, limited: bool = True) -> tuple[DriverGpu, ...]:
            return visible if limited or reachable is None else tuple(reachable)

        monkeypatch.setattr(discovery, "_DRIVER_NODES", (Path("/"),))
        monkeypatch.setattr(discovery, "_ask_drivers", ask)

    return answer
