"""Records a public task: runs its test with its reference on a device, for several seeds."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec

from harness.processes.pool import DevicePool
from harness.processes.slot import Slot
from harness.wire import limits
from harness.wire.async_channel import AsyncChannel
from harness.wire.channel import BadFrame
from harness.wire.device import Target
from harness.wire.encoding import ENCODER, decode_message
from harness.wire.errors import WorkerDied
from harness.wire.script_messages import RECORD_REPORTS, Record, Recorded, Script
from suites.public.task import PublicTask, ReferenceKind, TestForm
from suites.python_source import parse_python
from suites.task import Task

from .model_scripts import choose_model_script
from .recorded_task import NotRecorded, write_task

__all__ = ["NotRecorded", "record_task", "script_of"]

_FORMS = (TestForm.SCRIPT, TestForm.RUNNER)
RUNS = ((1, 0), (1, 1), (2, 0))
"""Seed and poison of each run. Calls that differ between runs are no cases."""


async def record_task(public: PublicTask, folder: Path, *, pool: DevicePool, target: Target) -> Task:
    """Record a public task on a device of the pool, write its folder, and return the task.

    Raises `NotRecorded` with the reason if no call of its test can be judged, `WorkerDied` if a process of ours is lost.
    """
    notes: tuple[str, ...] = ()
    async with pool.slot() as slot, pool.leases.using(slot):
        if public.test_form is TestForm.MODEL and not public.unsupported:
            async with _worker(slot) as channel:
                script, notes = await choose_model_script(public, partial(_ask, channel, target=target))
        else:
            script = for_target(script_of(public), target)
        recordings = [recorded async for recorded in _record(slot, script, target)]
    return write_task(public, script, recordings, folder, notes)


def script_of(public: PublicTask) -> Script:
    """Return the script of a public task. Raises `NotRecorded` if its test has another form."""
    if public.unsupported:
        raise NotRecorded(public.unsupported)
    if public.reference is None or public.test is None or public.test_form not in _FORMS:
        raise NotRecorded(f"tests of the form `{public.test_form}` cannot be recorded yet")
    is_runner = public.test_form is TestForm.RUNNER
    if is_runner and not public.runner:
        raise NotRecorded("no function of its test can be called without arguments")
    reference = public.reference.text
    test_file, reference_file = "test.py", ""
    if is_runner:
        root = Path(os.path.commonpath([public.reference.path, public.test.path]))
        test_file = str(public.test.path.relative_to(root))
        reference_file = str(public.reference.path.relative_to(root))
    else:
        reference = _with_imports(reference, public.test.text)
    return Script(
        reference=reference,
        test=public.test.text,
        entry_points=tuple(entry.name for entry in public.entry_points),
        modules=public.modules,
        helpers=_helpers(public),
        runner=public.runner if is_runner else "",
        oracle=next(iter(public.oracles), ""),
        test_file=test_file,
        reference_file=reference_file,
        has_kernels=public.reference_kind is ReferenceKind.TRITON,
    )


def for_target(script: Script, target: Target) -> Script:
    """Return the script with the target's own device library in place of AMD's: both have the same functions."""
    if target.backend != "cuda":
        return script
    reference, test = (
        text.replace("extra.hip.libdevice", "extra.cuda.libdevice")
        for text in (script.reference, script.test)
    )
    return msgspec.structs.replace(script, reference=reference, test=test)


def _helpers(public: PublicTask) -> dict[str, str]:
    """Modules of the benchmark that the test names, by file name."""
    words = set(re.findall(r"\w+", public.script))
    helpers = {}
    for folder in public.search_paths:
        for file in sorted(folder.glob("*.py")):
            if file.stem in words:
                helpers[file.name] = file.read_text(encoding="utf-8", errors="replace")
    return helpers


def _with_imports(reference: str, test: str) -> str:
    """The reference, with the imports that only the test has and the reference uses: both were one module."""
    try:
        tree, test_tree = parse_python(reference), parse_python(test)
    except (SyntaxError, ValueError):
        return reference
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    lines = [
        ast.unparse(statement)
        for statement in test_tree.body
        if isinstance(statement, ast.Import | ast.ImportFrom)
        and any((alias.asname or alias.name.partition(".")[0]) in names - bound for alias in statement.names)
    ]
    return "\n".join([*lines, reference])


async def _record(slot: Slot, script: Script, target: Target) -> AsyncIterator[Recorded]:
    """All runs, in one process: kernels compile once, as in the process that records for the judge."""
    async with _worker(slot) as channel:
        for seed, poison in RUNS:
            yield await _ask(channel, script, seed, poison, target=target)


@asynccontextmanager
async def _worker(slot: Slot) -> AsyncIterator[AsyncChannel]:
    """A script worker, and the channel to it after its hello."""
    device = None if slot.device.kind == "cpu" else slot.device
    child, channel = await slot.server.spawn(
        "script", cpu_limit_s=limits.SCRIPT_CPU_S, sandboxed=True, device=device
    )
    try:
        await _receive(channel)
        yield channel
    finally:
        channel.close()
        child.end()


async def _ask(
    channel: AsyncChannel, script: Script, seed: int, poison: int = 0, *, target: Target
) -> Recorded:
    nonce = secrets.token_hex(16)
    request = Record(nonce=nonce, script=script, seed=seed, target=target.name, poison=poison)
    with suppress(EOFError):  # the answer that is missing then says it
        await channel.send(ENCODER.encode(request))
    recorded = decode_message(RECORD_REPORTS, await _receive(channel))
    if recorded.nonce != nonce:
        raise WorkerDied("a script worker sent an answer that was not asked for")
    return recorded


async def _receive(channel: AsyncChannel) -> bytes:
    try:
        async with asyncio.timeout(limits.SCRIPT_S):
            return await channel.receive(limits.RECORDING_BYTES)
    except TimeoutError:
        raise NotRecorded(f"its test does not end within {limits.SCRIPT_S:g} s here") from None
    except (EOFError, BadFrame) as error:
        raise NotRecorded("its test ended its process") from error
