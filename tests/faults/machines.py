"""Machines that lack something a sandbox is built of, made from this one.

Each judges in a process of its own: `python -m tests.faults.machines OPTIONS`, OPTIONS being JSON of `Options`. What it lacks is
taken away before anything starts, by a filter that refuses the system calls, as containers do.
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
from harness.sandbox import identity, landlock, seccomp
from harness.wire.channel import BadFrame
from harness.wire.encoding import ENCODER
from harness.wire.guest_messages import Load
from suites import load_task
from tests.support.candidates import adding

PROJECT = Path(harness.__file__).parent.parent
HUNTER = Path(__file__).with_name("hunter.py")
PERSON = 12345
"""A user id that nobody has here."""


class Options(msgspec.Struct, forbid_unknown_fields=True):
    """What a machine shall be like."""

    refuse: dict[str, str] = {}
    """System calls, and the name of the error that they end with."""
    uid: int | None = None
    """User that all of it runs as; only root can become another."""
    sources: tuple[str, ...] = (adding(), adding(result="out + 1"))
    """Candidates to judge."""
    hunt: bool = False
    """Plant a key and let a guest look for it."""
    home: str = ""
    project_file: str = ""


class Machine(msgspec.Struct):
    """What judging on it came to."""

    verdicts: list[str] = []
    errors: list[str] = []
    layers: dict[str, tuple[str, str]] = {}
    """Of a guest: state and why, by name."""
    seen: dict[str, set[str]] = {}
    """Ways in which the key was seen: by a guest, and by a process that is not sandboxed."""

    def states(self, *names: str) -> list[str]:
        """Of these layers, in order."""
        return [self.layers[name][0] for name in names]


async def machine(**fields: Any) -> Machine:
    """Judges, and hunts, on a machine that is as `Options` say."""
    with folders(Options(**fields)) as (folder, options):
        python = sys.executable if options.uid is None else python_for_others(folder)
        process = await asyncio.create_subprocess_exec(
            *(python, "-m", "tests.faults.machines", msgspec.json.encode(options).decode()),
            cwd=PROJECT,
            env={**os.environ, "TMPDIR": "/tmp", "PYTHONPATH": str(PROJECT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        printed, said = await process.communicate()
        assert printed, said.decode()[-3000:]
        return msgspec.json.decode(printed, type=Machine)


@contextmanager
def folders(options: Options) -> Iterator[tuple[Path, Options]]:
    """One that others can pass, as those of pytest are closed to them; the home in it and a file of the project are the user's."""
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
    """An interpreter that another user can run, with the same packages."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    if identity.unreadable([*landlock.python_folders(), Path(sys.executable)]) is None:
        return sys.executable
    packages = [one for one in site.getsitepackages() if identity.unreadable([Path(one)]) is None]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = shutil.which(version, path="/usr/bin:/usr/local/bin")
    if found is None or not packages or identity.unreadable([PROJECT]) is not None:
        pytest.skip(f"other users cannot read this Python, and there is no {version} that they can")
    made = folder / "python"
    subprocess.run([found, "-m", "venv", "--without-pip", str(made)], check=True)
    (made / "lib" / version / "site-packages" / "ours.pth").write_text("\n".join(packages))
    subprocess.run(["chmod", "-R", "a+rX", str(made)], check=True)
    return str(made / "bin" / "python")


async def judge(options: Options) -> Machine:
    found = Machine()
    key = f"sk-decoy-{secrets.token_hex(16)}"
    if options.hunt:
        os.environ["ANTHROPIC_API_KEY"] = key
    async with DevicePool(("cpu",), slots=1) as pool:
        for source in options.sources:
            judged = await evaluate(
                source, load_task("vector_add"), pool=pool, targets=[target("gfx942")], seed=1
            )
            found.verdicts.append(judged.verdict)
            found.errors.append(judged.error.message if judged.error else "")
            found.layers = {layer.name: (layer.state, layer.why) for layer in judged.sandbox}
        if options.hunt:
            found.seen = await hunt(pool, key, options)
    return found


async def hunt(pool: DevicePool, key: str, options: Options) -> dict[str, set[str]]:
    """By whom the key was seen, and how, which lies in files, a process beside the servers, memory and on a socket."""
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
        load = Load(nonce="n", source=source + adding(), entry_points=("vector_add",), target="gfx942")
        await channel.send(ENCODER.encode(load))
        with suppress(EOFError, BadFrame, TimeoutError):  # the hunter's words tell, not how its process ends
            await asyncio.wait_for(channel.receive(), 90)
        child.end()
        await child.wait(30)
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
    """Entry of the process; see the module."""
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
