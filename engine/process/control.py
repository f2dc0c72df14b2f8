"""Commands to a running engine: one JSON object per line over a unix socket, one line in reply (docs/data.md).

The socket carries only commands and acknowledgements. Viewers read everything else from the journal, so a slow viewer
cannot block the engine.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import secrets
import select
import socket
import stat
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from engine.errors import EngineError, EngineUnreachable, one_line
from sessions.engine_info import PROTOCOL, EngineInfo, boot_id, pid_namespace, read_engine_info
from sessions.errors import SessionsError
from sessions.events import COMMANDS, Command, Ping
from sessions.events.refusals import SHOWN
from sessions.home import Home
from sessions.journal.codec import tag_of, without_surrogates

log = logging.getLogger(__name__)
T = TypeVar("T")

LINE_BYTES = 2 << 20
"""Has room for the longest source of a candidate."""
PATH_BYTES = 107
"""Longest address of a unix socket on Linux."""
ANSWER_S = 60.0
"""Long, because a decision waits for the disk and for git."""
WRITE_S = 10.0
"""Longest wait for a client that does not read its answers; then the client is dropped."""
ENDING = "the session is just ending; give the command again in a moment"
"""Refusal of a command that comes after the last work and before the session is stored."""
NAMES = {"attempt": "task#1/1", "base": "task#1/1", "instance": "task#1"}
"""Fields with the name of an attempt or an instance, each with a valid name."""


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The engine's reply to a command."""

    ok: bool
    seq: int | None = None
    """Number of the event that the command caused, else of the last event."""
    error: str | None = None
    """One line; set if `ok` is false."""


FIELDS: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])
ANSWERS: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


async def send(home: Home, session: str, command: Command) -> Answer:
    """Send a command to a session's engine and return its answer, which may be a refusal (`ok` false, `error`).

    Raises `EngineUnreachable` with one line that names the cause and the next step.
    """
    live = home.files(session)
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
    values = {name: getattr(command, name) for name in command.given_fields()}
    fields = without_surrogates({"token": token, "type": tag_of(command), **values})
    line = msgspec.json.encode(fields) + b"\n"
    if len(line) > LINE_BYTES:
        raise EngineUnreachable(f"the command is longer than {LINE_BYTES} bytes; shorten its text")
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_unix_connection(info.socket, limit=LINE_BYTES)
            try:
                writer.write(line)
                await writer.drain()
                answer = await reader.readline()
            except (BrokenPipeError, ConnectionResetError):
                answer = b""
            finally:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()
    except TimeoutError:
        raise EngineUnreachable(
            f"the engine of {session} (pid {info.pid}) did not answer within {ANSWER_S:.0f} s; it drops the command if it "
            f"has not begun it; check with wavedeck sessions show {session} before you repeat it; log: {live.log}"
        ) from None
    except (OSError, ValueError) as error:
        raise EngineUnreachable(
            f"the engine of {session} (pid {info.pid}) does not answer at {info.socket} ({error}); see {live.log}"
        ) from error
    try:
        return ANSWERS.decode(answer)
    except msgspec.DecodeError as error:
        raise EngineUnreachable(
            f"the engine of {session} closed the connection without an answer, so the command may have taken effect; "
            f"check with wavedeck sessions show {session} before you repeat it"
        ) from error


def command_of(fields: dict[str, Any]) -> Command:
    """Returns the command with these fields. Raises `ValueError` that says what is wrong."""
    tag = fields.pop("type", "")
    kind = COMMANDS.get(tag) if isinstance(tag, str) else None
    if kind is None:
        raise ValueError(f"no command is called {str(tag)[:SHOWN]!r}; there are {', '.join(COMMANDS)}")
    allowed = kind.given_fields()
    if unknown := [name for name in fields if name not in allowed]:
        raise ValueError(f"{tag} has no field {unknown[0][:SHOWN]!r}; it has {', '.join(allowed) or 'none'}")
    # The session knows its attempts and instances, so it refuses wrong names, with similar ones.
    names = {name: value for name, value in fields.items() if name in NAMES and isinstance(value, str)}
    command = msgspec.convert(fields | {name: NAMES[name] for name in names}, kind)
    return msgspec.structs.replace(command, **names)


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
    answer. Any other error is a bug: it is logged with its traceback, and the answer says so.
    """

    def __init__(
        self, *, token: str, environ: Mapping[str, str], handle: Callable[[Command], Awaitable[int]]
    ) -> None:
        self._token = token.encode()
        self._environ = environ
        self._handle = handle
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Task[None]] = set()
        """Connections that wait for their client: for its next command, or until it reads an answer."""
        self._executing = 0
        """Number of commands that were begun and not completed."""
        self._executed = asyncio.Event()
        self._refusal: Callable[[], str] | None = None
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

    async def refuse_commands(self, why: Callable[[], str]) -> None:
        """Refuse each command but `ping` with `why()` from now on; returns when the commands that were begun are executed."""
        self._refusal = why
        while self._executing:
            self._executed.clear()
            await self._executed.wait()

    async def _close(self) -> None:
        """Close all connections; a command that was begun is executed to its end and answered.

        A client that does not read is not waited for.
        """
        self._closing = True
        for connection in self._waiting:
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
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, TimeoutError):
            return  # the client left, or does not read its answers
        except asyncio.CancelledError:
            return  # the server closes; no other task awaits this one
        finally:
            self._connections.discard(connection)
            if writer.transport.get_write_buffer_size():
                writer.transport.abort()  # `close` would wait until the client reads
            else:
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the commands of one connection until the client leaves or the server closes."""
        while not self._closing:
            try:
                line = await self._wait_for_client(reader.readline())
            except ValueError:
                answer = Answer(ok=False, error=f"not a command: longer than {LINE_BYTES} bytes")
                writer.write(msgspec.json.encode(answer) + b"\n")
                return
            if not line.endswith(b"\n") or has_left(writer):
                return
            writer.write(msgspec.json.encode(await self._answer(line)) + b"\n")
            if not self._closing:
                async with asyncio.timeout(WRITE_S):
                    await self._wait_for_client(writer.drain())

    async def _wait_for_client(self, step: Coroutine[Any, Any, T]) -> T:
        """Run a step that depends on the client; the server cancels it when it closes."""
        connection = asyncio.current_task()
        assert connection is not None
        self._waiting.add(connection)
        try:
            return await step
        finally:
            self._waiting.discard(connection)

    async def _answer(self, line: bytes) -> Answer:
        try:
            fields = FIELDS.decode(line)
            if not hmac.compare_digest(str(fields.pop("token", "")).encode(), self._token):
                return Answer(ok=False, error="wrong token")
            command = command_of(fields)
        except (ValueError, RecursionError) as error:  # `ValueError`: bad UTF-8, bad JSON, or no command
            return Answer(ok=False, error=f"not a command: {error}")
        if self._refusal is not None and not isinstance(command, Ping):
            return Answer(ok=False, error=self._refusal())
        self._executing += 1
        try:
            return Answer(ok=True, seq=await self._handle(command))
        except (EngineError, SessionsError) as error:
            return Answer(ok=False, error=one_line(error))
        except Exception as error:
            log.exception("bug in the command %s", tag_of(command))
            words = one_line(f"{type(error).__name__}: {error}")
            return Answer(ok=False, error=f"bug in the engine ({words}); the traceback is in its engine.log")
        finally:
            self._executing -= 1
            self._executed.set()


def has_left(writer: asyncio.StreamWriter) -> bool:
    """True if the client has closed its side, so that it cannot read an answer.

    The system is asked, because the stream reports the end only after everything that the client sent before it.
    """
    if writer.transport.is_closing():
        return True
    poll = select.poll()
    poll.register(writer.get_extra_info("socket"), 0)  # a hangup is always reported
    return bool(poll.poll(0))
