"""Protects frames between processes: descriptors, size limits, deadlines and torn streams."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time

import msgspec
import pytest

from harness.wire.channels.async_channel import Tail
from harness.wire.channels.channel import (
    HEADER,
    BadFrame,
    Channel,
    ChannelClosed,
    ChannelTimeout,
    decode_message,
)


@pytest.fixture
def pair() -> tuple[Channel, Channel]:
    first, second = socket.socketpair()
    return Channel(first), Channel(second)


def test_frame_and_descriptor_arrive_complete(pair: tuple[Channel, Channel]) -> None:
    sender, receiver = pair
    payload = os.urandom(3 << 20)
    reader, writer = os.pipe()
    sending = threading.Thread(target=lambda: (sender.send(payload, (writer,)), sender.send(b"")))
    sending.start()
    frame = receiver.receive()
    assert frame.payload == payload
    os.write(frame.descriptors[0], b"through")
    assert os.read(reader, 10) == b"through"
    assert receiver.receive().payload == b""
    sending.join()
    for descriptor in (reader, writer, *frame.descriptors):
        os.close(descriptor)
    sender.close()
    receiver.close()


def test_frame_over_limit_is_refused_unread(pair: tuple[Channel, Channel]) -> None:
    sender, receiver = pair
    sender.send(b"x" * 100)
    with pytest.raises(BadFrame, match="100 bytes; at most 10"):
        receiver.receive(limit_bytes=10)
    sender.close()
    receiver.close()


def test_torn_stream_and_closed_stream_raise_different_errors(pair: tuple[Channel, Channel]) -> None:
    sender, receiver = pair
    os.write(sender.fileno(), HEADER.pack(50) + b"half")
    sender.close()
    with pytest.raises(BadFrame, match="middle"):
        receiver.receive()
    with pytest.raises(ChannelClosed):
        receiver.receive()
    receiver.close()


def test_receive_and_send_end_at_deadline(pair: tuple[Channel, Channel]) -> None:
    sender, receiver = pair
    with pytest.raises(ChannelTimeout):
        receiver.receive(deadline=time.monotonic() + 0.05)
    with pytest.raises(ChannelTimeout):
        sender.send(b"x" * (32 << 20), deadline=time.monotonic() + 0.05)
    sender.close()
    receiver.close()


async def test_tail_keeps_end_of_output() -> None:
    reader, writer = os.pipe()
    tail = Tail(1000)
    tail.follow(reader)
    await asyncio.to_thread(os.write, writer, b"a" * 50_000 + b"the end\xff")
    os.close(writer)
    tail.finish()
    assert len(tail.text()) <= 1000
    assert tail.text().endswith("the end\N{REPLACEMENT CHARACTER}")


@pytest.mark.parametrize(
    "payload",
    [b"\x81\xa4text\xa1\xff", b"\x81\xa4more" + b"\x91" * 100_000, b"\x81\xa4text\x01", b"\x81"],
    ids=["invalid UTF-8", "nested too deep", "wrong type", "cut"],
)
def test_undecodable_message_is_a_bad_frame(payload: bytes) -> None:
    class Message(msgspec.Struct):
        text: str = ""

    with pytest.raises(BadFrame):
        decode_message(msgspec.msgpack.Decoder(Message), payload)
