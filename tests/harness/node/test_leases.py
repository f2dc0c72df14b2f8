"""Protects GPU leases between real processes: order of waiters, dead holders, other users, and broken lock files."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from harness import Device, DevicePool
from harness.node import leases
from harness.node.leases import VARIABLE, Holder, Lease, holders, lease, lease_folder, take
from harness.processes.slot import Slot
from harness.wire.errors import LeaseUnavailable
from tests.support.judge.fake_nodes import own_leases

__all__ = ["own_leases"]

GPU = Device(name="0", kind="cuda", address="0000:0a:00.0", package="0000:0a:00")
PARTITION = Device(name="1", kind="hip", address="0000:0a:00.3", package="0000:0a:00")
OTHER = Device(name="2", kind="cuda", address="0000:0b:00.0", package="0000:0b:00")

OTHER_ENGINE = """
import asyncio, sys
from harness import Device, DevicePool
from harness.node.leases import lease

async def hold(exclusive):
    gpu = Device(name="0", kind="cuda", address="0000:0a:00.0", package="0000:0a:00")
    async with lease(gpu, exclusive=exclusive, session="20261121-100000-geak-00aa"):
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(hold(sys.argv[1] == "exclusive"))
"""


@pytest.fixture(autouse=True)
def folder(own_leases: Path) -> Path:
    return own_leases


@asynccontextmanager
async def engine(kind: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A second process that holds the GPU's lease until its standard input ends."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OTHER_ENGINE, kind, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert await process.stdout.readline() == b"held\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()  # `wait` alone leaves its pipes open


class Waiting:
    """A pending request for a lease; `started` is set once it waits, `on` then holds the current holders."""

    def __init__(self, device: Device, *, exclusive: bool) -> None:
        self.started = asyncio.Event()
        self.on: tuple[Holder, ...] = ()
        self.task = asyncio.create_task(take(device, exclusive=exclusive, on_wait=self._wait))

    def _wait(self, on: tuple[Holder, ...]) -> None:
        self.on = on
        self.started.set()

    async def lease(self) -> Lease:
        async with asyncio.timeout(30):
            granted = await self.task
        assert granted is not None
        return granted

    async def cancel(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


async def wait_for_lease(device: Device = GPU, *, exclusive: bool) -> Waiting:
    waiting = Waiting(device, exclusive=exclusive)
    async with asyncio.timeout(30):
        await waiting.started.wait()
    return waiting


def descriptors(folder: Path) -> list[str]:
    """Open files of this process in the folder."""
    links = list(Path("/proc/self/fd").iterdir())
    return [str(link.readlink()) for link in links if link.is_symlink() and folder in link.readlink().parents]


async def test_shared_leases_coexist_and_exclusive_lease_blocks() -> None:
    async with engine("shared"), lease(GPU):
        assert [holder.exclusive for holder in holders(GPU)] == [False, False]
    async with engine("exclusive") as process:
        asking = await wait_for_lease(exclusive=False)
        (holder,) = asking.on
        assert (holder.pid, holder.exclusive) == (process.pid, True)
        assert "session 20261121-100000-geak-00aa" in str(holder)
        process.stdin.close()
        (await asking.lease()).release()


async def test_killed_engine_loses_its_lease() -> None:
    async with engine("exclusive") as process:
        asking = await wait_for_lease(exclusive=True)
        process.kill()
        granted = await asking.lease()
        assert [holder.pid for holder in holders(GPU)] == [os.getpid()]
        granted.release()
    assert holders(GPU) == ()


async def test_timings_that_wait_run_one_after_another_before_shared_waiters() -> None:
    running = await take(GPU)
    order: list[str] = []

    async def hold(kind: str) -> None:
        async with lease(GPU, exclusive=kind == "timing"):
            order.append(kind)
            await asyncio.sleep(0.06)

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for kind in ("timing", "shared", "timing", "shared", "timing"):
            group.create_task(hold(kind))
            await asyncio.sleep(0.05)
        assert order == [], "a shared request that could succeed at once waits behind the timings"
        running.release()
    assert order == ["timing"] * 3 + ["shared"] * 2


async def test_shared_request_that_waited_long_ends_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "BATCH_S", 0.05)
    timing = await take(GPU, exclusive=True)
    shared = await wait_for_lease(exclusive=False)
    await asyncio.sleep(0.2)
    later = await wait_for_lease(exclusive=True)
    timing.release()
    granted = await shared.lease()
    assert not later.task.done()
    granted.release()
    (await later.lease()).release()


async def test_partitions_of_a_package_share_a_lease() -> None:
    async with lease(GPU, exclusive=True):
        async with lease(OTHER, exclusive=True):
            assert len(holders(OTHER)) == 1
        asking = await wait_for_lease(PARTITION, exclusive=True)
    (await asking.lease()).release()


async def test_cancelled_wait_leaves_no_open_file(folder: Path) -> None:
    async with lease(GPU, exclusive=True):
        before = sorted(descriptors(folder))
        for exclusive in (False, True):
            asking = await wait_for_lease(exclusive=exclusive)
            await asking.cancel()
        assert sorted(descriptors(folder)) == before
    assert descriptors(folder) == []
    async with asyncio.timeout(30), lease(GPU, exclusive=True):
        assert len(holders(GPU)) == 1


async def test_cpu_needs_no_lease(folder: Path) -> None:
    async with lease(Device(name="cpu", kind="cpu"), exclusive=True) as granted:
        assert granted is None
    assert not folder.exists()  # noqa: ASYNC240 -- a quick look


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
async def test_lease_binds_a_different_user(folder: Path, tmp_path: Path) -> None:
    for parent in (tmp_path, *tmp_path.parents):
        if (
            parent != Path(parent.anchor)
            and parent.stat().st_uid == 0
            and not parent.stat().st_mode & stat.S_ISVTX
        ):
            parent.chmod(0o755)
    code = (
        "import fcntl, os, sys\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "lock = os.open(sys.argv[1], os.O_RDONLY | os.O_NOFOLLOW)\n"
        "try: fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "except BlockingIOError: print('held')\n"
        "try: os.unlink(sys.argv[1])\n"
        "except PermissionError: print('kept')\n"
    )
    async with lease(GPU):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, str(folder / "gpu-0000-0a-00"), stdout=subprocess.PIPE
        )
        printed, _ = await process.communicate()
    assert printed == b"held\nkept\n"


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
async def test_lock_that_is_no_file_is_refused_by_name(folder: Path, kind: str, tmp_path: Path) -> None:
    lease_folder()
    lock = folder / "gpu-0000-0a-00"
    if kind == "link":
        (tmp_path / "precious").write_text("kept")
        lock.symlink_to(tmp_path / "precious")
    elif kind == "folder":
        lock.mkdir()
    else:
        os.mkfifo(lock)
    with pytest.raises(LeaseUnavailable, match=r"gpu-0000-0a-00 .*remove it"):
        await take(GPU)
    assert descriptors(folder) == []


def test_unsharable_lease_folder_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(LeaseUnavailable, match=f"mode 1777.*{VARIABLE}"):
        lease_folder()
    monkeypatch.setenv(VARIABLE, "leases")
    with pytest.raises(LeaseUnavailable, match="no absolute path"):
        lease_folder()
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "link"))
    with pytest.raises(LeaseUnavailable, match="is no folder"):
        lease_folder()


async def test_engine_waits_for_its_own_timers_without_an_event() -> None:
    """Timers of the previous evaluation are still ending when the next evaluation asks for the leases."""
    gpu = Device(name="0", kind="cuda", target="sm_90", address=GPU.address, package=GPU.package)
    events: list[object] = []
    pool = DevicePool(session="mine", on_device=events.append)
    slot = Slot(gpu, pool.compiling)
    may_end, ended = asyncio.Event(), asyncio.Event()

    async def end() -> None:
        await may_end.wait()
        ended.set()

    async with pool.leases.timing(slot):
        pool.leases.release_after(slot, end())
    async with pool.leases.using(slot):
        assert not ended.is_set(), "calls do not wait for the earlier timers"
    may_end.set()
    async with pool.leases.timing(slot):
        assert ended.is_set(), "a timing waits for them"
    assert events == []
    assert pool.leases.timings == 1
