"""The kernels that people keep: those on the branch `accepted`, and the winners of a session."""

from __future__ import annotations

from dataclasses import dataclass

from harness import Evaluation, Verdict

from .errors import JournalNotReadable, NoSuchSession, StoreBroken
from .home import Home
from .names import split_attempt
from .state.state import AttemptState, SessionState
from .state.winners import accepted_attempt, bests_by_task


@dataclass(frozen=True, slots=True)
class KeptKernel:
    """A kernel with the session that it comes from."""

    session: str
    task: str
    """Full name, `suite/task`."""
    attempt: str
    source: str
    state: SessionState | None
    """`None` if the session was deleted or cannot be read: accepted kernels stay."""

    @property
    def attempt_state(self) -> AttemptState | None:
        """The attempt with its evaluations; `None` without its session."""
        return self.state.attempt(self.attempt) if self.state is not None else None

    @property
    def judged(self) -> Evaluation | None:
        """The evaluation with the times that count: the exam's if it timed the attempt again; `None` if it is not known."""
        attempt = self.attempt_state
        return attempt.timed_evaluation if attempt is not None else None


def accepted_kernels(home: Home) -> list[KeptKernel]:
    """Returns the kernel of each task on the branch `accepted`, by task."""
    # Imported here: the cockpit starts without git.
    from .store.store import Store

    if not home.store.exists():
        return []
    with Store.read_only(home.store) as store:
        accepted = [
            (task, kernel, store.accepted_source(task)) for task, kernel in sorted(store.accepted().items())
        ]
    states = {name: _readable_state(home, name) for name in {kernel.session for _, kernel, _ in accepted}}
    return [
        KeptKernel(kernel.session, task, kernel.attempt, source, states[kernel.session])
        for task, kernel, source in accepted
    ]


def session_kernels(session: str, state: SessionState) -> list[KeptKernel]:
    """Returns the kernel of each solved task of a session: the accepted one, else the best correct one."""
    chosen = (accepted_attempt(state, task) or best for task, best in bests_by_task(state).items())
    return [
        kept_kernel(session, state, attempt)
        for attempt in chosen
        if attempt.accepted or attempt.verdict is Verdict.CORRECT
    ]


def kept_kernel(session: str, state: SessionState, attempt: AttemptState) -> KeptKernel:
    """Returns an attempt of a session as a kept kernel."""
    task = state.instances[split_attempt(attempt.attempt).instance].task
    return KeptKernel(session, task, attempt.attempt, attempt.source or "", state)


def _readable_state(home: Home, session: str) -> SessionState | None:
    from .catalog import session_state

    try:
        return session_state(home, session)
    except (NoSuchSession, StoreBroken, JournalNotReadable):
        return None
