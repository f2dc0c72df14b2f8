"""The MCP server: the tools of an agent's desk, over stdio or over HTTP on loopback. Alone imports the SDK `mcp`."""

from __future__ import annotations

import asyncio
import hmac
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, TypeVar

import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from engine.agents.answers import (
    AsmAnswer,
    BestAnswer,
    HistoryAnswer,
    MeasureAnswer,
    ProfileAnswer,
    TaskAnswer,
    VerdictAnswer,
)
from engine.agents.desk import Desk
from engine.methods.tools.toolbox import ATTEMPT, CASE, CODE, KERNEL, NOTE, PROFILED_CASE, TOOLBOX
from harness import STAGES
from tui.diagnostics import code_of

T = TypeVar("T")
AnyContext = Context[None, None]
Attempt = Annotated[str, Field(description=ATTEMPT)]

HOST = "127.0.0.1"
INSTRUCTIONS = """Wavedeck judges Triton kernels. Call `task_show` first, then `eval` with one complete module, improve it by the \
answer, and end with `submit`. Judging takes from seconds to minutes: if an answer is not `judged`, call `wait` with its `attempt`. \
Only the verdict of `eval` counts. Follow what `person` says."""

TICKET = "The answer comes within 200 s. If it is not `judged`, call `wait`."
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
JUDGES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
"""Agents without a terminal call tools with these hints without an approval."""


class OneToken:
    """Accepts one token."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return what the token allows; `None` for a wrong token."""
        is_right = hmac.compare_digest(token.encode(), self._token.encode())
        return AccessToken(token=token, client_id="agent", scopes=[]) if is_right else None


def make_server(desk: Desk, *, address: str = "", token: str = "") -> MCPServer[None]:
    """Return the server of a desk; with an address, calls over HTTP need the token."""
    auth = (
        AuthSettings(issuer_url=address, resource_server_url=address, validate_token_resource=False)  # type: ignore[arg-type]
        if address
        else None
    )
    server: MCPServer[None] = MCPServer(
        "wavedeck",
        instructions=INSTRUCTIONS,
        log_level="WARNING",
        token_verifier=OneToken(token) if address else None,
        auth=auth,
    )

    @server.tool(annotations=READS)
    async def task_show(task: str) -> TaskAnswer:
        """Show a task: what to compute, entry points, cases, tolerances, rules of the judge, hardware."""
        return await answered(asyncio.to_thread(desk.task, task))

    @server.tool(name="eval", description=f"{words('eval')} {TICKET}", annotations=JUDGES)
    async def evaluate(
        task: str,
        code: Annotated[str, Field(description=CODE)],
        ctx: AnyContext,
        note: Annotated[str, Field(description=NOTE)] = "",
    ) -> VerdictAnswer:
        judging = desk.evaluate(task, code, note, agent=client_of(ctx), on_progress=progress(ctx))
        return await answered(judging)

    @server.tool(annotations=READS)
    async def wait(attempt: Attempt, ctx: AnyContext) -> VerdictAnswer:
        """Wait at most 200 s for the verdict on an attempt that `eval` named."""
        return await answered(desk.wait(attempt, on_progress=progress(ctx)))

    @server.tool(description=words("measure"), annotations=JUDGES)
    async def measure(attempt: Attempt) -> MeasureAnswer:
        return await answered(desk.measure(attempt))

    @server.tool(
        description=f"{words('profile')} The answer comes within 200 s. If the profile is not `taken`, call `profile` again.",
        annotations=JUDGES,
    )
    async def profile(
        attempt: Attempt, case: Annotated[str, Field(description=PROFILED_CASE)] = ""
    ) -> ProfileAnswer:
        return await answered(desk.profile(attempt, case=case))

    @server.tool(description=words("explain"), annotations=READS)
    async def explain(attempt: Attempt) -> VerdictAnswer:
        return await answered(desk.explain(attempt))

    @server.tool(description=words("asm"), annotations=READS)
    async def asm(
        attempt: Attempt,
        kernel: Annotated[str, Field(description=KERNEL)] = "",
        case: Annotated[str, Field(description=CASE)] = "",
    ) -> AsmAnswer:
        return await answered(desk.asm(attempt, kernel=kernel, case=case))

    @server.tool(description=words("history"), annotations=READS)
    async def history(task: str) -> HistoryAnswer:
        return await answered(desk.history(task))

    @server.tool(description=words("best"), annotations=READS)
    async def best(task: str) -> BestAnswer:
        return await answered(desk.best(task))

    @server.tool(description=words("submit"), annotations=JUDGES)
    async def submit(task: str) -> VerdictAnswer:
        return await answered(desk.submit(task))

    return server


def words(tool: str) -> str:
    """Return what a tool does, in the words that every agent gets."""
    return TOOLBOX[tool].description


async def answered(work: Awaitable[T]) -> T:
    """Return the result of a tool; an error with a message for people becomes the answer."""
    try:
        return await work
    except Exception as error:
        if code_of(error) is None:
            raise
        raise ToolError(" ".join(str(error).split())) from error


def progress(ctx: AnyContext) -> Callable[[str], Awaitable[None]]:
    """Return a function that reports the state of an attempt to the client: stages passed, of all."""
    count = 0

    async def report(words: str) -> None:
        nonlocal count
        count += 1
        await ctx.report_progress(count, max(count, len(STAGES) + 2), words)

    return report


def client_of(ctx: AnyContext) -> str:
    """Return name and version of the client, as it gives them: only for people to read."""
    params = ctx.request_context.session.client_params
    if params is None:
        return "agent"
    words = f"{params.client_info.name} {params.client_info.version}"
    return re.sub(r"[^\w .+-]", "", words)[:60].strip() or "agent"


async def serve_stdio(desk: Desk) -> None:
    """Serve until standard input ends."""
    async with leaving(desk):
        await make_server(desk).run_stdio_async()


async def serve_http(desk: Desk, port: int, token: str, on_address: Callable[[str], None]) -> None:
    """Serve on loopback until a signal, on any free port if the port is 0; `on_address` gets the address when calls can come."""
    with socket.create_server((HOST, port), family=socket.AF_INET) as listening:
        address = f"http://{HOST}:{listening.getsockname()[1]}"
        server = make_server(desk, address=address, token=token)
        # An agent may think for longer than any session of the protocol is idle.
        app = server.streamable_http_app(session_idle_timeout=None)
        on_address(f"{address}/mcp")
        async with leaving(desk):
            config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
            await uvicorn.Server(config).serve(sockets=[listening])


@asynccontextmanager
async def leaving(desk: Desk) -> AsyncIterator[None]:
    """End the desk's work at the end of the block, or at a signal, which ends the process.

    The SDK reads standard input in a thread that nothing can interrupt, and its HTTP server repeats a signal, which would end the
    process too early.
    """

    async def end() -> None:
        await desk.close()
        os._exit(0)

    ending: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: ending.append(loop.create_task(end())))
    try:
        yield
    finally:
        await desk.close()
