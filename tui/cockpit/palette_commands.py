"""What `ctrl+p` reaches beside Textual's own commands: agents, attempts, panes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from tui.cockpit import views, wording
from tui.cockpit.lines import clean

if TYPE_CHECKING:
    from tui.cockpit.app import Cockpit


class Command(NamedTuple):
    """One thing to do."""

    name: str
    told: str
    run: Callable[[], None]
    first: bool
    """Listed before anything is typed."""


class SessionCommands(Provider):
    """Jumps within the session on screen."""

    def _commands(self) -> Iterator[Command]:
        app = cast("Cockpit", self.app)
        if app.feed is None:
            return
        for instance in views.ordered_instances(app.feed.state):
            key = instance.key
            yield Command(f"agent {key}", views.doing(instance).text, partial(app.open_agent, key), True)
            for attempt in instance.attempts:
                said = wording.words(attempt.verdict) if attempt.verdict is not None else "no verdict yet"
                yield Command(
                    f"attempt {attempt.attempt}", said, partial(app.open_agent, key, attempt.number), False
                )

    async def discover(self) -> Hits:
        """What is listed before anything is typed."""
        for command in self._commands():
            if command.first:
                yield DiscoveryHit(command.name, command.run, help=clean(command.told))

    async def search(self, query: str) -> Hits:
        """What fits the query."""
        matcher = self.matcher(query)
        for command in self._commands():
            score = matcher.match(command.name)
            if score > 0:
                yield Hit(score, matcher.highlight(command.name), command.run, help=clean(command.told))
