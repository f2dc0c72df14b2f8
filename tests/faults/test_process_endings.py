"""Protects right kernels from the OOM killer, and a session from a candidate that uses up memory or processes.

Real processes get a real SIGKILL. The table of endings is in `docs/trust.md`.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
import psutil
import pytest
import pytest_asyncio

from harness import DevicePool, Evaluation, StageEvent, Verdict
from harness.processes.conversation import Conversation
from harness.processes.process_endings import (
    doubt_starved_call,
    error_of_broken,
    error_of_end,
    explain_compile_error,
)
from harness.processes.starting.servers import Child, ForkServer
from harness.stages.verdicts import conclude
from harness.wire.channels.stack_samples import last_line
from harness.wire.errors import WorkerDied
from harness.wire.messages.guest import Broken, Load
from harness.wire.messages.server import Ended
from harness.wire.results.evaluation import ErrorReport
from harness.worker.kit import candidate_trace
from tests.support.draws import drawn
from tests.support.judge.candidates import adding
from tests.support.judge.judging import judge
from tests.support.waiting import await_until

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]

GATE = "go"
WAITING = adding(before=f"while not [torch][0].os.path.exists('{GATE}'): pass")
"""A right kernel. Its host code waits in each process until the test writes `GATE` into the process's folder."""
LOOP_LINE = next(number for number, line in enumerate(WAITING.splitlines(), 1) if GATE in line)
HOG = """
import numpy
kept = []
for size in (1 << 26, 1 << 16):
    try:
        while True:
            kept.append(numpy.empty(size, dtype=numpy.uint8))
    except MemoryError:
        pass
"""
"""Takes the whole address space at import, without a touch of its pages."""
WAIT_S = 60.0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def own_pool() -> AsyncIterator[DevicePool]:
    async with DevicePool(slots=2) as started:
        yield started


def sandboxed(server: ForkServer) -> list[Child]:
    """Return the workers that run foreign code, in the order of their starts."""
    return [child for child in server._children.values() if child.scratch is not None]


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def nothing_of_the_last_test_runs(own_pool: DevicePool) -> None:
    servers = (own_pool.interpreting, own_pool.compiling)

    def running() -> list[Child]:
        back_ends = [child for child, _ in own_pool.binaries._idle]
        return [child for server in servers for child in sandboxed(server) if child not in back_ends]

    await await_until(lambda: not running(), "the end of the last test's workers")


async def open_gates(pool: DevicePool) -> None:
    """Let all candidates go on, also those that start later."""
    while True:
        for server in (pool.interpreting, pool.compiling):
            for child in sandboxed(server):
                if child.scratch is not None:
                    with suppress(OSError):  # the folder ends with its process
                        (child.scratch / GATE).touch()
        await asyncio.sleep(0.02)


def waits_in_its_call(guest: Child) -> bool:
    return guest.scratch is not None and last_line(guest.scratch) == LOOP_LINE


def is_imported(child: Child) -> bool:
    return child.scratch is not None and (child.scratch / candidate_trace.NAME).exists()


async def find_guest(pool: DevicePool) -> Child:
    await await_until(
        lambda: any(map(waits_in_its_call, sandboxed(pool.interpreting))), "a call in the guest"
    )
    return next(filter(waits_in_its_call, sandboxed(pool.interpreting)))


async def find_compiler(pool: DevicePool) -> Child:
    guest = await find_guest(pool)
    (guest.scratch / GATE).touch()
    await await_until(lambda: any(map(is_imported, sandboxed(pool.compiling))), "an import in the compiler")
    return next(filter(is_imported, sandboxed(pool.compiling)))


FINDERS = {"guest": find_guest, "compiler": find_compiler}


async def judge_and_kill(pool: DevicePool, victim: str) -> Evaluation:
    """Judge a right kernel; kill one of its workers, or `warden of` one, while the kernel's host code waits."""
    judging = asyncio.create_task(judge(pool, WAITING), name="judged")
    tasks = [judging]
    try:
        child = await FINDERS[victim.removeprefix("warden of ")](pool)
        pid = await child.started
        os.kill(psutil.Process(pid).ppid() if victim.startswith("warden") else pid, signal.SIGKILL)
        async with asyncio.timeout(WAIT_S):
            await asyncio.shield(child.ended)
            tasks.append(asyncio.create_task(open_gates(pool)))
            return await judging
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@pytest.mark.parametrize("worker", drawn([*FINDERS], 1))
async def test_right_kernel_whose_worker_was_killed_is_judged_again(
    own_pool: DevicePool, worker: str
) -> None:
    evaluation = await judge_and_kill(own_pool, worker)
    assert (evaluation.verdict, evaluation.error) == (Verdict.CORRECT, None)
    assert evaluation.judged_again
    assert any("killed by SIGKILL" in note for note in evaluation.notes)


@pytest.mark.parametrize("worker", drawn([*FINDERS], 1))
async def test_lost_warden_is_our_failure(own_pool: DevicePool, worker: str) -> None:
    """`test_harness_faults.py` kills the judge itself."""
    evaluation = await judge_and_kill(own_pool, f"warden of {worker}")
    assert evaluation.verdict is Verdict.INFRA_ERROR
    assert evaluation.error is not None
    assert not evaluation.judged_again
    assert evaluation.error.message.endswith("was lost: its warden ended (SIGKILL)")


async def test_second_kill_is_the_candidates(own_pool: DevicePool) -> None:
    calls: list[str] = []

    def watch(event: StageEvent) -> None:
        if event.result is None:
            calls.append(event.stage)

    source = adding(before="[torch][0].os.kill([torch][0].os.getpid(), 9)")
    evaluation = await judge(own_pool, source, on_event=watch)
    assert (evaluation.verdict, evaluation.error.kind) == (Verdict.CRASH, "SIGKILL")
    assert "also when it was judged alone" in evaluation.error.message
    assert calls == ["static", "call", "call"]


async def test_second_evaluation_waits_until_it_is_alone(own_pool: DevicePool) -> None:
    order: list[str] = []
    first_failed = asyncio.Event()

    def watch(event: StageEvent) -> None:
        if event == StageEvent(stage="call", device="cpu"):
            order.append("killed candidate starts")
        if event.result is not None and event.stage == "call":
            first_failed.set()

    async def judge_neighbour() -> Evaluation:
        evaluation = await judge(own_pool, WAITING)
        order.append("neighbour ends")
        return evaluation

    neighbour = asyncio.create_task(judge_neighbour(), name="judged")
    guest = await find_guest(own_pool)
    killed = adding(before="[torch][0].os.kill([torch][0].os.getpid(), 9)")
    killing = asyncio.create_task(judge(own_pool, killed, on_event=watch), name="judged")
    opening = None
    try:
        async with asyncio.timeout(WAIT_S):
            await first_failed.wait()
            assert not guest.ended.done()
            opening = asyncio.create_task(open_gates(own_pool))
            assert (await killing).verdict is Verdict.CRASH
            assert (await neighbour).verdict is Verdict.CORRECT
    finally:
        for task in (neighbour, killing, opening):
            if task is not None:
                task.cancel()
    assert order == ["killed candidate starts", "neighbour ends", "killed candidate starts"]


async def test_candidate_that_takes_all_memory_at_import_crashes(own_pool: DevicePool) -> None:
    evaluation = await judge(own_pool, adding(top=HOG))
    assert evaluation.verdict is Verdict.CRASH
    assert evaluation.error.message.startswith("the candidate used up its memory; ")
    assert evaluation.judged_again


@asynccontextmanager
async def guest(pool: DevicePool, *, cpu_limit_s: int) -> AsyncIterator[tuple[Child, Conversation]]:
    """Start a guest that is ready for a candidate."""
    child, channel = await pool.interpreting.spawn("guest", cpu_limit_s=cpu_limit_s, sandboxed=True)
    try:
        async with asyncio.timeout(WAIT_S):
            conversation = Conversation(channel)
            await conversation.sandbox()
            yield child, conversation
    finally:
        channel.close()
        child.end()


async def test_end_at_the_cpu_limit_is_told_from_a_kill(own_pool: DevicePool) -> None:
    async with guest(own_pool, cpu_limit_s=1) as (child, conversation):
        await conversation.send(Load("while True: pass", "gfx942"))
        ended = await asyncio.shield(child.ended)
    error, doubt = error_of_end(ended, "the import")
    assert doubt == ""
    assert conclude(error) is Verdict.TIMEOUT


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("OSError: [Errno 12] Cannot allocate memory", "used up its memory"),
        ("MemoryError", "used up its memory"),
        ("RuntimeError: can't start new thread", "used up its processes and threads"),
        ("BlockingIOError: [Errno 11] Resource temporarily unavailable", "used up its processes and threads"),
        ("BinaryUnreadable: the binary is no ELF file", "start no processes or threads"),
    ],
)
async def test_failure_of_our_code_beside_a_candidate_is_the_candidates_the_second_time(
    message: str, says: str
) -> None:
    with pytest.raises(WorkerDied):
        error_of_broken(message, imported=False)
    error, doubt = error_of_broken(message, imported=True)
    assert message in doubt
    assert conclude(error) is Verdict.CRASH
    assert says in error.message
    assert message in error.message


async def test_killed_ptxas_is_compiled_again_once() -> None:
    error = "PTXASError: PTXAS error: `ptxas` failed with error code -9\n`ptxas` stderr:"
    explained, doubt = explain_compile_error(error)
    assert "was killed" in doubt
    first_line, _, rest = explained.message.partition("\n")
    assert "smaller blocks" in first_line
    assert rest == "`ptxas` stderr:"
    wrong = "PTXASError: PTXAS error: `ptxas` failed with error code 1"
    assert explain_compile_error(wrong) == (ErrorReport(kind="compile", message=wrong), "")


@pytest.mark.parametrize(
    "cause",
    [
        "`ptxas` failed with error code -9",
        "BlockingIOError: [Errno 11] Resource temporarily unavailable",
        "OSError: [Errno 28] No space left on device: 'add.cubin'",
        "OSError: [Errno 122] Disk quota exceeded: 'add.cubin'",
    ],
)
async def test_call_that_a_starved_machine_fails_is_made_again_once(cause: str) -> None:
    error = ErrorReport(kind="exception", message=f"case fp32 raised {cause}")
    assert cause in doubt_starved_call(error)
    no_file = ErrorReport(kind="exception", message="OSError: [Errno 2] no such file")
    assert doubt_starved_call(no_file) == ""
    assert doubt_starved_call(msgspec.structs.replace(error, kind="wrong_value")) == ""


async def test_text_that_cannot_be_written_is_no_error_of_the_candidate(own_pool: DevicePool) -> None:
    """The guest cannot write the candidate's file, as on a full disk."""
    async with guest(own_pool, cpu_limit_s=30) as (child, conversation):
        (child.scratch / candidate_trace.NAME).mkdir()
        await conversation.send(Load("", "gfx942"))
        answer = await conversation.answer()
    assert isinstance(answer, Broken)
    assert not answer.imported, "so it is a failure of ours"


async def test_limits_of_the_judge_explain_a_kill() -> None:
    killed = Ended(worker=1, status=signal.SIGKILL, leftover=0, killed=False)
    for ended in (
        msgspec.structs.replace(killed, killed=True),
        msgspec.structs.replace(killed, why="more than 64 processes"),
    ):
        assert error_of_end(ended, "case fp32").doubt == ""
    assert "SIGKILL" in error_of_end(killed, "case fp32").doubt
    with pytest.raises(WorkerDied, match="the compiling server died"):
        error_of_end(msgspec.structs.replace(killed, lost="the compiling server died"), "case fp32")
