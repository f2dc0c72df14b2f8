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
from functools import partial
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.agents.answers import encoded
from engine.agents.desk import AgentDesk
from engine.errors import one_line
from harness import STAGES
from tui.diagnostics import Complaint, code_of

AnyContext = Context[None, None]
Code = Annotated[
    str,
    Field(
        description="One complete Python module: imports, kernels, and every entry point with exactly the given signature. "
        "No tests and no example calls; at import time only definitions."
    ),
]
Note = Annotated[str, Field(description="One sentence: what the module changes, and why.")]
Attempt = Annotated[str, Field(description="Name of the attempt, as an answer has it.")]
Kernel = Annotated[str, Field(description="This kernel alone.")]
Case = Annotated[str, Field(description="The code for this case; by default for the first case.")]
ProfiledCase = Annotated[
    str, Field(description="The open case that is called; by default the one farthest from its roof.")
]

HOST = "127.0.0.1"
INSTRUCTIONS = """Wavedeck judges Triton kernels. Call `tasks` and `task_show` first, then `eval` with one complete module, improve it by the \
answer, and end with `submit`. Judging takes from seconds to minutes: if an answer is not `judged`, call `wait` with its `attempt`. \
Only the verdict of `eval` counts. Follow what `person` says."""

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
JUDGES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
"""Agents without a terminal call tools with these hints without an approval."""


class OneToken:
    """Lets the requests with a token pass to an app; every other request is answered with 401."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as ASGI has it. Clients ask below `.well-known` for a login, which the app does not have."""
        if scope["type"] != "lifespan" and not scope["path"].startswith("/.well-known/"):
            scheme, _, token = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
                refusal = PlainTextResponse("wrong token\n", 401, {"WWW-Authenticate": "Bearer"})
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


def make_server(desk: AgentDesk) -> MCPServer[None]:
    """Return the server of a desk. An answer is sent once, as JSON in a text, which every agent reads."""
    server: MCPServer[None] = MCPServer("wavedeck", instructions=INSTRUCTIONS, log_level="WARNING")
    offer = partial(server.tool, structured_output=False)

    @offer(annotations=READS)
    async def tasks() -> str:
        """List the tasks that you may work on."""
        return await answered(asyncio.to_thread(desk.tasks))

    @offer(annotations=READS)
    async def task_show(task: str) -> str:
        """Show a task: what to compute, entry points, cases, tolerances, rules of the judge, hardware."""
        return await answered(asyncio.to_thread(desk.task, task))

    @offer(
        name="eval",
        description="Judge one complete module. Each call uses one evaluation. The answer comes within 200 s. If it is not "
        "`judged`, call `wait`.",
        annotations=JUDGES,
    )
    async def evaluate(task: str, code: Code, ctx: AnyContext, note: Note = "") -> str:
        judging = desk.evaluate(task, code, note, agent=client_of(ctx), on_progress=progress(ctx))
        return await answered(judging)

    @offer(annotations=READS)
    async def wait(attempt: Attempt, ctx: AnyContext) -> str:
        """Wait at most 200 s for the verdict on an attempt that `eval` named."""
        return await answered(desk.wait(attempt, on_progress=progress(ctx)))

    if desk.has_gpu:

        @offer(annotations=JUDGES)
        async def measure(attempt: Attempt) -> str:
            """Time a correct attempt again on its GPU, in new processes."""
            return await answered(desk.measure(attempt))

        @offer(
            description="Show what the hardware counts in one call of a correct attempt: time, bytes, stalls, and what limits each "
            "kernel. It uses device time, once for each case. The answer comes within 200 s. If the profile is not `taken`, call "
            "`profile` again.",
            annotations=JUDGES,
        )
        async def profile(attempt: Attempt, case: ProfiledCase = "") -> str:
            return await answered(desk.profile(attempt, case=case))

    @offer(annotations=READS)
    async def explain(attempt: Attempt) -> str:
        """Show all that is known of an earlier attempt: error with trace, or times, traffic, registers and loads."""
        return await answered(desk.explain(attempt))

    @offer(annotations=READS)
    async def asm(attempt: Attempt, kernel: Kernel = "", case: Case = "") -> str:
        """Show the assembly that the compiler made of an attempt's kernels, for the first target."""
        return await answered(desk.asm(attempt, kernel=kernel, case=case))

    @offer(annotations=READS)
    async def history(task: str) -> str:
        """List your attempts in short, oldest first."""
        return await answered(desk.history(task))

    @offer(annotations=READS)
    async def best(task: str) -> str:
        """Show your best correct attempt with its code and figures, and where another attempt is faster."""
        return await answered(desk.best(task))

    @offer(annotations=JUDGES)
    async def submit(task: str) -> str:
        """End your work. Your best correct attempt is the result; no further candidate is taken."""
        return await answered(desk.submit(task))

    return server


async def answered(work: Awaitable[object]) -> str:
    """Return the answer of a tool; an error with a message for people becomes the answer."""
    try:
        return encoded(await work)
    except Exception as error:
        if code_of(error) is None:
            raise
        raise ToolError(one_line(error)) from error


def progress(ctx: AnyContext) -> Callable[[str], Awaitable[None]]:
    """Return a function that reports progress to the client: the number of reports so far, of those expected."""
    count, expected = (
        0,
        len(STAGES) + 2,
    )  # before the first stage it is queued, and after the last it is reviewed

    async def report(words: str) -> None:
        nonlocal count
        count += 1
        await ctx.report_progress(count, max(count, expected), words)

    return report


def client_of(ctx: AnyContext) -> str:
    """Return name and version of the client, as it gives them: only for people to read."""
    params = ctx.request_context.session.client_params
    if params is None:
        return "agent"
    words = f"{params.client_info.name} {params.client_info.version}"
    return re.sub(r"[^\w .+-]", "", words)[:60].strip() or "agent"


async def serve_stdio(desk: AgentDesk) -> None:
    """Serve until standard input ends."""
    async with leaving(desk):
        await make_server(desk).run_stdio_async()


async def serve_http(desk: AgentDesk, port: int, token: str, on_address: Callable[[str], None]) -> None:
    """Serve on loopback until a signal, on any free port if the port is 0; `on_address` gets the address when calls can come."""
    try:
        listening = socket.create_server((HOST, port), family=socket.AF_INET)
    except OSError as error:
        raise Complaint(
            f"port {port} of {HOST} cannot be used ({os.strerror(error.errno or 0)}); choose another, or 0 for a free one"
        ) from None
    with listening:
        address = f"http://{HOST}:{listening.getsockname()[1]}"
        # An agent may think for longer than any session of the protocol is idle.
        app = OneToken(make_server(desk).streamable_http_app(session_idle_timeout=None), token)
        on_address(f"{address}/mcp")
        async with leaving(desk):
            config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
            await uvicorn.Server(config).serve(sockets=[listening])


@asynccontextmanager
async def leaving(desk: AgentDesk) -> AsyncIterator[None]:
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
