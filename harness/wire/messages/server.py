"""Messages of the engine to the nursery, which starts fork servers, and to and from a fork server, which starts workers."""

from __future__ import annotations

import os
import signal

import msgspec

from harness.wire.device import Device
from suites.source.package import PackageView

_SIGNALS: dict[int, str] = {number.value: number.name for number in signal.Signals}
"""Real-time signals between the first and the last have no name."""

HAS_CONTEXT = b"context"
"""First message of a health probe: its GPU context is made, and it computes now."""


class Spawn(msgspec.Struct, frozen=True, tag="spawn"):
    """Start one worker. Descriptors: its channel, then the pipe for its output."""

    worker: int
    """Chosen by the engine, never used twice on one server."""
    role: str
    """A key of `harness.worker.server.roles.ROLES`."""
    scratch: str
    """The worker's own folder; empty for processes that run no foreign code."""
    cpu_limit_s: int
    """The kernel's limit (SIGXCPU), as a backstop; the judge keeps the finer limits."""
    device: Device | None = None
    """The only GPU that the worker sees; `None`: it sees no GPU."""
    sharers: int = 1
    """Judges that share the GPU's memory; each may keep its part."""
    package: PackageView | None = None
    """The package that the candidate is a module of."""


class Bear(msgspec.Struct, frozen=True, tag="bear"):
    """Start one fork server. Descriptors: its control socket, then the pipe for its standard error."""

    number: int
    """Chosen by the engine, never used twice on one nursery."""
    interpret: bool
    forks: bool
    """Whether the server forks its workers. If not, server and workers are fresh interpreters."""


class End(msgspec.Struct, frozen=True, tag="end"):
    """Kill a worker with its whole process tree, or a server that does not end by itself."""

    number: int


class Language(msgspec.Struct, frozen=True):
    """Names that the installed Triton has and lacks, where models know other versions."""

    version: str
    functions: tuple[str, ...]
    """Elementary functions of `triton.language`."""
    libdevice: dict[str, tuple[str, ...]]
    """Further elementary functions, which only `triton.language.extra.libdevice` has, by back end."""
    absent: tuple[str, ...]
    """Names of `triton.language` in other versions that this one lacks."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The server has imported everything and may fork."""

    versions: dict[str, str]
    threads: int
    """Threads of the server; with more than one, a fork is unsafe."""
    problem: str = ""
    language: Language | None = None
    """`None` in the start message of a server that does not fork."""
    pid: int = 0


class Started(msgspec.Struct, frozen=True, tag="started"):
    """A worker runs."""

    worker: int
    pid: int


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A worker and its whole process tree ended."""

    worker: int
    status: int
    leftover: int
    """Processes of its tree that still ran when the worker ended by itself."""
    killed: bool
    why: str = ""
    """The limit that the worker exceeded, so that its warden ended it: processes, files or bytes. Empty: none."""
    lost: str = ""
    """Why nobody saw how the worker ended: its warden or its server was killed. Empty: its warden saw the end."""


def status_words(status: int) -> str:
    """Return `SIGSEGV`, `signal 40` or `exit code 3` for a status of `os.waitpid`."""
    if not os.WIFSIGNALED(status):
        return f"exit code {os.waitstatus_to_exitcode(status)}"
    number = os.WTERMSIG(status)
    return _SIGNALS.get(number, f"signal {number}")


ServerRequest = Spawn | End
ServerReport = Ready | Started | Ended
NURSERY_REQUESTS: msgspec.msgpack.Decoder[Bear | End] = msgspec.msgpack.Decoder(Bear | End)
SERVER_REQUESTS: msgspec.msgpack.Decoder[ServerRequest] = msgspec.msgpack.Decoder(ServerRequest)
SERVER_REPORTS: msgspec.msgpack.Decoder[ServerReport] = msgspec.msgpack.Decoder(ServerReport)
