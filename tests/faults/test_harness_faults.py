"""Protects the harness when its own processes die, and when the judging of a candidate is cancelled."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import psutil
import pytest
import pytest_asyncio

from harness import Device, DevicePool, HarnessError, StageEvent, Verdict, evaluate, target
from harness.processes.gpus.quarantine import ServerProbe
from harness.processes.starting.servers import ForkServer
from harness.wire.errors import UnknownDevice
from suites import load_task
from tests.support.judge.candidates import adding
from tests.support.judge.judging import judge
from tests.support.waiting import await_until

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]

WAIT_S = 120.0

ENDLESS = adding(before="while True: pass")
WITH_GRANDCHILD = adding(
    before="""system = [torch][0].os
    try: child = system.fork()
    except PermissionError: child = None
    if child == 0:
        system.setsid()
        if system.fork() == 0:
            system.setsid()
            while True: system.times()
        while True: system.times()
    while child is not None: pass"""
)
"""Starts a child and a grandchild in new sessions, at the latest in the compiling worker; they never end."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def own_pool() -> AsyncIterator[DevicePool]:
    async with DevicePool(slots=1) as started:
        yield started


async def test_probe_of_missing_gpu_fails_with_a_message(own_pool: DevicePool) -> None:
    nowhere = Device(name="77", kind="hip", visibility="ROCR_VISIBLE_DEVICES=77", address="0000:ff:00.0")
    before = descendants(own_pool)
    message = await ServerProbe(own_pool.compiling)(nowhere)
    assert message
    assert "\n" not in message
    await await_until(lambda: descendants(own_pool) <= before, "the end of the probe's process")


def lives(pid: int) -> bool:
    """Return whether a process runs; a dead one may stay as a zombie where nobody reaps orphans, as in containers."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def servers(pool: DevicePool) -> list[psutil.Process]:
    return [psutil.Process(server.pid) for server in (pool.interpreting, pool.compiling)]


def descendants(pool: DevicePool) -> set[int]:
    return {child.pid for server in servers(pool) for child in server.children(recursive=True)}


def judging(pool: DevicePool) -> set[int]:
    """Return the processes of judges and guests; idle back ends of the compiler stay, and are not among them."""
    return {child.pid for child in psutil.Process(pool.interpreting.pid).children(recursive=True)}


def tree_size(process: psutil.Process) -> int:
    """Return the number of a process's descendants; 0 if it has just ended."""
    try:
        return len(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return 0


def leads_its_session(pid: int) -> bool:
    """Return whether a process leads a session; False if it has just ended."""
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def no_judging_is_left() -> AsyncIterator[None]:
    """End the judging of a test that failed: its candidate would spin beside the next tests, in the only slot."""
    yield
    left = {task for task in asyncio.all_tasks() if task.get_name() == "judged"}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left)


async def start_judging(pool: DevicePool, source: str) -> asyncio.Task[object]:
    """Starts judging in the background and returns once the candidate's code runs."""
    entered = asyncio.Event()

    def watch(event: StageEvent) -> None:
        if event.result is None and event.stage == "call":
            entered.set()

    task: asyncio.Task[object] = asyncio.create_task(judge(pool, source, on_event=watch), name="judged")
    waiting = asyncio.create_task(entered.wait(), name="entered")
    await asyncio.wait((task, waiting), timeout=WAIT_S, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    assert entered.is_set(), task.result() if task.done() else "the candidate never ran"
    return task


async def still_judges(pool: DevicePool) -> bool:
    return (await judge(pool, adding())).verdict is Verdict.CORRECT


async def test_cancelling_ends_all_processes_and_frees_the_slot(own_pool: DevicePool) -> None:
    before = descendants(own_pool)
    task = await start_judging(own_pool, WITH_GRANDCHILD)

    def busy() -> set[int]:
        """The candidate's processes, each the leader of its session."""
        return {pid for pid in descendants(own_pool) - before if leads_its_session(pid)}

    await await_until(lambda: len(busy()) >= 4, "guest, compiler, child and grandchild")
    tree = busy()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await await_until(lambda: not any(map(lives, tree)), "the end of the tree")
    assert await still_judges(own_pool)


@pytest.mark.soak
async def test_killed_warden_leaves_no_process(own_pool: DevicePool) -> None:
    task = await start_judging(own_pool, WITH_GRANDCHILD)

    def wardens() -> list[psutil.Process]:
        """Children of a server with a worker, a child and a grandchild."""
        children = [child for server in servers(own_pool) for child in server.children()]
        return [child for child in children if tree_size(child) >= 3]

    await await_until(lambda: bool(wardens()), "worker, child and grandchild")
    tree = {process.pid for process in wardens()[0].children(recursive=True)}
    wardens()[0].kill()
    evaluation = await task
    assert getattr(evaluation, "verdict", None) is Verdict.INFRA_ERROR
    assert "its warden ended (SIGKILL)" in str(getattr(evaluation, "error", ""))
    await await_until(lambda: not any(map(lives, tree)), "the end of the tree")
    assert await still_judges(own_pool)


@pytest.mark.parametrize("server", ["interpreting", pytest.param("compiling", marks=pytest.mark.soak)])
async def test_killed_server_is_infra_error_and_is_replaced(own_pool: DevicePool, server: str) -> None:
    task = await start_judging(own_pool, ENDLESS if server == "interpreting" else adding())
    pid = getattr(own_pool, server).pid
    os.kill(pid, signal.SIGKILL)
    evaluation = await task
    assert getattr(evaluation, "verdict", None) is Verdict.INFRA_ERROR
    assert f"{server} server" in str(getattr(evaluation, "error", ""))
    assert await still_judges(own_pool)
    assert getattr(own_pool, server).pid != pid


@pytest.mark.soak
async def test_killed_nursery_ends_its_servers_and_all_are_replaced(own_pool: DevicePool) -> None:
    assert await still_judges(own_pool)
    before = servers(own_pool)
    (nursery,) = {server.parent() for server in before}
    nursery.kill()
    await await_until(lambda: not any(server.is_running() for server in before), "the end of the servers")
    assert await still_judges(own_pool)
    assert not {server.pid for server in servers(own_pool)} & {server.pid for server in before}


async def test_killed_judge_is_infra_error_and_is_replaced(own_pool: DevicePool) -> None:
    assert await still_judges(own_pool)
    await await_until(lambda: len(judging(own_pool)) == 2, "only a judge and its warden to remain")
    judge_pid = next(pid for pid in judging(own_pool) if not psutil.Process(pid).children())
    task = await start_judging(own_pool, ENDLESS)
    os.kill(judge_pid, signal.SIGKILL)
    evaluation = await task
    assert getattr(evaluation, "verdict", None) is Verdict.INFRA_ERROR
    assert "judge is gone" in str(getattr(evaluation, "error", ""))
    await await_until(lambda: not judging(own_pool), "the end of the guest")
    assert await still_judges(own_pool)


async def test_broken_task_is_infra_error(own_pool: DevicePool, tmp_path: Path) -> None:
    (tmp_path / "problem.py").write_text("def make_inputs(sizes, dtype, generator):\n    return 1 / 0\n")
    task = msgspec.structs.replace(load_task("vector_add"), folder=tmp_path)
    evaluation = await evaluate(adding(), task, own_pool, targets=[target("gfx942")], seed=1)
    assert evaluation.verdict is Verdict.INFRA_ERROR
    assert "problem.py" in evaluation.error.message


@pytest.mark.soak
async def test_fresh_processes_judge_if_forking_is_unsafe() -> None:
    pool = DevicePool(slots=1)
    for server in (pool.interpreting, pool.compiling):
        server.forks = False
    async with pool:
        assert await still_judges(pool)
        wrong = await judge(pool, adding(result="out + 1"))
        assert wrong.verdict is Verdict.WRONG
        assert {layer.state for layer in wrong.sandbox if layer.name == "session"} == {"active"}


@pytest.mark.soak
async def test_failed_self_test_turns_forking_off(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ForkServer(interpret=True)

    async def fails() -> str:
        return "a forked child hangs in its first tensor operation"

    monkeypatch.setattr(server, "_self_test", fails)
    async with server:
        assert not server.forks
        assert "hangs" in server.why_not
        assert server.alive


async def test_killed_engine_ends_its_servers_and_guests(tmp_path: Path) -> None:
    code = """
import asyncio
from harness import DevicePool
async def main():
    async with DevicePool(slots=1) as pool:
        guest, channel = await pool.interpreting.spawn("guest", cpu_limit_s=60, sandboxed=True)
        print(pool.interpreting.pid, pool.compiling.pid, await guest.started, guest.scratch, flush=True)
        await asyncio.sleep(1000)
asyncio.run(main())
"""
    engine = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=subprocess.PIPE)
    *pids, scratch = (await asyncio.wait_for(engine.stdout.readline(), WAIT_S)).decode().split()
    processes = [int(pid) for pid in pids]
    assert len(processes) == 3
    processes += [child.pid for child in psutil.Process(engine.pid).children()]
    engine.kill()
    await engine.communicate()  # `wait` alone leaves its pipe open
    await await_until(lambda: not any(map(lives, processes)), "the end of servers and guest")
    await await_until(lambda: not os.path.exists(scratch), "the end of the scratch folder")  # noqa: PTH110


async def test_unknown_device_error_names_the_nearest() -> None:
    with pytest.raises(UnknownDevice, match=r"no device 'cqu' on this machine; did you mean cpu\?"):
        DevicePool(("cqu",))


async def test_closed_pool_refuses_to_judge() -> None:
    with pytest.raises(HarnessError, match="not open"):
        await judge(DevicePool(slots=1), adding())
