"""What a person decides and commands: asked for on screen, then sent to whoever holds the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness import Verdict
from sessions.names import split_attempt
from sessions.state import AttemptState, Decision, InstanceState
from tui.certainty import exam_sentence, margin_words
from tui.cockpit.decider import Decider, DecisionFailed
from tui.cockpit.lines import clean
from tui.cockpit.screens.dialogs import ReasonDialog

if TYPE_CHECKING:
    from tui.cockpit.app import Cockpit

REFUSAL_S = 15


class Commander:
    """Asks what is needed, sends it, and shows a refusal as a toast. What changed is seen through the session's events."""

    def __init__(self, app: Cockpit, decider: Decider) -> None:
        self._app = app
        self._decider = decider

    @property
    def can_act(self) -> bool:
        """False in a view for reading, and in the past of a replay."""
        feed = self._app.feed
        return not self._app.readonly and feed is not None and (feed.replay is None or feed.replay.at_end)

    def ask_and_decide(self, attempt: AttemptState, *, accepted: bool) -> None:
        """Ask for a reason, then decide, unless another person decided meanwhile."""
        seen = attempt.decision

        def answered(why: str | None) -> None:
            now = self._decision(attempt.attempt)
            if why is None:
                return
            if now != seen:
                self._refuse(f"{attempt.attempt}: not decided", _meanwhile(now))
                return
            self._send(attempt.attempt, accepted=accepted, why=why)

        instance = self._instance(attempt.attempt)
        goes_on = instance is not None and instance.finished is None
        dialog = ReasonDialog(
            attempt.attempt, accepted=accepted, known=_known_of(attempt, instance), to_reflector=goes_on
        )
        self._app.push_screen(dialog, answered)

    def undo_decision(self, attempt: str) -> None:
        """Take a decision back."""
        self._send(attempt, accepted=None)

    def _instance(self, attempt: str) -> InstanceState | None:
        feed = self._app.feed
        return feed.state.instances.get(split_attempt(attempt).instance) if feed is not None else None

    def _decision(self, attempt: str) -> Decision | None:
        instance = self._instance(attempt)
        attempts = instance.attempts if instance is not None else []
        return next((each.decision for each in attempts if each.attempt == attempt), None)

    def _send(self, attempt: str, *, accepted: bool | None, why: str = "") -> None:
        self._app.run_worker(
            self._decide(attempt, accepted=accepted, why=why),
            name="sending the decision",
            group="decide",
            exit_on_error=False,
        )

    async def _decide(self, attempt: str, *, accepted: bool | None, why: str) -> None:
        feed = self._app.feed
        if feed is None:
            return
        try:
            if accepted is None:
                await self._decider.undo(feed.session, attempt)
            else:
                await self._decider.decide(feed.session, attempt, accepted=accepted, why=why)
        except DecisionFailed as error:
            self._refuse(f"{attempt}: not decided", str(error))
            return
        self._look_again()

    def _look_again(self) -> None:
        feed = self._app.feed
        if feed is not None and feed.live is not None:
            feed.live.look_again()
        self._app.look_again()

    def _refuse(self, title: str, why: str) -> None:
        self._app.notify(clean(why), title=title, severity="error", timeout=REFUSAL_S, markup=False)


def _meanwhile(decision: Decision | None) -> str:
    if decision is None:
        return "another person undid the decision meanwhile; look at the attempt, then decide again"
    said = "accepted" if decision.accepted else "rejected"
    why = f" ({decision.why})" if decision.why else ""
    who = decision.by or "another person"
    return f"{who} {said} it meanwhile{why}; undo that first, or leave it"


def _known_of(attempt: AttemptState, instance: InstanceState | None) -> str:
    """Margins and exam of a correct attempt, a line each."""
    if attempt.evaluation is None or attempt.verdict is not Verdict.CORRECT:
        return ""
    told = (margin_words(attempt.evaluation), exam_sentence(attempt, instance))
    return clean("\n".join(each for each in told if each))
