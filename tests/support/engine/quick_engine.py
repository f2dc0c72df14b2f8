"""Engine process that starts fast: `python -m tests.support.engine.quick_engine LIVE_FOLDER`.

Model and judge are scripted, so neither an SDK nor torch is loaded. Everything else is the real engine: process,
journal, git store and control socket.
"""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engine.models import Client, Piece, Reply, Request, ScriptedClient
from engine.plan import job
from engine.process import process
from harness import Device, Evaluation
from sessions import Home
from sessions.events import Role

from .engines import USED, ScriptedJudge, answer_of

MOMENT_S = 0.01
"""Duration of a call and of an evaluation, so that commands and kills can come meanwhile."""
VERDICTS = ("wrong", "wrong", "correct 1.5", "correct 1.2", "correct", "prose")


def requests(home: Home) -> int:
    """Return the number of requests that the models of all sessions got."""
    return len(log_of(home).read_bytes())


def log_of(home: Home) -> Path:
    """Return the file that gets one byte for each request."""
    return home.root / "requests"


def answer(request: Request) -> Reply:
    """Return a reply that depends only on the prompt."""
    mark = zlib.crc32("".join(message.content for message in request.messages).encode())
    if request.key.role is Role.REFLECTOR:
        return Reply(text=f"Cause {mark}.", usage=USED)
    return Reply(text=answer_of(VERDICTS[mark % len(VERDICTS)], str(mark)), usage=USED)


class QuickModel(ScriptedClient):
    """Model that logs each request."""

    def __init__(self, log: Path) -> None:
        super().__init__(answer=answer)
        self.log = log.open("ab", buffering=0)

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`."""
        self.log.write(b".")
        await asyncio.sleep(MOMENT_S)
        return await super().reply(request, on_piece)


class QuickJudge(ScriptedJudge):
    """Scripted judge that takes a moment."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__()

    async def evaluate(self, *arguments: Any, **more: Any) -> Evaluation:
        """See `Judge`."""
        await asyncio.sleep(MOMENT_S)
        return await super().evaluate(*arguments, **more)


class NoPool:
    """Stands for the device pool, which a scripted judge does not use."""

    def __init__(self, _: Sequence[str], **__: object) -> None:
        self.devices: Sequence[Device] = ()

    async def __aenter__(self) -> NoPool:
        return self

    async def __aexit__(self, *_: object) -> None: ...


def main(folder: Path) -> int:
    """Run the engine of a live folder to its end."""

    def open_clients(*_: object, **__: object) -> dict[Role, Client]:
        return dict.fromkeys(Role, QuickModel(log_of(Home(folder.parents[1]))))

    job.open_clients = open_clients
    job.check_reachable = lambda *_: None
    process.DevicePool = NoPool  # type: ignore[assignment,misc]
    process.Judge = QuickJudge  # type: ignore[assignment,misc]
    return process.main(folder)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
