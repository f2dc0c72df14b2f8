"""Protects Triton's launchers: built once by a worker and copied into every process's folder. Needs no GPU."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from harness import DevicePool
from harness.processes.kernel_cache import FOLDER
from harness.processes.starting.launchers import POINTER, Launchers
from harness.processes.starting.servers import Child, ForkServer
from harness.processes.starting.spares import Spares
from harness.wire.channels.async_channel import AsyncChannel
from harness.wire.device import Device
from tests.support.judge.fake_nodes import IdleNode, idle_node, own_leases
from tests.support.judge.nurseries import one_nursery

__all__ = ["idle_node", "own_leases"]
GPU = Device(name="0", kind="cuda", target="sm_90", visibility="CUDA_VISIBLE_DEVICES=0")


class Builder:
    """A server whose only worker builds the test's files, or ends early."""

    def __init__(self, scratch: Path, built: dict[str, bytes], *, ends: bool = False) -> None:
        self.scratch = scratch
        self.requests: list[tuple[tuple[str, ...], ...]] = []
        self._built = built
        self._ends = ends

    async def spawn(self, role: str, **_: object) -> tuple[Child, AsyncChannel]:
        assert role == "launchers"
        ours, theirs = socket.socketpair()
        return cast(Child, _Worker(self.scratch)), cast(AsyncChannel, _Channel(self, ours, theirs))

    def build(self, wanted: tuple[tuple[str, ...], ...]) -> None:
        self.requests.append(wanted)
        if self._ends:
            raise EOFError
        for name, content in self._built.items():
            file = self.scratch / FOLDER / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


class _Worker:
    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch

    def end(self) -> None:
        """Does nothing: no process runs."""


class _Channel:
    def __init__(self, builder: Builder, *ends: socket.socket) -> None:
        self._builder, self._ends = builder, ends

    async def send(self, frame: bytes) -> None:
        self._builder.build(msgspec.msgpack.decode(frame, type=tuple[tuple[str, ...], ...]))

    async def receive(self) -> bytes:
        return b"built"

    def close(self) -> None:
        for end in self._ends:
            end.close()


def server(builder: Builder) -> ForkServer:
    return cast(ForkServer, cast(Any, builder))


def restore(launchers: Launchers, scratch: Path) -> dict[str, bytes]:
    scratch.mkdir()
    launchers.lay(scratch, GPU)
    top = scratch / FOLDER
    return {str(file.relative_to(top)): file.read_bytes() for file in top.rglob("*") if file.is_file()}


async def test_built_libraries_are_copied_to_next_process(tmp_path: Path) -> None:
    builder = Builder(
        tmp_path / "builder", {"A/launcher.so": b"built", "B/utils.so": b"too", "A/x.json": b"/path"}
    )
    launchers = Launchers()
    assert restore(launchers, tmp_path / "before") == {}
    launchers.want("sm_90", [("*fp32", "i32", "constexpr")])
    for _ in range(3):
        await launchers.build(server(builder), GPU)
    assert builder.requests == [(), ((POINTER, "i32", "constexpr"),)], "the driver module first, alone"
    assert restore(launchers, tmp_path / "after") == {"A/launcher.so": b"built", "B/utils.so": b"too"}


async def test_launchers_of_new_kernels_are_built_at_once_and_reach_their_recorder(
    idle_node: IdleNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorder is a spare that started before the kernels were known."""
    builder, scratch = Builder(tmp_path / "builder", {"A/launcher.so": b"built"}), tmp_path / "recorder"
    monkeypatch.setattr(ForkServer, "alive", True)
    monkeypatch.setattr(ForkServer, "spawn", lambda _, role, **named: builder.spawn(role, **named))
    monkeypatch.setattr(Spares, "missing", lambda *_: [])
    idle_node(GPU)
    pool = DevicePool(("0",))
    for types in ("*fp32", "*fp16"):
        pool.expect("sm_90", [(types, "i32")])
        await pool._filling["0"]
    assert builder.requests == [(), ((POINTER, "i32"),)]
    scratch.mkdir()
    await asyncio.to_thread(pool.lay, "x = 1", scratch, GPU)
    assert (scratch / FOLDER / "A/launcher.so").read_bytes() == b"built"


@pytest.mark.judge
async def test_launcher_role_answers_without_a_gpu() -> None:
    launchers = Launchers()
    launchers.want("sm_90", [("*fp32", "i32")])
    with one_nursery():
        async with ForkServer(interpret=False, furnish=launchers.lay) as real:
            for _ in range(2):
                await launchers.build(real, GPU)
