"""Protects benchmarks' scripts and sweeps from the OOM killer: what a SIGKILL ended is run once more."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from harness import DevicePool, target
from harness.processes.starting.servers import Child
from harness.recording.original import OriginalOutcome, judge_original
from harness.stages.survey import Survey
from sessions.home import home_from
from suites import add_suite, load_public_suite, load_task
from suites.public.task import SuiteKind
from tests.suites.public import clones
from tests.support.judge.candidates import adding
from tests.support.tasks.scripts import SCALE, public_task, record

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]

WAITS, GO = "waits", "go"
SCRIPT_GATE = f"""
import os
os.close(os.open({WAITS!r}, os.O_CREAT))
while not os.path.exists({GO!r}): pass
"""
"""Waits in the folder of the process until the test lets it go on."""
CANDIDATE_GATE = SCRIPT_GATE.replace("import os\n", "").replace("os.", "[torch][0].os.")
WAIT_S = 60.0
Result = TypeVar("Result")


def processes(pool: DevicePool) -> list[Child]:
    return [*pool.interpreting._children.values(), *pool.compiling._children.values()]


def gates(children: list[Child]) -> list[tuple[Child, Path]]:
    """Return the processes that wait at a gate, with the folder of the gate."""
    waiting = []
    for child in children:
        with suppress(OSError):  # the folder ends with its process
            waiting += [
                (child, file.parent)
                for pattern in (WAITS, f"*/{WAITS}")
                for file in (child.scratch.glob(pattern) if child.scratch is not None else ())
            ]
    return waiting


async def kill_the_first(pool: DevicePool, earlier: list[Child]) -> None:
    """Kill the first process that waits at a gate, and let all later ones go on; `earlier` processes are left alone."""

    def waiting() -> list[tuple[Child, Path]]:
        return gates([child for child in processes(pool) if child not in earlier])

    while not waiting():  # noqa: ASYNC110 -- a file sets no event
        await asyncio.sleep(0.02)
    child, _ = waiting()[0]
    os.kill(await child.started, signal.SIGKILL)
    await asyncio.shield(child.ended)
    while True:
        for _, folder in waiting():
            with suppress(OSError):  # the folder ends with its process
                (folder / GO).touch()
        await asyncio.sleep(0.02)


async def with_a_kill(pool: DevicePool, work: Coroutine[Any, Any, Result]) -> Result:
    earlier = processes(pool)  # a process of an earlier test may still be about to end
    killing = asyncio.create_task(kill_the_first(pool, earlier), name="kill")
    try:
        async with asyncio.timeout(WAIT_S):
            return await work
    finally:
        killing.cancel()
        await asyncio.wait([killing])


async def test_killed_test_is_recorded_again(pool: DevicePool, tmp_path: Path) -> None:
    test = f"import torch\n{SCRIPT_GATE}scale(torch.randn(16, device='cuda'))\n"
    public = public_task(SCALE, test, tmp_path)
    recording = record(pool, public)
    assert len((await with_a_kill(pool, recording)).cases) == 1


async def test_killed_program_of_the_original_protocol_runs_again(
    pool: DevicePool, isolated_home: Path, tmp_path: Path
) -> None:
    home = home_from(os.environ)
    home.ensure()
    kind = SuiteKind.TRITONBENCH_REVISED
    add_suite(kind, clones.geak_eval(tmp_path), home.suites, kind=kind)
    task = next(task for task in load_public_suite(kind, registry=home.suites).tasks if task.name == "scale")
    judging = judge_original(task, clones.TRITON + SCRIPT_GATE, pool=pool, target=target("gfx942"))
    assert (await with_a_kill(pool, judging)).outcome is OriginalOutcome.PASSES


async def test_killed_compilation_of_a_variant_runs_again(pool: DevicePool) -> None:
    survey = Survey(pool, load_task("vector_add"), target("gfx942"))
    [compiled] = await with_a_kill(pool, survey.compile([adding(top=CANDIDATE_GATE)]))
    assert compiled.error == ""
    assert compiled.resources


async def test_variant_that_fails_to_import_is_one_error_of_a_sweep(pool: DevicePool) -> None:
    survey = Survey(pool, load_task("vector_add"), target("gfx942"))
    broken, good = await survey.compile(["import nothing_that_exists\n", adding()])
    assert "nothing_that_exists" in broken.error
    assert good.error == ""
