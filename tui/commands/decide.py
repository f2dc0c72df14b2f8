"""`wavedeck accept`, `reject` and `undo`: a person's decision about an attempt."""

from __future__ import annotations

import asyncio
import os

import click

from sessions import fold
from sessions.catalog import find_session, journal_of
from sessions.home import Home, home_from
from sessions.names import split_attempt
from sessions.state.findings import finding_words, findings_of
from sessions.store.store import AcceptedKernel, Store
from tui.certainty import exam_sentence
from tui.commands.options import session_argument
from tui.deciding import decide, login_name, undo
from tui.diagnostics import say

WHY = click.option("--why", default="", metavar="TEXT", help="The reason, kept with the decision.")
ATTEMPT = click.argument("attempt")


@click.command(name="accept")
@session_argument
@ATTEMPT
@WHY
@click.option("--force", is_flag=True, help="Accept an attempt that is not correct; needs --why.")
def accept_command(session: str, attempt: str, *, why: str, force: bool) -> None:
    """Accept ATTEMPT (such as softmax#2/7) of SESSION: its kernel goes to the store's branch `accepted`."""
    settle(session, attempt, accepted=True, why=why, forced=force)


@click.command(name="reject")
@session_argument
@ATTEMPT
@WHY
def reject_command(session: str, attempt: str, *, why: str) -> None:
    """Reject ATTEMPT (such as softmax#2/7) of SESSION. Agents that wait for the decision reflect on the reason."""
    settle(session, attempt, accepted=False, why=why)


@click.command(name="undo")
@session_argument
@ATTEMPT
def undo_command(session: str, attempt: str) -> None:
    """Undo the decision about ATTEMPT (such as softmax#2/7) of SESSION."""
    home = home_from(os.environ)
    name = find_session(home, session)
    asyncio.run(undo(home, name, attempt, by=login_name()))
    say(f"{attempt} of {name}: decision undone")


def settle(session: str, attempt: str, *, accepted: bool, why: str, forced: bool = False) -> None:
    """Store a decision and print its result."""
    home = home_from(os.environ)
    name = find_session(home, session)
    before = accepted_kernels(home) if accepted else {}
    asyncio.run(decide(home, name, attempt, accepted=accepted, why=why, by=login_name(), forced=forced))
    word = "accepted" if accepted else "rejected"
    state = fold(journal_of(home, name).events)
    instance = state.instances[split_attempt(attempt).instance]
    facts = [
        exam_sentence(state.attempt(attempt), instance),
        finding_words(findings_of(state.attempt(attempt))),
    ]
    known = "; ".join(filter(None, facts))
    where = f"; all accepted kernels: git clone -b accepted {home.store}" if accepted else ""
    say(
        f"{attempt} of {name} {word}{f' ({known})' if known else ''}{_replaced(before.get(instance.task), name, attempt)}{where}"
    )


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
