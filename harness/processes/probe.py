"""`probe`: finds what the judge can do on this machine, for `doctor`. Reports problems instead of raising."""

from __future__ import annotations

import importlib.util

import msgspec

from harness.linux.worker_start import version
from harness.node.discovery import discover_devices
from harness.sandbox.layers import find_different_layers
from harness.wire.device import Device
from harness.wire.errors import HarnessError
from harness.wire.results.evaluation import Layer

from .conversation import Conversation
from .starting.judge_python import OUR_PYTHON, JudgePython
from .starting.nursery import Nursery
from .starting.servers import ForkServer

TESTED_TRITON = ("3.6.0", "3.7.1")


class HarnessReport(msgspec.Struct, frozen=True):
    """The result of `probe`."""

    judges: bool
    """True if candidates can be judged here."""
    why_not: str
    torch: str | None
    """Version; `None` if not installed."""
    triton: str | None
    tested_triton: tuple[str, ...]
    forks: bool | None
    """True if workers are forked after the imports; `None` if that could not be tried."""
    fork_detail: str
    sandbox: tuple[Layer, ...]
    """Layers of a real guest, then those in which a compiling worker differs; empty if none could be started."""
    devices: tuple[Device, ...]


async def probe(python: JudgePython = OUR_PYTHON) -> HarnessReport:
    """Start both servers and a worker of each in an interpreter, and report; takes about four seconds."""
    packages = ("torch", "triton")
    versions = {name: python.versions.get(name) or version(name) for name in packages}
    report = HarnessReport(
        judges=False,
        why_not="",
        torch=versions["torch"],
        triton=versions["triton"],
        tested_triton=TESTED_TRITON,
        forks=None,
        fork_detail="not tried",
        sandbox=(),
        devices=discover_devices(),
    )
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing and python is OUR_PYTHON:
        why = (
            f"{' and '.join(missing)} not installed: replay and reports work, judging does not; pip install 'wavedeck[judge]', "
            "or name a Python that has it with --python"
        )
        return msgspec.structs.replace(report, why_not=why)
    try:
        async with (
            Nursery(python) as nursery,
            ForkServer(interpret=True, nursery=nursery) as interpreting,
            ForkServer(interpret=False, nursery=nursery) as compiling,
        ):
            servers = (interpreting, compiling)
            why_not = next((server.why_not for server in servers if not server.forks), "")
            detail = f"fresh interpreters: {why_not}" if why_not else "forked workers pass the self-test"
            report = msgspec.structs.replace(report, forks=not why_not, fork_detail=detail)
            guest, compiler = await _layers(interpreting, "guest"), await _layers(compiling, "compiler")
    except (HarnessError, EOFError, OSError) as error:
        return msgspec.structs.replace(report, why_not=str(error))
    return msgspec.structs.replace(
        report, judges=True, sandbox=(*guest, *find_different_layers(compiler, guest))
    )


async def _layers(server: ForkServer, role: str) -> tuple[Layer, ...]:
    """Return the sandbox layers that a worker of this role reports."""
    child, channel = await server.spawn(role, cpu_limit_s=60, sandboxed=True)
    try:
        return await Conversation(channel).sandbox()
    finally:
        channel.close()
        child.end()
