"""The cockpit: a full-screen view of one home and its sessions. It watches; engines run without it."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from textual import on, work
from textual.app import App, InvalidThemeError
from textual.binding import Binding, BindingType
from textual.filter import LineFilter, NoColor
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from sessions.errors import SessionsError
from sessions.home import Home
from tui.cockpit import attempts, messages, terminal, themes
from tui.cockpit.commanding import Commander
from tui.cockpit.decider import Decider, SessionDecider
from tui.cockpit.dialogs import TextDialog, help_lines
from tui.cockpit.doors import Doors, doors_of
from tui.cockpit.feed import Feed
from tui.cockpit.governor import Governor
from tui.cockpit.keymap import check_keymap
from tui.cockpit.lines import Line, Span, clean
from tui.cockpit.palette_commands import SessionCommands
from tui.cockpit.replays import Replay
from tui.cockpit.screens.agent import AgentScreen
from tui.cockpit.screens.base import SessionScreen
from tui.cockpit.screens.fleet import FleetScreen
from tui.cockpit.screens.home import HomeScreen
from tui.cockpit.signals import ending_by_signal
from tui.cockpit.sources import Source
from tui.cockpit.widgets.key_bar import active_hints
from tui.cockpit.widgets.palette import COMPONENTS, Styled
from tui.diagnostics import Complaint, write_crash
from tui.plain import colours

Mode = Literal["live", "replay", "home"]
FRAME_S = 0.05
"""How often it is asked whether a frame is due; the governor says when."""
LOOK_S = 1.0
"""How often the store is asked whether a session at rest has new events."""


@dataclass(frozen=True, slots=True)
class ExitNote:
    """What to tell the person after the screen is theirs again."""

    lines: tuple[str, ...] = ()
    failed: bool = False
    """The cockpit ended over an error of its own."""


class Cockpit(App[ExitNote], inherit_bindings=False):
    """Wires sources, screens and decisions; draws nothing itself."""

    CSS_PATH = "cockpit.tcss"
    COMPONENT_CLASSES = COMPONENTS
    TITLE = "Wavedeck"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar = {SessionCommands}  # has Textual's own, too
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "explain", "help", id="app.help", key_display="?"),
        Binding("ctrl+p", "command_palette", "go to", id="app.palette", priority=True),
        Binding("colon", "command_palette", "commands", id="app.commands", show=False),
        Binding("y", "copy", "copy", id="app.copy"),
        Binding("m", "mouse", "mouse", id="app.mouse"),
        Binding("Q", "quit", "leave", id="app.quit", show=False),
        Binding("ctrl+l", "redraw", "redraw", id="app.redraw", show=False),
        Binding("ctrl+z", "suspend_process", "suspend", id="app.suspend", show=False),
        Binding("ctrl+c", "help_quit", "how to quit", show=False, system=True),
    ]

    def __init__(
        self,
        home: Home,
        *,
        session: str | None = None,
        mode: Mode = "home",
        readonly: bool = False,
        speed: float = 1.0,
        decider: Decider | None = None,
        keymap: Mapping[str, str] | None = None,
        mouse: bool = True,
        doors: Doors | None = None,
    ) -> None:
        super().__init__(driver_class=terminal.TidyDriver)
        self.animation_level = "none"
        self.feed: Feed | None = None
        self._home = home
        self._first = (session, mode)
        self.readonly = readonly
        self._speed = speed
        self.commander = Commander(self, decider or SessionDecider(home))
        self._keys = dict(keymap or {})
        self._mouse = mouse
        self._doors = doors or doors_of(home)
        self._governor = Governor(FleetScreen.PERIOD_S)
        self._undrawn: set[str] = set()
        self._looking = False
        self.register_theme(themes.DARK)
        self.register_theme(themes.LIGHT)

    def get_css_variables(self) -> dict[str, str]:
        """The theme's variables, and the palette's worked out from them."""
        variables = super().get_css_variables()
        return variables | themes.palette(variables, ansi=self.current_theme.ansi or self.no_color)

    def refresh_css(self, animate: bool = True) -> None:  # noqa: FBT001 -- as Textual has it
        """The theme changed: what is drawn in the palette is drawn anew, as Textual knows of a widget's own styles alone."""
        super().refresh_css(animate)
        for screen in self.screen_stack:
            for widget in screen.query(Styled):
                widget.refresh()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """With `NO_COLOR` no colour at all: Textual's own filter would send greys."""
        return (NoColor(),) if self.no_color else super().get_line_filters()

    def on_mount(self) -> None:
        """Open what was asked for and start drawing."""
        self.set_keymap(self._keys)
        self.push_screen(
            HomeScreen(self._doors.list_sessions, where=str(self._home.root), failed=self.tell_failure)
        )
        session, mode = self._first
        if session is not None and mode == "live":
            self.open_session(session)
        elif session is not None:
            self._load(session, playing=True)
        self.set_interval(FRAME_S, self._tick)
        self.set_interval(LOOK_S, self.look_again)

    # Sessions

    def open_session(self, session: str) -> None:
        """A session with live files as it is now, any other as a replay standing at its end."""
        if self._doors.is_live(session):
            self._watch(self._doors.open_live(session))
        else:
            self._load(session, playing=False)

    @work(thread=True, exclusive=True, group="load", exit_on_error=False, name="reading the session")
    def _load(self, session: str, *, playing: bool) -> None:
        self.call_from_thread(self.notify, f"reading {session} ...", timeout=2)
        story = self._doors.load_story(session)
        replay = Replay(story, speed=self._speed, playing=playing)
        if not playing:
            replay.seek(len(story.events))
        self.call_from_thread(self._watch, replay)

    def _watch(self, source: Source) -> None:
        self._close_feed()
        self.feed = Feed(source)
        source.start()
        self.feed.drain(self._doors.clock())
        self.push_screen(FleetScreen())

    def look_again(self) -> None:
        """Take events that another process wrote: a running session's by its tail, else what the store has."""
        feed = self.feed
        if feed is not None and feed.replay is not None and feed.replay.at_end and not self._looking:
            self._looking = True
            self._extend(feed.replay)

    @work(thread=True, group="look", exit_on_error=False, name="reading the session again")
    def _extend(self, replay: Replay) -> None:
        try:
            if self._doors.mark(replay.session) != replay.story.mark:
                self.call_from_thread(replay.extend, self._doors.load_story(replay.session))
        except (OSError, SessionsError):
            return  # asked again in a second; who decides hears of it
        finally:
            self._looking = False

    def reopen(self, session: str) -> None:
        """Open a session again, whose engine has started."""
        self.leave_session()
        self.open_session(session)

    def leave_session(self) -> None:
        """Back to the list of sessions."""
        while len(self.screen_stack) > 1 and not isinstance(self.screen, HomeScreen):
            self.pop_screen()
        self._close_feed()

    def _close_feed(self) -> None:
        if self.feed is not None:
            self.feed.source.close()
            self.feed = None
        self._undrawn.clear()

    def open_agent(self, key: str, number: int | None = None) -> None:
        """The screen of one agent, over the fleet."""
        if isinstance(self.screen, AgentScreen):
            self.pop_screen()
        instance = self.feed.state.instances.get(key) if self.feed is not None else None
        waiting = [each for each in instance.attempts if each.waiting] if instance is not None else []
        if number is None and waiting:
            number = waiting[-1].number
        newest = attempts.newest(instance) if instance is not None else None
        followed = newest is not None and number == newest.number
        self.push_screen(AgentScreen(key, None if followed else number))

    @on(messages.OpenSession)
    def _on_open_session(self, message: messages.OpenSession) -> None:
        self.open_session(message.session)

    @on(messages.OpenInstance)
    def _on_open_instance(self, message: messages.OpenInstance) -> None:
        self.open_agent(message.key, message.number)

    @on(messages.OpenFleet)
    def _on_open_fleet(self) -> None:
        self._back_to(FleetScreen)

    @on(messages.LeaveSession)
    def _on_leave_session(self) -> None:
        self.leave_session()

    def _back_to(self, kind: type[SessionScreen]) -> None:
        while not isinstance(self.screen, (kind, HomeScreen)):
            self.pop_screen()

    def clock(self) -> float:
        """Return monotonic seconds."""
        return self._doors.clock()

    def wall(self) -> float:
        """Return seconds since the epoch: now, or the moment that a replay shows."""
        feed = self.feed
        last = (
            feed.state.last_wall if feed is not None and (feed.replay is not None or feed.is_over) else None
        )
        return last if last is not None else self._doors.wall()

    # Frames

    def _tick(self) -> None:
        if terminal.is_gone(self._driver):
            signal.raise_signal(signal.SIGHUP)
            return
        now = self._doors.clock()
        if self._governor.due(now):
            self.frame()
            self._governor.drew(self._doors.clock(), queued=terminal.queued_writes(self._driver))

    def frame(self) -> None:
        """Fold what is due and repaint what it changed."""
        if self.feed is None:
            return
        self._undrawn |= self.feed.drain(self._doors.clock())
        screen = next((each for each in reversed(self.screen_stack) if isinstance(each, SessionScreen)), None)
        if screen is None or not screen.is_mounted:
            return
        self._governor.want(screen.PERIOD_S)
        dirty = frozenset(self._undrawn)
        self._undrawn.clear()
        with self.batch_update():
            screen.repaint(dirty)

    def remarks(self) -> list[Span]:
        """What the header says of the cockpit itself."""
        said = []
        if self.feed is not None and self.feed.replay is not None:
            said.append("replay, open for decisions" if self.commander.can_act else "replay")
        elif self.readonly:
            said.append("read only")
        if not self._mouse:
            said.append("mouse off")
        return [Span(", ".join(said), "warn")] if said else []

    # Keys that work everywhere

    def action_explain(self) -> None:
        """Help for the focused pane."""
        focused = self.focused
        explained = ""
        node: Widget | None = focused
        while node is not None and node is not self.screen and not explained:
            explained = node.HELP or ""
            node = node.parent if isinstance(node.parent, Widget) else None
        if isinstance(self.screen, SessionScreen):
            explained = "\n".join(each for each in (explained, self.screen.explained()) if each)
        panes = getattr(self.screen, "PANES", ())
        keys: list[tuple[str, str]] = []
        for hint in active_hints(self.screen, hidden=True):
            place = hint.name.removeprefix("pane.")
            keys.append((hint.key, panes[int(place) - 1][1] if place != hint.name else hint.words))
        name = focused.id if focused is not None and focused.id else "this screen"
        self.push_screen(TextDialog(f"help: {name}", help_lines(explained or "Wavedeck.", keys)))

    def action_copy(self) -> None:
        """Copy what the focused pane is about, from its source and not from the screen."""
        text = self.screen.get_selected_text() or getattr(self.focused, "copy_text", "")
        if text:
            self.copy_to_clipboard(text)
        else:
            self.notify("nothing to copy here", timeout=2)

    def copy_to_clipboard(self, text: str) -> None:
        """Send text to the terminal and say what was done."""
        self._clipboard = text
        self.notify(terminal.copy(self._driver, text, tmux="TMUX" in os.environ), timeout=6, markup=False)

    def action_mouse(self) -> None:
        """Take the mouse, or leave it to the terminal for its own selection."""
        self._mouse = not self._mouse
        terminal.set_mouse(self._driver, on=self._mouse)
        said = "mouse on" if self._mouse else "mouse off: the terminal selects text itself"
        self.notify(said, timeout=4)
        if isinstance(self.screen, SessionScreen):
            self.screen.repaint(frozenset())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Copying only where there is something to copy."""
        if action == "copy":
            return hasattr(self.focused, "copy_text") or bool(self.screen.get_selected_text())
        return super().check_action(action, parameters)

    def action_redraw(self) -> None:
        """Draw the whole screen again, where another program wrote over it."""
        self.screen.refresh(layout=True)

    async def action_quit(self) -> None:
        """Leave. Engines go on without a cockpit."""
        self.exit(self._note())

    def _note(self) -> ExitNote:
        feed = self.feed
        if feed is None:
            return ExitNote()
        name = feed.session
        if feed.replay is not None:
            return ExitNote((f"replay again with: wavedeck replay {name}",))
        if feed.state.finished:
            return ExitNote((f"{name} is finished; replay it with: wavedeck replay {name}",))
        if feed.live is not None and feed.live.health.running:
            return ExitNote((f"{name} goes on without the cockpit; come back with: wavedeck attach {name}",))
        return ExitNote((f"{name} is not running; go on with: wavedeck resume {name}",))

    # What went wrong

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A thread or task of the app's changed its state."""
        self.tell_failure(event)

    def tell_failure(self, event: Worker.StateChanged) -> None:
        """When a thread or task failed, say so and keep the rest alive."""
        error = event.worker.error
        if event.state is not WorkerState.ERROR or error is None:
            return
        cause = error.__cause__ or error
        if isinstance(cause, SessionsError):
            self.notify(
                clean(str(cause)), title=event.worker.name, severity="error", timeout=20, markup=False
            )
            return
        file = write_crash(cause, self._home.root / "crashes")
        told: list[Line | str] = [
            f"{event.worker.name} failed: {type(cause).__name__}: {clean(str(cause))}",
            (),
            f"The traceback is in {file}",
            "The cockpit goes on; agents are not touched.",
        ]
        self.push_screen(TextDialog("something went wrong", told))

    def _fatal_error(self) -> None:
        """Textual's last word on an error that nobody foresaw: leave its traceback in a file, not on the screen."""
        error = self._exception
        if self.is_headless or not isinstance(error, Exception):
            super()._fatal_error()
            return
        file = write_crash(error, self._home.root / "crashes")
        said = f"the cockpit failed: {type(error).__name__}: {clean(str(error))}; the traceback is in {file}"
        note = self._note()
        self.exit(ExitNote((said, *note.lines), failed=True), return_code=3)
        self._close_messages_no_wait()


def run_cockpit(
    *,
    home: Path,
    session: str | None,
    mode: Mode,
    readonly: bool = False,
    speed: float = 1.0,
    decider: Decider | None = None,
    keymap: Mapping[str, str] | None = None,
    theme: str | None = None,
    mouse: bool = True,
) -> ExitNote:
    """
    Draw until the person quits; returns what to tell them then.

    `session` is a whole name. `Complaint` for a theme that does not exist or a key that is bound to nothing.
    """
    app = Cockpit(
        Home(home),
        session=session,
        mode=mode,
        readonly=readonly,
        speed=speed,
        decider=decider,
        keymap=keymap,
        mouse=mouse,
    )
    few = app.no_color or colours(os.environ) == 16
    chosen = theme or ("ansi-dark" if few else themes.DARK.name)
    try:
        app.theme = chosen
    except InvalidThemeError as error:
        raise Complaint(
            f"unknown theme {chosen!r}; themes are {', '.join(sorted(app.available_themes))}"
        ) from error
    check_keymap(keymap or {}, Cockpit)
    with ending_by_signal(app.exit):
        return app.run(mouse=mouse) or ExitNote()


__all__ = ["Cockpit", "ExitNote", "run_cockpit"]
