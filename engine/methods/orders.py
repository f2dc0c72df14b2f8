"""What a person asks of an attempt: pure functions over the commands of a session.

An attempt follows the commands up to its `heard` (`AttemptStarted`), so a resumed session gives each attempt the same
words again.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import one_line
from sessions.events import DecisionMade, DecisionUndone, HintGiven, InstanceForked, PersonCommand
from sessions.events.refusals import MOST_CHARACTERS
from sessions.names import instance_key, split_attempt, split_instance
from sessions.state.state import SessionState

MOST_DECISIONS = 8
"""Decisions that a prompt quotes; the latest count."""


def words_for(state: SessionState, instance: str, *, after: int, until: int) -> tuple[str, ...]:
    """Returns a person's words for an attempt, oldest first: the new hints, and every decision that still stands.

    The attempt follows the commands up to the number `until`. The attempt before it followed those up to `after`, so
    their hints are used up.

    Decisions about other instances of the same task count too. A rejection that the instance waited for is left out,
    because its method quotes the reason itself.
    """
    heard = [command for command in state.commands if command.seq <= until]
    decisions = {
        made.seq: made for made in _standing(heard, instance) if _says_something(state, made, instance)
    }
    lines = {seq: _decision_line(made) for seq, made in sorted(decisions.items())[-MOST_DECISIONS:]}
    for command in heard:
        hint = _hint_to(instance, command)
        if hint and command.seq > after:
            lines[command.seq] = f"a person gives a hint: {_quote(hint)}"
    return tuple(lines[seq] for seq in sorted(lines))


def last_command(state: SessionState) -> int:
    """Returns the number of the latest command; 0 if there is none."""
    return state.commands[-1].seq if state.commands else 0


def _standing(commands: Sequence[PersonCommand], instance: str) -> list[DecisionMade]:
    """The current decisions about attempts on the instance's task."""
    standing: dict[str, DecisionMade] = {}
    task = split_instance(instance).task
    for command in commands:
        if isinstance(command, DecisionMade):
            if split_instance(split_attempt(command.attempt).instance).task == task:
                standing[command.attempt] = command
        elif isinstance(command, DecisionUndone):
            standing.pop(command.attempt, None)
    return list(standing.values())


def _says_something(state: SessionState, decision: DecisionMade, instance: str) -> bool:
    if decision.accepted:
        return bool(decision.why)
    own = split_attempt(decision.attempt).instance == instance
    return not (own and state.attempt(decision.attempt).held)


def _hint_to(instance: str, command: PersonCommand) -> str:
    """The text of a hint to this instance; empty if the command gives none."""
    if isinstance(command, HintGiven) and command.instance == instance:
        return command.text
    if isinstance(command, InstanceForked) and instance_key(command.task, command.instance) == instance:
        return command.hint
    return ""


def _decision_line(decision: DecisionMade) -> str:
    reason = f": {_quote(decision.why)}" if decision.why else ""
    return f"a person {'accepted' if decision.accepted else 'rejected'} {decision.attempt}{reason}"


def _quote(text: str) -> str:
    return f'"{one_line(text)[:MOST_CHARACTERS]}"'
