"""What `ctrl+p` and `:` lead to: orders to the engine, agents, attempts, and Textual's own commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from textual.app import App
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.screen import Screen

from sessions.state.state import SessionState
from tui import vocabulary
from tui.cockpit import views
from tui.cockpit.desk import Desk
from tui.cockpit.lines import clean
from tui.cockpit.messages import OpenInstance
from tui.cockpit.screens.acting import ActingScreen


class Command(NamedTuple):
    """One thing to do."""

    name: str
    told: str
    run: Callable[[], Any]
    first: bool
    """Listed before anything is typed."""


class SessionCommands(Provider):
    """Jumps within the session on screen."""

    def _commands(self) -> Iterator[Command]:
        desk = cast("Desk", self.app)
        if desk.feed is not None:
            if desk.commander.can_act:
                yield from _orders(desk, self.app.screen_stack)
            yield from _jumps(self.app, desk.feed.state)
        for command in self.app.get_system_commands(self.screen):
            yield Command(command.title, command.help, command.callback, command.discover)

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


def _jumps(app: App[Any], state: SessionState) -> Iterator[Command]:
    """Each instance and each attempt."""
    for instance in views.ordered_instances(state):
        key = instance.key
        yield Command(
            f"instance {key}",
            views.doing_cell(state, instance).text,
            partial(app.post_message, OpenInstance(key)),
            True,
        )
        for attempt in instance.attempts:
            said = vocabulary.words(attempt.verdict) if attempt.verdict is not None else "no verdict yet"
            yield Command(
                f"attempt {attempt.attempt}",
                said,
                partial(app.post_message, OpenInstance(key, attempt.number)),
                False,
            )


def _orders(desk: Desk, screens: Sequence[Screen[Any]]) -> Iterator[Command]:
    """Commands about the instance and attempt under the cursor, the session, and its GPUs."""
    assert desk.feed is not None
    state, give = desk.feed.state, desk.commander
    gpus = views.gpus(state)
    screen = next((each for each in reversed(screens) if isinstance(each, ActingScreen)), None)
    instance = screen.steered_instance if screen is not None else None
    attempt = screen.steered_attempt if screen is not None else None
    if instance is not None:
        key = instance.key
        word, act = ("go", give.go) if state.is_on_hold(key) else ("pause", give.pause)
        yield Command(f"{word} {key}", "calls and attempts of this instance", partial(act, (key,)), True)
        yield Command(f"hint {key}", "its next prompts quote it", partial(give.ask_hint, (key,)), True)
        yield Command(f"stop {key}", "for good", partial(give.ask_stop, (key,)), True)
    if attempt is not None:
        name = attempt.attempt
        yield Command(f"pin {name}", "the base of the next optimizations", partial(give.pin, name), True)
        yield Command(f"ban {name}", "no base any more", partial(give.ban, name), True)
        yield Command(f"fork {name}", "a new instance starts from it", partial(give.ask_fork, name), True)
        if gpus:
            yield Command(f"measure {name}", "time it again on every GPU", partial(give.measure, name), True)
    word, act = ("go", give.go) if "" in state.on_hold else ("pause", give.pause)
    yield Command(f"{word} session", "all its instances", partial(act, ()), True)
    yield Command("extend session", "further attempts in each instance", give.ask_extend, True)
    yield Command("stop session", "until wavedeck resume", give.ask_stop, True)
    for device in gpus:
        if device in state.lent:
            yield Command(f"return GPU {device}", "take it back", partial(give.take_back, device), True)
        else:
            yield Command(f"lend GPU {device}", "to others", partial(give.lend, device), True)
