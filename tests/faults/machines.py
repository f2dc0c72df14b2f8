"""Simulates machines whose kernel lacks a part of the sandbox, for `test_machines.py`.

Each machine is a process, `python -m tests.faults.machines OPTIONS`, with the JSON of `Options`. Before the process judges,
it installs a filter that refuses the system calls, as a container does.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import secrets
import shutil
import site
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

import harness
from harness import DevicePool, evaluate, target
from harness.linux import syscalls
from harness.processes.conversation import Conversation
from harness.sandbox import identity, landlock, seccomp
from harness.wire.channels.channel import BadFrame
from harness.wire.messages.guest import Load
from suites import load_task
from tests.support.judge.candidates import adding

PROJECT = Path(harness.__file__).parent.parent
HUNTER = Path(__file__).with_name("hunter.py")
PERSON = 12345
"""A user id without an account."""


class Options(msgspec.Struct, forbid_unknown_fields=True):
    """Properties of a simulated machine."""

    refuse: dict[str, str] = {}
    """Refused system calls, each with the name of its error."""
    uid: int | None = None
    """User that runs every process; only root can change the user."""
    sources: tuple[str, ...] = (adding(), adding(result="out + 1"))
    """Candidates to judge."""
    hunt: bool = False
    """Plant an API key and let a guest look for it."""
    home: str = ""
    project_file: str = ""


class Machine(msgspec.Struct):
    """Results of judging on a simulated machine."""

    verdicts: list[str] = []
    errors: list[str] = []
    layers: dict[str, tuple[str, str]] = {}
    """A guest's sandbox layers by name: state and reason."""
    seen: dict[str, set[str]] = {}
    """Ways that found the key, for `guest` and for `control`, a process without a sandbox."""

    def states(self, *names: str) -> list[str]:
        """States of the named layers, in order."""
        return [self.layers[name][0] for name in names]


async def machine(**fields: Any) -> Machine:
    """Judges on a machine with these `Options`, and looks for the key if `hunt` is set."""
    with folders(Options(**fields)) as (folder, options):
        python = sys.executable if options.uid is None else python_for_others(folder)
        process = await asyncio.create_subprocess_exec(
            *(python, "-m", "tests.faults.machines", msgspec.json.encode(options).decode()),
            cwd=PROJECT,
            env={**os.environ, "TMPDIR": "/tmp", "PYTHONPATH": str(PROJECT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        printed, errors = await process.communicate()
        assert printed, errors.decode()[-3000:]
        return msgspec.json.decode(printed, type=Machine)


@contextmanager
def folders(options: Options) -> Iterator[tuple[Path, Options]]:
    """Makes a folder with the user's home, and a file of the user in the project.

    A different user can enter the folder; pytest's temporary folders are closed to other users.
    """
    folder = Path(tempfile.mkdtemp(prefix="wd-machine-", dir="/tmp"))
    home, project_file = folder / "home", PROJECT / f".{folder.name}"
    try:
        folder.chmod(0o755)
        home.mkdir()
        project_file.touch()
        if options.uid is not None and os.geteuid() == 0:
            for path in (home, project_file):
                os.chown(path, options.uid, options.uid)
        yield folder, msgspec.structs.replace(options, home=str(home), project_file=str(project_file))
    finally:
        project_file.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def python_for_others(folder: Path) -> str:
    """A Python interpreter with the same packages that a different user can run."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    if identity.unreadable([*landlock.python_folders(), Path(sys.executable)]) is None:
        return sys.executable
    packages = [path for path in site.getsitepackages() if identity.unreadable([Path(path)]) is None]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    python = shutil.which(version, path="/usr/bin:/usr/local/bin")
    if python is None or not packages or identity.unreadable([PROJECT]) is not None:
        pytest.skip(f"other users cannot read this Python, and there is no {version} that they can")
    environment = folder / "python"
    subprocess.run([python, "-m", "venv", "--without-pip", str(environment)], check=True)
    (environment / "lib" / version / "site-packages" / "ours.pth").write_text("\n".join(packages))
    subprocess.run(["chmod", "-R", "a+rX", str(environment)], check=True)
    return str(environment / "bin" / "python")


async def judge(options: Options) -> Machine:
    results = Machine()
    key = f"sk-decoy-{secrets.token_hex(16)}"
    if options.hunt:
        os.environ["ANTHROPIC_API_KEY"] = key
    async with DevicePool(("cpu",), slots=1) as pool:
        for source in options.sources:
            evaluation = await evaluate(
                source, load_task("vector_add"), pool, targets=[target("gfx942")], seed=1
            )
            results.verdicts.append(evaluation.verdict)
            results.errors.append(evaluation.error.message if evaluation.error else "")
            results.layers = {layer.name: (layer.state, layer.why) for layer in evaluation.sandbox}
        if options.hunt:
            results.seen = await hunt(pool, key, options)
    return results


async def hunt(pool: DevicePool, key: str, options: Options) -> dict[str, set[str]]:
    """Plants the key in files, a sibling process, memory and a socket; returns who found the key, and how."""
    files = plant(key, options)
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, args=(listener, key.encode()), daemon=True).start()
    buffer = ctypes.create_string_buffer(key.encode())
    waits = "import time; time.sleep(600)"
    sibling = await asyncio.create_subprocess_exec(sys.executable, "-c", waits, "--api-key", key)
    places = {
        "files": files,
        "pids": [os.getpid(), sibling.pid, pool.interpreting.pid],
        "address": ctypes.addressof(buffer),
        "port": listener.getsockname()[1],
    }
    source = HUNTER.read_text(encoding="utf-8").replace("PLACES: dict = {}", f"PLACES: dict = {places!r}")
    try:
        control = await asyncio.create_subprocess_exec(
            sys.executable, "-c", source, cwd=options.home, stdout=subprocess.PIPE
        )
        printed, _ = await control.communicate()
        child, channel = await pool.interpreting.spawn("guest", cpu_limit_s=300, sandboxed=True)
        await channel.receive()
        load = Load(source + adding(), "gfx942", entry_points=("vector_add",))
        await Conversation(channel).send(load)
        with suppress(
            EOFError, BadFrame, TimeoutError
        ):  # only the printed report counts, not the end of the process
            await asyncio.wait_for(channel.receive(), 240)
        child.end()
        await child.wait(60)
        channel.close()
    finally:
        sibling.kill()
        await sibling.wait()
    return {"control": report(printed.decode()), "guest": report(child.printed.text())}


def plant(key: str, options: Options) -> list[str]:
    files = [Path(options.project_file), Path(options.home, ".netrc")]
    for path in files:
        path.write_text(f"password = {key}\n")
        path.chmod(0o600)
    return [str(path) for path in files]


def serve(listener: socket.socket, data: bytes) -> None:
    while True:
        client, _address = listener.accept()
        with client:
            client.sendall(data)


def report(printed: str) -> set[str]:
    lines = [line for line in printed.splitlines() if line.startswith("HUNT ")]
    assert lines, printed[-2000:]
    return msgspec.json.decode(lines[-1].removeprefix("HUNT "), type=set[str])


def main() -> None:
    """Applies the options to this process, judges, and prints the `Machine` as JSON."""
    options = msgspec.json.decode(sys.argv[1], type=Options)
    if options.uid is not None:
        os.setgroups([])
        os.setresgid(options.uid, options.uid, options.uid)
        os.setresuid(options.uid, options.uid, options.uid)
    refused = [
        step for name, error in options.refuse.items() for step in seccomp.refuse(name, getattr(errno, error))
    ]
    if refused:
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        seccomp.install(refused)
    sys.stdout.write(msgspec.json.encode(asyncio.run(judge(options))).decode())


if __name__ == "__main__":
    main()
