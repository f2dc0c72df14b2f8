"""Follows a session of candidates that exist already, with a line for each verdict on standard error."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from engine.plan.job import read_plan
from engine.plan.plan import SessionPlan
from engine.process.launch import prepare_checked, resume
from sessions import SessionState
from sessions.catalog import session_state
from sessions.errors import NothingToResume
from sessions.events import AnyEvent, AttemptJudged, EngineStopped, InstanceFinished, Notice
from sessions.home import Home
from sessions.state.state import CURABLE
from tui.diagnostics import ExitCode, say
from tui.print.follow import EventPrinter, FollowEnding, follow

CODES = {FollowEnding.FINISHED: ExitCode.DONE, FollowEnding.STOPPED: ExitCode.INTERRUPTED}


def begin(plan: SessionPlan, home: Home) -> ExitCode:
    """Start the session and follow it to its end. Returns `DONE` if all candidates have a verdict."""
    engine = prepare_checked(plan, home)
    engine.begin_and_wait()
    say(f"session {engine.session}; watch it with: wavedeck attach {engine.session}")
    return _follow(home, engine.session)


def go_on(home: Home, session: str) -> ExitCode:
    """Follow a session to its end, as `begin`; resume it if no engine runs it. A finished session is only read."""
    if not home.files(session).running:
        with suppress(NothingToResume):
            resume(home, session)
            say(f"session {session} continues")
    return _follow(home, session)


def _follow(home: Home, session: str) -> ExitCode:
    plan = read_plan(home.files(session))
    candidates = sum(map(len, plan.candidates.values())) if plan is not None else 0
    printer = VerdictPrinter(candidates, session_state(home, session))
    if printer.state.finished:
        return ExitCode.DONE
    try:
        ending = asyncio.run(follow(home, session, printer, stoppable=True))
    except KeyboardInterrupt:
        say(f"{session} is still running; come back with: wavedeck attach {session}")
        return ExitCode.INTERRUPTED
    return CODES.get(ending, ExitCode.FAILED)


class VerdictPrinter(EventPrinter):
    """Folds events, and prints verdicts and failures of the judge on standard error."""

    def __init__(self, candidates: int, past: SessionState) -> None:
        super().__init__(past, as_json=False)
        self._candidates = candidates

    def take(self, event: AnyEvent) -> None:
        """Fold the event; print its lines if it is a verdict, or if something failed."""
        lines = self._narrator.lines(event)
        match event:
            case AttemptJudged(attempt=name, evaluation=evaluation):
                judged = sum(attempt.verdict is not None for attempt in self.state.attempts())
                why = f": {evaluation.error.first_line}" if evaluation.error is not None else ""
                say(f"{judged} of {self._candidates}: {name}: {evaluation.verdict}{why}")
            case Notice(level="warning" | "error") | EngineStopped():
                for line in lines:
                    say(line)
            case InstanceFinished(reason=reason) if reason in CURABLE:
                for line in lines:
                    say(line)
            case _:
                pass
