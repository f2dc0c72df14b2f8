"""All agents of a session at a glance: a row an instance, a row a device, the best attempts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.widget import Widget

from sessions.state import AttemptState, InstanceState
from tui.cockpit import views
from tui.cockpit.device_rows import DEVICE_COLUMNS, device_row
from tui.cockpit.feed import EVERYTHING
from tui.cockpit.lines import line
from tui.cockpit.messages import LeaveSession, OpenInstance
from tui.cockpit.screens.acting import STEERING, ActingScreen
from tui.cockpit.widgets.glance import Glance
from tui.cockpit.widgets.table import LineTable
from tui.tables import Row

GLANCE_ROWS = 7
"""Below the agents, where a look at one of them is worth its place; the agents come first."""
GLANCE_ROWS_WIDE = 16
"""The same where the best, devices and notices stand beside it."""


class AgentTable(LineTable):
    """One row an instance."""

    HELP = """\
One row an agent: an instance of a task with its own chain of attempts.
Rows never change places. `enter` opens the agent. Where there is room its
latest words stand below.

doing   what it does now; `generate 1.2k`: 1,200 characters of a reply so far;
        `wait`: for its turn at the model or the judge; `3 generate +1`: three
        attempts are asked for at once, one more does something else;
        `no model, try 2`: the model gave no words, the top line says why;
        `paused`, `stopping`, `timed again`: a person asked for it
best    its best attempt
        C 1.42x [1.38-1.45]  measured; the widest 95 % interval of its cases;
                             against the task's own baseline, where the line
                             above names no other
        C 1.31x (found 1.42x)  timed again at its exam: the best of many noisy
                             figures is too good, this one counts
        C est 1-2.10x roof   not measured: an estimate, between the roofline
                             bound and 2.1 times it; 1.00x: both agree
exam    of the best, at its agent's end, on cases that no model hears of:
        confirmed, not confirmed, not examined (`enter` tells why)
last    the newest verdict; + accepted, ! rejected, ? waits for a person
tokens  of finished calls, as the provider counted them
cost    only where prices are configured
commit  of the newest attempt in the store

C correct      W wrong    E compile error   X call error   R rejected by judge
T timeout      K crash    N no code         U unsupported here
I our failure  - cancelled
"""


class DeviceTable(LineTable):
    """One row a device."""

    HELP = """\
One row a device that judges candidates, while an engine runs.
`lost`: it failed its probe, other devices have its work; `lent to others`: a
person lent it, and nothing more starts on it.
`not visible` and `-` stand for what this machine does not tell, never for zero;
what no device tells has no column.
"""


class LeaderTable(LineTable):
    """The best attempts at each task."""

    HELP = """\
The best correct attempts at each task; `enter` opens one. What a person
rejected comes after all others, what failed its exam before those.
Measured speedups come before all that is only estimated, those that the exam
timed again before all others. Where nothing was
measured the order is a guess, from these in their order:

result   the estimate: nearer to the roofline
exam     what the cases of the exam say: confirmed or not
margin   left to the tolerance, by the worst element of all cases
req/min  bytes requested over the fewest possible, counted by the interpreter
spills   registers spilled, all kernels together
waves    the lowest occupancy of its kernels
made by  fresh, repair, optimize, tune, a person's own (human), or the
         unchanged kernel that a fork starts from (fork)
"""


class NoticeTable(LineTable):
    """What a person should know."""

    HELP = "Notices of the engine, newest first."


class FleetScreen(ActingScreen):
    """The session's first screen."""

    CSS_PATH = "fleet.tcss"
    PANES: ClassVar[tuple[tuple[str, str], ...]] = (
        ("agents", "agents"),
        ("leaders", "best"),
        ("devices", "devices"),
        ("notices", "notices"),
        ("words", "words"),
    )
    BINDINGS: ClassVar[list[BindingType]] = [*STEERING]

    def __init__(self) -> None:
        super().__init__()
        self._pane = "agents"
        self._rows: dict[str, Row] = {}
        self.agents = AgentTable(views.AGENT_COLUMNS, empty="No agent has started yet.", id="agents")
        self.leaders = LeaderTable(views.LEADER_COLUMNS, empty="No attempt yet.", id="leaders")
        self.devices = DeviceTable(DEVICE_COLUMNS, empty="No device was sampled yet.", id="devices")
        self.notices = NoticeTable(views.NOTICE_COLUMNS, empty="Nothing to report.", id="notices")
        self._panes: dict[str, LineTable] = {
            "agents": self.agents,
            "leaders": self.leaders,
            "devices": self.devices,
            "notices": self.notices,
        }
        self.glance = Glance(id="glance")
        self.right = Vertical(self.devices, self.notices, id="right")
        self.side = Container(self.leaders, self.right, id="side")
        self.below = Horizontal(self.glance, self.side, id="below")

    @property
    def steered_instance(self) -> InstanceState | None:
        """The instance under the cursor."""
        key = self.agents.cursor_key
        return self.feed.state.instances.get(key) if key is not None else None

    @property
    def steered_attempt(self) -> AttemptState | None:
        """The attempt under the cursor of the best, if the keys are there, else the best of the instance."""
        instance = self.steered_instance
        key = instance.best if instance is not None else None
        if self.focused is self.leaders:
            key = self.leaders.cursor_key
        return next((each for each in self.feed.state.attempts() if each.attempt == key), None)

    def middle(self) -> Iterable[Widget]:
        """Agents over the words of one of them, best, devices and notices."""
        yield self.tab_bar
        yield self.agents
        yield self.below

    def on_mount(self) -> None:
        """Draw, and put the keys where the agents are."""
        for name, title in self.PANES:
            if name not in ("agents", "words"):
                self._panes[name].border_title = title
        super().on_mount()
        self._choose("agents")

    def draw(self, dirty: frozenset[str]) -> None:
        """Rows of what changed."""
        state = self.feed.state
        everything = EVERYTHING in dirty
        changed = [each for each in state.instances.values() if everything or each.key in dirty]
        if everything:
            self._rows.clear()
        for instance in changed:
            self._rows[instance.key] = views.agent_row(state, instance)
        if changed or everything:
            ordered = views.ordered_instances(state)
            rows = [self._rows.get(each.key) or views.agent_row(state, each) for each in ordered]
            self.agents.set_rows(rows)
            self.leaders.set_rows(self.feed.leaders.rows(state))
        if everything or any(key.startswith("device:") for key in dirty):
            # What a device did last says nothing once no engine samples it.
            self.devices.empty = "No engine runs." if self.feed.is_over else "No device was sampled yet."
            devices = () if self.feed.is_over else state.devices.values()
            self.devices.set_rows([device_row(each, lent=each.device in state.lent) for each in devices])
        self.notices.set_rows(views.notice_rows(state))
        self._place()
        if everything or self.agents.cursor_key in dirty:
            self._look()

    def _look(self) -> None:
        """Show the agent under the cursor, where there is room for it."""
        if self.glance.display:
            key = self.agents.cursor_key
            instance = self.feed.state.instances.get(key) if key is not None else None
            self.glance.tell(instance, target=views.target(self.feed.state))

    def _place(self) -> None:
        """One pane where there is no room for all."""
        tabbed = self.tabbed
        self.tab_bar.display = tabbed
        self.tab_bar.show(self.tabs(self._pane, list(self._panes)))
        glance = self._spare() >= (GLANCE_ROWS if tabbed else GLANCE_ROWS_WIDE)
        glance = glance and (not tabbed or self._pane == "agents")
        appeared = glance and not self.glance.display
        self.set_class(glance, "-glance")
        self.glance.display = glance
        for name, pane in self._panes.items():
            pane.display = not tabbed or name == self._pane
        self.side.display = not tabbed or self._pane != "agents"
        self.below.display = glance or self.side.display
        self.right.display = not tabbed or self._pane in ("devices", "notices")
        if appeared:
            self.call_after_refresh(self._look)

    def _spare(self) -> int:
        """Rows that the whole table of agents leaves."""
        around = (self.header_bar, self.tab_bar, self.banner, self.timeline)
        taken = sum(each.display for each in around) + 1  # the keys
        return self.size.height - taken - len(self.agents.rows) - 1

    def _choose(self, name: str) -> None:
        self._pane = name
        self._place()
        self._panes[name].focus()

    def action_pane(self, number: int) -> None:
        """Go to a pane."""
        name = self.PANES[number - 1][0]
        if name == "words":
            self.glance.words.focus()
        else:
            self._choose(name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The words can be gone to where they are."""
        if action == "pane" and parameters == (len(self.PANES),):
            return self.glance.display
        return super().check_action(action, parameters)

    def action_back(self) -> None:
        """Back to the sessions."""
        self.post_message(LeaveSession())

    @on(LineTable.Moved, "#agents")
    def look_at_agent(self) -> None:
        """The words of the row that the cursor is on now, and the keys that it has."""
        self._look()
        self.refresh_bindings()

    @on(LineTable.Opened, "#agents")
    def open_agent(self, message: LineTable.Opened) -> None:
        """The agent's own screen."""
        self.post_message(OpenInstance(message.key))

    @on(LineTable.Opened, "#leaders")
    def open_attempt(self, message: LineTable.Opened) -> None:
        """The agent's screen, at that attempt."""
        key, _, number = message.key.rpartition("/")
        if key in self.feed.state.instances:
            self.post_message(OpenInstance(key, int(number)))

    @on(LineTable.Opened, "#notices")
    def tell_notice(self, message: LineTable.Opened) -> None:
        """A long notice, whole."""
        level, text = self.feed.state.notices[int(message.key)]
        self.notify(line(text)[0].text if text else "", title=level, timeout=20, markup=False)
