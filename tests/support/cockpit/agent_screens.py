"""Opens the Agent screen on events from memory, and a chain of attempts for its pictures."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec
from textual.pilot import Pilot

from harness import Evaluation, Latency, Outcome
from sessions import Home
from sessions import events as ev
from tests.support.cockpit.cockpits import HOME, USUAL, RecordingDecider, ScriptedSource, live, until
from tests.support.sessions import journals
from tui.cockpit.app import Cockpit
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.viewer import ExitNote


@asynccontextmanager
async def opened(
    key: str,
    number: int | None = None,
    *,
    size: tuple[int, int] = USUAL,
    events: Sequence[ev.AnyEvent] | None = None,
    decider: RecordingDecider | None = None,
    readonly: bool = False,
    home: Home = HOME,
) -> AsyncIterator[tuple[Pilot[ExitNote], AgentScreen, ScriptedSource]]:
    """Open an instance, at an attempt or at its newest, 12 seconds after the last event."""
    shown = journals.running() if events is None else events
    app, source = live(shown, decider=decider, readonly=readonly, home=home)
    app.wall = lambda: _last_wall(app) + 12  # type: ignore[method-assign]
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: isinstance(app.screen, FleetScreen), "the fleet")
        app.open_agent(key, number)
        await until(
            pilot, lambda: isinstance(app.screen, AgentScreen) and bool(app.screen.steps.lines), "the agent"
        )
        screen = app.screen
        await until(pilot, lambda: screen.code.baseline is not None, "the baseline")
        yield pilot, screen, source


def _last_wall(app: Cockpit) -> float:
    return app.feed.state.last_wall or 0.0


def timed(factor: float) -> tuple[Latency, ...]:
    """Return two cases timed on GPU 2 with this speedup."""
    return tuple(
        msgspec.structs.replace(
            latency,
            device="2",
            candidate_ms=latency.baseline_ms / factor,
            speedup=factor,
            ci=(factor * 0.97, factor * 1.02),
            outcome=Outcome.FASTER if factor > 1.05 else Outcome.NOT_RESOLVED,
        )
        for latency in journals.latencies()
    )


def wrong_at_line(line: int) -> Evaluation:
    """Return a wrong output with its line, the cases that pass and the place of the wrong elements."""
    evaluation = journals.wrong()
    mismatch = msgspec.structs.replace(evaluation.error.mismatch, pattern=("all in the last column",))
    cases = "fails: 1 of 6 cases, with columns % 1024 != 0 (ragged); passes: fp32, fp16 and 3 more"
    error = msgspec.structs.replace(evaluation.error, line=line, cases=cases, mismatch=mismatch)
    return msgspec.structs.replace(evaluation, error=error)


def chain() -> list[ev.AnyEvent]:
    """Return the events of six attempts of one instance: wrong, two failures, a best that waits, one that is written."""
    log = journals.softmax_log(devices=("cpu", "2"), iterations=10)
    slower = journals.RIGHT_SOURCE.replace("tl.exp(", "tl.math.exp(")
    for number, (source, evaluation, base) in enumerate(
        (
            (journals.RIGHT_SOURCE, journals.correct(speed=timed(1.0)), None),
            (journals.WRONG_SOURCE, wrong_at_line(13), 1),
            (slower, journals.correct(speed=timed(1.31)), 1),
            (journals.BROKEN_SOURCE, journals.call_error(), 3),
            (journals.FAST_SOURCE, journals.correct(speed=timed(1.84)), 3),
        ),
        start=1,
    ):
        origin = ev.Origin.FRESH if base is None else ev.Origin.OPTIMIZE
        earlier = f"softmax#1/{base}" if base is not None else None
        log.attempt(f"softmax#1/{number}", source, evaluation, origin=origin, base=earlier)
    log.add(ev.WaitingForPerson(attempt="softmax#1/5"), after_s=1.0)
    log.add(
        ev.AttemptStarted(attempt="softmax#1/6", origin=ev.Origin.OPTIMIZE, base="softmax#1/5"), after_s=0.2
    )
    log.ask("softmax#1/6", ev.Role.OPTIMIZER, text=None)
    return log.events
