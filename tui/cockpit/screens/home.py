"""The sessions of this home: running and past."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from sessions.names import short_task
from tui import vocabulary
from tui.certainty import told_confirmed
from tui.cockpit.lines import Line, Span, line
from tui.cockpit.messages import OpenSession
from tui.cockpit.widgets.bar import Bar
from tui.cockpit.widgets.key_bar import KeyBar
from tui.cockpit.widgets.table import LineTable
from tui.method_words import option_words
from tui.tables import Cell, Column, Row

if TYPE_CHECKING:
    from sessions.catalog import SessionInfo

COLUMNS = (
    Column("session", 20, 34),
    Column("state", 8, 8),
    Column("tasks", 10, 30, drop=2),
    Column("solved", 6, 6, right=True),
    Column("confirmed", 12, 12, right=True, drop=1, if_known=True),
    Column("attempts", 8, 8, right=True, drop=4),
    Column("best", 14, 22, drop=5),
    Column("model", 12, 28, drop=7),
    Column("options", 12, 40, drop=9, if_known=True),
    Column("tokens", 17, 20, drop=8),
    Column("cost", 7, 9, right=True, drop=6),
    Column("started, UTC", 16, 16, drop=3),
)
EMPTY_HOME = """
No session yet. Start one in a shell:

  wavedeck run
      plays a recorded session; needs no key and no GPU

  wavedeck run softmax --model anthropic:NAME
      agents on one task, with a model of your own choice"""
READING = "\nReading the sessions ..."
UNREADABLE = "\nThe sessions could not be read. f5 tries again."
STYLES = {"running": "busy", "finished": "dim", "stopped": "warn", "crashed": "bad"}


def session_row(info: SessionInfo) -> Row:
    """One session in one line."""
    tasks = ", ".join(short_task(task) for task in info.tasks)
    fastest = max(info.speedups.items(), key=lambda each: each[1], default=None)
    best = "-" if fastest is None else f"{short_task(fastest[0])} {vocabulary.times(fastest[1])}"
    return Row(
        info.name,
        (
            Cell(info.name),
            Cell(info.state.value, STYLES[info.state.value]),
            Cell(tasks or "-", "dim"),
            Cell(f"{len(info.solved)}/{len(info.tasks)}" if info.tasks else "-"),
            Cell(told_confirmed(info), "good" if info.confirmed else "dim"),
            Cell(str(info.attempts)),
            Cell(best, "" if fastest else "dim"),
            Cell(info.model or "-", "dim"),
            Cell(option_words(info.options) or "-", "dim"),
            Cell(vocabulary.tokens(info.input_tokens, info.output_tokens), "dim"),
            Cell(vocabulary.money(info.cost_usd), "dim"),
            Cell(vocabulary.moment(info.started), "dim"),
        ),
    )


class SessionTable(LineTable):
    """One row a session."""

    HELP = """\
One row a session, newest first. `enter` opens it: a running one live, a
finished one as a replay standing at its end (`space` plays from the start).
Stopped and crashed ones go on with `wavedeck resume SESSION`.

solved     tasks with a correct attempt
confirmed  tasks among them whose best passed the exam at its agent's end
options    of the method, those that are not the usual ones
"""


class HomeScreen(Screen[None]):
    """Lists sessions; reading them happens in a thread."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f5", "reload", "reload", id="home.reload"),
        Binding("q,escape", "app.quit", "leave", id="home.leave", key_display="q"),
    ]

    def __init__(
        self,
        list_sessions: Callable[[], Sequence[SessionInfo]],
        *,
        where: str,
        failed: Callable[[Worker.StateChanged], None],
    ) -> None:
        super().__init__()
        self._tell_failure = failed
        self._list = list_sessions
        self._where = where
        self._failed = False

    def compose(self) -> ComposeResult:
        """Header, table, keys."""
        yield Bar(id="header", classes="header")
        yield SessionTable(COLUMNS, empty=READING, id="sessions")
        yield KeyBar(id="keys")

    def on_screen_resume(self) -> None:
        """Read anew whenever the person comes here, but not over and over what fails."""
        self._head(())
        if not self._failed:
            self.action_reload()

    def _head(self, told: Line) -> None:
        self.query_one("#header", Bar).show(
            (Span("Wavedeck  ", "key"), Span(f"{self._where}  ", "dim"), *told)
        )

    @work(thread=True, exclusive=True, exit_on_error=False, name="reading the list of sessions")
    def action_reload(self) -> None:
        """Read the list of sessions."""
        infos = self._list()
        self.app.call_from_thread(self.tell, infos)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """The app tells of a reading that failed."""
        if event.state is WorkerState.ERROR:
            self._failed = True
            self.query_one(SessionTable).empty = UNREADABLE
            self.query_one(SessionTable).refresh()
        self._tell_failure(event)

    def tell(self, infos: Sequence[SessionInfo]) -> None:
        """Show these sessions."""
        self._failed = False
        table = self.query_one(SessionTable)
        table.empty = EMPTY_HOME
        table.set_rows([session_row(info) for info in infos])
        table.refresh()
        running = sum(info.state.value == "running" for info in infos)
        self._head(line(f"{len(infos)} sessions, {running} running") if infos else ())

    @on(LineTable.Opened)
    def open_session(self, message: LineTable.Opened) -> None:
        """Go to the session's fleet."""
        self.post_message(OpenSession(message.key))
