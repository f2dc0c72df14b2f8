"""Commands over the engine's socket: answers, refusals, and errors if no engine answers."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from engine.control import LINE_BYTES, ControlServer, Request, send, socket_folder, socket_place
from engine.errors import CommandRefused, EngineError, EngineUnreachable
from sessions.engine_info import EngineInfo, boot_id, pid_namespace, read_engine_info, write_engine_info
from sessions.files import FileLock
from sessions.home import Home

SESSION = "20260101-000000-geak-0000"
TOKEN = "secret"


@asynccontextmanager
async def running(root: Path, handled: list[Request], **changes: object) -> AsyncIterator[ControlServer]:
    """Run a control server for a locked session; clients find it by its `engine.json`."""

    async def handle(request: Request) -> int:
        handled.append(request)
        if request.attempt == "refuse":
            raise CommandRefused("not now;\n  later")
        return 17

    live = Home(root).live(SESSION)
    live.folder.mkdir(parents=True)
    live.token.write_text(f"{TOKEN}\n")
    lock = FileLock(live.lock)
    assert lock.acquire()
    async with ControlServer(token=TOKEN, environ=os.environ, handle=handle) as server:
        info = EngineInfo(
            session=SESSION,
            pid=os.getpid(),
            process_started=0.0,
            boot_id=boot_id(),
            pid_namespace=pid_namespace(),
            host=os.uname().nodename,
            socket=str(server.path),
            token_file=str(live.token),
        )
        write_engine_info(live, msgspec.structs.replace(info, **changes))
        yield server
    lock.release()


async def test_command_is_executed_and_acknowledged(tmp_path: Path) -> None:
    handled: list[Request] = []
    async with running(tmp_path, handled):
        answer = await send(Home(tmp_path), SESSION, "accept", attempt="softmax#1/2", why="fast", by="me")
    assert (answer.ok, answer.seq) == (True, 17)
    [request] = handled
    assert (request.command, request.attempt, request.why, request.by) == (
        "accept",
        "softmax#1/2",
        "fast",
        "me",
    )


async def test_refusal_is_one_line(tmp_path: Path) -> None:
    async with running(tmp_path, []):
        answer = await send(Home(tmp_path), SESSION, "accept", attempt="refuse")
    assert answer.ok is False
    assert answer.error == "not now; later"


async def test_unknown_command_lists_all_commands(tmp_path: Path) -> None:
    handled: list[Request] = []
    async with running(tmp_path, handled):
        answer = await send(Home(tmp_path), SESSION, "explode")
    assert "ping, accept, reject, undo, stop" in (answer.error or "")
    assert handled == []


async def test_wrong_token_is_refused(tmp_path: Path) -> None:
    handled: list[Request] = []
    async with running(tmp_path, handled):
        Home(tmp_path).live(SESSION).token.write_text("guess\n")
        answer = await send(Home(tmp_path), SESSION, "stop")
    assert (answer.ok, answer.error) == (False, "wrong token")
    assert handled == []


async def test_requests_on_one_connection_are_answered_in_order(tmp_path: Path) -> None:
    async with running(tmp_path, []) as server:
        reader, writer = await asyncio.open_unix_connection(server.path)
        ping = msgspec.json.encode({"token": TOKEN, "command": "ping"}) + b"\n"
        writer.write(ping + b"not json\n" + ping)
        oks = [msgspec.json.decode(await reader.readline())["ok"] for _ in range(3)]
        writer.close()
    assert oks == [True, False, True]


async def test_too_long_line_closes_the_connection(tmp_path: Path) -> None:
    async with running(tmp_path, []) as server:
        reader, writer = await asyncio.open_unix_connection(server.path)
        writer.write(b"x" * (LINE_BYTES + 2))
        assert await reader.read() == b""
        writer.close()


async def test_begun_command_is_completed_and_answered_when_the_server_closes(tmp_path: Path) -> None:
    begun, done = asyncio.Event(), asyncio.Event()

    async def handle(_: Request) -> int:
        begun.set()
        await done.wait()
        return 17

    server = ControlServer(token=TOKEN, environ=os.environ, handle=handle)
    async with asyncio.timeout(60), server:
        reader, writer = await asyncio.open_unix_connection(server.path)
        writer.write(2 * (msgspec.json.encode({"token": TOKEN, "command": "accept"}) + b"\n"))
        await begun.wait()
        asyncio.get_running_loop().call_later(0.05, done.set)
    assert msgspec.json.decode(await reader.readline()) == {"ok": True, "seq": 17}
    assert await reader.read() == b"", "a command that was not begun is dropped"
    writer.close()


async def test_open_connection_does_not_keep_the_server_open(tmp_path: Path) -> None:
    async with asyncio.timeout(60):
        async with running(tmp_path, []) as server:
            reader, writer = await asyncio.open_unix_connection(server.path)
            writer.write(msgspec.json.encode({"token": TOKEN, "command": "ping"}) + b"\n")
            assert await reader.readline()
        assert await reader.read() == b""
        writer.close()


async def test_deleted_socket_is_created_again(tmp_path: Path) -> None:
    async with running(tmp_path, []) as server:
        first = server.path
        assert first is not None
        assert await server.listen() is False
        first.unlink()
        assert await server.listen() is True
        live = Home(tmp_path).live(SESSION)
        info = read_engine_info(live)
        assert info is not None
        write_engine_info(live, msgspec.structs.replace(info, socket=str(server.path)))
        assert (await send(Home(tmp_path), SESSION, "ping")).ok


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"protocol": 2}, "speaks protocol 2"),
        ({"host": "elsewhere"}, "runs on elsewhere"),
        ({"boot_id": "before"}, "wavedeck resume"),
        ({"socket": "gone/socket"}, "does not answer at .*gone/socket"),
        ({"token_file": "gone/token"}, "cannot be read"),
    ],
)
async def test_unreachable_engine_error_says_why(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    async with running(tmp_path, [], **changes):
        with pytest.raises(EngineUnreachable, match=words) as caught:
            await send(Home(tmp_path), SESSION, "ping")
    assert "\n" not in str(caught.value)


async def test_command_to_a_stopped_session_names_resume(tmp_path: Path) -> None:
    with pytest.raises(EngineUnreachable, match=f"not running; go on with: wavedeck resume {SESSION}"):
        await send(Home(tmp_path), SESSION, "ping")


async def test_stale_engine_file_is_ignored(tmp_path: Path) -> None:
    async with running(tmp_path, []):
        pass
    with pytest.raises(EngineUnreachable, match="not running"):
        await send(Home(tmp_path), SESSION, "ping")


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
