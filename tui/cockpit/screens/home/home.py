"""Home: what ran, what runs, what waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.worker import Worker, WorkerState

from engine.errors import EngineError
from engine.plan.settings import RECORDED
from harness import HarnessError
from sessions import recorded_example as example
from sessions.errors import SessionsError
from suites import SuiteError
from tui.cockpit.desk.desk import Desk
from tui.cockpit.desk.doors import Doors
from tui.cockpit.desk.messages import NewRun, OpenSession
from tui.cockpit.dialogs.dialogs import ConfirmDialog
from tui.cockpit.dialogs.layers import LayeredScreen
from tui.cockpit.dialogs.line_prompt import ask_to_find
from tui.cockpit.draw.lines import Span, clean, line
from tui.cockpit.screens.home.home_view import (
    STARTS,
    can_resume,
    cost_words,
    header_line,
    preview_lines,
    start_lines,
)
from tui.cockpit.screens.home.session_table import SessionTable
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.key_bar import KeyBar
from tui.cockpit.widgets.line_view import LineView
from tui.cockpit.widgets.table import LineTable
from tui.facts.node_facts import NodeFacts, blocked_words

if TYPE_CHECKING:
    from sessions.catalog import SessionInfo
    from tui.cockpit.data.previews import Details

LOOK_S = 2.0
"""How often it is asked whether the list changed."""
READING = "\nReading the sessions ..."
UNREADABLE = "\nThe sessions could not be read. f5 tries again."
EMPTY_HOME = """
No session yet in {where}.

c opens the form of a new run. It is set to a recorded model: no key, no GPU
and no cost. ctrl+r there starts the run.

ANTHROPIC_API_KEY=...   in the environment, then `wavedeck` again:
     c offers a real model, and shows the cost before it starts.
     OPENAI_API_KEY, GEMINI_API_KEY and AZURE_OPENAI_API_KEY work too."""
WIDE, VAST, TALL = 110, 150, 30
LOWEST = 18
"""Lines of a terminal with room for the preview."""


class HomeScreen(LayeredScreen[None]):
    """Lists sessions; reading them happens in a thread."""

    AUTO_FOCUS = "#sessions"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide"), (VAST, "-vast")]  # noqa: RUF012  # Textual types it as an instance's
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "new_run", "new run", id="home.new_run"),
        Binding("r", "resume", "resume", id="home.resume"),
        Binding("d", "demo", "demo", id="home.demo", show=False),
        Binding("e", "example", "run on an H200", id="home.example", show=False),
        Binding("f", "own_kernel", "your own kernel", id="home.own_kernel", show=False),
        Binding("slash", "find", "filter", id="home.find", key_display="/"),
        Binding("f5", "reload", "reload", id="home.reload"),
    ]

    def __init__(
        self, doors: Doors, *, where: str, failed: Callable[[Worker.StateChanged], None], opening: str = ""
    ) -> None:
        """While the session `opening` is read, only its name is shown."""
        super().__init__()
        self._doors = doors
        self._where = where
        self._tell_failure = failed
        self._failed = False
        self._node: NodeFacts | None = None
        self._marked_at: object = None
        self._opening = opening
        self._starting = ""
        """Words about the session that is being started; empty if none is."""
        self._read_for: SessionInfo | None = None
        """The session of the preview, as its details were read for."""
        self._details: Details | None = None

    def compose(self) -> ComposeResult:
        yield Bar(id="header", classes="header")
        yield LineView(id="starts")
        with Container(id="body"):
            yield SessionTable(empty="" if self._opening else READING, id="sessions")
            yield LineView(id="preview")
        yield Bar(id="about")
        yield KeyBar(id="keys")

    @property
    def _desk(self) -> Desk:
        return cast("Desk", self.app)

    @property
    def table(self) -> SessionTable:
        """The list."""
        return self.query_one(SessionTable)

    def on_mount(self) -> None:
        for view in self.query(LineView):
            view.can_focus = False
        self._timer = self.set_interval(LOOK_S, self._look)

    def on_screen_suspend(self) -> None:
        """Stop looking: each timer of a hidden screen makes Textual draw the screen above it again."""
        self._timer.pause()
        self._opening = ""

    def on_screen_resume(self) -> None:
        """Read anew whenever the person comes here, but not over and over what fails."""
        self._timer.resume()
        self._draw()
        self.call_after_refresh(self._read_if_shown)

    def _read_if_shown(self) -> None:
        """Read nothing where a session is opened at once, over this screen."""
        if self.is_current and not self._opening:
            self.node()
            if not self._failed:
                self.action_reload()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._draw)

    def stay(self) -> None:
        """Show the sessions after all: the session that was being opened cannot be read."""
        if self._opening:
            self._opening = ""
            self.table.empty = READING
            self.table.refresh()
            self._draw()
            self._read_if_shown()

    @work(thread=True, exclusive=True, exit_on_error=False, group="node", name="reading this node")
    def node(self) -> None:
        """Read GPUs and their use."""
        node = self._doors.read_node()
        self.app.call_from_thread(self._show_node, node)

    def _show_node(self, node: NodeFacts) -> None:
        self._node = node
        self._draw()

    def action_reload(self) -> None:
        self._read(only_changes=False)

    def _look(self) -> None:
        if self.is_current and not self._failed and self._marked_at is not None:
            self._draw()  # the times of stages go on
            self._read(only_changes=True)

    @work(thread=True, exclusive=True, exit_on_error=False, group="list", name="reading the list of sessions")
    def _read(self, *, only_changes: bool) -> None:
        mark = self._doors.list_mark()
        if not only_changes or mark != self._marked_at:
            infos = self._doors.list_sessions()
            self.app.call_from_thread(self.tell, infos, mark)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR and event.worker.group == "list":
            self._failed = True
            self.table.empty = UNREADABLE
            self.table.refresh()
        self._tell_failure(event)

    def tell(self, infos: Sequence[SessionInfo], mark: object = ()) -> None:
        """Show these sessions; `mark` is of the moment before they were read."""
        self._failed = False
        self._marked_at = mark
        self.table.empty = EMPTY_HOME.format(where=self._where)
        self.table.show(infos)
        self.refresh_bindings()
        self._draw()

    def _draw(self) -> None:
        """Draw header and the line about the session under the cursor."""
        if not self.is_mounted:
            return
        header = header_line(self._node, self.table.infos.values(), width=self.size.width)
        if self._opening:
            header = (Span(f" {clean(self._opening)}", "key"), Span("  reading ...", "busy"))
        self.query_one("#header", Bar).show(header)
        is_empty = not self.table.infos
        starts = self.query_one("#starts", LineView)
        starts.display = not self._opening
        starts.show(start_lines(len(STARTS) if is_empty or self.size.height >= TALL else 1))
        self._draw_preview()
        blocked = blocked_words(self._node)
        about = self.query_one("#about", Bar)
        about.display = bool(blocked or self._starting)
        about.show(line(f" {self._starting}", "busy") if self._starting else line(blocked, "bad"))

    def _draw_preview(self) -> None:
        """Draw what is known of the session under the cursor, and read the rest in a thread."""
        preview, info = self.query_one("#preview", LineView), self.table.current
        preview.display = info is not None and self.size.height >= LOWEST
        room = preview.scrollable_content_region.size
        if info is None or room.width <= 0:
            return
        if self._read_for != info:
            if self._read_for is None or self._read_for.name != info.name:
                self._details = None
            self._read_for = info
            self._read_details(info.name)
        now = self._desk.wall()
        preview.show(preview_lines(info, self._details, now=now, width=room.width, height=room.height))

    @work(thread=True, exclusive=True, exit_on_error=False, group="details", name="reading a session's size")
    def _read_details(self, session: str) -> None:
        details = self._doors.read_details(session)
        self.app.call_from_thread(self._show_details, session, details)

    def _show_details(self, session: str, details: Details) -> None:
        if self._read_for is not None and self._read_for.name == session:
            self._details = details
            self._draw_preview()

    @on(LineView.Resized)
    def _fit(self) -> None:
        self._draw_preview()

    @on(LineTable.Moved)
    def _follow_cursor(self) -> None:
        self._draw()
        self.refresh_bindings()

    @on(LineTable.Opened)
    def open_session(self, message: LineTable.Opened) -> None:
        """Go to the session's fleet."""
        if self.table.current is not None:
            self.post_message(OpenSession(message.key))

    def action_new_run(self) -> None:
        self.post_message(NewRun())

    def action_example(self) -> None:
        """Play the session that comes with Wavedeck."""
        self.post_message(OpenSession(example.NAME))

    def action_own_kernel(self) -> None:
        self.post_message(NewRun("file"))

    def action_demo(self) -> None:
        """Start a run of the recorded model, which waits once for a decision."""
        from engine.plan.request import RunPlan  # loads what the first frame does not need

        self._start("the demo", lambda: self._doors.start(RunPlan(model=RECORDED, review="first")))

    def action_resume(self) -> None:
        """Go on with the session under the cursor, after a question: a model may cost money."""
        info = self.table.current
        if info is None:
            return
        name = info.name

        def resume() -> str:
            self._doors.resume(name)
            return name

        def answered(yes: bool | None) -> None:  # noqa: FBT001  # the answer of a dialog
            if yes:
                self._start(name, resume)

        model = info.settings.model or "no model"
        cost = f"Its model: {clean(model)}. Spent so far: {cost_words(info)}."
        self.app.push_screen(
            ConfirmDialog(f"Resume {clean(info.title) or name}?", consequence=cost), answered
        )

    def _start(self, name: str, start: Callable[[], str]) -> None:
        if not self._starting:
            self._starting = f"starting {name} ..."
            self._draw()
            self._start_engine(start)

    @work(thread=True, exit_on_error=False, group="start", name="starting a session")
    def _start_engine(self, start: Callable[[], str]) -> None:
        try:
            session = start()
        except (EngineError, SuiteError, HarnessError, SessionsError) as error:
            self.app.call_from_thread(self._desk.refuse, "not started", str(error))
        else:
            self.app.call_from_thread(self.post_message, OpenSession(session))
        finally:
            self.app.call_from_thread(self._end_start)

    def _end_start(self) -> None:
        self._starting = ""
        self._draw()

    def action_find(self) -> None:
        ask_to_find(self.app, self.table.find, self.table.filtered)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the list only while it has sessions."""
        if not self.is_mounted:
            return super().check_action(action, parameters)
        if action == "resume":
            return self.table.current is not None and can_resume(self.table.current)
        if action == "find":
            return bool(self.table.infos)
        return super().check_action(action, parameters)
