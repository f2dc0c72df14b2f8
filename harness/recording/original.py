"""Judges a candidate by its benchmark's own definition of correct, for comparison with published figures.

Candidate and reference run as programs, each in its own sandboxed process. These definitions accept more than the judge does
(docs/suites.md).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import NamedTuple

import msgspec

from harness.processes.pool import DevicePool
from harness.processes.process_endings import JudgeAgain, check_end
from harness.processes.servers import Child
from harness.processes.slot import Slot
from harness.wire import limits
from harness.wire.async_channel import AsyncChannel
from harness.wire.channel import BadFrame
from harness.wire.device import Target
from harness.wire.encoding import ENCODER, decode_message
from harness.wire.errors import HarnessError, WorkerDied
from harness.wire.program_messages import (
    PROGRAM_REPORTS,
    Compare,
    Compared,
    ComparisonRule,
    RanProgram,
    RunProgram,
    Value,
)
from suites.public.separator import SEPARATOR, split_file
from suites.public.task import PublicTask, SuiteKind

from .benchmark_texts import missing_entry, text_as_run
from .recorder import helpers_of

PROGRAM = "program.py"


class OriginalOutcome(StrEnum):
    """Result by a benchmark's own definition."""

    PASSES = "passes"
    DIFFERS = "differs"
    """The candidate runs, but its results are different."""
    FAILS = "fails"
    """The candidate does not run to its end."""
    UNSUPPORTED = "unsupported"
    """This device cannot run the candidate or the reference, or the task has no such test."""


class OriginalVerdict(msgspec.Struct, frozen=True):
    """How a candidate was judged."""

    outcome: OriginalOutcome
    why: str = ""
    printed: str = ""


class Definition(msgspec.Struct, frozen=True):
    """A benchmark's definition of correct."""

    rule: ComparisonRule | None = None
    """Compares the results of the test; `None`: the printed texts are compared."""
    seed: int | None = None


DEFINITIONS = {
    SuiteKind.TRITONBENCH_G: Definition(),
    SuiteKind.TRITONBENCH_T: Definition(),
    SuiteKind.TRITONBENCH_REVISED: Definition(ComparisonRule(default_tolerance=1e-3), seed=42),
    SuiteKind.KERNELBENCH_X: Definition(
        ComparisonRule(
            tolerances={"float16": 5e-3, "bfloat16": 5e-3, "float32": 1e-5, "float64": 1e-5}, equal_nan=True
        ),
        seed=0,
    ),
}
"""Benchmarks that compare two programs: the candidate with the test, and the reference with the test."""


def check_definition(kind: SuiteKind) -> Definition:
    """Return a benchmark's definition. Raises `HarnessError` if this judge cannot follow it."""
    definition = DEFINITIONS.get(kind)
    if definition is None:
        raise HarnessError(
            f"the original protocol of {kind} is not available, only those of {', '.join(DEFINITIONS)}; "
            "leave --protocol out"
        )
    return definition


async def judge_original(
    public: PublicTask, source: str, *, pool: DevicePool, target: Target
) -> OriginalVerdict:
    """Judge a candidate by its benchmark's own definition. Raises `WorkerDied` if a process of ours is lost."""
    try:
        return await _judge_original(public, source, pool, target, again=False)
    except JudgeAgain:
        return await _judge_original(public, source, pool, target, again=True)


async def _judge_original(
    public: PublicTask, source: str, pool: DevicePool, target: Target, *, again: bool
) -> OriginalVerdict:
    definition = check_definition(public.kind)
    if public.unsupported or public.test is None:
        return OriginalVerdict(OriginalOutcome.UNSUPPORTED, public.unsupported)
    parts = split_file(public.test.path)
    if parts is None:
        return OriginalVerdict(OriginalOutcome.UNSUPPORTED, f"{public.file} has no separator line any more")
    reference, test = (part.text for part in parts)
    missing = missing_entry(public, source)
    if missing:
        return OriginalVerdict(OriginalOutcome.FAILS, missing)
    result_name = public.result_name if definition.rule is not None else ""
    rule = definition.rule
    if rule is not None and public.quantization is not None:
        rule = msgspec.structs.replace(rule, quantization=public.quantization)

    def program(kernel: str) -> RunProgram:
        return RunProgram(
            nonce=secrets.token_hex(16),
            text=f"{kernel}\n{SEPARATOR}\n{test}",
            file=PROGRAM,
            target=target.name,
            helpers=helpers_of(public),
            seed=definition.seed,
            result_name=result_name,
        )

    async with (
        pool.slot(alone=again) as slot,
        pool.leases.using(slot),
        _worker(slot) as (reference_child, reference_channel),
    ):
        expected = await _run(reference_child, reference_channel, program(reference), again=again)
        if isinstance(expected, _NoReport) or expected.error:
            why = expected.why if isinstance(expected, _NoReport) else expected.error
            return OriginalVerdict(OriginalOutcome.UNSUPPORTED, f"the reference fails here: {why}")
        async with _worker(slot) as (child, channel):
            ran = await _run(child, channel, program(text_as_run(public.kind, source)), again=again)
        if isinstance(ran, _NoReport):
            unsupported = ran.is_slow and slot.device.kind == "cpu"
            return OriginalVerdict(
                OriginalOutcome.UNSUPPORTED if unsupported else OriginalOutcome.FAILS, ran.why
            )
        if ran.error:
            outcome = OriginalOutcome.UNSUPPORTED if ran.unsupported else OriginalOutcome.FAILS
            return OriginalVerdict(outcome, ran.error, ran.printed)
        if rule is None:
            why = "" if ran.printed == expected.printed else "it prints other text than the reference"
        else:
            why = await _compare(reference_channel, ran.results, rule)
    return OriginalVerdict(OriginalOutcome.DIFFERS if why else OriginalOutcome.PASSES, why, ran.printed)


@asynccontextmanager
async def _worker(slot: Slot) -> AsyncIterator[tuple[Child, AsyncChannel]]:
    child, channel = await slot.server.spawn(
        "script",
        cpu_limit_s=limits.SCRIPT_CPU_S,
        sandboxed=True,
        device=None if slot.device.kind == "cpu" else slot.device,
    )
    try:
        yield child, channel
    finally:
        channel.close()
        child.end()


class _NoReport(NamedTuple):
    """Why a program gave no report."""

    why: str
    is_slow: bool = False


async def _run(
    child: Child, channel: AsyncChannel, request: RunProgram, *, again: bool
) -> RanProgram | _NoReport:
    """Run a program and return its report, or why there is no report."""
    limit_s = limits.script_s()
    try:
        async with asyncio.timeout(limit_s):
            await channel.receive(limits.ANSWER_BYTES)  # the worker's hello
            await channel.send(ENCODER.encode(request))
            ran = decode_message(PROGRAM_REPORTS, await channel.receive(limits.ANSWER_BYTES))
    except TimeoutError:
        return _NoReport(f"it does not end within {limit_s:.0f} s here", is_slow=True)
    except (EOFError, BadFrame):
        check_end(await child.wait(limits.END_S), "the process of the program", again=again)
        return _NoReport("it ends its process")
    if not isinstance(ran, RanProgram) or ran.nonce != request.nonce:
        return _NoReport("its process sent an answer that was not asked for")
    return ran


async def _compare(channel: AsyncChannel, results: Value | None, rule: ComparisonRule) -> str:
    """Return the first difference between the results of candidate and reference. The reference's process compares."""
    request = Compare(nonce=secrets.token_hex(16), results=results, rule=rule)
    try:
        async with asyncio.timeout(limits.ORACLE_S):
            await channel.send(ENCODER.encode(request))
            compared = decode_message(PROGRAM_REPORTS, await channel.receive(limits.ANSWER_BYTES))
    except (TimeoutError, EOFError, BadFrame) as error:
        raise WorkerDied("the process of the reference was lost") from error
    if not isinstance(compared, Compared) or compared.nonce != request.nonce:
        raise WorkerDied("a script worker sent an answer that was not asked for")
    return compared.difference
