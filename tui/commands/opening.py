"""The session or the kernels that a command is about, opened from the home."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem

from sessions import Journal, SessionState
from sessions.catalog import (
    LATEST,
    Standing,
    find_sessions,
    find_study,
    journal_of,
    list_sessions,
    session_state,
    skimmed_state,
)
from sessions.home import Home, home_from
from sessions.kept_kernels import KeptKernel, kept_kernel, session_kernels
from sessions.listing.skimming import RESULTS, skim_of_attempts
from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.row_cache import rows_of_session
from sessions.state.state import AttemptState, InstanceState
from sessions.store.decidable import find_attempt
from tui.diagnostics import Complaint

from .options import complete_sessions


class OpenedSession(NamedTuple):
    """A session of the home; its events are read at each use."""

    home: Home
    name: str
    """Its full name."""

    @property
    def journal(self) -> Journal:
        """Its events so far."""
        return journal_of(self.home, self.name)

    @property
    def state(self) -> SessionState:
        """Its state after these events."""
        return session_state(self.home, self.name)

    @property
    def results(self) -> SessionState:
        """Its state without what only a view of the moment shows; its journal may be too long for memory."""
        return skimmed_state(self.home, self.name, RESULTS)

    def state_of(self, *attempts: str) -> SessionState:
        """Returns its state with the instances of these attempts only; raises as `find_attempt` if one is missing."""
        try:
            state = skimmed_state(self.home, self.name, skim_of_attempts(attempts))
            for attempt in attempts:
                state.attempt(attempt)
        except (ValueError, KeyError):
            state = self.results  # the error names similar attempts
            for attempt in attempts:
                find_attempt(state, attempt)
        return state

    @property
    def rows(self) -> Sequence[AttemptRow]:
        """A row for each of its judged attempts; folds its events only if they changed since the last call."""
        return rows_of_session(self.home, self.name)


def open_session(wanted: str | None, *, newest: bool = False) -> OpenedSession:
    """Return the session that a person names; without a name, the only one that runs or exists.

    With `newest`, for commands that only read: without a name the only one that runs, else the newest.
    Raises `Complaint` if several sessions fit, and else as `find_sessions`.
    """
    home = home_from(os.environ)
    name = _only_session(home, newest=newest) if wanted is None else one_session(home, wanted)
    return OpenedSession(home, name)


def one_session(home: Home, wanted: str) -> str:
    """Return the session that a person names. A study means its session that runs, else the one to resume.

    Raises `Complaint` if a study has several of them, and else as `find_sessions`.
    """
    names = find_sessions(home, wanted)
    if len(names) > 1:
        study, sessions = find_study(home, wanted)
        running = [info.name for info in sessions if info.state is Standing.RUNNING]
        names = running or [info.name for info in sessions if info.state is not Standing.FINISHED]
        if len(names) != 1:
            raise Complaint(
                f"study {study} has {len(sessions)} sessions; name one of them; list them with: wavedeck study {study}"
            )
    return names[0]


def _only_session(home: Home, *, newest: bool) -> str:
    running = [files.session for files in home.session_folders() if files.running]
    sessions = running or [info.name for info in list_sessions(home)]
    if not sessions:
        raise Complaint(f"no sessions yet in {home.root}; begin with: wavedeck run")
    if len(sessions) > 1 and not newest:
        raise Complaint(
            f"{len(sessions)} sessions {'run' if running else 'exist'}; name one, or {LATEST} for {max(sessions)}"
        )
    return max(sessions)


def without_session(words: Sequence[str], count: int) -> tuple[str | None, tuple[str, ...]]:
    """Separate `[SESSION] WORD...` with `count` words after the session; `None` if the session is left out.

    `SESSION:INSTANCE` and `SESSION:ATTEMPT` name a session too: `latest:softmax#2/3`.
    """
    if 0 < len(words) == count:
        session, _, place = words[0].rpartition(":")
        if session and "#" in place:
            words = (session, place, *words[1:])
    return (words[0], tuple(words[1:])) if len(words) > count else (None, tuple(words))


def open_sessions(wanted: Sequence[str]) -> list[OpenedSession]:
    """Return the sessions that a person names, each once; a study gives all its sessions. Raises as `find_sessions`."""
    home = home_from(os.environ)
    names = dict.fromkeys(name for word in wanted for name in find_sessions(home, word))
    return [OpenedSession(home, name) for name in names]


class OpenedAttempt(NamedTuple):
    """An attempt with its instance and its session as they were when it was opened."""

    session: OpenedSession
    state: SessionState
    attempt: AttemptState
    instance: InstanceState


def open_attempt(words: Sequence[str], *, also: Sequence[str] | None = None) -> OpenedAttempt:
    """Return the attempt of `[SESSION] ATTEMPT`, by default of the session that runs, else of the newest.

    Raises as `find_attempt`.

    With `also`, the state has only the instances of the attempt and of these attempts.
    """
    if len(words) > 2:
        command = click.get_current_context().command_path
        raise Complaint(f"{words[2]!r} is too much: {command} [SESSION] ATTEMPT")
    session, (name, *_) = without_session(words, 1)
    opened = open_session(session, newest=True)
    state = opened.state if also is None else opened.state_of(name, *also)
    return OpenedAttempt(opened, state, *find_attempt(state, name))


def open_kernel(words: Sequence[str]) -> KeptKernel:
    """Return the kernel of `[SESSION] ATTEMPT`, as `open_attempt`. Raises `Complaint` if it has none."""
    opened, state, attempt, _ = open_attempt(words)
    if not attempt.source:
        raise Complaint(f"{attempt.attempt} has no kernel; choose an attempt that has one")
    return kept_kernel(opened.name, state, attempt)


def open_kernels(wanted: str) -> list[KeptKernel]:
    """Return the accepted or best kernel of each solved task of a session, or of each session of a study.

    Raises `Complaint` if there is none.
    """
    opened = open_sessions([wanted])
    kernels = [kernel for session in opened for kernel in session_kernels(session.name, session.state)]
    if not kernels:
        raise Complaint(f"{', '.join(session.name for session in opened)} has no correct attempt")
    return kernels


def complete_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return sessions for the first word, and attempts for the second."""
    words = list(ctx.params.get(param.name or "") or ())
    if not words:
        return complete_sessions(ctx, param, incomplete)
    return [
        CompletionItem(attempt.attempt, help=str(attempt.verdict or "not judged"))
        for attempt in open_session(words[0]).state.attempts()
        if attempt.attempt.startswith(incomplete)
    ]
