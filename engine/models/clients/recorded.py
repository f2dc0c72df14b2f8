"""Clients without a provider: one plays a recording, one answers from a script, and one is never asked."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from engine.errors import ContextTooLong, ModelError, RecordingExhausted
from engine.models.client import Client, Limits, Piece, Reply, Request, cut_at
from engine.models.spec import ModelSpec, find_recording
from sessions.recording import Recording, load_recording

PIECES_A_SECOND = 400.0
"""About 10,000 characters per second: a session takes minutes, and a person can still watch it."""
TICK_S = 0.05
"""Pieces are passed on in batches, because an event loop has no timer as short as one piece."""


class RecordedClient:
    """Plays a recording. Instance n plays chain n; a call is found by task, chain, attempt, role and number."""

    def __init__(
        self,
        recording: Recording,
        *,
        pieces_a_second: float | None = PIECES_A_SECOND,
        reply_bytes: int = Limits().reply_bytes,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`pieces_a_second=None` plays each reply at once."""
        self.model = f"recorded:{recording.facts.name}"
        self.recording = recording
        self._reply_bytes = reply_bytes
        self._handful = None if pieces_a_second is None else max(1, round(pieces_a_second * TICK_S))
        self._sleep = sleep

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`. `RecordingExhausted` if the recording has no such call.

        If the recording lacks a call but has the next one, the call failed when it was recorded. Only a prompt that
        is too long is followed by another call, so this raises `ContextTooLong`.

        Usage and stop reason are those of the recording, the seconds those of the playback. The temperature is
        unknown.
        """
        started = time.monotonic()
        key = request.key
        recorded = self.recording.reply(key.task, key.instance, key.attempt, key.role, key.n)
        if recorded is None:
            if self.recording.reply(key.task, key.instance, key.attempt, key.role, key.n + 1) is not None:
                raise ContextTooLong("the prompt was too long for the recorded model")
            raise RecordingExhausted
        reply = Reply(
            text=recorded.text,
            reasoning=recorded.reasoning,
            stop_reason=recorded.stop_reason,
            usage=recorded.usage,
        )
        reply = bounded(reply, self._reply_bytes)
        pieces = pieces_of(reply)
        if self._handful is None:
            for piece in pieces:
                on_piece(piece)
        else:
            while batch := list(itertools.islice(pieces, self._handful)):
                for piece in batch:
                    on_piece(piece)
                await self._sleep(TICK_S)
        return msgspec.structs.replace(reply, seconds=time.monotonic() - started)

    async def close(self) -> None:
        """See `Client`; it has no connections."""


def bounded(reply: Reply, most: int) -> Reply:
    """Returns the beginning of a reply of more than `most` bytes; else the whole reply."""
    reasoning, text = reply.reasoning.encode()[: most + 1], reply.text.encode()[: most + 1]
    if len(reasoning) + len(text) <= most:
        return reply
    kept = (reasoning[:most], text[: max(0, most - len(reasoning))])
    reasoning_words, words = (part.decode("utf-8", "ignore") for part in kept)
    return Reply(words, reasoning_words, cut_at(most), reply.usage)


def open_recorded(spec: ModelSpec, home_recordings: Path, limits: Limits) -> RecordedClient:
    """Returns the client of a recording; a person's own recording comes before a shipped one.

    Raises `UsageProblem` if there is none, `BadRecording` if it is damaged.
    """
    recording = load_recording(find_recording(spec.name, home_recordings))
    return RecordedClient(recording, reply_bytes=limits.reply_bytes)


def recorded_start(clients: Iterable[Client], task: str, chain: int) -> str:
    """Returns the kernel that a chain of a recording starts from; empty if there is none."""
    recordings = (client.recording for client in clients if isinstance(client, RecordedClient))
    return next((recording.starts.get((task, chain), "") for recording in recordings), "")


def changed_templates(recorded: Mapping[str, str], current: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the sorted names of the templates that were added, removed or changed since a recording was made.

    Both arguments map file names to sha256; `engine.prompting.prompting.template_hashes` gives the current hashes.
    """
    return tuple(sorted(name for name in {*recorded, *current} if recorded.get(name) != current.get(name)))


PIECE_CHARACTERS = 24


class ScriptedClient:
    """Answers requests from a script in order, and keeps the requests in `requests`.

    The script is a sequence of replies and errors, or a function of the request. A request after the end of the
    sequence raises `IndexError`.
    """

    def __init__(
        self, *script: Reply | ModelError, answer: Callable[[Request], Reply | ModelError] | None = None
    ) -> None:
        self.model = "scripted:test"
        self.requests: list[Request] = []
        self._script = script
        self._answer = answer

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`."""
        started = time.monotonic()
        self.requests.append(request)
        answer = self._answer(request) if self._answer else self._script[len(self.requests) - 1]
        if isinstance(answer, ModelError):
            raise answer
        for piece in pieces_of(answer):
            on_piece(piece)
        return msgspec.structs.replace(
            answer, seconds=time.monotonic() - started, temperature=request.temperature
        )

    async def close(self) -> None:
        """See `Client`; it has no connections."""


class NoModel:
    """A client that is never asked."""

    model = "none"
    """The model name of a session without a model."""

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`. A call is a bug of the method."""
        raise RuntimeError(f"a method that asks no model asked for {request.key.role}")

    async def close(self) -> None:
        """See `Client`."""


def says(text: str, *, reasoning: str = "", stop_reason: str = "end") -> Reply:
    """Returns a reply for a script."""
    return Reply(text=text, reasoning=reasoning, stop_reason=stop_reason)


def pieces_of(reply: Reply) -> Iterator[Piece]:
    """Yield a complete reply in pieces, as a stream would: reasoning first, some characters at a time."""
    for kind, words in (("reasoning", reply.reasoning), ("text", reply.text)):
        for start in range(0, len(words), PIECE_CHARACTERS):
            yield Piece(kind, words[start : start + PIECE_CHARACTERS])
