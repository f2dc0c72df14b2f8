"""The cockpit: a full-screen view of one home and its sessions. It watches; engines run without it."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from textual import on
from textual.binding import Binding, BindingType
from textual.filter import LineFilter, NoColor
from textual.notifications import Notify
from textual.screen import ModalScreen
from textual.widgets import Input
from textual.worker import Worker, WorkerState

from sessions.home import Home
from sessions.names import split_attempt
from tui.actions.line import LineSubject, NotUnderstood, completions, explained, parse
from tui.cockpit.data import attempts
from tui.cockpit.desk import messages
from tui.cockpit.desk.desk import Commander, Decider, carry_out
from tui.cockpit.desk.doors import Doors
from tui.cockpit.dialogs.dialogs import QUIT
from tui.cockpit.dialogs.finding import FoundDialog
from tui.cockpit.dialogs.line_prompt import LinePrompt
from tui.cockpit.draw.lines import Span, clean
from tui.cockpit.explaining import HelpDialog
from tui.cockpit.screens.base import TALL, SessionScreen
from tui.cockpit.screens.home.home import HomeScreen
from tui.cockpit.terminal import terminal, themes
from tui.cockpit.terminal.terminal import AsciiOnly, Governor, Outside
from tui.cockpit.viewer import ExitNote, Viewer
from tui.cockpit.widgets.palette import COMPONENTS, Styled
from tui.config import Preferences
from tui.diagnostics import write_crash
from tui.facts.vocabulary import counted

if TYPE_CHECKING:
    from engine.process.launch import EngineStart

Mode = Literal["live", "replay", "home"]
FRAME_S = 0.05
"""How often it is asked whether a frame is due; the governor says when."""
STILL_S = 1.0
"""Between two frames of a session in which nothing happens."""
START_LOOK_S = 0.1
"""How often it is asked whether the engine failed to start."""
TOAST_LINES = 2
"""Toasts have the last lines of a screen."""
LOOK_S = 1.0
"""How often the store is asked whether a session at rest has new events."""


class Cockpit(Viewer, inherit_bindings=False):
    """Wires sources, screens and decisions; draws nothing itself."""

    CSS_PATH: ClassVar = [
        "cockpit.tcss",
        *(f"dialogs/{name}.tcss" for name in ("dialogs", "line_prompt", "choosing")),
        *(
            f"screens/{name}/{name}.tcss"
            for name in ("home", "fleet", "agent", "latency", "review", "report", "new_run")
        ),
    ]
    """All files at once: each screen with a file of its own would have every rule read again when it opens."""
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall")]  # noqa: RUF012  # Textual types it as an instance's
    COMPONENT_CLASSES = COMPONENTS
    NOTIFICATION_TIMEOUT = 3
    TITLE = "Wavedeck"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "explain", "help", id="app.help", key_display="?"),
        Binding("colon", "command_line", "command", id="app.commands", key_display=":", priority=True),
        Binding("y", "copy", "copy", id="app.copy"),
        Binding("m", "mouse", "mouse", id="app.mouse"),
        QUIT,
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
        preferences: Preferences | None = None,
        doors: Doors | None = None,
        engine: EngineStart | None = None,
    ) -> None:
        """`engine` is the start of the session's engine, if it has only begun."""
        super().__init__(home, doors=doors or Doors(home, engine), speed=speed)
        self._engine = engine
        self.animation_level = "none"
        self._first = (session, mode)
        self.readonly = readonly
        self.commander = Commander(self, decider or Decider(home))
        self.preferences = preferences or Preferences()
        self._lines: list[str] = []
        """Lines that were typed after `:`."""
        self._mouse = self.preferences.mouse
        self._outside = Outside(
            self._write_outside, notify=self.preferences.notify, tmux="TMUX" in os.environ
        )
        self._governor = Governor(SessionScreen.PERIOD_S)
        self._undrawn: set[str] = set()
        self._drawn_at = 0.0
        self._leaving = False
        """The person left, and commands are still being sent."""
        self.register_theme(themes.DARK)
        self.register_theme(themes.LIGHT)

    def get_css_variables(self) -> dict[str, str]:
        variables = super().get_css_variables()
        return variables | themes.palette(variables, ansi=self.current_theme.ansi or self.no_color)

    def refresh_css(self, animate: bool = True) -> None:  # noqa: FBT001 -- as Textual has it
        """The theme changed: what is drawn in the palette is drawn anew, as Textual knows of a widget's own styles alone."""
        super().refresh_css(animate)
        for screen in self.screen_stack:
            for widget in screen.query(Styled):
                widget.refresh()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """With `NO_COLOR` no colour at all: Textual's own filter would send greys. ASCII where it is wanted."""
        filters = (NoColor(),) if self.no_color else super().get_line_filters()
        return (*filters, AsciiOnly()) if self.preferences.ascii else filters

    def on_mount(self) -> None:
        self.set_keymap(dict(self.preferences.keys))
        self.app_resume_signal.subscribe(self, lambda _: self.action_redraw())
        session, mode = self._first
        self.push_screen(
            HomeScreen(
                self._doors,
                where=str(self.home.root),
                failed=self.tell_failure,
                opening=(session or "") if mode == "replay" else "",
            )
        )
        if session is not None and mode == "live":
            self.open_session(session)
        elif session is not None:
            self._load(session, playing=True)
        self.set_interval(FRAME_S, self._tick)
        self.set_interval(LOOK_S, self.look_again)
        if self._engine is not None:
            self.set_interval(START_LOOK_S, self._leave_without_engine)

    def _leave_without_engine(self) -> None:
        """Leave if the engine did not start; the command prints the reason."""
        if self._engine is not None and self._engine.has_failed:
            self._outside.restore()
            self.exit(ExitNote())

    # Screens are imported where they are opened: the first frame needs Home alone.

    def show_session(self) -> None:
        """Show Fleet."""
        from tui.cockpit.screens.fleet.fleet import FleetScreen

        self._undrawn.clear()
        self.clear_notifications()
        self.push_screen(FleetScreen())

    def show_home(self) -> None:
        """Take every screen of the session away."""
        while len(self.screen_stack) > 1 and not isinstance(self.screen, HomeScreen):
            self.pop_screen()
        if isinstance(self.screen, HomeScreen):
            self.screen.stay()
            if self.feed is not None:
                self.screen.table.select(self.feed.session)

    def open_agent(self, key: str, number: int | None = None, *, words: str = "") -> None:
        """The screen of one agent, over the fleet: at a waiting attempt, the newest, or the best of an instance that ended.

        `words` are marked and gone to.
        """
        from tui.cockpit.screens.agent.agent import AgentScreen

        instance = self.feed.state.instances.get(key) if self.feed is not None else None
        waiting = [each for each in instance.attempts if each.waiting] if instance is not None else []
        if number is None and waiting:
            number = waiting[-1].number
        elif number is None and instance is not None and instance.finished and instance.best:
            number = split_attempt(instance.best).number
        newest = attempts.newest(instance) if instance is not None else None
        followed = newest is not None and number == newest.number
        number = None if followed else number
        self._go_to(AgentScreen(key, number, registry=self.home.suites, words=words))

    @on(messages.OpenSession)
    def _on_open_session(self, message: messages.OpenSession) -> None:
        self.open_session(message.session)

    @on(messages.OpenInstance)
    def _on_open_instance(self, message: messages.OpenInstance) -> None:
        self.open_agent(message.key, message.number)

    @on(messages.OpenLatency)
    def _on_open_latency(self, message: messages.OpenLatency) -> None:
        from tui.cockpit.screens.latency.latency import LatencyScreen

        name = split_attempt(message.attempt)
        self._go_to(LatencyScreen(name.instance, name.number))

    @on(messages.GoToAttempt)
    def _on_go_to_attempt(self, message: messages.GoToAttempt) -> None:
        if isinstance(self.screen, SessionScreen):
            self.screen.go_to_attempt(message.words)

    @on(messages.OpenReview)
    def _on_open_review(self, message: messages.OpenReview) -> None:
        from tui.cockpit.data.archive import read_archive
        from tui.cockpit.screens.review.review import ReviewScreen

        if self.feed is not None:
            home = self.home
            review = ReviewScreen(
                message.attempt, registry=home.suites, read_archive=lambda: read_archive(home)
            )
            self._go_to(review)

    @on(messages.OpenReport)
    def _on_open_report(self) -> None:
        from tui.cockpit.screens.report.report import ReportScreen

        if self.feed is not None:
            self._go_to(ReportScreen())

    @on(messages.OpenFleet)
    def _on_open_fleet(self) -> None:
        from tui.cockpit.screens.fleet.fleet import FleetScreen

        self._back_to(FleetScreen)

    @on(messages.NewRun)
    def _on_new_run(self, message: messages.NewRun) -> None:
        from tui.cockpit.screens.new_run.new_run import NewRunScreen

        self.push_screen(NewRunScreen(self._doors, failed=self.tell_failure, field=message.field))

    @on(messages.FindWords)
    def _on_find_words(self, message: messages.FindWords) -> None:
        def answered(attempt: str | None) -> None:
            if attempt is not None:
                name = split_attempt(attempt)
                self.open_agent(name.instance, name.number, words=message.words)

        if self.feed is not None:
            self.push_screen(FoundDialog(message.words, self.feed.state), answered)

    @on(messages.LeaveSession)
    def _on_leave_session(self) -> None:
        self.leave_session()

    def _back_to(self, kind: type[SessionScreen]) -> None:
        while not isinstance(self.screen, (kind, HomeScreen)):
            self.pop_screen()

    def _go_to(self, screen: SessionScreen) -> None:
        """Show a screen over Fleet; each kind of screen is there once, so that the way back stays short."""
        kinds = [type(other) for other in self.screen_stack]
        if type(screen) in kinds:
            while type(self.screen) is not type(screen):
                self.pop_screen()
            self.pop_screen()
        self.clear_notifications()  # they are about the screen before
        self.push_screen(screen)

    # Frames

    def _tick(self) -> None:
        if terminal.is_gone(self._driver):
            signal.raise_signal(signal.SIGHUP)
            return
        now = self._doors.clock()
        if self._governor.due(now):
            self._fold()
            if self._undrawn or self._moves(now):
                self.frame()
            self._governor.drew(self._doors.clock(), queued=terminal.queued_writes(self._driver))

    def frame(self) -> None:
        """Fold what is due and repaint what it changed."""
        self._fold()
        screen = next((each for each in reversed(self.screen_stack) if isinstance(each, SessionScreen)), None)
        if self.feed is None or screen is None or not screen.is_mounted:
            return
        self._drawn_at = self._doors.clock()
        self._governor.want(screen.PERIOD_S)
        dirty = frozenset(self._undrawn)
        self._undrawn.clear()
        with self.batch_update():
            screen.repaint(dirty)
        if dirty:
            self._show_outside()
            self.show_what_happened()

    def _fold(self) -> None:
        if self.feed is not None:
            self._undrawn |= self.feed.drain(self._doors.clock(), self._doors.wall())

    def _moves(self, now: float) -> bool:
        """Whether something other than an event has to be drawn: the time of a replay, or a second of a clock."""
        replay = self.feed.replay if self.feed is not None else None
        return (replay is not None and replay.playing) or now - self._drawn_at >= STILL_S

    def _show_outside(self) -> None:
        feed = self.feed
        if feed is not None and feed.live is not None and not feed.is_over:
            waiting = {attempt.attempt for attempt in feed.state.attempts() if attempt.waiting}
            self._outside.show(feed.session, frozenset(waiting))

    def _write_outside(self, sequence: str) -> None:
        if self._driver is not None and sequence:
            self._driver.write(sequence)

    def remarks(self) -> list[Span]:
        """Return what the header says of the cockpit itself."""
        return [] if self._mouse else [Span("mouse off", "warn")]

    # Keys that work everywhere

    def refuse(self, title: str, why: str) -> None:
        """Show why something was not done."""
        self.notify(clean(why), title=title, severity="error", timeout=15, markup=False)

    def notify(self, message: str, *, title: str = "", **options: Any) -> None:
        """Show a message for a while, with its title on the same line."""
        super().notify(": ".join(filter(None, (title, message))), **options)

    def on_notify(self, message: Notify) -> None:
        """Take older messages away if they leave no room for this one."""
        self.make_room(TOAST_LINES, message.notification.message)

    def action_explain(self) -> None:
        self.push_screen(HelpDialog(self.screen))

    def action_command_line(self, text: str = "") -> None:
        """Ask for a command on the bottom line, which begins with this text."""
        feed = self.feed
        state = feed.state if feed is not None else None
        # What the line is about is chosen with `:`; events that come while a person types change nothing.
        subject = self.screen.subject if isinstance(self.screen, SessionScreen) else LineSubject()

        def refusal(text: str) -> str:
            try:
                order = parse(text, subject, state)
            except NotUnderstood as error:
                return str(error)
            return self.commander.why_not(order) if order.action.event else ""

        def answered(text: str | None) -> None:
            if text:
                carry_out(parse(text, subject, state), self)

        prompt = LinePrompt(
            ":",
            text=text,
            changed=lambda text: explained(text, subject, state),
            complete=lambda text: completions(text, state),
            refusal=refusal,
            history=self._lines,
        )
        self.push_screen(prompt, answered)

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
        self.notify(terminal.copy(self._driver, text, tmux="TMUX" in os.environ), markup=False)

    def action_mouse(self) -> None:
        self._mouse = not self._mouse
        terminal.set_mouse(self._driver, on=self._mouse)
        said = "mouse on" if self._mouse else "mouse off: the terminal selects text itself"
        self.notify(said)
        if isinstance(self.screen, SessionScreen):
            self.screen.repaint(frozenset())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Copying only where there is something to copy."""
        if action == "command_line":
            # Text that is typed keeps its colons.
            return not isinstance(self.screen, ModalScreen) and not isinstance(self.focused, Input)
        if action == "copy":
            return hasattr(self.focused, "copy_text") or bool(self.screen.get_selected_text())
        return super().check_action(action, parameters)

    def action_redraw(self) -> None:
        """Draw the whole screen again, where another program wrote over it."""
        self.screen.refresh(layout=True)

    async def action_quit(self) -> None:
        """Leave the cockpit; engines go on."""
        self.leave()

    def leave(self) -> None:
        """Leave the cockpit; engines go on. Commands are sent first, unless the person asks a second time."""
        count = len(self.commander.pending)
        if count and not self._leaving:
            self._leaving = True
            key, them = self.preferences.keys.get("app.quit", "q"), "it" if count == 1 else "them"
            self.notify(
                f"sending {counted(count, 'command')}, then leaving; {key} again leaves without {them}",
                timeout=60,
                markup=False,
            )
            return
        self._outside.restore()
        self.remember()
        note = self.exit_note()
        home = next((screen for screen in self.screen_stack if isinstance(screen, HomeScreen)), None)
        waiting = (
            [info.name for info in home.table.infos.values() if info.waiting] if home is not None else []
        )
        lines = note.lines + tuple(
            f"{name} waits for you; open it with: wavedeck attach {name}"
            for name in waiting
            if name not in "".join(note.lines) and self._doors.is_live(name)
        )
        self.exit(replace(note, lines=lines, unsent=self.commander.unsent()))

    @on(Worker.StateChanged)
    def _leave_after_sending(self, event: Worker.StateChanged) -> None:
        """Leave when the last command is sent; stay if a command failed, so that the person sees why."""
        is_over = event.state in (WorkerState.SUCCESS, WorkerState.ERROR)
        if not self._leaving or event.worker.group != "decide" or not is_over:
            return
        if not event.worker.result:
            self._leaving = False
            self.notify("the cockpit stays open: a command failed", severity="warning", timeout=15)
        elif not self.commander.pending:
            self.leave()

    def _fatal_error(self) -> None:
        """Textual's last word on an error that nobody foresaw: leave its traceback in a file, not on the screen."""
        error = self._exception
        if self.is_headless or not isinstance(error, Exception):
            super()._fatal_error()
            return
        file = write_crash(error, self.home.root / "crashes")
        said = f"the cockpit failed: {type(error).__name__}: {clean(str(error))}; the traceback is in {file}"
        note = self.exit_note()
        self.exit(ExitNote((said, *note.lines), failed=True, unsent=self.commander.unsent()), return_code=3)
        self._close_messages_no_wait()
