"""The methods of sessions: the facts about each that commands and the engine read."""

from __future__ import annotations

from typing import NamedTuple

from sessions.settings import AGENT

from .calls import Role


class MethodFacts(NamedTuple):
    """Facts about one method."""

    roles: frozenset[Role] = frozenset()
    """Roles in which it asks a model; empty if it asks none."""
    iterations: int | None = None
    """The only allowed number of iterations; `None` if the person chooses it."""


METHOD_FACTS = {
    "geak": MethodFacts(frozenset(Role)),
    "geak-evolve": MethodFacts(frozenset(Role)),
    "reflexion": MethodFacts(frozenset({Role.GENERATOR, Role.REFLECTOR})),
    "kernelagent": MethodFacts(frozenset({Role.GENERATOR})),
    "direct": MethodFacts(frozenset({Role.GENERATOR}), iterations=1),
    "tune": MethodFacts(),
    AGENT: MethodFacts(),
    "predictions": MethodFacts(),
    "rejudge": MethodFacts(),
}
"""Facts by the name of the method. A session of an older Wavedeck may have a method that is gone."""


def ways_on(method: str) -> list[str]:
    """Returns the commands that open a finished session of this method again: `extend`, `fork`."""
    facts = METHOD_FACTS.get(method, MethodFacts())
    extends = (facts.roles or method == AGENT) and facts.iterations is None
    return ["extend"] * bool(extends) + ["fork"] * bool(facts.roles)


def gone_method(name: str, session: str) -> str:
    """Returns why a session cannot go on if its method is gone; empty if the method is there."""
    if name in METHOD_FACTS:
        return ""
    return f"the method {name} of {session} is gone, so the session cannot go on; read it with: wavedeck replay {session}"
