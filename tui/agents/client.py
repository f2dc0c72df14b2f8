"""Sends a kernel to the MCP server of one instance: for a command that an agent runs where it cannot reach the home."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tui.diagnostics import Complaint, ExitCode, say


async def propose_to(url: str, token: str, task: str, source: str, note: str) -> dict[str, Any]:
    """Return the answer of `eval` when the kernel is judged; `Complaint` with the server's words if it refuses."""
    here = asyncio.current_task()
    assert here is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, here.cancel)

    async def report(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
        say(message or "")

    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=None) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        tool, arguments = "eval", {"task": task, "code": source, "note": note}
        while True:
            result = await client.call_tool(tool, arguments, progress_callback=report)
            words = " ".join(getattr(part, "text", "") for part in result.content)
            if result.is_error:
                raise Complaint(words, code=ExitCode.FAILED)
            answer: dict[str, Any] = json.loads(words)
            if answer["judged"]:
                return answer
            tool, arguments = "wait", {"attempt": answer["attempt"]}
