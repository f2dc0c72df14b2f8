"""A worker's end of its line: greets, and answers requests."""

from __future__ import annotations

from collections.abc import Callable

from harness.wire.channel import Channel, ChannelClosed
from harness.wire.encoding import ENCODER
from harness.wire.evaluation import Layer
from harness.wire.guest_messages import Hello
from harness.wire.requests import REQUESTS, Answer, Answered, Asked

from .loading import broken


def serve(
    channel: Channel, sandbox: tuple[Layer, ...], answer: Callable[[Asked, tuple[int, ...]], Answer]
) -> None:
    """Answer requests until the other side closes the channel. An exception of our own code is an answer too."""
    tell(channel, "", Hello(sandbox=sandbox))
    while True:
        try:
            frame = channel.receive()
        except ChannelClosed:
            return
        asked = REQUESTS.decode(frame.payload)
        try:
            answered = answer(asked, frame.descriptors)
        except Exception as error:  # noqa: BLE001 (`answer` catches what the candidate raises)
            answered = broken(error)
        tell(channel, asked.nonce, answered)


def tell(channel: Channel, nonce: str, answer: Answer) -> None:
    """Send an answer to the request with this nonce."""
    channel.send(ENCODER.encode(Answered(nonce, answer)))
