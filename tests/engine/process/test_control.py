"""Commands over the engine's socket: answers, refusals, and errors if no engine answers."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from engine.errors import EngineError, EngineUnreachable
from engine.process import control
from engine.process.control import LINE_BYTES, ControlServer, send, socket_folder, socket_place
from sessions.engine_info import EngineInfo, boot_id, pid_namespace, read_engine_info, write_engine_info
from sessions.errors import CommandRefused
from sessions.events import Command, DecisionMade, HintGiven, MeasureAsked, Ping, SessionExtended
from sessions.files import FileLock
from sessions.home import Home

SESSION = "20260101-000000-geak-0000"
TOKEN = "secret"
ACCEPT = DecisionMade(attempt="softmax#1/2", accepted=True, why="fast", by="me")


def accept(attempt: str) -> DecisionMade:
    return DecisionMade(attempt=attempt, accepted=True)


@asynccontextmanager
async def running(root: Path, handled: list[Command], **changes: object) -> AsyncIterator[ControlServer]:
    """Run a control server for a locked session; clients find it by its `engine.json`."""

    async def handle(command: Command) -> int:
        handled.append(command)
        if command.target == "refuse":
            raise CommandRefused("not now;\n  later")
        if command.target == "bug":
            raise ValueError("not a number")
        if command.target == "slow":
            await asyncio.sleep(0.5)
        return 17

    live = Home(root).files(SESSION)
    live.folder.mkdir(parents=True)
    live.token.write_text(f"{TOKEN}\n")
    lock = FileLock(live.lock)
    assert lock.acquire()
    async with ControlServer(token=TOKEN, environ=os.environ, handle=handle) as server:
        info = EngineInfo(
            session=SESSION, pid=os.getpid(), process_started=0.0, boot_id=boot_id(),
            pid_namespace=pid_namespace(), host=os.uname().nodename, socket=str(server.path),
            token_file=str(live.token),
        )  # fmt: skip
        write_engine_info(live, msgspec.structs.replace(info, **changes))
        yield server
    lock.release()


async def test_text_that_is_not_utf8_arrives_with_question_marks(tmp_path: Path) -> None:
    handled: list[Command] = []
    async with running(tmp_path, handled):
        await send(Home(tmp_path), SESSION, HintGiven(instance="softmax#1", text="caf\udce9"))
        await send(Home(tmp_path), SESSION, MeasureAsked(attempt="softmax#1/2", devices=("0",)))
    assert handled == [
        HintGiven(instance="softmax#1", text="caf?"),
        MeasureAsked(attempt="softmax#1/2", devices=("0",)),
    ]


async def test_refusal_is_one_line(tmp_path: Path) -> None:
    async with running(tmp_path, []):
        answer = await send(Home(tmp_path), SESSION, accept("refuse"))
    assert answer.ok is False
    assert answer.error == "not now; later"


PING = msgspec.json.encode({"token": TOKEN, "type": "ping"}) + b"\n"


async def test_too_long_line_is_refused_and_closes_the_connection(tmp_path: Path) -> None:
    async with running(tmp_path, []) as server:
        reader, writer = await asyncio.open_unix_connection(server.path)
        writer.write(b"x" * (LINE_BYTES + 2))
        assert b"not a command: longer than" in await reader.read()
        writer.close()


@pytest.mark.parametrize(
    "frame", [b'{"a":' * 100_000, b'{"command":"\xff"}', b'{"budget_usd":NaN}', b"[]", b""]
)
async def test_odd_line_is_refused_and_the_next_command_is_executed(tmp_path: Path, frame: bytes) -> None:
    async with running(tmp_path, []) as server:
        reader, writer = await asyncio.open_unix_connection(server.path)
        writer.write(frame + b"\n" + PING)
        refused, answered = [msgspec.json.decode(await reader.readline()) for _ in range(2)]
        writer.close()
    assert refused["error"].startswith("not a command: ")
    assert answered["ok"]


async def test_half_a_line_is_no_command(tmp_path: Path) -> None:
    handled: list[Command] = []
    async with running(tmp_path, handled) as server:
        reader, writer = await asyncio.open_unix_connection(server.path)
        writer.write(PING + PING[:-1])
        writer.write_eof()
        assert (await reader.read()).count(b"\n") == 1, "a client that only ended its side is answered"
        writer.close()
    assert len(handled) == 1


async def test_command_of_a_client_that_left_is_not_executed(tmp_path: Path) -> None:
    handled: list[Command] = []
    async with running(tmp_path, handled) as server:
        for _ in range(2):
            with socket.socket(socket.AF_UNIX) as client:  # the loop, as a stopped engine, cannot answer here
                client.connect(str(server.path))
                client.sendall(2 * msgspec.json.encode({"token": TOKEN, "type": "session_extended"}) + b"\n")
        assert (await send(Home(tmp_path), SESSION, Ping())).ok
    assert handled == [Ping()]


async def test_error_without_an_answer_says_that_the_command_may_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "ANSWER_S", 0.1)
    async with running(tmp_path, []) as server:
        with pytest.raises(
            EngineUnreachable, match="it drops the command if it has not begun it; check with"
        ):
            await send(Home(tmp_path), SESSION, accept("slow"))
        server.path.unlink()

        def leave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        async with await asyncio.start_unix_server(leave, path=server.path):
            with pytest.raises(EngineUnreachable, match="the command may have taken effect; check with"):
                await send(Home(tmp_path), SESSION, ACCEPT)


async def test_bug_in_a_command_is_logged_and_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, []):
        answer = await send(Home(tmp_path), SESSION, accept("bug"))
        assert (await send(Home(tmp_path), SESSION, Ping())).ok
    assert answer.error == "bug in the engine (ValueError: not a number); the traceback is in its engine.log"
    assert caplog.records[0].exc_info is not None


async def flood(server: ControlServer, *, patience_s: float | None) -> asyncio.StreamWriter:
    """Send commands without reading an answer, until for so long no further one is taken."""
    _, writer = await asyncio.open_unix_connection(server.path, limit=1)
    with suppress(TimeoutError):
        while True:
            writer.write(1000 * PING)
            async with asyncio.timeout(patience_s):
                await writer.drain()
    return writer


async def test_client_that_does_not_read_does_not_hold_up_the_end(tmp_path: Path) -> None:
    async with asyncio.timeout(60):
        async with running(tmp_path, []) as server:
            writer = await flood(server, patience_s=0.5)
        writer.transport.abort()


async def test_client_that_does_not_read_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "WRITE_S", 0.1)
    async with asyncio.timeout(60), running(tmp_path, []) as server:
        # Without a limit of its own: a busy server takes the commands late, and then drops the client.
        with pytest.raises(ConnectionError):
            await flood(server, patience_s=None)


async def test_begun_command_is_completed_and_answered_when_the_server_closes(tmp_path: Path) -> None:
    begun, done = asyncio.Event(), asyncio.Event()

    async def handle(_: Command) -> int:
        begun.set()
        await done.wait()
        return 17

    server = ControlServer(token=TOKEN, environ=os.environ, handle=handle)
    async with asyncio.timeout(60), server:
        reader, writer = await asyncio.open_unix_connection(server.path)
        writer.write(2 * PING)
        await begun.wait()
        asyncio.get_running_loop().call_later(0.05, done.set)
    assert msgspec.json.decode(await reader.readline()) == {"ok": True, "seq": 17}
    assert await reader.read() == b"", "a command that was not begun is dropped"
    writer.close()


async def test_commands_are_refused_while_the_session_is_put_away(tmp_path: Path) -> None:
    handled: list[Command] = []
    async with running(tmp_path, handled) as server, asyncio.TaskGroup() as group:
        home = Home(tmp_path)
        begun = group.create_task(send(home, SESSION, accept("slow")))
        async with asyncio.timeout(60):
            while not handled:  # noqa: ASYNC110 (a list has no event)
                await asyncio.sleep(0)
        await server.refuse_commands(lambda: "being put away")
        assert (await send(home, SESSION, SessionExtended(iterations=1))).error == "being put away"
        assert (await send(home, SESSION, Ping())).ok
    assert begun.result().ok, "a command that was begun is executed first"
    assert handled == [accept("slow"), Ping()]


async def test_open_connection_does_not_keep_the_server_open(tmp_path: Path) -> None:
    async with asyncio.timeout(60):
        async with running(tmp_path, []) as server:
            reader, writer = await asyncio.open_unix_connection(server.path)
            writer.write(PING)
            assert await reader.readline()
        assert await reader.read() == b""
        writer.close()


async def test_deleted_socket_is_created_again(tmp_path: Path) -> None:
    async with running(tmp_path, []) as server:
        first = server.path
        assert await server.listen() is False
        first.unlink()
        assert await server.listen() is True
        live = Home(tmp_path).files(SESSION)
        info = read_engine_info(live)
        write_engine_info(live, msgspec.structs.replace(info, socket=str(server.path)))
        assert (await send(Home(tmp_path), SESSION, Ping())).ok


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"protocol": 1}, "speaks protocol 1"),
        ({"host": "elsewhere"}, "runs on elsewhere"),
        ({"boot_id": "before"}, "wavedeck resume"),
        ({"socket": "MISSING"}, "does not answer at .*/missing"),
        ({"token_file": "MISSING"}, "cannot be read"),
    ],
)
async def test_unreachable_engine_error_says_why(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    changes = {
        name: str(tmp_path / "missing") if value == "MISSING" else value for name, value in changes.items()
    }
    async with running(tmp_path, [], **changes):
        with pytest.raises(EngineUnreachable, match=words) as caught:
            await send(Home(tmp_path), SESSION, Ping())
    assert "\n" not in str(caught.value)


async def test_stale_engine_file_is_ignored(tmp_path: Path) -> None:
    async with running(tmp_path, []):
        pass
    with pytest.raises(EngineUnreachable, match="not running"):
        await send(Home(tmp_path), SESSION, Ping())


def test_socket_folder_is_private_to_the_user(tmp_path: Path) -> None:
    folder = socket_folder({"XDG_RUNTIME_DIR": str(tmp_path)})
    assert folder == tmp_path / "wavedeck"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    with pytest.raises(EngineError, match="must be your own folder"):
        socket_folder({"XDG_RUNTIME_DIR": str(tmp_path)})


def test_too_long_runtime_path_is_not_used(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    assert socket_place({"XDG_RUNTIME_DIR": str(deep)}) == Path(f"/tmp/wavedeck-{os.getuid()}")
