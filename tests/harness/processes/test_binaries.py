"""Protects the cache of binaries: each kernel is compiled once, by a process without foreign code, for all that launch it."""

from __future__ import annotations

import asyncio
import json
from typing import cast

import msgspec
import pytest

from harness import DevicePool, Verdict
from harness.processes.binaries import Binaries
from harness.processes.starting.servers import ForkServer
from harness.wire.messages.compiler import Binary, KernelIr
from suites import baseline_source, load_task
from tests.support.judge.judging import judge


class Server:
    """Takes the place of a fork server; no process is started."""

    versions = {"triton": "3.7"}  # noqa: RUF012
    forks = True


class Counted(Binaries):
    """Notes what is compiled, and compiles nothing."""

    def __init__(self, cores: int) -> None:
        super().__init__(cast(ForkServer, Server()), cores)
        self.kernels: list[KernelIr] = []

    async def _compile(self, kernel: KernelIr) -> Binary:
        self.kernels.append(kernel)
        await asyncio.sleep(0)
        return Binary({"hsaco": kernel.ttir.encode()} if kernel.ttir else {})


def kernel(characters: int, options: str = "{}", architecture: str = "gfx942") -> KernelIr:
    return KernelIr("x" * characters, architecture, options)


@pytest.mark.asyncio
async def test_equal_kernels_are_compiled_once_also_at_the_same_time() -> None:
    binaries = Counted(cores=4)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(binaries.make(kernel(9)), name="make") for _ in range(3)]
    assert {task.result().files["hsaco"] for task in tasks} == {b"x" * 9}
    await binaries.make(kernel(9))
    assert len(binaries.kernels) == 1


@pytest.mark.asyncio
async def test_kernels_that_differ_in_text_options_or_target_are_different() -> None:
    binaries = Counted(cores=1)
    kernels = [kernel(9), kernel(8), kernel(9, '{"num_warps": 8}'), kernel(9, architecture="sm_90")]
    for wanted in kernels:
        await binaries.make(wanted)
    assert binaries.kernels == kernels


@pytest.mark.asyncio
async def test_shortest_kernel_is_compiled_first() -> None:
    binaries = Counted(cores=1)
    lengths = (900, 800, 10, 400)
    async with asyncio.TaskGroup() as group:
        for length in lengths:
            group.create_task(binaries.make(kernel(length)), name="make")
    first, *later = [len(compiled.ttir) for compiled in binaries.kernels]
    assert (first, later) == (lengths[0], sorted(lengths[1:]))


@pytest.mark.asyncio
async def test_kernel_that_does_not_compile_is_not_kept() -> None:
    binaries = Counted(cores=1)
    for _ in range(2):
        assert not (await binaries.make(kernel(0))).files
    assert len(binaries.kernels) == 2


@pytest.mark.judge
@pytest.mark.asyncio(loop_scope="session")
async def test_changed_wrapper_uses_binaries_which_are_those_of_the_candidates_own_process(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: KernelIr) -> Binary:
        return Binary()

    async def codes(wrapper: str) -> list[tuple[str, str]]:
        evaluation = await judge(pool, source + wrapper, "softmax", cases=2)
        assert evaluation.verdict is Verdict.CORRECT
        return [(row.code_sha256, row.binary_sha256) for row in evaluation.resources["gfx942"]]

    source = (
        "# These lines are part of the debug information:\n# no other test has compiled these binaries.\n"
    )
    source += baseline_source(load_task("softmax"))
    before = pool.binaries.compiled
    first = await codes("")
    after_first = pool.binaries.compiled
    assert after_first - before == len(set(first))
    assert await codes("\n\ndef unused():\n    return None\n") == first
    assert pool.binaries.compiled == after_first
    monkeypatch.setattr(pool.binaries, "make", refuse)
    own = await codes("\n\ndef unused_too():\n    return None\n")
    assert [code for code, _ in own] == [code for code, _ in first]


@pytest.mark.judge
@pytest.mark.asyncio(loop_scope="session")
async def test_binary_that_cannot_be_made_is_our_failure_and_not_the_candidates(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: KernelIr) -> Binary:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(pool.binaries, "make", fail)
    evaluation = await judge(pool, baseline_source(load_task("vector_add")), cases=1)
    assert evaluation.verdict is Verdict.INFRA_ERROR, evaluation.error


@pytest.mark.judge
@pytest.mark.asyncio(loop_scope="session")
async def test_request_that_names_a_file_gets_no_binary(
    pool: DevicePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[KernelIr] = []
    make = pool.binaries.make

    async def note(kernel: KernelIr) -> Binary:
        asked.append(kernel)
        return await make(kernel)

    monkeypatch.setattr(pool.binaries, "make", note)
    await judge(pool, baseline_source(load_task("vector_add")), cases=1)
    assert (await make(asked[0])).files
    for name, value in (("extern_libs", [["own", "/tmp/own.bc"]]), ("ir_override", "/tmp/own.ttgir")):
        options = json.dumps({**json.loads(asked[0].options), name: value})
        assert not (await make(msgspec.structs.replace(asked[0], options=options))).files
