"""Reads what a report needs: of one session its whole state, of several their rows, and states only for what rows lack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from engine.predictions.original_verdicts import original_verdicts
from sessions import SessionState
from sessions.metrics.attempt_row import AttemptRow, attempt_rows
from sessions.metrics.task_kinds import task_kinds
from suites import SuiteError, Task, baseline_source, load_task

from .document import Document, rows_document, session_document
from .kernels import WinnerKernel, winner_kernels
from .model import SessionReport, report_of
from .section import Section
from .tables import CONTAMINATION, TABLES, RowSet
from .tables.contamination import likenesses
from .tables.hardware import winning_rows
from .tables.row_set import Likeness


class Readable(Protocol):
    """A session with a state."""

    @property
    def state(self) -> SessionState:
        """Its state after all events."""


S = TypeVar("S", bound=Readable)


class ReportReader(Generic[S]):
    """The sessions of one report."""

    def __init__(
        self,
        sessions: Sequence[S],
        registry: Path | None,
        read_rows: Callable[[S], Iterable[AttemptRow]] = lambda session: attempt_rows(session.state),
    ) -> None:
        """`registry` names the suites that people added; `read_rows` returns the rows of a session."""
        self._sessions = sessions
        self._registry = registry
        self._read_rows = read_rows
        self._loaded: dict[str, Task | None] = {}

    def document(self, *, kernels: bool, tables: bool = True) -> Document:
        """Return the report of one session, or of several.

        Tables over attempts need the extra `reports`; without `tables`, that of one session has none. With `kernels` it has
        the sources of the winners, and that of several sessions also what these are like.
        """
        if len(self._sessions) == 1:
            return self._of_session(tables=tables, kernels=kernels)
        rows = self._all_rows()
        if not kernels:
            return rows_document(rows)
        best = {(winner.session, winner.attempt) for winner in winning_rows(rows)}
        own = self._own_kernels(rows)
        alike: list[Likeness] = []
        chosen: list[WinnerKernel] = []
        for report in self._reports():
            alike += likenesses([report], own)
            chosen += [
                kernel
                for kernel in winner_kernels(report, self._task)
                if (kernel.session, kernel.attempt) in best
            ]
        return rows_document(replace(rows, likenesses=tuple(alike)), chosen)

    def table(self, name: str) -> Section:
        """Return one table; without rows if it has no data."""
        rows = self._all_rows()
        if name == CONTAMINATION:
            rows = replace(rows, likenesses=tuple(likenesses(self._reports(), self._own_kernels(rows))))
        return TABLES[name](rows)

    def attempts(self) -> RowSet:
        """Return all judged attempts."""
        return self._all_rows()

    def _of_session(self, *, tables: bool, kernels: bool) -> Document:
        (report,) = self._reports()
        rows = None
        if tables:
            rows = self._row_set(attempt_rows(report.state))
            rows = replace(rows, likenesses=tuple(likenesses([report], self._own_kernels(rows))))
        return session_document(report, rows, winner_kernels(report, self._task) if kernels else ())

    def _reports(self) -> Iterator[SessionReport]:
        """Yield the report of each session; only one state is in memory."""
        return (report_of(session.state) for session in self._sessions)

    def _all_rows(self) -> RowSet:
        rows: list[AttemptRow] = []
        unjudged: list[str] = []
        for session in self._sessions:
            own = [*self._read_rows(session)]
            rows += own
            if not own and (started := session.state.started) is not None:
                unjudged.append(started.session)
        return replace(self._row_set(rows), unjudged=tuple(unjudged))

    def _row_set(self, rows: Iterable[AttemptRow]) -> RowSet:
        attempts = tuple(rows)
        originals = {
            candidate: verdict
            for suite in sorted({row.suite for row in attempts})
            for candidate, verdict in original_verdicts(self._registry, suite).items()
        }
        return RowSet(attempts, task_kinds({row.task for row in attempts}, self._registry), originals)

    def _own_kernels(self, rows: RowSet) -> dict[str, str]:
        """Return the text of each task's own file by task, of the tasks on this machine."""
        own: dict[str, str] = {}
        for name in {row.task for row in rows.rows}:
            task = self._task(name)
            with suppress(SuiteError):
                own |= {name: baseline_source(task)} if task is not None else {}
        return own

    def _task(self, name: str) -> Task | None:
        if name not in self._loaded:
            self._loaded[name] = None
            with suppress(SuiteError, OSError):
                self._loaded[name] = load_task(name, registry=self._registry)
        return self._loaded[name]
