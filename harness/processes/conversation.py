"""The engine's line to a worker in which foreign code runs: requests, and their answers checked."""

from __future__ import annotations

from harness.wire.channels.async_channel import AsyncChannel
from harness.wire.channels.channel import BadFrame, decode_message
from harness.wire.messages.guest import Hello
from harness.wire.messages.requests import ANSWERS, WorkerAnswer, WorkerRequest, encode_request
from harness.wire.results.evaluation import Layer

_MOST_BYTES = 64 << 20


class Conversation:
    """One request at a time; it may have several answers. Raises `EOFError` if the worker ended, `BadFrame` if it lied."""

    def __init__(self, channel: AsyncChannel) -> None:
        self._channel = channel
        self._nonce = ""

    async def sandbox(self) -> tuple[Layer, ...]:
        """Wait for the worker's greeting; return the layers of its sandbox."""
        hello = await self.answer()
        if not isinstance(hello, Hello):
            raise BadFrame("an answer came before the greeting")
        return hello.sandbox

    async def send(self, request: WorkerRequest) -> None:
        """Send a request."""
        self._nonce, payload = encode_request(request)
        await self._channel.send(payload)

    async def answer(self) -> WorkerAnswer:
        """Wait for the next answer to the last request."""
        answered = decode_message(ANSWERS, await self._channel.receive(_MOST_BYTES))
        if answered.nonce != self._nonce:
            raise BadFrame("its answer does not belong to the request")
        return answered.body
