"""Opens cockpits on events from memory: app, screens and fold are real, no journal is on disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from textual._context import active_app
from textual.pilot import Pilot
from textual.screen import Screen

from sessions.catalog import SessionInfo, Standing
from sessions.events import AnyEvent, DecisionMade, DecisionUndone, PersonCommand
from sessions.home import Home
from sessions.listing.info import UNKNOWN
from sessions.settings import RunSettings
from tests.support.cockpit.pictures import screen_text
from tests.support.cockpit.stories import read_story
from tests.support.sessions.journals import SESSION
from tests.support.waiting import LIMIT_S, check_time
from tui.cockpit.app import Cockpit
from tui.cockpit.data.previews import Details
from tui.cockpit.data.replays import Story
from tui.cockpit.data.sources import EventBatch
from tui.cockpit.desk.doors import Doors
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.screens.home.home import HomeScreen
from tui.cockpit.viewer import ExitNote
from tui.config import Preferences
from tui.diagnostics import Complaint
from tui.facts.node_facts import Gpu, NodeFacts

HOME = Home(Path("/home/ada/.local/share/wavedeck"))
"""Home whose path appears in pictures; no test reads or writes it."""
NODE = NodeFacts(
    host="mi300x-07", version="0.1.0", gpus=tuple(Gpu(str(number), "MI300X") for number in range(8)),
    runtime="ROCm 7.0", triton="3.7.1", keys=("anthropic",),
)  # fmt: skip
WIDE, USUAL, NARROW = (160, 48), (120, 40), (80, 24)


@dataclass
class ScriptedSource:
    """Event source that returns the pending events of a test at once."""

    session: str = SESSION
    pending: list[AnyEvent] = field(default_factory=list)

    def start(self) -> None:
        """Nothing to do."""

    def take(self, now: float) -> EventBatch:
        taken, self.pending = self.pending, []
        return EventBatch(taken)

    def close(self) -> None:
        """Nothing to release."""


@dataclass
class Clock:
    """Clock that only a test advances."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class RecordingDecider:
    """Decider that records all decisions; with `refusal` it refuses them."""

    decisions: list[tuple[object, ...]] = field(default_factory=list)
    refusal: str = ""

    async def give(self, session: str, command: PersonCommand) -> None:
        if self.refusal:
            raise Complaint(self.refusal)
        match command:
            case DecisionMade():
                self.decisions.append((session, command.attempt, command.accepted, command.why))
            case DecisionUndone():
                self.decisions.append((session, command.attempt, None))
            case _:
                self.decisions.append((session, command))


def doors(home: Home = HOME, **own: Callable[..., Any]) -> Doors:
    """Return doors that read no file: an empty list, no session, a node without GPUs; `own` are other functions."""
    known = Doors(home)
    quiet = {
        "list_sessions": list, "list_mark": tuple, "read_node": NodeFacts, "read_details": lambda _: Details(),
        "is_live": lambda _: False, "load_beginning": lambda _: None, "mark": lambda _: (),
    }  # fmt: skip
    vars(known).update(quiet | own)
    return known


def live(
    events: Sequence[AnyEvent],
    *,
    decider: RecordingDecider | None = None,
    readonly: bool = False,
    home: Home = HOME,
    preferences: Preferences | None = None,
    wall: Callable[[], float] | None = None,
) -> tuple[Cockpit, ScriptedSource]:
    """Return a cockpit on a running session with these events, and its source.

    `wall` is its clock of the day; without one, the time is always that of the last event.
    """
    source = ScriptedSource(pending=list(events))
    last = events[-1].wall if events else time.time()
    app = Cockpit(
        home, session=SESSION, mode="live", readonly=readonly, decider=decider or RecordingDecider(),
        preferences=preferences,
        doors=doors(is_live=lambda _: True, open_live=lambda _: source, wall=wall or (lambda: last)),
    )  # fmt: skip
    app.theme = "wavedeck"
    return app, source


@asynccontextmanager
async def on_fleet(
    events: Sequence[AnyEvent], *, size: tuple[int, int] = USUAL, **options: Any
) -> AsyncIterator[tuple[Pilot[ExitNote], Cockpit]]:
    """Open a running session with these events, and wait for Fleet; `options` are those of `live`."""
    app, _ = live(events, **options)
    async with app.run_test(size=size) as pilot:
        await until(
            pilot,
            lambda: isinstance(app.screen, FleetScreen) and bool(app.screen.tasks.rows or not events),
            "Fleet",
        )
        yield pilot, app


def replayed(
    events: Sequence[AnyEvent], *, clock: Callable[[], float] | None = None, speed: float = 1.0
) -> Cockpit:
    """Return a cockpit that replays a whole session as `wavedeck replay` does; without a clock no time passes."""
    app = Cockpit(
        HOME,
        session=SESSION,
        mode="replay",
        readonly=True,
        speed=speed,
        doors=doors(load_story=lambda name: read_story(name, events), clock=clock or Clock()),
    )  # fmt: skip
    app.theme = "wavedeck"
    return app


def at_home(
    sessions: Callable[[], Sequence[SessionInfo]],
    *,
    home: Home = HOME,
    node: NodeFacts = NODE,
    mark: Callable[[], object] = tuple,
    load: Callable[[str], Story] | None = None,
    **options: Any,
) -> Cockpit:
    """Return a cockpit on its list of sessions, which it reads again when `mark` changes; `load` reads one of them.

    `options` are further doors.
    """
    further = {"load_story": load} if load is not None else {}
    own = doors(home, list_sessions=sessions, list_mark=mark, read_node=lambda: node, **further, **options)
    app = Cockpit(home, doors=own)
    app.theme = "wavedeck"
    return app


@asynccontextmanager
async def on_home(
    sessions: Callable[[], Sequence[SessionInfo]], *, size: tuple[int, int] = USUAL, **options: Any
) -> AsyncIterator[tuple[Pilot[ExitNote], Cockpit]]:
    """Open the list of sessions, and wait for it; `options` are those of `at_home`."""
    app = at_home(sessions, **options)

    def is_read() -> bool:
        screen = app.screen
        return (
            isinstance(screen, HomeScreen)
            and "Reading" not in screen.table.empty
            and "reading" not in screen.query_one("#header").text
        )

    async with app.run_test(size=size) as pilot:
        await until(pilot, is_read, "the list")
        yield pilot, app


async def settle(_: float = 0.0) -> None:
    """Wait until the app has handled all messages and has drawn what they changed, also the diff that a thread makes.

    Textual's own wait ends as soon as the process uses no CPU. On a busy machine that is also true of a process that has to wait
    for a core. `tests/tui/conftest.py` puts this function into its place, so `Pilot.press` and `Pilot.pause` use it.
    """
    app = active_app.get()
    await _until_nothing_is_ready()
    while any(worker.name == "comparing" and not worker.is_finished for worker in app.workers):
        await asyncio.sleep(0.001)
        await _until_nothing_is_ready()
    while app.is_running and _has_to_draw(app.screen):
        app.screen._on_timer_update()
        await _until_nothing_is_ready()


async def _until_nothing_is_ready() -> None:
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    while True:
        await asyncio.sleep(0)
        if not ready:
            return


def _has_to_draw(screen: Screen[object]) -> bool:
    return bool(
        screen._layout_required or screen._scroll_required or screen._dirty_widgets or screen._callbacks
    )


async def until(pilot: Pilot[ExitNote], condition: Callable[[], bool], awaited: str) -> None:
    """Wait until the condition holds, then until all is drawn.

    Raises `AssertionError` with the screen's text after a minute: a busy machine may need that long.
    """
    limit = time.monotonic() + LIMIT_S
    while not condition():
        check_time(limit, awaited, lambda: screen_text(pilot.app))
        await asyncio.sleep(0.01)
    await pilot.pause()
    if pilot.app.is_running:
        pilot.app.screen._compositor.render_strips()


def listed(name: str, state: Standing, **fields: object) -> SessionInfo:
    """Return the line of a session in a list, from its settings and its results."""
    own = set(RunSettings.__struct_fields__) - {"title"}
    settings = {field: fields.pop(field) for field in own & fields.keys()}
    return SessionInfo(
        name=name, state=state, settings=msgspec.structs.replace(UNKNOWN, **settings), **fields
    )
