"""A worker's end of its line: greets, and answers requests."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from harness.wire.channels.channel import ENCODER, Channel, ChannelClosed
from harness.wire.messages.guest import Hello
from harness.wire.messages.requests import REQUESTS, RequestMessage, WorkerAnswer, WorkerMessage
from harness.wire.results.evaluation import Layer

from .loading import broken


def serve(
    channel: Channel,
    sandbox: tuple[Layer, ...],
    answer: Callable[[RequestMessage, tuple[int, ...]], WorkerAnswer],
) -> None:
    """Answer requests until the other side closes the channel. An exception of our own code is an answer too."""
    with suppress(ChannelClosed):
        tell(channel, "", Hello(sandbox=sandbox))
        while True:
            frame = channel.receive()
            message = REQUESTS.decode(frame.payload)
            try:
                report = answer(message, frame.descriptors)
            except Exception as error:  # noqa: BLE001 (`answer` catches what the candidate raises)
                report = broken(error)
            tell(channel, message.nonce, report)


def tell(channel: Channel, nonce: str, answer: WorkerAnswer) -> None:
    """Send an answer to the request with this nonce."""
    channel.send(ENCODER.encode(WorkerMessage(nonce, answer)))
