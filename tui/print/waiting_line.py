"""One line on standard error that says what a command waits for: rewritten each second, gone at the end."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from types import TracebackType
from typing import Self

from tui import diagnostics
from tui.facts.vocabulary import clock

TICK_S = 1.0
ERASE = "\r\x1b[K"


class WaitingLine:
    """Shows `words` and for how long they are true. Shows nothing unless standard error is a terminal and `wanted`."""

    def __init__(self, words: str, *, wanted: bool = True) -> None:
        self._words, self._since = words, time.monotonic()
        self._ended = threading.Event()
        terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM", "") != "dumb"
        self._thread = threading.Thread(target=self._tick, daemon=True) if wanted and terminal else None

    def __enter__(self) -> Self:
        if self._thread is not None:
            diagnostics.line_start = ERASE
            self._write()
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._ended.set()
            self._thread.join()
            diagnostics.line_start = ""
            diagnostics.write_error(ERASE)

    def show(self, words: str) -> None:
        """Show other words; their time begins now."""
        if words != self._words:
            self._words, self._since = words, time.monotonic()
            if self._thread is not None:
                self._write()

    def _tick(self) -> None:
        while not self._ended.wait(TICK_S):
            self._write()

    def _write(self) -> None:
        text = f"{self._words}, {clock(time.monotonic() - self._since)}"
        diagnostics.write_error(f"{ERASE}{text[: shutil.get_terminal_size().columns - 1]}")
