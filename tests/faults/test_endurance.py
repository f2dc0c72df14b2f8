"""Many evaluations in a row, some of which crash, hang, flood or fork: nothing of them stays."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from harness import DevicePool, TimeLimits, Verdict
from tests.conftest import SOAK
from tests.support.candidates import adding
from tests.support.judging import judge

pytestmark = [
    pytest.mark.judge,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(3600 if SOAK else 300),
]

EVALUATIONS, EVERY = (500, 20) if SOAK else (24, 6)
"""How many, and which of them go wrong: 5 %, or so many that each way comes by."""
WARM_UP = 10
"""Evaluations after which caches are filled and allocators have their memory."""
GROWTH_BYTES = 24 << 20
"""That a process may vary by: allocators keep what they had, which does not rise with the number of evaluations."""

SETTLES_S = 30.0
"""For what still closes when an evaluation is over."""

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
"""In the compiling worker, where processes may be started; in the guest none can."""
WRONG = (CRASH, HANG, FLOOD, FORK)


@dataclass(frozen=True)
class Footprint:
    """What a pool holds at one moment, between two evaluations."""

    processes: int
    descriptors: dict[str, int]
    """Open files by process."""
    memory_bytes: dict[str, int]
    """Unique set size by process."""
    folders: int


def footprint(pool: DevicePool) -> Footprint:
    gc.collect()
    named = {"engine": psutil.Process()}
    for server in (pool.interpreting, pool.compiling):
        named[server.name] = psutil.Process(server.pid)
        for number, one in enumerate(named[server.name].children(recursive=True)):
            named[f"{server.name} {number}"] = one
    return Footprint(
        processes=len(psutil.Process().children(recursive=True)),
        descriptors={name: one.num_fds() for name, one in named.items()},
        memory_bytes={name: one.memory_full_info().uss for name, one in named.items()},
        folders=sum(1 for _ in Path(tempfile.gettempdir()).iterdir()),
    )


def more_files(early: Footprint, late: Footprint) -> dict[str, int]:
    more = {name: late.descriptors[name] - count for name, count in early.descriptors.items()}
    return {name: count for name, count in more.items() if count > 0}


@pytest.fixture
def own_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Others on this machine make folders too; guests, who are another user, must be able to pass through it."""
    folder = Path(tempfile.mkdtemp(prefix="wd-"))
    folder.chmod(0o711)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


async def test_nothing_leaks_over_many_evaluations(own_temporary_folder: Path) -> None:
    others = {one.pid for one in psutil.Process().children(recursive=True)}
    limits = TimeLimits(call_s=10.0, call_cpu_s=1.5, case_s=10.0, case_cpu_s=1.5)
    async with DevicePool(slots=1, limits=limits) as pool:
        early = None
        for number in range(EVALUATIONS):
            goes_wrong = number % EVERY == EVERY // 2
            source = WRONG[number // EVERY % len(WRONG)] if goes_wrong else adding()
            found = await judge(pool, source + f"\n# attempt {number}\n")
            assert found.verdict is not Verdict.INFRA_ERROR, found.error
            assert goes_wrong or found.verdict is Verdict.CORRECT, found.error
            if number == WARM_UP:
                early = footprint(pool)
        assert early is not None
        late = footprint(pool)
        with contextlib.suppress(TimeoutError):  # what did not settle is told below
            async with asyncio.timeout(SETTLES_S):
                while more_files(early, late):  # the last workers' output is read to its end in a moment
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
    left = {one.pid for one in psutil.Process().children(recursive=True)} - others
    assert not left, f"processes left: {left}"
