"""Protects the removal of a worker's scratch folder if the worker's start fails or is cancelled."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from pathlib import Path

import pytest

from harness.processes.starting.servers import ForkServer
from harness.wire.device import Device
from harness.wire.errors import WorkerDied

pytestmark = pytest.mark.judge
GPU = Device(name="0", kind="cuda", target="sm_90", visibility="CUDA_VISIBLE_DEVICES=0")


class PausedFurnishing:
    """Fills a scratch folder, but only after the test allows it."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, scratch: Path, device: Device) -> None:
        assert device is GPU
        self.begun.set()
        self.go_on.wait(30)
        (scratch / "filled").write_bytes(b"")


def folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("wavedeck-guest-*"))


async def until_gone(before: set[Path]) -> None:
    async with asyncio.timeout(30):
        while folders() - before:  # noqa: ASYNC110 (no event reports a removed folder)
            await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.soak
async def test_cancelled_start_leaves_no_folder() -> None:
    furnish, before = PausedFurnishing(), folders()
    async with ForkServer(interpret=False, furnish=furnish) as server:
        starting = asyncio.create_task(server.spawn_for_another("guest", sandboxed=True, device=GPU))
        await asyncio.to_thread(furnish.begun.wait, 30)
        starting.cancel()
        furnish.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await until_gone(before)


@pytest.mark.soak
async def test_full_disk_is_reported_and_leaves_no_folder() -> None:
    def full(_scratch: Path, _device: Device) -> None:
        raise OSError(28, "No space left on device")

    before = folders()
    async with ForkServer(interpret=False, furnish=full) as server:
        with pytest.raises(WorkerDied, match="No space left"):
            await server.spawn_for_another("guest", sandboxed=True, device=GPU)
        await until_gone(before)
