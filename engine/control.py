"""Commands to a running engine: one JSON object per line over a unix socket, one line in reply (docs/formats.md).

The socket carries only commands and acknowledgements. Viewers read everything else from the journal, so a slow viewer
cannot block the engine.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import socket
import stat
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from engine.errors import EngineError, EngineUnreachable
from sessions.engine_info import PROTOCOL, EngineInfo, boot_id, pid_namespace, read_engine_info
from sessions.errors import SessionsError
from sessions.home import Home

LINE_BYTES = 2 << 20
"""Has room for the longest source of a candidate."""
PATH_BYTES = 107
"""Longest address of a unix socket on Linux."""
ANSWER_S = 60.0
"""Long, because a decision waits for the disk and for git."""
STEERING = (
    "hint",
    "pin",
    "ban",
    "pause",
    "go",
    "extend",
    "fork",
    "edit",
    "measure",
    "drain",
    "return",
    "title",
)
"""Commands that become events which later attempts follow (`engine.commands`)."""
COMMANDS = ("ping", "accept", "reject", "undo", "stop", *STEERING)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A command with its arguments; arguments that it does not need are empty."""

    command: str
    token: str = ""
    attempt: str = ""
    instance: str = ""
    text: str = ""
    source: str = ""
    devices: tuple[str, ...] = ()
    iterations: int = 0
    budget_usd: float = 0.0
    why: str = ""
    by: str = ""
    forced: bool = False
    reason: str = ""


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The engine's reply to a command."""

    ok: bool
    seq: int | None = None
    """Number of the event that the command caused, else of the last event."""
    error: str | None = None
    """One line; set if `ok` is false."""


REQUESTS: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
ANSWERS: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


async def send(home: Home, session: str, command: str, **arguments: object) -> Answer:
    """Send a command to a session's engine and return its answer, which may be a refusal (`ok` false, `error`).

    Raises `EngineUnreachable` with one line that names the cause and the next step.
    """
    live = home.live(session)
    info = read_engine_info(live)
    if info is None or not live.running:
        raise EngineUnreachable(f"session {session} is not running; go on with: wavedeck resume {session}")
    _check_place(info)
    try:
        token = _token(info)
    except OSError as error:
        raise EngineUnreachable(
            f"the token {info.token_file} cannot be read ({error.strerror}); only the user who started the engine may send commands"
        ) from error
    line = msgspec.json.encode({"token": token, "command": command, **arguments}) + b"\n"
    if len(line) > LINE_BYTES:
        raise EngineUnreachable(f"the command is longer than {LINE_BYTES} bytes; shorten its text")
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_unix_connection(info.socket, limit=LINE_BYTES)
            try:
                writer.write(line)
                await writer.drain()
                answer = await reader.readline()
            finally:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()
    except TimeoutError:
        raise EngineUnreachable(
            f"the engine of {session} (pid {info.pid}) did not answer within {ANSWER_S:.0f} s; see {live.log}"
        ) from None
    except (OSError, ValueError) as error:
        raise EngineUnreachable(
            f"the engine of {session} (pid {info.pid}) does not answer at {info.socket} ({error}); see {live.log}"
        ) from error
    try:
        return ANSWERS.decode(answer)
    except msgspec.DecodeError as error:
        raise EngineUnreachable(f"the engine of {session} closed the connection without an answer") from error


def _token(info: EngineInfo) -> str:
    return Path(info.token_file).read_text(encoding="ascii").strip()


def _check_place(info: EngineInfo) -> None:
    """Raise `EngineUnreachable` if the engine of this `engine.json` cannot be reached from here."""
    here = socket.gethostname()
    if info.protocol != PROTOCOL:
        raise EngineUnreachable(
            f"the engine of {info.session} speaks protocol {info.protocol}, this Wavedeck {PROTOCOL}; "
            "use the version that started it"
        )
    if info.host != here:
        raise EngineUnreachable(
            f"session {info.session} runs on {info.host}, this is {here}; log in on {info.host}"
        )
    if info.boot_id != boot_id():
        raise EngineUnreachable(
            f"session {info.session} ran before the last reboot of {here}; go on with: wavedeck resume {info.session}"
        )
    if info.pid_namespace != pid_namespace() and not Path(info.socket).exists():
        raise EngineUnreachable(
            f"session {info.session} runs in another container on {here}; run the command in that container"
        )


def socket_folder(environ: Mapping[str, str]) -> Path:
    """Returns a short folder for sockets that only this user can access; creates it if needed.

    The folder is `$XDG_RUNTIME_DIR/wavedeck`, or `/tmp/wavedeck-<uid>` if that is missing or its path too long.
    Raises `EngineError` if another user owns the path.
    """
    folder = socket_place(environ)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise EngineError(
            f"{folder} cannot be created ({error.strerror}); remove the file at that path and try again"
        ) from error
    if (
        not stat.S_ISDIR(status.st_mode)
        or status.st_uid != os.getuid()
        or stat.S_IMODE(status.st_mode) & 0o077
    ):
        raise EngineError(f"{folder} must be your own folder with mode 0700; remove it and try again")
    return folder


def socket_place(environ: Mapping[str, str]) -> Path:
    """Returns the path of `socket_folder`, whether it exists or not."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    fallback = Path("/tmp") / f"wavedeck-{os.getuid()}"  # `socket_folder` checks owner and mode
    folder = Path(runtime) / "wavedeck" if runtime and Path(runtime).is_dir() else fallback
    fits = len(os.fsencode(folder / socket_name())) <= PATH_BYTES
    return folder if fits and os.access(folder.parent, os.W_OK) else fallback


def socket_name() -> str:
    """Returns a new socket name; all names have the same length."""
    return f"{secrets.token_hex(6)}.sock"


class ControlServer:
    """Listens for the commands of one engine; used as `async with`.

    `handle` executes a command and returns a sequence number. Its `EngineError` or `SessionsError` becomes the
    answer.
    """

    def __init__(
        self, *, token: str, environ: Mapping[str, str], handle: Callable[[Request], Awaitable[int]]
    ) -> None:
        self._token = token.encode()
        self._environ = environ
        self._handle = handle
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._idle: set[asyncio.Task[None]] = set()
        """Connections that wait for a command."""
        self._closing = False
        self.path: Path | None = None
        """Address of the socket while the server listens."""

    async def __aenter__(self) -> ControlServer:
        await self.listen()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._close()

    async def listen(self) -> bool:
        """Create the socket if it is missing; returns True if it was created.

        A logout removes `$XDG_RUNTIME_DIR` and cleaners empty `/tmp` while a detached engine still runs.
        """
        if self.path is not None and self.path.exists():
            return False
        if self._server is not None:
            self._server.close()
        path = socket_folder(self._environ) / socket_name()
        self._server = await asyncio.start_unix_server(self._accept, path=path, limit=LINE_BYTES)
        path.chmod(0o600)
        self.path = path
        return True

    async def _close(self) -> None:
        """Close all connections; a command that was begun is executed to its end and answered."""
        self._closing = True
        for connection in list(self._idle):
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None
        if self.path is not None:
            self.path.unlink(missing_ok=True)
            self.path = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closing:
            writer.close()
            return
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            while line := await self._next_line(connection, reader):
                writer.write(msgspec.json.encode(await self._answer(line)) + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError):
            return  # the client left, or sent a line that is too long
        except asyncio.CancelledError:
            return  # the server closes; no other task awaits this one
        finally:
            self._connections.discard(connection)
            writer.close()

    async def _next_line(self, connection: asyncio.Task[None], reader: asyncio.StreamReader) -> bytes:
        """Returns the next line of a connection; empty if the client left or the server closes."""
        if self._closing:
            return b""
        self._idle.add(connection)
        try:
            return await reader.readline()
        finally:
            self._idle.discard(connection)

    async def _answer(self, line: bytes) -> Answer:
        try:
            request = REQUESTS.decode(line)
        except msgspec.DecodeError as error:
            return Answer(ok=False, error=f"not a command: {error}")
        if not hmac.compare_digest(request.token.encode(), self._token):
            return Answer(ok=False, error="wrong token")
        if request.command not in COMMANDS:
            return Answer(
                ok=False, error=f"unknown command {request.command!r}; there are {', '.join(COMMANDS)}"
            )
        try:
            return Answer(ok=True, seq=await self._handle(request))
        except (EngineError, SessionsError) as error:
            return Answer(ok=False, error=" ".join(str(error).split()))
