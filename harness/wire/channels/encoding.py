"""Msgpack encoding of the messages between processes. Torch-free."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from .channel import BadFrame

Message = TypeVar("Message")


def decode_message(decoder: msgspec.msgpack.Decoder[Message], payload: bytes | msgspec.Raw) -> Message:
    """Return the message that foreign code sent; `BadFrame` if the payload is not one.

    msgspec has no error of its own for invalid UTF-8 and for endless nesting.
    """
    try:
        return decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadFrame(str(error)) from error


def text_to_path(kind: type, value: Any) -> Path:
    """Decode a path; the `dec_hook` of decoders for messages that hold a task."""
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(f"a {kind.__name__} cannot be sent between processes")


def _path_to_text(value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"a {type(value).__name__} cannot be sent between processes")


ENCODER = msgspec.msgpack.Encoder(enc_hook=_path_to_text)
