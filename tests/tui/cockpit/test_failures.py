"""`x` means the same failures on every screen: counted verdicts that are not *correct*."""

from __future__ import annotations

import msgspec

from harness import Verdict
from sessions.events import AnyEvent, InstanceStarted
from sessions.state.folding import fold
from tests.support.cockpit.cockpits import USUAL, live, until
from tests.support.cockpit.stories import read_story
from tests.support.sessions.journals import RIGHT_SOURCE, EventLog, correct
from tui.cockpit.desk.messages import OpenLatency
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.latency.latency import LatencyScreen
from tui.facts.report import report_of

VERDICTS = (Verdict.CORRECT, Verdict.INFRA_ERROR, Verdict.NO_CODE, Verdict.CANCELLED, Verdict.WRONG)
FAILURES = [3, 5]


def mixed() -> list[AnyEvent]:
    """Return the events of an instance with one attempt of each verdict; none has an error, the first is correct."""
    log = EventLog()
    log.open()
    log.add(InstanceStarted(task="starter/softmax", instance=1), after_s=0.1)
    for number, verdict in enumerate(VERDICTS, start=1):
        log.attempt(f"softmax#1/{number}", RIGHT_SOURCE, msgspec.structs.replace(correct(), verdict=verdict))
    return log.events


async def test_x_goes_to_the_same_attempts_in_agent_and_latency() -> None:
    app, _ = live(mixed())
    async with app.run_test(size=USUAL) as pilot:
        await until(pilot, lambda: app.feed is not None and bool(app.feed.state.instances), "events")
        for kind in (AgentScreen, LatencyScreen):
            if kind is AgentScreen:
                app.open_agent("softmax#1", 1)
            else:
                app.post_message(OpenLatency("softmax#1/1"))
            await until(pilot, lambda kind=kind: isinstance(app.screen, kind), kind.__name__)
            screen = app.screen
            assert isinstance(screen, AgentScreen | LatencyScreen)
            numbers = []
            for _ in FAILURES:
                await pilot.press("x")
                numbers.append(screen.steered_attempt.number)
            assert numbers == FAILURES


def test_reports_and_replays_know_the_same_failures() -> None:
    events = mixed()
    names = [f"softmax#1/{number}" for number in FAILURES]
    assert report_of(fold(events)).attempts_to_visit("failure") == names
    assert len(read_story("mixed", events).with_marks().marks.failures) == len(FAILURES)
