"""What one agent says now, and what the judge said last: the fleet's look into the row under the cursor."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical

from sessions.state import InstanceState
from tui.cockpit import attempts, views
from tui.cockpit.steps import steps_of
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.steps_view import StepsView


class LatestWords(StepsView):
    """The newest attempt's words."""

    HELP = """\
The agent under the cursor of the table of agents: in two lines what the judge
said last, below it the model's words as they come, in its newest attempt.
New words are followed; scroll up to hold the text still, `f` or `G` follows
again. `enter` on the agent's row opens all of it.
"""


class Glance(Vertical):
    """Two lines of verdict over the newest words."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.verdict = Bar(classes="verdict")
        self.why = Bar(classes="verdict")
        self.words = LatestWords(id="latest")
        self._key = ""

    def compose(self) -> ComposeResult:
        """Verdict, why, words."""
        yield self.verdict
        yield self.why
        yield self.words

    def tell(self, instance: InstanceState | None, *, target: str | None) -> None:
        """Show an instance; another than before is followed from its end."""
        newest = attempts.newest(instance) if instance is not None else None
        key = "" if instance is None else instance.key
        verdict, why = views.last_verdict(instance, target, self.why.size.width)
        self.verdict.show(verdict)
        self.why.show(why)
        self.words.show_steps(steps_of(newest) if newest is not None else ())
        title = key if newest is None else f"{newest.attempt}, {attempts.lineage(newest)}"
        held = "" if self.words.following else ", held: f follows"
        shown = f"latest of {title}{held}".replace("[", "\\[") if title else "latest"
        if self.border_title != shown:
            self.border_title = shown
        if key != self._key:
            self._key = key
            self.words.action_follow()
