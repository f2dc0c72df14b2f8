"""The attempts with the words of `:find`, as they are found; enter opens one."""

from __future__ import annotations

import time

from textual import on, work
from textual.worker import Worker, get_current_worker

from sessions.errors import SessionsError
from sessions.state.state import SessionState
from tui.cockpit.data.search import FoundText, find_words, newest_first
from tui.cockpit.dialogs.choosing import TableWindow
from tui.cockpit.widgets.table import LineTable
from tui.facts import vocabulary
from tui.facts.tables import Cell, Column, Row

MOST = 500
"""Attempts that are shown; the search ends there."""
SHOW_S = 0.25
"""Between two looks at what was found."""
COLUMNS = (
    Column("attempt", 8, 32, keep=True),
    Column("verdict", 7, 16),
    Column("first line", 20, 400),
    Column("", 1, 10, if_known=True),
)


class FoundDialog(TableWindow[str]):
    """One row an attempt, the newest first; gives the chosen attempt."""

    def __init__(self, words: str, state: SessionState) -> None:
        super().__init__()
        self._words = words
        attempts = state.attempts()
        self._verdicts = {attempt.attempt: attempt.verdict for attempt in attempts}
        self._calls = newest_first(attempts)
        self.table = LineTable(COLUMNS, empty="\nreading ...", id="found")
        self.found: dict[str, FoundText] = {}
        """The first finding of each attempt, with the number of lines of all."""

    def on_mount(self) -> None:
        super().on_mount()
        self._search()

    @work(thread=True, exit_on_error=False, name="searching the session")
    def _search(self) -> None:
        try:
            self._read(get_current_worker())
        except SessionsError as error:
            self.app.call_from_thread(self._show, str(error))

    def _read(self, worker: Worker[None]) -> None:
        shown = time.monotonic()
        for number, text in enumerate(find_words(self._calls, self._words), start=1):
            if worker.is_cancelled or len(self.found) >= MOST:
                break
            if text is not None:
                before = self.found.get(text.attempt)
                further = before.further + text.further + 1 if before is not None else text.further
                self.found[text.attempt] = (before or text)._replace(further=further)
            if time.monotonic() - shown > SHOW_S:
                self.app.call_from_thread(self._show, f"{number:,} of {len(self._calls):,} replies read")
                shown = time.monotonic()
        if not worker.is_cancelled:
            self.app.call_from_thread(self._show, "")

    def _show(self, progress: str) -> None:
        """Show the rows so far; an empty `progress` is the end."""
        count = vocabulary.counted(len(self.found), "attempt")
        most = f"the newest {MOST}" if len(self.found) >= MOST else ""
        title = f"find {self._words}: {', '.join(filter(None, (count, most, progress)))}"
        if not progress:
            self.table.empty = f"\nNo reply so far has {self._words!r} in one line."
            self.table.refresh()
        self.show(title, [self._row(text) for text in list(self.found.values())])

    def _row(self, text: FoundText) -> Row:
        verdict = self._verdicts[text.attempt]
        words = vocabulary.words(verdict) if verdict is not None else vocabulary.UNKNOWN
        further = f"+{text.further}" if text.further else ""
        cells = (Cell(text.attempt), Cell(words, "dim"), Cell(text.line), Cell(further, "dim"))
        return Row(text.attempt, cells)

    @on(LineTable.Opened)
    def answer(self, message: LineTable.Opened) -> None:
        """Give the attempt under the cursor."""
        self.dismiss(message.key)
