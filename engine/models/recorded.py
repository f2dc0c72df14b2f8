"""A model that was recorded: real replies of a real model, played again to the same calls."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec

from engine.errors import ContextTooLong, RecordingExhausted
from sessions.recording import Recording, load_recording

from .client import Piece, Reply, Request
from .scripted import pieces_of
from .spec import ModelSpec, find_recording

PIECES_A_SECOND = 400.0
"""About 10,000 characters a second: fast enough for a session in minutes, slow enough to be seen."""
TICK_S = 0.05
"""Pieces are handed on in handfuls, for no loop keeps a timer as short as one piece."""


class RecordedClient:
    """Plays a recording. Instance n plays chain n; a call is found by task, chain, attempt, role and its number."""

    def __init__(
        self,
        recording: Recording,
        *,
        pieces_a_second: float | None = PIECES_A_SECOND,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`pieces_a_second=None` plays each reply at once."""
        self.model = f"recorded:{recording.facts.name}"
        self.recording = recording
        self._handful = None if pieces_a_second is None else max(1, round(pieces_a_second * TICK_S))
        self._sleep = sleep

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`. `RecordingExhausted` when the recording holds no such call.

        A call that it lacks while it holds the one after it failed when it was recorded, and only a prompt that is too
        long is followed by another call: `ContextTooLong`.

        Usage and stop reason are the recorded ones, seconds those of the playing; what temperature the model was
        asked with is not known.
        """
        started = time.monotonic()
        key = request.key
        recorded = self.recording.reply(key.task, key.instance, key.attempt, key.role, key.n)
        if recorded is None:
            if self.recording.reply(key.task, key.instance, key.attempt, key.role, key.n + 1) is not None:
                raise ContextTooLong("it was too long for the model that was recorded")
            raise RecordingExhausted(f"{self.model} holds no reply for {key}: this instance ends here")
        reply = Reply(
            text=recorded.text,
            reasoning=recorded.reasoning,
            stop_reason=recorded.stop_reason,
            usage=recorded.usage,
        )
        pieces = pieces_of(reply)
        if self._handful is None:
            for piece in pieces:
                on_piece(piece)
        else:
            while handful := list(itertools.islice(pieces, self._handful)):
                for piece in handful:
                    on_piece(piece)
                await self._sleep(TICK_S)
        return msgspec.structs.replace(reply, seconds=time.monotonic() - started)

    async def close(self) -> None:
        """See `Client`; there is nothing to let go of."""


def open_recorded(spec: ModelSpec, home_recordings: Path) -> RecordedClient:
    """The recording of this name, a person's own before a shipped one. `UsageProblem`: none; `BadRecording`: damaged."""
    return RecordedClient(load_recording(find_recording(spec.name, home_recordings)))


def changed_templates(recorded: Mapping[str, str], current: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the templates that are new, gone or different since a recording was made, sorted.

    Both map file names to sha256; `engine.prompting.template_hashes` gives the current ones.
    """
    return tuple(sorted(name for name in {*recorded, *current} if recorded.get(name) != current.get(name)))
