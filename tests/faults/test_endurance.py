"""Protects a long-running pool: evaluations that crash, hang, flood or fork leave no process, file or memory behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil
import pytest

from harness import DevicePool, TimeLimits, Verdict
from suites import load_task
from tests.conftest import SOAK
from tests.support.judge.candidates import adding
from tests.support.judge.judging import judge_task

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(3600)]

EVALUATIONS, EVERY = (500, 20) if SOAK else (12, 3)
"""Number of evaluations, and the interval between failing evaluations: 5 %, or enough for one of each kind."""
WARM_UP = 6
"""Number of evaluations after which caches are filled and allocators hold their memory."""
GROWTH_BYTES = 24 << 20
"""Allowed growth of a process: allocators keep memory, but this does not grow with the number of evaluations."""
SETTLES_S = 60.0
"""Wait for files that close shortly after an evaluation."""

CRASH = adding(before="[torch][0].os.abort()")
HANG = adding(before="while True: pass")
FLOOD = adding(before="for _ in range(2000): print('flood ' * 1000)")
FORK = adding(
    before="""system = [torch][0].os
    for _ in range(8):
        try: child = system.fork()
        except PermissionError: break
        if child == 0:
            system.setsid()
            while True: system.times()"""
)
"""Forks in the compiling worker, which may start processes; a guest cannot."""
WRONG = (CRASH, HANG, FLOOD, FORK)


@dataclass(frozen=True)
class Footprint:
    """Resources of a pool between two evaluations."""

    processes: int
    descriptors: dict[str, int]
    """Open files by process."""
    memory_bytes: dict[str, int]
    """Unique set size by process."""
    folders: int


def footprint(pool: DevicePool) -> Footprint:
    gc.collect()
    while True:
        with contextlib.suppress(psutil.NoSuchProcess):  # a worker ended while it was measured
            return measured(pool)


def measured(pool: DevicePool) -> Footprint:
    named = {"engine": psutil.Process()}
    for server in (pool.interpreting, pool.compiling):
        named[server.name] = psutil.Process(server.pid)
        for number, child in enumerate(named[server.name].children(recursive=True)):
            named[f"{server.name} {number}"] = child
    return Footprint(
        processes=len(psutil.Process().children(recursive=True)),
        descriptors={name: process.num_fds() for name, process in named.items()},
        memory_bytes={name: process.memory_full_info().uss for name, process in named.items()},
        folders=sum(1 for _ in Path(tempfile.gettempdir()).iterdir()),
    )


def more_files(early: Footprint, late: Footprint) -> dict[str, int]:
    more = {name: late.descriptors[name] - count for name, count in early.descriptors.items()}
    return {name: count for name, count in more.items() if count > 0}


@pytest.fixture
def own_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder without folders of other programs; guests run as a different user and may pass through it."""
    folder = Path(tempfile.mkdtemp(prefix="wd-"))
    folder.chmod(0o711)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.soak
async def test_many_evaluations_leak_nothing(own_temporary_folder: Path) -> None:
    earlier = {process.pid for process in psutil.Process().children(recursive=True)}
    task = load_task("vector_add")
    task = msgspec.structs.replace(task, cases=task.cases[:1])
    limits = TimeLimits(call_s=60.0, call_cpu_s=1.5, case_s=60.0, case_cpu_s=1.5)
    async with DevicePool(slots=1, limits=limits) as pool:
        early = None
        for number in range(EVALUATIONS):
            goes_wrong = number % EVERY == EVERY // 2
            source = WRONG[number // EVERY % len(WRONG)] if goes_wrong else adding()
            evaluation = await judge_task(pool, source + f"\n# attempt {number}\n", task)
            assert evaluation.verdict is not Verdict.INFRA_ERROR, evaluation.error
            assert goes_wrong or evaluation.verdict is Verdict.CORRECT, evaluation.error
            if number == WARM_UP:
                early = footprint(pool)
        late = footprint(pool)
        with contextlib.suppress(TimeoutError):  # the assertions below report open files
            async with asyncio.timeout(SETTLES_S):
                while more_files(early, late):  # the last workers' output is still being read
                    await asyncio.sleep(0.1)
                    late = footprint(pool)
        assert (late.processes, late.folders) == (early.processes, early.folders)
        assert not more_files(early, late), f"open files more than before: {more_files(early, late)}"
        grown = {
            name: late.memory_bytes[name] - size
            for name, size in early.memory_bytes.items()
            if late.memory_bytes[name] - size > GROWTH_BYTES
        }
        assert not grown, f"grown by bytes: {grown}"
    leaked = {process.pid for process in psutil.Process().children(recursive=True)} - earlier
    assert not leaked, f"processes left: {leaked}"
