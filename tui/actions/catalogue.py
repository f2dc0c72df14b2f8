"""Every action of a person, once: the commands of the shell, the `:` line, keys and help derive from it.

Plain data: `wavedeck --help` loads this module and little else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sessions.events import Command


class Group(StrEnum):
    """Headings of the help, in their order."""

    WORK = "work"
    LOOK = "look"
    DECIDE = "decide"
    STEER = "steer"
    KEEP = "keep"
    SERVE = "serve"
    COCKPIT = "cockpit"

    @property
    def folder(self) -> str:
        """Folder of `tui.commands` with the group's modules."""
        return "run" if self is Group.WORK else self.value


class Takes(Enum):
    """The arguments of an action on the `:` line."""

    NOTHING = ""
    INSTANCES_OR_SESSION = "[INSTANCE... | session]"
    INSTANCES = "[INSTANCE...]"
    HINT = "[INSTANCE] TEXT"
    ATTEMPT = "[ATTEMPT]"
    FORK = "[ATTEMPT] [HINT]"
    DECISION = "[ATTEMPT] [REASON]"
    PLACE = "[INSTANCE | ATTEMPT]"
    NUMBER = "N"
    NUMBERED = "N | ATTEMPT"
    GPU = "GPU lend | return"
    TEXT = "TEXT"


@dataclass(frozen=True, slots=True)
class Action:
    """One action."""

    name: str
    does: str
    """One sentence."""
    takes: Takes | None = None
    """`None`: it is not on the `:` line."""
    event: str = ""
    """Tag of its command to a session (`sessions.events.COMMANDS`); empty if it is none."""
    fixed: Mapping[str, object] = field(default_factory=dict, hash=False)
    """Fields of the command that the action sets."""
    key: str = ""
    """Its key in the cockpit."""
    done: str = ""
    """Words when the session has the `command`, with its `target`, `further` attempts and the `use` of a GPU."""
    needs_session: bool = True
    """True if it is possible in an open session only."""
    group: Group = Group.COCKPIT
    folder: str = ""
    """Folder of `tui.commands` with its module, if it is not that of the group."""

    @property
    def module(self) -> str:
        """Module of `tui.commands` with its command; empty: the command derives from this action, or there is none."""
        if self.group in (Group.WORK, Group.LOOK, Group.KEEP, Group.SERVE):
            return f"{self.folder or self.group.folder}.{self.name}"
        return self.name if self.name == "steer" else ""

    @property
    def command(self) -> type[Command]:
        """Its command to a session."""
        from sessions.events import COMMANDS  # loads what `wavedeck --help` does not need

        return COMMANDS[self.event]

    @property
    def shell(self) -> str:
        """Its command after `wavedeck`: `accept`, `steer pause`; empty if it has none."""
        if self.group is Group.STEER and self.name not in ("steer", "stop", "gpu"):
            return f"steer {self.name}"
        return "" if self.group is Group.COCKPIT else self.name

    @property
    def usage(self) -> str:
        """The action as typed on the `:` line: `gpu GPU lend | return`."""
        return f"{self.name} {self.takes.value if self.takes else ''}".rstrip()


_ACTIONS = {
    Group.WORK: (
        Action("run", "Start agents on tasks and watch them."),
        Action("resume", "Resume a session after a crash or a stop."),
        Action("eval", "Judge one kernel file."),
        Action("tune", "Tune the configuration of a kernel, without a model."),
        Action("study", "Run methods, models and seeds of a plan; go on where it stopped."),
        Action("suites", "Add, list, show and remove suites of tasks; judge predictions."),
        Action("task", "Make a task of a kernel file; show and check tasks."),
        Action("capture", "Record the calls of a function in your program."),
    ),
    Group.LOOK: (
        Action("attach", "Come back to a running session."),
        Action("replay", "Replay a past session from the store."),
        Action("status", "Show what runs now, or wait until it needs you or ends."),
        Action("show", "Show an attempt: verdict, kernel, differences, prompt or reply.", Takes.PLACE),
        Action("asm", "Show an attempt's assembly, or how it differs."),
        Action(
            "profile",
            "Show what the hardware counted in one call of an attempt.",
            Takes.ATTEMPT,
            event="profile_asked",
            key="P",
            done="{target} is being profiled",
        ),
        Action("report", "Report what is faster, by how much, why, and where the kernel is.", Takes.NOTHING),
        Action("compare", "Compare two sessions at equal budget: is a difference proven?"),
    ),
    Group.DECIDE: (
        Action(
            "accept",
            "Accept a correct attempt: its kernel goes to branch `accepted`.",
            Takes.DECISION,
            event="decision_made",
            fixed={"accepted": True},
            key="a",
            done="{target} accepted",
        ),
        Action(
            "reject",
            "Reject an attempt; agents that wait for you reflect on the reason.",
            Takes.DECISION,
            event="decision_made",
            fixed={"accepted": False},
            key="r",
            done="{target} rejected",
        ),
        Action(
            "undo",
            "Undo the decision about an attempt.",
            Takes.ATTEMPT,
            event="decision_undone",
            key="u",
            done="{target}: decision undone",
        ),
    ),
    Group.STEER: (
        Action("steer", "Pause, retire, hint, pin, ban, fork, edit, measure or extend."),
        Action(
            "pause",
            "Pause a session or an instance; only what runs now is finished.",
            Takes.INSTANCES_OR_SESSION,
            event="paused",
            done="{target} pauses: what runs ends, nothing more starts",
        ),
        Action(
            "unpause",
            "End the pause of an instance, or all pauses of a session.",
            Takes.INSTANCES_OR_SESSION,
            event="unpaused",
            done="{target} goes on",
        ),
        Action(
            "retire",
            "Cancel an instance for good; its best attempt is still examined.",
            Takes.INSTANCES,
            event="retire_asked",
            done="{target} retires",
        ),
        Action(
            "hint",
            "Quote a text in the prompts of an instance's next attempt.",
            Takes.HINT,
            event="hint_given",
            key="i",
            done="{target}: the next attempt gets the hint",
        ),
        Action(
            "pin",
            "Let an instance optimize this correct attempt, until the next pin.",
            Takes.ATTEMPT,
            event="attempt_pinned",
            done="{target} is the base of the next optimizations",
        ),
        Action(
            "ban",
            "Exclude an attempt from the bases of its instance, until a pin.",
            Takes.ATTEMPT,
            event="attempt_banned",
            done="{target} is no base any more",
        ),
        Action(
            "fork",
            "Add an instance that starts from an attempt.",
            Takes.FORK,
            event="instance_forked",
            done="a new instance starts from {target}",
        ),
        Action(
            "edit",
            "Judge your edit of an attempt, as an instance of one attempt.",
            Takes.ATTEMPT,
            event="instance_forked",
            key="E",
            done="the edit of {target} is judged in an instance of its own",
        ),
        Action(
            "measure",
            "Measure a correct attempt again, in new processes.",
            Takes.ATTEMPT,
            event="measure_asked",
            key="t",
            done="{target} is measured again",
        ),
        Action(
            "gpu",
            "Lend a GPU to others, or return it; what runs on it finishes.",
            Takes.GPU,
            event="device_lent",
            done="GPU {target} is {use}",
        ),
        Action(
            "extend",
            "Give each instance further attempts, or the session more budget.",
            Takes.NUMBER,
            event="session_extended",
            done="{target} goes on with {further}",
        ),
        Action(
            "stop",
            "Stop a session and cancel its work; `wavedeck resume` goes on.",
            Takes.NOTHING,
            event="stop",
            done="{target} stops",
        ),
    ),
    Group.KEEP: (
        Action("sessions", "List, show, title, push, fetch, delete and record sessions."),
        Action("export", "Write kernels with evidence, a test and a benchmark."),
        Action("apply", "Commit a kernel to a new branch of its repository."),
        Action("recheck", "Judge kernels again after an upgrade, and compare.", folder="run"),
    ),
    Group.SERVE: (
        Action("mcp", "Serve the judge to your own agent, by MCP."),
        Action("doctor", "Check what this machine can run."),
    ),
    Group.COCKPIT: (
        Action(
            "title",
            "Give the session a title of one line.",
            Takes.TEXT,
            event="session_titled",
            done="{target} has the title {command.title}",
        ),
        Action("fleet", "Go to Fleet.", Takes.NOTHING),
        Action("latency", "Go to Latency.", Takes.ATTEMPT),
        Action("attempt", "Go to an attempt, in a replay to its verdict.", Takes.NUMBERED, key="#"),
        Action("review", "Go to Review.", Takes.NOTHING),
        Action("find", "Find words in the reasoning and the replies of all attempts.", Takes.TEXT),
        Action("home", "Leave the session and go Home.", Takes.NOTHING),
        Action("help", "Explain this pane and its keys.", Takes.NOTHING, needs_session=False),
        Action("quit", "Leave the cockpit; engines go on.", Takes.NOTHING, needs_session=False),
    ),
}
ACTIONS = {
    action.name: replace(action, group=group) for group, actions in _ACTIONS.items() for action in actions
}
"""All actions by name, in the order of the help."""
COMMANDS = {name: action for name, action in ACTIONS.items() if action.shell == name}
"""The actions that are commands by their own name, in the order of the help."""
GPU_EVENTS = {"lend": "device_lent", "return": "device_returned"}
"""Words of `gpu`, each with the tag of its command."""
GPU_USES = {"device_lent": "lent: what runs on it finishes", "device_returned": "used again"}


def done_words(action: Action, command: Command, target: str) -> str:
    """Return the words when a session has the command."""
    tag = str(command.__struct_config__.tag)
    return action.done.format(
        target=target, command=command, use=GPU_USES.get(tag, ""), further=_further_words(command)
    )


def _further_words(command: Command) -> str:
    """Return what an extension gives: `3 further attempts in each instance, $2.00 more`; empty for another command."""
    iterations, budget_usd = getattr(command, "iterations", 0), getattr(command, "budget_usd", 0.0)
    attempts = f"{iterations} further attempt{'s' if iterations > 1 else ''} in each instance"
    return ", ".join([attempts] * bool(iterations) + [f"${budget_usd:.2f} more"] * bool(budget_usd))
