"""What Triton builds for all kernels alike, built once and laid into every process's folder; no GPU is needed to ask."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from harness.processes.kernel_cache import FOLDER
from harness.processes.launchers import POINTER, Launchers
from harness.processes.servers import Child, ForkServer
from harness.wire.async_channel import AsyncChannel
from harness.wire.device import Device
from harness.wire.errors import WorkerDied

GPU = Device(name="0", kind="cuda", target="sm_90", visibility="CUDA_VISIBLE_DEVICES=0")


class Builder:
    """A server whose one worker builds what a test wants it to, or ends before it did."""

    def __init__(self, scratch: Path, built: dict[str, bytes], *, ends: bool = False) -> None:
        self.scratch = scratch
        self.asked: list[tuple[tuple[str, ...], ...]] = []
        self._built = built
        self._ends = ends

    async def spawn(self, role: str, **_: object) -> tuple[Child, AsyncChannel]:
        assert role == "launchers"
        ours, theirs = socket.socketpair()
        return cast(Child, _Worker(self.scratch)), cast(AsyncChannel, _Channel(self, ours, theirs))

    def build(self, wanted: tuple[tuple[str, ...], ...]) -> None:
        self.asked.append(wanted)
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
        """Nothing runs."""


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


def laid(launchers: Launchers, scratch: Path) -> dict[str, bytes]:
    scratch.mkdir()
    launchers.lay(scratch, GPU)
    top = scratch / FOLDER
    return {str(one.relative_to(top)): one.read_bytes() for one in top.rglob("*") if one.is_file()}


async def test_what_was_built_lies_where_the_next_process_looks(tmp_path: Path) -> None:
    builder = Builder(
        tmp_path / "builder", {"A/launcher.so": b"built", "B/utils.so": b"too", "A/x.json": b"/path"}
    )
    launchers = Launchers()
    assert laid(launchers, tmp_path / "before") == {}
    launchers.want("sm_90", [("*fp32", "i32", "constexpr")])
    await launchers.build(server(builder), GPU)
    assert builder.asked == [((POINTER, "i32", "constexpr"),)]
    assert laid(launchers, tmp_path / "after") == {"A/launcher.so": b"built", "B/utils.so": b"too"}


async def test_the_same_types_are_asked_for_once(tmp_path: Path) -> None:
    builder, launchers = Builder(tmp_path / "builder", {}), Launchers()
    launchers.want("sm_90", [("*fp32", "i32")])
    await launchers.build(server(builder), GPU)
    launchers.want("sm_90", [("*fp16", "i32")])
    await launchers.build(server(builder), GPU)
    launchers.want("sm_90", [("*fp16", "i64")])
    await launchers.build(server(builder), GPU)
    assert builder.asked == [((POINTER, "i32"),), ((POINTER, "i64"),)]


async def test_a_builder_that_ends_early_is_told_and_not_asked_again(tmp_path: Path) -> None:
    builder, launchers = Builder(tmp_path / "builder", {}, ends=True), Launchers()
    with pytest.raises(WorkerDied, match="launchers"):
        await launchers.build(server(builder), GPU)
    await launchers.build(server(builder), GPU)
    assert len(builder.asked) == 1


@pytest.mark.judge
async def test_the_role_answers_where_there_is_no_gpu() -> None:
    launchers = Launchers()
    launchers.want("sm_90", [("*fp32", "i32")])
    async with ForkServer(interpret=False, furnish=launchers.lay) as real:
        await launchers.build(real, GPU)
