"""Requests, clients and limits for tests that call a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from engine.models import CallKey, Client, Limits, ModelSpec, Piece, Reply, Request, Retry, ask, open_client
from engine.models.access import Access
from sessions.events import Message, Role

from .model_server import Answer, ModelServer, Seen, model_server

BRISK = Limits(connect_s=60, first_token_s=60, silence_s=60, reply_s=120)
"""Limits that are far longer than any healthy answer on loopback."""
WIRES = ("anthropic", "openai", "responses")
"""Wire formats; `responses` is the format for OpenAI itself."""


def request(
    text: str = "Write a kernel.", *, system: str = "You write kernels.", attempt: int = 1
) -> Request:
    return Request(
        key=CallKey(task="starter/softmax", instance=1, attempt=attempt, role=Role.GENERATOR, n=1),
        messages=(Message("system", system), Message("user", text)),
    )


def client_of(
    wire: str, server: ModelServer, limits: Limits = BRISK, environ: dict[str, str] | None = None
) -> Client:
    if wire == "responses":
        # Only OpenAI's own models use this client, always at OpenAI's own address.
        from engine.models.clients.responses_client import ResponsesClient

        key = (environ or {}).get("WAVEDECK_MODEL_KEY", "none").strip()
        return ResponsesClient(ModelSpec("openai", "test"), Access(server.openai_url, key), limits)
    url = server.anthropic_url if wire == "anthropic" else server.openai_url
    return open_client(
        f"{wire}:test@{url}", environ=environ or {}, home_recordings=Path("none"), limits=limits
    )


@asynccontextmanager
async def connected(
    wire: str,
    *script: Answer,
    answer: Callable[[Seen], Answer] | None = None,
    limits: Limits = BRISK,
    **environ: str,
) -> AsyncIterator[tuple[Client, ModelServer]]:
    """Run a model server and a client of it."""
    with model_server(*script, answer=answer) as server:
        client = client_of(wire, server, limits, environ)
        try:
            yield client, server
        finally:
            await client.close()


@dataclass
class Received:
    """Pieces, retries and waits of one model call."""

    pieces: list[Piece] = field(default_factory=list)
    retries: list[Retry] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    async def ask(self, client: Client, model_request: Request, limits: Limits = BRISK) -> Reply:
        """Call the model; waits are recorded instead of slept."""

        async def note(seconds: float) -> None:
            self.waits.append(seconds)

        return await ask(
            client,
            model_request,
            on_piece=self.pieces.append,
            on_retry=self.retries.append,
            limits=limits,
            sleep=note,
        )

    def text_of(self, kind: str) -> str:
        return "".join(piece.text for piece in self.pieces if piece.kind == kind)


def ignore(_: object) -> None:
    """Listener that does nothing."""
