"""Leases of GPUs between real processes: who waits for whom, who is starved, what a dead holder leaves behind."""

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
from harness.node.leases import VARIABLE, Holder, Lease, holders, lease, lease_folder, take
from harness.processes.pool import Slot
from harness.wire.errors import LeaseUnavailable

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
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "leases"))
    return tmp_path / "leases"


@asynccontextmanager
async def engine(kind: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Another process that holds the GPU's lease; it gives it back when its input ends."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OTHER_ENGINE, kind, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"held\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


class Waiting:
    """A lease that is asked for; `started` once it waits, with whom it waits for."""

    def __init__(self, device: Device, *, exclusive: bool) -> None:
        self.started = asyncio.Event()
        self.on: tuple[Holder, ...] = ()
        self.task = asyncio.create_task(take(device, exclusive=exclusive, on_wait=self._wait))

    def _wait(self, on: tuple[Holder, ...]) -> None:
        self.on = on
        self.started.set()

    async def got(self) -> Lease:
        async with asyncio.timeout(30):
            held = await self.task
        assert held is not None
        return held

    async def call_off(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


async def waits(device: Device = GPU, *, exclusive: bool) -> Waiting:
    found = Waiting(device, exclusive=exclusive)
    async with asyncio.timeout(30):
        await found.started.wait()
    return found


def was_made(folder: Path) -> bool:
    return folder.exists()


def descriptors(folder: Path) -> list[str]:
    """Files of the folder that this process has open."""
    links = list(Path("/proc/self/fd").iterdir())
    return [str(link.readlink()) for link in links if link.is_symlink() and folder in link.readlink().parents]


@pytest.mark.asyncio
async def test_two_engines_run_on_a_gpu_at_once_and_one_times_on_it_alone() -> None:
    async with engine("shared"), lease(GPU):
        assert [one.exclusive for one in holders(GPU)] == [False, False]
    async with engine("exclusive") as other:
        asking = await waits(exclusive=False)
        (holder,) = asking.on
        assert (holder.pid, holder.exclusive) == (other.pid, True)
        assert "session 20261121-100000-geak-00aa" in str(holder)
        assert other.stdin is not None
        other.stdin.close()
        (await asking.got()).release()


@pytest.mark.asyncio
async def test_a_killed_engine_holds_nothing_and_is_not_named() -> None:
    async with engine("exclusive") as other:
        asking = await waits(exclusive=True)
        other.kill()
        held = await asking.got()
        assert [one.pid for one in holders(GPU)] == [os.getpid()]
        held.release()
    assert holders(GPU) == ()


@pytest.mark.asyncio
async def test_who_waits_to_time_goes_before_those_who_come_later_to_run() -> None:
    first = await take(GPU)
    assert first is not None
    timing = await waits(exclusive=True)
    later = await waits(exclusive=False)  # would be let in at once beside the first
    first.release()
    alone = await timing.got()
    assert alone.exclusive
    assert not later.task.done()
    alone.release()
    (await later.got()).release()


@pytest.mark.asyncio
async def test_partitions_of_a_package_wait_for_each_other_and_other_gpus_do_not() -> None:
    async with lease(GPU, exclusive=True):
        async with lease(OTHER, exclusive=True):
            assert len(holders(OTHER)) == 1
        asking = await waits(PARTITION, exclusive=True)
    (await asking.got()).release()


@pytest.mark.asyncio
async def test_a_wait_that_is_called_off_leaves_nothing_open(folder: Path) -> None:
    async with lease(GPU, exclusive=True):
        before = sorted(descriptors(folder))
        for exclusive in (False, True):
            asking = await waits(exclusive=exclusive)
            await asking.call_off()
        assert sorted(descriptors(folder)) == before
    assert descriptors(folder) == []
    async with asyncio.timeout(30), lease(GPU, exclusive=True):
        assert len(holders(GPU)) == 1


@pytest.mark.asyncio
async def test_the_interpreter_needs_no_lease(folder: Path) -> None:
    async with lease(Device(name="cpu", kind="cpu"), exclusive=True) as held:
        assert held is None
    assert not was_made(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
@pytest.mark.asyncio
async def test_another_user_meets_the_same_lease(folder: Path, tmp_path: Path) -> None:
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
        asked = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, str(folder / "gpu-0000-0a-00"), stdout=subprocess.PIPE
        )
        said, _ = await asked.communicate()
    assert said == b"held\nkept\n"


@pytest.mark.asyncio
@pytest.mark.parametrize("what", ["link", "folder", "pipe"])
async def test_what_is_no_file_in_a_locks_place_is_refused_by_name(
    folder: Path, what: str, tmp_path: Path
) -> None:
    lease_folder()
    lock = folder / "gpu-0000-0a-00"
    if what == "link":
        (tmp_path / "precious").write_text("kept")
        lock.symlink_to(tmp_path / "precious")
    elif what == "folder":
        lock.mkdir()
    else:
        os.mkfifo(lock)
    with pytest.raises(LeaseUnavailable, match=r"gpu-0000-0a-00 .*remove it"):
        await take(GPU)
    assert descriptors(folder) == []


def test_a_folder_that_cannot_be_shared_is_refused_and_says_what_to_do(
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


async def test_an_engine_is_not_told_that_it_waits_for_itself() -> None:
    """Timers of the evaluation before are still ending when the next one asks."""
    gpu = Device(name="0", kind="cuda", target="sm_90", address=GPU.address, package=GPU.package)
    told: list[object] = []
    pool = DevicePool(session="mine", on_device=told.append)
    slot = Slot(gpu, pool.compiling)
    ended = asyncio.Event()

    async def end() -> None:
        await asyncio.sleep(0)
        ended.set()

    async with pool.timing(slot):
        pool.release_after(slot, end())
    assert not ended.is_set()
    async with pool.using(slot):
        assert ended.is_set(), "never beside the timers of before"
    assert told == []
