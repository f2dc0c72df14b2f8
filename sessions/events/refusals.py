"""Reasons why a session cannot follow a command, one line each.

Each function yields the reasons that hold. Only the first one counts, so code after a `yield` may rely on its absence.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness import Verdict
from sessions.errors import NoSuchAttempt
from sessions.names import split_attempt
from sessions.settings import AGENT

from .attempts import UNASKED
from .calls import Role
from .methods import METHOD_FACTS, gone_method

if TYPE_CHECKING:
    from sessions.state.state import SessionState

MOST_CHARACTERS = 2000
"""Longest text of a command; the source of a kernel has its own limit."""
SHOWN = 80
"""Most characters of an unknown name that a refusal repeats."""
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters except tab and ends of lines."""


def unfit_text(name: str, text: str) -> Iterator[str]:
    """Yield a reason if the text is too long, or has control characters."""
    if len(text) > MOST_CHARACTERS:
        yield f"the {name} is longer than {MOST_CHARACTERS} characters; shorten it"
    if CONTROL.search(text):
        yield f"the {name} has control characters; write it as plain text"


def no_attempt(state: SessionState, attempt: str) -> Iterator[str]:
    """Yield a reason if the session has no such attempt."""
    try:
        state.attempt(attempt)
    except KeyError:
        yield str(NoSuchAttempt(attempt[:SHOWN], [entry.attempt for entry in state.attempts()]))


def not_judged(state: SessionState, attempt: str) -> Iterator[str]:
    """Yield a reason if there is no such attempt, or no verdict on it."""
    yield from no_attempt(state, attempt)
    if state.attempt(attempt).verdict is None:
        yield f"{attempt} is not judged yet; decide when it has a verdict"


def not_correct(state: SessionState, attempt: str, advice: str) -> Iterator[str]:
    """Yield a reason if there is no such attempt, or it is not correct."""
    yield from no_attempt(state, attempt)
    if state.attempt(attempt).verdict is not Verdict.CORRECT:
        yield f"{attempt} is not correct{advice}"


def gone(state: SessionState) -> Iterator[str]:
    """Yield a reason if no attempt can follow, because the session's method is gone."""
    if state.started is not None:
        yield gone_method(state.started.method, state.started.session)


def ended(state: SessionState, instance: str) -> Iterator[str]:
    """Yield a reason if no attempt of the instance can follow: there is none of this name, or it has ended."""
    yield from gone(state)
    keys = state.instance_keys()
    if instance not in keys:
        nearest = difflib.get_close_matches(instance, keys, n=3) or keys[:3]
        yield f"no instance {instance[:SHOWN]!r} in this session; nearest: {', '.join(nearest)}"
    begun = state.instances.get(instance)
    if begun is not None and begun.finished is not None and not begun.curable:
        yield f"{instance} has ended, so no further attempt can follow"
    if begun is not None and begun.word == "exam":
        yield f"{instance} is in its exam and ends by itself"


def asks_no_more(state: SessionState, instance: str) -> Iterator[str]:
    """Yield a reason if the instance has no iterations left for a prompt that is not sent yet."""
    fork, begun = state.forks.get(instance), state.instances.get(instance)
    prompted = [attempt for attempt in begun.attempts if attempt.origin not in UNASKED] if begun else []
    if (fork is not None and fork.source) or len(prompted) >= sum(state.phases(instance)):
        yield f"{instance} asks for no further attempt, so no prompt can quote the hint; extend or fork first"


def no_base(state: SessionState, attempt: str) -> Iterator[str]:
    """Yield a reason if the attempt can be no base of optimizations."""
    yield from no_attempt(state, attempt)
    yield from ended(state, split_attempt(attempt).instance)
    if state.started is not None and Role.OPTIMIZER not in METHOD_FACTS[state.started.method].roles:
        yield f"{state.started.method} optimizes no attempt, so there is no base to choose"


def unusable_gpus(state: SessionState, names: Sequence[str]) -> Iterator[str]:
    """Yield a reason if one of the names is no GPU of the session, or is lent."""
    yield from unknown_gpus(state, names, state.gpus)
    for name in sorted(state.lent.intersection(names)):
        yield f"GPU {name} is lent; return it first: wavedeck gpu SESSION {name} return"


def unknown_gpus(state: SessionState, names: Sequence[str], choices: Sequence[str]) -> Iterator[str]:
    """Yield a reason if the session has no GPU, or one of the names is not among the choices."""
    if not state.gpus:
        yield "the session has no GPU, only cpu; start a session on a machine with a GPU"
    for name in names:
        if name not in choices:
            yield f"the session has no GPU {name[:SHOWN]}; it has {', '.join(choices)}"


def no_agent(state: SessionState, instance: str) -> Iterator[str]:
    """Yield a reason if no agent may send candidates to the instance."""
    yield from ended(state, instance)
    if state.started is None or state.started.method != AGENT or instance in state.forks:
        yield f"{instance} takes no candidates of agents"
    if instance in state.left:
        yield f"{instance} takes no further candidates: its agent ended the work"
