"""The commands that decide and steer, derived from the catalogue of actions."""

from __future__ import annotations

import asyncio
import math
from functools import partial
from pathlib import Path
from typing import Any

import click

from engine.plan.plan import read_kernel
from sessions import SessionState
from sessions.events import ALL_GPUS, PersonCommand
from sessions.home import Home
from sessions.names import split_attempt
from sessions.state.findings import finding_words, findings_of
from sessions.store.store import AcceptedKernel, Store
from tui.actions.catalogue import ACTIONS, GPU_EVENTS, Action, Takes, done_words
from tui.actions.line import Order
from tui.actions.send import give
from tui.commands.opening import complete_words, open_session, without_session
from tui.commands.options import complete_sessions
from tui.commands.trust import ask_for_trust, trust_option
from tui.diagnostics import Complaint, say
from tui.facts.evaluation.certainty import exam_sentence

INSTANCE = {"instance": "INSTANCE"}
ATTEMPT = {"attempt": "ATTEMPT"}
WORDS: dict[Takes | None, dict[str, str]] = {
    Takes.INSTANCES_OR_SESSION: {"instance": "[INSTANCE]"},
    Takes.INSTANCES: INSTANCE,
    Takes.HINT: INSTANCE | {"text": "TEXT"},
    Takes.ATTEMPT: ATTEMPT,
    Takes.FORK: ATTEMPT,
    Takes.DECISION: ATTEMPT,
    Takes.GPU: {"gpu": "GPU", "text": "|".join(GPU_EVENTS)},
}
"""Arguments after the session, with their words in the help."""
WHY = click.Option(["--why", "text"], default="", metavar="TEXT", help="The reason, kept with the decision.")
FORCE = click.Option(
    ["--force", "forced"], is_flag=True, help="Accept an attempt that is not correct; needs --why."
)
HINT = "A hint for the first attempt after it."
GPU = "As the session names it. [the GPU that judged the attempt]"
OPTIONS: dict[str, list[click.Option]] = {
    "accept": [WHY, FORCE],
    "reject": [WHY],
    "fork": [click.Option(["--hint", "text"], default="", metavar="TEXT", help=HINT)],
    "measure": [
        click.Option(["--gpu"], metavar="N", help=GPU),
        click.Option(["--all-gpus"], is_flag=True, help="Every GPU of the session."),
    ],
    "extend": [
        click.Option(["--iterations"], type=int, default=0, metavar="N", help="For each instance."),
        click.Option(["--budget-usd"], type=float, default=0.0, metavar="X", help="Added to the budget."),
    ],
}
EXAMPLES = {
    "instance": "An INSTANCE is written softmax#2.",
    "attempt": "An ATTEMPT is written softmax#2/7.",
    "gpu": "In a cluster, GPU may be a node.",
}
OPENS = "A session that is stopped or finished goes on at once."


def command_of(action: Action) -> click.Command:
    """Return the command of an action that is sent to a session."""
    opens = action.command.opens
    words = _words_of(action)
    argument = click.Argument(
        ["words"],
        nargs=-1,
        metavar=" ".join(["[SESSION]", *words.values()]),
        shell_complete=complete_words if "attempt" in words else complete_sessions,
    )
    sentences = [EXAMPLES[name] for name in words if name in EXAMPLES] + [OPENS] * opens
    command = click.Command(
        action.name,
        params=[argument, *OPTIONS.get(action.name, [])],
        callback=partial(_obey, action),
        short_help=action.does,
        help=f"{action.does}\n\n{' '.join(sentences)}",
    )
    return trust_option(command) if opens else command


def _words_of(action: Action) -> dict[str, str]:
    return WORDS.get(action.takes, {}) | ({"file": "FILE"} if action.name == "edit" else {})


def _named(action: Action, words: tuple[str, ...]) -> tuple[str | None, dict[str, str]]:
    """Return the session, `None` if it is left out, and the other words by name. Raises a usage error."""
    wanted = _words_of(action)
    if action.takes is Takes.INSTANCES_OR_SESSION and len(words) < 2 and "#" not in "".join(words):
        words = (*words, "")
    session, rest = without_session(words, len(wanted))
    if len(rest) != len(wanted) or (action.takes is Takes.GPU and rest[1] not in GPU_EVENTS):
        usage = " ".join(["[SESSION]", *wanted.values()])
        raise click.UsageError(f"the arguments are {usage}", ctx=click.get_current_context())
    return session, dict(zip(wanted, rest, strict=True))


def _obey(action: Action, words: tuple[str, ...], *, trusts: bool = False, **values: Any) -> None:
    """Send the command and print what follows."""
    session, named = _named(action, words)
    command = _command(action, **(values | named))
    opened = open_session(session)
    home, name = opened
    if command.opens:
        ask_for_trust(home, name, trusts=trusts)
    before = accepted_kernels(home) if action.name == "accept" else {}
    number = asyncio.run(give(home, name, command))
    about = command.target
    done = done_words(action, command, f"{about} of {name}" if about else name)
    match action.name:
        case "accept" | "reject":
            state = opened.state
            done += _known(state, about)
            if action.name == "accept":
                task = state.instances[split_attempt(about).instance].task
                done += _replaced(before.get(task), name, about)
                done += f"; all accepted kernels: git clone -b accepted {home.store}"
        case "fork" | "edit":
            # Another person may have forked since.
            done += f": {next(key for key, fork in opened.state.forks.items() if fork.seq == number)}"
        case "pause":
            done += f"; end the pause with: wavedeck steer unpause {name} {about}".rstrip()
        case "stop":
            done += f"; go on with: wavedeck resume {name}"
        case _:
            pass
    say(f"{done}; watch it with: wavedeck attach {name}" if command.opens else done)


def _command(
    action: Action,
    *,
    instance: str = "",
    attempt: str = "",
    gpu: str | None = None,
    text: str = "",
    all_gpus: bool = False,
    file: str = "",
    iterations: int | None = None,
    **fields: Any,
) -> PersonCommand:
    """Return the command of these arguments. Raises `Complaint` for values that exclude each other."""
    if action.name == "measure":
        if gpu is not None and all_gpus:
            raise Complaint("--gpu and --all-gpus exclude each other; give one of them")
        fields["devices"] = ALL_GPUS if all_gpus else () if gpu is None else (gpu,)
        gpu = None
    if not math.isfinite(fields.get("budget_usd", 0.0)):
        raise Complaint("--budget-usd must be a number of US dollars above 0, such as 2.50")
    if file:
        fields["source"] = read_kernel(Path(file), "the file")
    instances = (instance,) if instance else ()
    order = Order(action.name, instances, attempt, gpu or "", text if iterations is None else str(iterations))
    [command] = order.commands(**fields)
    return command


def _known(state: SessionState, name: str) -> str:
    """Return in parentheses what a person who decides should know of an attempt: its exam and its findings."""
    attempt = state.attempt(name)
    instance = state.instances[split_attempt(name).instance]
    facts = [exam_sentence(attempt, instance), finding_words(findings_of(attempt))]
    words = "; ".join(filter(None, facts))
    return f" ({words})" if words else ""


def accepted_kernels(home: Home) -> dict[str, AcceptedKernel]:
    """Return the kernels on the branch `accepted` by full task name; empty without a store."""
    if not home.store.exists():
        return {}
    with Store.read_only(home.store) as store:
        return store.accepted()


def _replaced(kernel: AcceptedKernel | None, session: str, attempt: str) -> str:
    """Return `; it replaces softmax#2/1 of SESSION` for a kernel that was accepted before."""
    if kernel is None or (kernel.session, kernel.attempt) == (session, attempt):
        return ""
    return f"; it replaces {kernel.attempt}{'' if kernel.session == session else f' of {kernel.session}'}"


steer_command = click.Group(
    "steer",
    commands={
        name: command_of(action) for name, action in ACTIONS.items() if action.shell == f"steer {name}"
    },
    help=f"{ACTIONS['steer'].does}\n\n"
    "A session that does not run follows at its next `wavedeck resume`; a finished one refuses what would come too late.",
)
