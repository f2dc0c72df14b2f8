"""Entries of the palette, in their order: screens or sessions, instances and attempts, actions, the way to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from textual.app import App
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.screen import Screen

from tui.actions.line import possible_orders
from tui.cockpit.data.attempts import ordered_instances
from tui.cockpit.data.feed import Feed
from tui.cockpit.desk.desk import Desk, elsewhere_words
from tui.cockpit.desk.messages import LeaveSession, OpenInstance, OpenSession
from tui.cockpit.draw.lines import clean
from tui.cockpit.screens.acting import ActingScreen
from tui.cockpit.screens.base import SessionScreen
from tui.cockpit.screens.home.home import HomeScreen
from tui.cockpit.screens.home.home_view import ORDERS, ordered, waits_cell
from tui.cockpit.widgets.screens_bar import PLACES
from tui.facts import vocabulary

NAME_CELLS = 24
"""Cells before the words of an entry; a longer name moves them to the right."""


class PaletteEntry(NamedTuple):
    """One thing to do."""

    name: str
    told: str
    run: Callable[[], Any]
    first: bool
    """Listed before anything is typed."""
    stops: bool = False
    """Ends an instance or the session, so it is listed last."""


class SessionCommands(Provider):
    """Entries of equal score keep their order; a search puts better matches before it."""

    def _commands(self) -> Iterator[PaletteEntry]:
        desk, orders = cast("Desk", self.app), list[PaletteEntry]()
        if isinstance(self.screen, HomeScreen):
            yield from _sessions(self.screen)
        elif desk.feed is not None:
            if isinstance(self.screen, SessionScreen):
                yield from _screens(self.screen)
            yield from _jumps(self.app, desk.feed)
            if desk.commander.can_act:
                orders += _orders(desk, self.app.screen_stack)
        yield from (order for order in orders if not order.stops)
        yield PaletteEntry("help", "signs, keys and columns of this screen", desk.action_explain, True)
        yield PaletteEntry("leave", "close the cockpit; engines go on", desk.leave, True)
        yield from (order for order in orders if order.stops)

    async def discover(self) -> Hits:
        """What is listed before anything is typed."""
        for command in self._commands():
            if command.first:
                yield DiscoveryHit(_entry(Content(command.name), command), command.run, command.name)

    async def search(self, query: str) -> Hits:
        """What fits the query."""
        matcher = self.matcher(query)
        for command in self._commands():
            score = matcher.match(command.name)
            if score > 0:
                yield Hit(score, _entry(matcher.highlight(command.name), command), command.run, command.name)


def _entry(name: Content, command: PaletteEntry) -> Content:
    """One line: the name, and behind it what the command does."""
    return Content.assemble(name.pad_right(NAME_CELLS - len(name)), "  ", (clean(command.told), "$wd-dim"))


def _sessions(home: HomeScreen) -> Iterator[PaletteEntry]:
    """The form of a new run, and each session."""
    yield PaletteEntry("new run", "choose tasks and a model, see the cost, start", home.action_new_run, True)
    for info in ordered(home.table.infos.values(), ORDERS[0]):
        words = ", ".join(filter(None, (info.title, waits_cell(info).text)))
        yield PaletteEntry(
            f"session {info.name}", words, partial(home.post_message, OpenSession(info.name)), True
        )


def _screens(screen: SessionScreen) -> Iterator[PaletteEntry]:
    """The screens that can be opened from this one."""
    for name, place in PLACES.items():
        if screen.destination(name) is not None:
            yield PaletteEntry(place.title, place.answers, partial(screen.action_go, name), True)
    yield PaletteEntry(
        "Home", "close this session; its engine goes on", partial(screen.post_message, LeaveSession()), True
    )


def _jumps(app: App[Any], feed: Feed) -> Iterator[PaletteEntry]:
    """Each instance and each attempt."""
    for instance in ordered_instances(feed.state):
        key = instance.key
        yield PaletteEntry(
            f"instance {key}",
            feed.facts.of(feed.state, instance).doing.word,
            partial(app.post_message, OpenInstance(key)),
            True,
        )
        for attempt in instance.attempts:
            said = vocabulary.words(attempt.verdict) if attempt.verdict is not None else "no verdict yet"
            yield PaletteEntry(
                f"attempt {attempt.attempt}",
                said,
                partial(app.post_message, OpenInstance(key, attempt.number)),
                False,
            )


def _orders(desk: Desk, screens: Sequence[Screen[Any]]) -> Iterator[PaletteEntry]:
    """Commands about the instance and attempt under the cursor, the session, and its GPUs."""
    assert desk.feed is not None
    screen = next((each for each in reversed(screens) if isinstance(each, ActingScreen)), None)
    instance = screen.steered_instance if screen is not None else None
    attempt = screen.steered_attempt if screen is not None else None
    for order in possible_orders(desk.feed.state, instance, attempt):
        if elsewhere_words(desk.feed, order.action):
            continue
        name = " ".join(filter(None, (order.name, order.target, order.text)))
        does, stops = order.action.does, order.name in ("retire", "stop")
        yield PaletteEntry(name, does, partial(desk.commander.ask, order), True, stops)
