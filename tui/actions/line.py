"""Orders of a person: what a `:` line means, what completes it, and which orders are possible. Pure, no Textual."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.wire.device import nodes_of
from sessions.events import ALL_GPUS, COMMANDS, PersonCommand
from sessions.names import short_task, split_instance
from sessions.state.state import SessionState
from tui.actions.catalogue import ACTIONS, GPU_EVENTS, Action, Takes
from tui.facts.attempt import recorded_words
from tui.facts.endings import pending_word
from tui.facts.vocabulary import words

WHOLE_SESSION = "session"
"""Argument for all instances."""
_FIRST = ("find", "hint", "attempt", "fork", "accept", "reject", "pause", "unpause", "stop", "extend", "show")
"""The actions that people type most."""
VERBS = {name: ACTIONS[name] for name in (*_FIRST, *ACTIONS) if ACTIONS[name].takes is not None}
"""The actions of the line, those that people type most first."""
INSTANCES = (Takes.INSTANCES_OR_SESSION, Takes.INSTANCES, Takes.HINT)
"""Arguments of actions about instances."""
ATTEMPTS = (Takes.ATTEMPT, Takes.FORK, Takes.DECISION)
"""Arguments of actions about an attempt."""
TEXT_FIELDS = {
    Takes.HINT: "text",
    Takes.FORK: "hint",
    Takes.DECISION: "why",
    Takes.TEXT: "title",
    Takes.NUMBER: "iterations",
}
"""Field of the command that has the text of the line."""
SAMPLES = {Takes.HINT: "...", Takes.TEXT: "...", Takes.NUMBER: "1"}
"""A text in the place of one that is still to be typed."""
LINE_FIELDS: dict[str, dict[str, object]] = {"measure": {"devices": ALL_GPUS}, "edit": {"source": "..."}}
"""Fields of commands that the line does not name; the source of an edit comes from the editor."""


class NotUnderstood(Exception):
    """A line that is no command; the message says what is wrong and what would be right."""


@dataclass(frozen=True, slots=True)
class LineSubject:
    """Instances and attempt of the keys; an action without names acts on them."""

    instances: tuple[str, ...] = ()
    """The marked instances, else the one under the cursor."""
    attempt: str | None = None
    attempt_is: str = ""
    """Words that say why it is this attempt, where the screen shows others as well."""


@dataclass(frozen=True, slots=True)
class Order:
    """One action with its arguments."""

    name: str
    instances: tuple[str, ...] = ()
    """Empty: the whole session."""
    attempt: str = ""
    gpu: str = ""
    text: str = ""
    """Hint, reason, title, number, place, or what is done with the GPU."""

    @property
    def action(self) -> Action:
        """The action in the catalogue."""
        return ACTIONS[self.name]

    @property
    def target(self) -> str:
        """The instances, the attempt or the GPU; else `session`."""
        return ", ".join(self.instances) or self.attempt or self.gpu or WHOLE_SESSION

    def commands(self, **fields: object) -> list[PersonCommand]:
        """Return the command for each instance, else the one command; `fields` are those that the line does not have."""
        takes, tag = self.action.takes, GPU_EVENTS.get(self.text, self.action.event)
        kind: Any = COMMANDS[tag if takes is Takes.GPU else self.action.event]
        fields = {**self.action.fixed, **LINE_FIELDS.get(self.name, {}), **fields}
        if takes in TEXT_FIELDS:
            fields[TEXT_FIELDS[takes]] = int(self.text) if takes is Takes.NUMBER else self.text
        if self.attempt:
            fields["base" if "base" in kind.__struct_fields__ else "attempt"] = self.attempt
        if self.gpu:
            fields["device"] = self.gpu
        if takes in INSTANCES:
            return [kind(**fields, instance=instance) for instance in self.instances or ("",)]
        return [kind(**fields)]

    def refusal(self, state: SessionState) -> str:
        """Return why the session cannot follow it, whatever text is still to be typed; empty if it can."""
        text = self.text or SAMPLES.get(self.action.takes or Takes.NOTHING, "")
        commands = replace(self, text=text).commands()
        return next(filter(None, (command.refusal(state) for command in commands)), "")


def parse(text: str, subject: LineSubject, state: SessionState | None) -> Order:
    """Return the order of a line; `state` is `None` at Home. Raises `NotUnderstood`.

    A text is the rest of the line as typed; quotation marks have no meaning. The start of one command alone is that command.
    """
    name, rest = _first_word(text)
    if not name:
        raise NotUnderstood("type a command, such as find WORDS")
    action = _action(name, state)
    if action is None:
        begun = ", ".join(action.name for action in _possible(name, state))
        other = f"it begins {begun}" if begun else _nearest(name, VERBS) or "an empty line shows all commands"
        raise NotUnderstood(f"unknown command {name!r}; {other}")
    if state is None and action.needs_session:
        raise NotUnderstood(f"{name} needs an open session")
    return _order(action, rest, subject, state or SessionState())


def _possible(start: str, state: SessionState | None) -> list[Action]:
    """Return the actions whose names begin so; `state` is `None` at Home."""
    possible = (action for action in VERBS.values() if state is not None or not action.needs_session)
    return [action for action in possible if action.name.startswith(start)]


def _action(name: str, state: SessionState | None) -> Action | None:
    """Return the action with this name, or the only one whose name begins so."""
    possible = _possible(name, state)
    return VERBS.get(name) or (possible[0] if len(possible) == 1 else None)


def _nearest(word: str, names: Iterable[str]) -> str:
    """Return `did you mean 'pause'?`; empty if no name is near."""
    near = difflib.get_close_matches(word, list(names), n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else ""


def _no_place(kind: str, word: str, state: SessionState) -> NotUnderstood:
    near = _nearest(word, (*state.instance_keys(), *(attempt.attempt for attempt in state.attempts())))
    return NotUnderstood("; ".join(filter(None, (f"no {kind} of this session is called {word!r}", near))))


def _first_word(text: str) -> tuple[str, str]:
    """Return the first word and the rest, which starts and ends without spaces."""
    word, rest = [*text.split(maxsplit=1), "", ""][:2]
    return word, rest.rstrip()


def _order(action: Action, rest: str, subject: LineSubject, state: SessionState) -> Order:
    words = rest.split()
    match action.takes:
        case Takes.NOTHING:
            _refuse_more(action, rest)
            return Order(action.name)
        case Takes.INSTANCES_OR_SESSION if words == [WHOLE_SESSION]:
            return Order(action.name)
        case Takes.INSTANCES | Takes.INSTANCES_OR_SESSION:
            return Order(action.name, _instances(action, words, subject))
        case Takes.HINT:
            # A mistyped name is no text for the instance under the cursor: the session refuses it.
            named = [word for word in words[:1] if word in state.instance_keys() or _is_instance(word)]
            hint = _first_word(rest)[1] if named else rest
            if not hint:
                raise NotUnderstood(f"the text is missing: {action.usage}")
            return Order(action.name, _instances(action, named, subject), text=hint)
        case takes if takes in ATTEMPTS:
            attempt, reason = _attempt(action, rest, subject)
            if action.takes is Takes.ATTEMPT:
                _refuse_more(action, reason)
            if not action.event and not _is_place(attempt, state):
                raise _no_place("attempt", attempt, state)
            return Order(action.name, attempt=attempt, text=reason)
        case Takes.GPU:
            if len(words) != 2 or words[1] not in GPU_EVENTS:
                raise NotUnderstood(
                    f"{action.usage}; GPUs of the session are {', '.join(state.gpus) or 'none'}"
                )
            return Order(action.name, gpu=words[0], text=words[1])
        case Takes.NUMBER:
            if len(words) != 1 or not words[0].isdecimal() or not int(words[0]):
                raise NotUnderstood(f"{action.usage}: N is a number above 0")
            return Order(action.name, text=words[0])
        case Takes.PLACE:
            place = rest or subject.attempt or _instances(action, (), subject)[0]
            if not _is_place(place, state):
                raise _no_place("instance and no attempt", place, state)
            return Order(action.name, text=place)
        case _:
            if not rest:
                raise NotUnderstood(f"the text is missing: {action.usage}")
            return Order(action.name, text=rest)


def _refuse_more(action: Action, rest: str) -> None:
    if rest:
        raise NotUnderstood(f"{rest.split()[0]!r} is too much: {action.usage}")


def _instances(action: Action, words: Sequence[str], subject: LineSubject) -> tuple[str, ...]:
    names = tuple(words) or subject.instances
    if not names:
        raise NotUnderstood(f"no instance is under the cursor: {action.usage}")
    return names


def _is_place(text: str, state: SessionState) -> bool:
    """Return whether a text names an instance of the session, or one of its attempts."""
    return text in state.instance_keys() or any(attempt.attempt == text for attempt in state.attempts())


def _is_instance(word: str) -> bool:
    """Return whether a word has the form of an instance's key."""
    try:
        split_instance(word)
    except ValueError:
        return False
    return True


def _attempt(action: Action, rest: str, subject: LineSubject) -> tuple[str, str]:
    """Return the attempt that the line or the cursor names, and the text after its name."""
    word, text = _first_word(rest)
    if "/" in word and "#" in word:
        return word, text
    if subject.attempt is None:
        raise NotUnderstood(f"no attempt is under the cursor: {action.usage}")
    return subject.attempt, rest


def completions(text: str, state: SessionState | None) -> dict[str, str]:
    """Return the words that can be at the end of the line, each with its meaning, best first: actions, then names."""
    head, _, last = text.rpartition(" ")
    if not head:
        return {action.name: action.does for action in _possible(last, state)}
    action = _action(head.split()[0], state)
    if action is None or state is None:
        return {}
    instances = {key: short_task(instance.task) for key, instance in state.instances.items()}
    names: dict[str, str] = {}
    match action.takes:
        case Takes.INSTANCES_OR_SESSION:
            names = {**instances, WHOLE_SESSION: "all instances"}
        case Takes.INSTANCES | Takes.HINT:
            names = instances
        case Takes.ATTEMPT | Takes.FORK | Takes.DECISION | Takes.NUMBERED:
            names = _attempts(state)
        case Takes.PLACE:
            names = instances | _attempts(state)
        case Takes.GPU if len(head.split()) > 1:
            names = {"lend": "to others", "return": "to the session"}
        case Takes.GPU:
            names = {**dict.fromkeys(state.gpus, "GPU"), **dict.fromkeys(nodes_of(state.gpus), "node")}
        case _:
            pass
    return {name: words for name, words in names.items() if name.startswith(last)}


def _attempts(state: SessionState) -> dict[str, str]:
    """Return the attempts with their verdicts."""
    return {
        attempt.attempt: words(attempt.verdict)
        if attempt.verdict is not None
        else pending_word(state, attempt, attempt.word)
        for attempt in state.attempts()
    }


def explained(text: str, subject: LineSubject, state: SessionState | None) -> str:
    """Return how the command of a line is typed and what it acts on, then what a recorded model does with its words.

    Before it is certain which command it is: the attempt or the instances of the keys.
    """
    name = _first_word(text)[0]
    action = _action(name, state)
    instances = ", ".join(subject.instances)
    attempt = ", ".join(filter(None, (subject.attempt, subject.attempt and subject.attempt_is)))
    if action is None and name and not _possible(name, state):
        return f"no command begins with {name!r}"
    if action is None:
        target = instances if len(subject.instances) > 1 else attempt or instances
        return target and f"acts on {target}"
    takes_attempt = action.takes in (*ATTEMPTS, Takes.PLACE)
    target = instances if action.takes in INSTANCES else attempt if takes_attempt else ""
    usage = f"{action.usage} · acts on {target}" if target else action.usage
    has_words = action.takes in (Takes.HINT, Takes.FORK, Takes.DECISION)
    recorded = recorded_words(state) if has_words and state is not None else ""
    return "\n".join(filter(None, (usage, recorded)))
