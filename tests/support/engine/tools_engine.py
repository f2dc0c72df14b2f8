"""Engine process with a model that works with tools: `python -m tests.support.engine.tools_engine LIVE_FOLDER`.

Each reply of the model evaluates another module. The judge is that of `judgeless_engine`.
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import msgspec

from engine.models import Client, Reply, Request
from engine.plan import job
from sessions import Home
from sessions.events import Role
from suites import baseline_source, load_task

from . import judgeless_engine
from .quick_engine import USED, QuickModel, log_of, requests

__all__ = ["requests"]


def answer(request: Request) -> Reply:
    """Return a call of `eval` with a module that depends only on the prompt."""
    mark = zlib.crc32(msgspec.json.encode(request.messages))
    call = {
        "type": "function_call",
        "call_id": f"call-{mark}",
        "name": "eval",
        "arguments": msgspec.json.encode(
            {"code": f"{baseline_source(load_task('vector_add'))}\n# {mark}\n"}
        ).decode(),
    }
    return Reply(text=f"Module {mark}.", usage=USED, turn=(call,))


def main(folder: Path) -> int:
    """Run the engine of a live folder to its end."""

    def open_clients(*_: object, **__: object) -> dict[Role, Client]:
        return dict.fromkeys(Role, QuickModel(log_of(Home(folder.parents[1])), answer))

    job.open_clients = open_clients
    job.check_reachable = lambda *_: None
    return judgeless_engine.main(folder)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
