"""A screen with keys that decide about an attempt: accept, reject, undo."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from harness import Verdict
from sessions.state.state import AttemptState
from tui.cockpit.screens.acting import ActingScreen

DECIDING: list[BindingType] = [
    Binding("a", "accept", "accept", id="agent.accept"),
    Binding("r", "reject", "reject", id="agent.reject"),
    Binding("u", "undo", "undo", id="agent.undo"),
]


class DecidingScreen(ActingScreen):
    """Decides about `steered_attempt`. The view stays with it, since the instance goes on after a decision."""

    def stay_at(self, attempt: AttemptState) -> None:
        """Keep this attempt on screen; the subclass says how."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Decide only where a decision can be made; only a correct attempt can be accepted."""
        if action not in ("accept", "reject", "undo"):
            return super().check_action(action, parameters)
        attempt = self.steered_attempt if self._can_act else None
        if attempt is None or attempt.evaluation is None:
            return False
        if action == "accept":
            return attempt.verdict is Verdict.CORRECT
        return attempt.decision is not None if action == "undo" else True

    def action_accept(self) -> None:
        """Accept the attempt on screen."""
        self._decide(accepted=True)

    def action_reject(self) -> None:
        """Reject the attempt on screen."""
        self._decide(accepted=False)

    def action_undo(self) -> None:
        """Undo the decision about the attempt on screen."""
        attempt = self.steered_attempt
        if attempt is not None:
            self.stay_at(attempt)
            self.desk.commander.undo_decision(attempt.attempt)

    def _decide(self, *, accepted: bool) -> None:
        attempt = self.steered_attempt
        if attempt is not None:
            self.desk.commander.ask_and_decide(
                attempt, accepted=accepted, decided=lambda: self.stay_at(attempt)
            )
