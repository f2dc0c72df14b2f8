"""Every action of a person, once: the commands of the shell, the `:` line, the palette, keys and help derive from it.

Plain data: `wavedeck --help` loads this module and little else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, Flag, StrEnum, auto


class Group(StrEnum):
    """Headings of the help, in their order."""

    RUN = "run"
    WATCH = "watch"
    DECIDE = "decide"
    STEER = "steer"
    KEEP = "keep"
    COCKPIT = "cockpit"


class Takes(Enum):
    """The arguments of an action on the `:` line."""

    NOTHING = ""
    INSTANCES_OR_SESSION = "[INSTANCE... | session]"
    INSTANCES = "[INSTANCE...]"
    HINT = "[INSTANCE] TEXT"
    ATTEMPT = "[ATTEMPT]"
    FORK = "[ATTEMPT] [HINT]"
    DECISION = "[ATTEMPT] [REASON]"
    PLACE = "INSTANCE | ATTEMPT"
    NUMBER = "N"
    GPU = "GPU lend | return"
    TEXT = "TEXT"


class When(Flag):
    """States of a session, and views, in which an action is possible."""

    RUNNING = auto()
    """An engine runs the session."""
    AT_REST = auto()
    """No engine runs the session; a resumed engine follows the command."""
    FINISHED = auto()
    READING = auto()
    """A view for reading only, and the past of a replay."""
    HOME = auto()
    """No session is open."""
    UNFINISHED = RUNNING | AT_REST
    ANY = RUNNING | AT_REST | FINISHED
    WATCHING = ANY | READING
    EVERYWHERE = WATCHING | HOME


class Needs(Flag):
    """Conditions on the instance, the attempt and the session."""

    NOTHING = 0
    GOING_ON = auto()
    """The instance has not ended."""
    HELD = auto()
    """The instance, or the session, is paused."""
    NOT_HELD = auto()
    SOURCE = auto()
    """The attempt has a kernel."""
    JUDGED = auto()
    CORRECT = auto()
    DECIDED = auto()
    """A person accepted or rejected the attempt."""
    GPUS = auto()
    """The session has GPUs."""


@dataclass(frozen=True, slots=True)
class Action:
    """One action."""

    name: str
    does: str
    """One sentence."""
    takes: Takes | None = None
    """`None`: it is not on the `:` line."""
    when: When = When.EVERYWHERE
    needs: Needs = Needs.NOTHING
    key: str = ""
    """Its key in the cockpit."""
    opens: bool = False
    """True if it brings new work: a stopped or finished session goes on at once."""
    done: str = ""
    """Words when the session has the command, with its `target` and its `text`."""
    group: Group = Group.COCKPIT

    @property
    def module(self) -> str:
        """Module of `tui.commands` with its command; empty: the command derives from this action, or there is none."""
        has_module = self.group in (Group.RUN, Group.WATCH, Group.KEEP) and self.takes is not Takes.TEXT
        return f"{self.group}.{self.name}" if has_module else ""

    @property
    def is_sent(self) -> bool:
        """True if it is a command to a session. Its command in the shell then derives from it, unless it has a module."""
        return bool(self.done) and self.group is not Group.KEEP

    @property
    def in_shell(self) -> bool:
        """True if `wavedeck NAME` exists."""
        return bool(self.module) or self.is_sent

    @property
    def usage(self) -> str:
        """The action as typed on the `:` line: `gpu GPU lend | return`."""
        return f"{self.name} {self.takes.value if self.takes else ''}".rstrip()


_ACTIONS = {
    Group.RUN: (
        Action("run", "Start agents on tasks and watch them."),
        Action("resume", "Resume a session after a crash or a stop."),
        Action("eval", "Judge one kernel file."),
        Action("capture", "Record the calls of a function in your program."),
        Action("recheck", "Judge accepted kernels again after an upgrade, and compare."),
        Action("rejudge", "Judge a session's attempts again, and compare."),
        Action("study", "Run methods, models and seeds of a plan; go on where it stopped."),
        Action("mcp", "Serve the judge to your own agent, by MCP."),
        Action("propose", "Judge a kernel of an agent without MCP."),
    ),
    Group.WATCH: (
        Action("attach", "Come back to a running session."),
        Action("replay", "Replay a past session from the store."),
        Action("status", "Show what runs now, also as one line for tmux."),
        Action("wait", "Wait until an attempt needs a decision, or until a session ends."),
        Action(
            "show",
            "Show an attempt: verdict, kernel, differences or prompt.",
            takes=Takes.PLACE,
            when=When.WATCHING,
        ),
        Action("asm", "Show an attempt's assembly, or how it differs."),
        Action(
            "profile",
            "Show what the hardware counted in one call of an attempt.",
            takes=Takes.ATTEMPT,
            when=When.ANY,
            needs=Needs.CORRECT | Needs.GPUS,
            key="P",
            opens=True,
            done="{target} is being profiled",
        ),
        Action(
            "report",
            "Report what is faster, by how much, why, and where the kernel is.",
            takes=Takes.NOTHING,
            when=When.WATCHING,
        ),
        Action("compare", "Compare two sessions at equal budget: is a difference proven?"),
        Action("best", "Show the fastest attempt of each task over all sessions."),
    ),
    Group.DECIDE: (
        Action(
            "accept",
            "Accept a correct attempt: its kernel goes to branch `accepted`.",
            takes=Takes.DECISION,
            when=When.ANY,
            needs=Needs.JUDGED | Needs.CORRECT,
            key="a",
            done="{target} accepted",
        ),
        Action(
            "reject",
            "Reject an attempt; agents that wait for you reflect on the reason.",
            takes=Takes.DECISION,
            when=When.ANY,
            needs=Needs.JUDGED,
            key="r",
            done="{target} rejected",
        ),
        Action(
            "undo",
            "Undo the decision about an attempt.",
            takes=Takes.ATTEMPT,
            when=When.ANY,
            needs=Needs.JUDGED | Needs.DECIDED,
            key="u",
            done="{target}: decision undone",
        ),
    ),
    Group.STEER: (
        Action(
            "pause",
            "Pause a session or an instance; only what runs now is finished.",
            takes=Takes.INSTANCES_OR_SESSION,
            when=When.UNFINISHED,
            needs=Needs.GOING_ON | Needs.NOT_HELD,
            done="{target} pauses: what runs ends, nothing more starts",
        ),
        Action(
            "unpause",
            "End the pause of an instance, or all pauses of a session.",
            takes=Takes.INSTANCES_OR_SESSION,
            when=When.UNFINISHED,
            needs=Needs.GOING_ON | Needs.HELD,
            done="{target} goes on",
        ),
        Action(
            "retire",
            "Cancel an instance for good; its best attempt is still examined.",
            takes=Takes.INSTANCES,
            when=When.UNFINISHED,
            needs=Needs.GOING_ON,
            done="{target} retires",
        ),
        Action(
            "hint",
            "Quote a text in the prompts of an instance's next attempt.",
            takes=Takes.HINT,
            when=When.UNFINISHED,
            needs=Needs.GOING_ON,
            key="i",
            done="{target}: the next attempt gets the hint",
        ),
        Action(
            "pin",
            "Let an instance optimize this correct attempt, until the next pin.",
            takes=Takes.ATTEMPT,
            when=When.UNFINISHED,
            needs=Needs.GOING_ON | Needs.CORRECT,
            done="{target} is the base of the next optimizations",
        ),
        Action(
            "ban",
            "Exclude an attempt from the bases of its instance, until a pin.",
            takes=Takes.ATTEMPT,
            when=When.UNFINISHED,
            needs=Needs.GOING_ON,
            done="{target} is no base any more",
        ),
        Action(
            "fork",
            "Add an instance that starts from an attempt.",
            takes=Takes.FORK,
            when=When.ANY,
            needs=Needs.SOURCE,
            opens=True,
            done="a new instance starts from {target}",
        ),
        Action(
            "edit",
            "Judge your edit of an attempt, as an instance of one attempt.",
            takes=Takes.ATTEMPT,
            when=When.ANY,
            needs=Needs.SOURCE,
            key="E",
            opens=True,
            done="the edit of {target} is judged in an instance of its own",
        ),
        Action(
            "measure",
            "Measure a correct attempt again, in new processes.",
            takes=Takes.ATTEMPT,
            when=When.ANY,
            needs=Needs.CORRECT | Needs.GPUS,
            key="t",
            opens=True,
            done="{target} is measured again",
        ),
        Action(
            "gpu",
            "Lend a GPU to others, or return it; what runs on it finishes.",
            takes=Takes.GPU,
            when=When.UNFINISHED,
            needs=Needs.GPUS,
            done="GPU {target} is {text}",
        ),
        Action(
            "extend",
            "Give each instance further attempts, or the session more budget.",
            takes=Takes.NUMBER,
            when=When.ANY,
            opens=True,
            done="{target} goes on with {text}",
        ),
        Action(
            "stop",
            "Stop a session and cancel its work; `wavedeck resume` goes on.",
            takes=Takes.NOTHING,
            when=When.RUNNING,
            done="{target} stops",
        ),
    ),
    Group.KEEP: (
        Action("sessions", "List, show, title, push, fetch and delete sessions."),
        Action("task", "Make a task of a kernel file; show and check tasks."),
        Action("suites", "List and add suites of tasks; judge references."),
        Action("export", "Write kernels with evidence, a test and a benchmark."),
        Action("dataset", "Write pairs, transitions and winners as data."),
        Action("apply", "Commit a kernel to a new branch of its repository."),
        Action("record", "Make a recording of finished sessions."),
        Action("doctor", "Check what this machine can run."),
        Action(
            "title",
            "Give the session a title of one line.",
            takes=Takes.TEXT,
            when=When.ANY,
            done="{target} has the title {text}",
        ),
    ),
    Group.COCKPIT: (
        Action("fleet", "Go to Fleet.", takes=Takes.NOTHING, when=When.WATCHING),
        Action("latency", "Go to Latency.", takes=Takes.ATTEMPT, when=When.WATCHING),
        Action("review", "Go to Review.", takes=Takes.NOTHING, when=When.WATCHING),
        Action("home", "Leave the session and go Home.", takes=Takes.NOTHING, when=When.WATCHING),
        Action("help", "Explain this pane and its keys.", takes=Takes.NOTHING),
        Action("quit", "Leave the cockpit; engines go on.", takes=Takes.NOTHING),
    ),
}
ACTIONS = {
    action.name: replace(action, group=group) for group, actions in _ACTIONS.items() for action in actions
}
"""All actions by name, in the order of the help."""
GPU_WORDS = {"lend": "lent: what runs on it finishes", "return": "used again"}
"""Ways to use `gpu`, each with the words when it is done."""


def further_words(iterations: int, budget_usd: float = 0.0) -> str:
    """Return what an extension gives: `3 further attempts in each instance, $2.00 more`."""
    attempts = f"{iterations} further attempt{'s' if iterations > 1 else ''} in each instance"
    return ", ".join([attempts] * bool(iterations) + [f"${budget_usd:.2f} more"] * bool(budget_usd))


def done_words(action: Action, target: str, *, text: str = "") -> str:
    """Return the words when a session has the command."""
    return action.done.format(target=target, text=GPU_WORDS.get(text, text) if action.name == "gpu" else text)
