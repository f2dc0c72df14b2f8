"""Plants a decoy key wherever one may lie beside a judge, judges, and lets hunters look for it: one JSON line comes back.

Run as a process of its own: `python -m tests.faults.planting FOLDER OPTIONS`, OPTIONS being JSON of `Options`. Layers that
a machine may lack are taken away before anything starts, by a filter that refuses what they need, as containers do.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import json
import os
import platform
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

import harness
from harness import Device, DevicePool, choose_devices, evaluate, target
from harness.servers import Child, ForkServer
from harness.worker.sandbox import seccomp
from harness.worker.serving import linux
from harness.worker.serving.channel import BadFrame
from harness.worker.serving.messages import ENCODER, GUEST_REPORTS, Compile, Hello, Load
from suites import load_task
from tests.support.candidates import adding
from tests.support.gpu import small

HUNTER = Path(__file__).with_name("hunter.py")
PROJECT = Path(harness.__file__).parent.parent
ARGUMENTS = "import time\ntime.sleep(600)"
(CPU,) = choose_devices(("cpu",))
ADD_KEY = 248 if platform.machine() == "x86_64" else 217
BLOCK_DEVICES = [str(one) for one in Path("/dev").iterdir() if one.is_block_device()]
IN_HOME = (
    ".netrc",
    ".gitconfig",
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".config/pip/pip.conf",
    ".cache/token",
)


class Options(msgspec.Struct, forbid_unknown_fields=True):
    """What this machine shall be like."""

    refuse: dict[str, str] = {}
    """System calls, and the name of the error that they end with."""
    uid: int | None = None
    """User that all of it runs as; only root can become another."""
    device: str = "cpu"
    hunt: bool = True
    sources: tuple[str, ...] = (adding(), adding(result="out + 1"))
    """Candidates to judge before anything is hunted."""


class Planted:
    """Where the key is."""

    def __init__(self, folder: Path, uid: int | None, stack: ExitStack) -> None:
        self.key = "sk-" + "decoy-" + secrets.token_hex(16)
        self.files: list[str] = []
        self._folder, self._uid, self._stack = folder, uid, stack
        self._kept: list[Any] = []

    def file(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"password = {self.key}\n")
        path.chmod(0o600)
        if self._uid is not None:
            for one in (path, *(above for above in path.parents if self._folder in above.parents)):
                os.chown(one, self._uid, self._uid)
        self.files.append(str(path))
        self._stack.callback(path.unlink, missing_ok=True)

    def before_the_user_changes(self) -> None:
        name = f"decoy-{secrets.token_hex(4)}"
        for relative in IN_HOME:
            self.file(self._folder / "home" / relative)
        for place in (PROJECT, Path("/dev/shm"), Path("/tmp")):
            self.file(place / f".{name}")
        os.environ["ANTHROPIC_API_KEY"] = os.environ["WAVEDECK_MODEL_KEY"] = self.key
        os.environ["HOME"] = str(self._folder / "home")

    def in_this_process(self) -> dict[str, Any]:
        """In the memory, descriptors, keyring and sockets of the process that starts the servers."""
        libc = ctypes.CDLL(None, use_errno=True)
        data = self.key.encode()
        buffer = ctypes.create_string_buffer(data)
        memory = os.memfd_create("decoy", 0)
        os.write(memory, data)
        segment = libc.shmget(0, 4096, 0o1600)
        libc.shmat.restype = ctypes.c_void_p
        attached = libc.shmat(segment, None, 0)
        ctypes.memmove(attached, data, len(data))
        self._stack.callback(libc.shmctl, segment, 0, None)
        number = ctypes.c_long(ADD_KEY)
        serial = libc.syscall(number, b"user", b"decoy", data, ctypes.c_size_t(len(data)), ctypes.c_int(-3))
        path = self._folder / "home" / "socket"
        addresses: list[tuple[str, int | str]] = [("unix", str(path)), ("unix", f"\0{path}")]
        for _, where in addresses:
            self._serve(socket.socket(socket.AF_UNIX), where, data)
        tcp = socket.socket()
        self._serve(tcp, ("127.0.0.1", 0), data)
        addresses.append(("tcp", tcp.getsockname()[1]))
        self._kept += [buffer, memory, self.key * 2]
        return {
            "address": ctypes.addressof(buffer),
            "shared_memory": [segment],
            "keys": [serial],
            "sockets": addresses,
        }

    def _serve(self, listener: socket.socket, where: Any, data: bytes) -> None:
        listener.bind(where)
        listener.listen()

        def answer() -> None:
            while True:
                client, _address = listener.accept()
                with client:
                    client.sendall(data)

        threading.Thread(target=answer, daemon=True).start()


@contextmanager
def sibling(key: str) -> Iterator[int]:
    """A process beside the servers, with the key among its arguments and its variables; dumpable, as a shell is."""
    command = [sys.executable, "-c", ARGUMENTS, "--api-key", key]
    with subprocess.Popen(command, env={**os.environ, "OPENAI_API_KEY": key}) as process:
        try:
            yield process.pid
        finally:
            process.kill()


async def hunt(
    server: ForkServer, role: str, device: Device, places: dict[str, Any]
) -> tuple[Hello, dict[str, Any]]:
    """What a worker was held by, and what a hunter in it saw."""
    child, channel = await server.spawn(role, cpu_limit_s=300, sandboxed=True, device=device)
    hello = GUEST_REPORTS.decode(await channel.receive())
    assert isinstance(hello, Hello)
    source = hunting(places) + adding()
    request: Load | Compile
    if role == "guest":
        request = Load(nonce="n", source=source, entry_points=("vector_add",), target="gfx942")
    else:
        cases = msgspec.Raw(msgspec.msgpack.encode(()))
        request = Compile(
            nonce="n",
            source=source,
            entry_point="vector_add",
            cases=cases,
            target="gfx942",
            allowed=(),
            once=cases,
            ahead=cases,
        )
    await channel.send(ENCODER.encode(request))
    with suppress(EOFError, BadFrame, TimeoutError):  # the hunter's words tell, not how its process ends
        await asyncio.wait_for(channel.receive(), 90)
    child.end()
    await child.wait(30)
    channel.close()
    return hello, report(child.printed.text())


def hunting(places: dict[str, Any]) -> str:
    """The hunter's source, told where to look."""
    source = HUNTER.read_text(encoding="utf-8")
    telling = "import faulthandler\nfaulthandler.dump_traceback_later(45)\n"
    return telling + source.replace("PLACES: dict = {}", f"PLACES: dict = {places!r}")


def report(printed: str) -> dict[str, Any]:
    """What a hunter printed at its end."""
    lines = [line for line in printed.splitlines() if line.startswith("HUNT ")]
    assert lines, printed[-2000:]
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("HUNT "))
    return found


def pid_of(child: Child | None) -> int:
    assert child is not None
    return child.started.result()


async def run(planted: Planted, options: Options, folder: Path, process: int) -> dict[str, Any]:
    own = planted.in_this_process() if options.hunt else {}
    task = load_task("vector_add")
    if options.device != "cpu":
        task = small(task)
    task = msgspec.structs.replace(task, instruction=f"{task.instruction} {planted.key}")
    answer: dict[str, Any] = {"verdicts": [], "errors": [], "seen": {}, "tried": {}}
    async with DevicePool((options.device,), slots=1) as pool:
        for source in options.sources:
            judged = await evaluate(source, task, pool=pool, targets=[target("gfx942")], seed=1)
            answer["verdicts"].append(judged.verdict)
            answer["errors"].append(judged.error.message if judged.error else "")
            answer["layers"] = {layer.name: (layer.state, layer.why) for layer in judged.sandbox}
        if not options.hunt:
            return answer
        slot = pool._all[0]
        neighbour, held = await slot.server.spawn("guest", cpu_limit_s=60, sandboxed=True, device=slot.device)
        assert neighbour.scratch is not None
        planted.file(neighbour.scratch / "planted")
        address = own.pop("address")
        workers = [pid_of(slot.judge), pid_of(neighbour), slot.server.pid, pool.compiling.pid]
        places = {
            **own,
            "files": planted.files,
            "folders": [str(folder), str(PROJECT / "docs"), "/dev/shm", "/tmp", os.environ["HOME"]],
            "pids": [os.getpid(), process, *workers],
            "addresses": [(os.getpid(), address)],
            "devices": BLOCK_DEVICES,
        }
        for role, server in (("guest", slot.server), ("compiler", pool.compiling)):
            device = slot.device if role == "guest" else CPU
            hello, found = await hunt(server, role, device, places)
            answer["seen"][role], answer["tried"][role] = found["seen"], found["tried"]
            answer[f"{role}_layers"] = {layer.name: (layer.state, layer.why) for layer in hello.sandbox}
        held.close()
        neighbour.end()
        control = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", hunting(places)), cwd=os.environ["HOME"], stdout=subprocess.PIPE
        )
        printed, _ = await control.communicate()
        answer["seen"]["control"] = report(printed.decode())["seen"]
    return answer


def main() -> None:
    """Entry of the process; see the module."""
    folder = Path(sys.argv[1])
    options = msgspec.json.decode(sys.argv[2].encode(), type=Options)
    with ExitStack() as stack:
        planted = Planted(folder, options.uid, stack)
        planted.before_the_user_changes()
        pid = os.fork()
        if pid == 0:
            if options.uid is not None:
                os.setgroups([])
                os.setresgid(options.uid, options.uid, options.uid)
                os.setresuid(options.uid, options.uid, options.uid)
            refused = [
                step
                for name, error in options.refuse.items()
                for step in seccomp.refuse(name, getattr(errno, error))
            ]
            if refused:
                linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
                seccomp.install(refused)
            with ExitStack() as own:
                planted._stack = own
                process = own.enter_context(sibling(planted.key))
                sys.stdout.write(json.dumps(asyncio.run(run(planted, options, folder, process))))
                sys.stdout.flush()
            os._exit(0)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
