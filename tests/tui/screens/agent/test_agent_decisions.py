"""Decisions on the Agent screen: what is sent, what is shown, and when the keys work."""

from __future__ import annotations

from sessions.events import AttemptStarted, DecisionMade, Origin
from tests.support.cockpit.agent_screens import opened
from tests.support.cockpit.cockpits import RecordingDecider, until
from tests.support.sessions.journals import finished
from tui.cockpit.dialogs.dialogs import ReasonDialog


async def test_accept_asks_for_a_reason_shows_only_recorded_decisions_and_stays_with_the_attempt() -> None:
    decider = RecordingDecider()
    async with opened("softmax#1", decider=decider) as (pilot, screen, source):
        await pilot.press("a")
        assert isinstance(pilot.app.screen, ReasonDialog)
        await pilot.press(*"fine", "space", *"q", "enter")
        await until(pilot, lambda: bool(decider.decisions), "the decision")
        assert decider.decisions == [(source.session, "softmax#1/3", True, "fine q")]
        assert "3C+" not in screen.strip.text
        source.pending = [
            DecisionMade(attempt="softmax#1/3", accepted=True, why="fine q", by="ada", seq=900, wall=1.0),
            AttemptStarted(
                attempt="softmax#1/4", origin=Origin.OPTIMIZE, base="softmax#1/3", seq=901, wall=1.0
            ),
        ]
        await until(pilot, lambda: "3C+" in screen.strip.text and "4-" in screen.strip.text, "the fold")
        assert "decision   accepted by ada: fine q" in screen.steps.text
        assert screen.attempt.number == 3
        await pilot.press("right_square_bracket")
        assert (screen.number, screen.attempt.number) == (None, 4)


async def test_reject_cancel_and_undo_send_the_right_decisions() -> None:
    decider = RecordingDecider()
    async with opened("softmax#1", decider=decider) as (pilot, _, source):
        await pilot.press("r", "escape", "r", *"slow", "enter")
        await until(pilot, lambda: len(decider.decisions) == 1, "the rejection")
        await pilot.press("u")
        assert len(decider.decisions) == 1, "attempt 3 has no decision to undo"
        await pilot.press("left_square_bracket", "u")
        await until(pilot, lambda: len(decider.decisions) == 2, "the undoing")
        assert decider.decisions == [
            (source.session, "softmax#1/3", False, "slow"),
            (source.session, "softmax#1/2", None),
        ]


async def test_dialog_shows_tolerance_and_exam_and_where_a_reason_goes() -> None:
    async with opened("softmax#1", events=finished()[:-1]) as (pilot, _, _source):
        await pilot.press("a")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReasonDialog), "the dialog")
        facts = str(pilot.app.screen.query_one("#known").render())
        assert facts == (
            "tolerance used 38 % (case fp16 outliers)\n"
            "confirmed by exam: tolerance used 59 % (case fp16 wide)"
        )
        assert "The reason goes only into the record" in str(pilot.app.screen.query_one("#hint").render())
    async with opened("softmax#1") as (pilot, _, _source):
        await pilot.press("r")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReasonDialog), "the dialog")
        assert "not examined yet" in str(pilot.app.screen.query_one("#known").render())
        assert "into the next prompts of" in str(pilot.app.screen.query_one("#hint").render())
