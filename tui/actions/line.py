"""The `:` line: what a line means, and what completes it. Pure, no Textual."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from harness.wire.device import is_cpu, nodes_of
from sessions.state.state import SessionState
from tui.actions.catalogue import ACTIONS, GPU_WORDS, Action, Takes, When, further_words

WHOLE_SESSION = "session"
"""Argument for all instances."""
VERBS = {name: action for name, action in ACTIONS.items() if action.takes is not None}
"""The actions of the line."""


class NotUnderstood(Exception):
    """A line that is no command; the message says what is wrong and what would be right."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Instances and attempt of the keys; an action without names acts on them."""

    instances: tuple[str, ...] = ()
    """The marked instances, else the one under the cursor."""
    attempt: str | None = None


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

    def requests(self) -> list[dict[str, object]]:
        """Return the arguments of each command to the engine: one command for each instance."""
        takes = self.action.takes
        common: dict[str, object] = {"attempt": self.attempt} if self.attempt else {}
        if takes is Takes.NUMBER:
            common["iterations"] = int(self.text)
        elif takes in (Takes.HINT, Takes.FORK, Takes.GPU, Takes.TEXT):
            common["text"] = self.text
        elif takes is Takes.DECISION:
            common["why"] = self.text
        if self.gpu:
            common["devices"] = (self.gpu,)
        elif self.name == "measure":
            # Imported here: it loads the methods.
            from engine.process.commands import ALL_GPUS

            common["devices"] = ALL_GPUS
        if takes in (Takes.INSTANCES, Takes.INSTANCES_OR_SESSION, Takes.HINT):
            return [{"instance": instance, **common} for instance in self.instances or ("",)]
        return [common]

    @property
    def given(self) -> str:
        """The text in words, for the message when it is done."""
        return further_words(int(self.text)) if self.action.takes is Takes.NUMBER else self.text


def parse(text: str, subject: Subject, state: SessionState | None) -> Order:
    """Return the order of a line; `state` is `None` at Home. Raises `NotUnderstood`.

    A text is the rest of the line as typed; quotation marks have no meaning.
    """
    name, rest = _first_word(text)
    if not name:
        raise NotUnderstood("type a command; tab shows all of them")
    action = VERBS.get(name)
    if action is None:
        near = difflib.get_close_matches(name, VERBS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else "tab shows all commands"
        raise NotUnderstood(f"unknown command {name!r}; {hint}")
    if state is None and When.HOME not in action.when:
        raise NotUnderstood(f"{name} needs an open session")
    return _order(action, rest, subject, state or SessionState())


def with_text(order: Order, text: str) -> Order:
    """Return the order with this text. Raises `NotUnderstood` if it is no text for the order."""
    if order.action.takes is Takes.NUMBER:
        return parse(f"{order.name} {text}", Subject(), SessionState())
    if not text and order.action.takes is not Takes.FORK:
        raise NotUnderstood(f"the text is missing: {order.action.usage}")
    return replace(order, text=text)


def _first_word(text: str) -> tuple[str, str]:
    """Return the first word and the rest, which starts and ends without spaces."""
    word, rest = [*text.split(maxsplit=1), "", ""][:2]
    return word, rest.rstrip()


def _order(action: Action, rest: str, subject: Subject, state: SessionState) -> Order:
    words = rest.split()
    match action.takes:
        case Takes.NOTHING:
            _refuse_more(action, rest)
            return Order(action.name)
        case Takes.INSTANCES_OR_SESSION if words == [WHOLE_SESSION]:
            return Order(action.name)
        case Takes.INSTANCES | Takes.INSTANCES_OR_SESSION:
            return Order(action.name, _instances(action, words, subject, state))
        case Takes.HINT:
            named = [word for word in words[:1] if word in state.instances]
            hint = _first_word(rest)[1] if named else rest
            if not hint:
                raise NotUnderstood(f"the text is missing: {action.usage}")
            return Order(action.name, _instances(action, named, subject, state), text=hint)
        case Takes.ATTEMPT | Takes.FORK | Takes.DECISION:
            attempt, reason = _attempt(action, rest, subject, state)
            if action.takes is Takes.ATTEMPT:
                _refuse_more(action, reason)
            return Order(action.name, attempt=attempt, text=reason)
        case Takes.GPU:
            gpus = gpus_of(state)
            if len(words) != 2 or words[1] not in GPU_WORDS or words[0] not in (*gpus, *nodes_of(gpus)):
                raise NotUnderstood(f"{action.usage}; GPUs of the session are {', '.join(gpus) or 'none'}")
            return Order(action.name, gpu=words[0], text=words[1])
        case Takes.NUMBER:
            if len(words) != 1 or not words[0].isdecimal() or not int(words[0]):
                raise NotUnderstood(f"{action.usage}: N is a number above 0")
            return Order(action.name, text=words[0])
        case _:
            if not rest:
                raise NotUnderstood(f"the text is missing: {action.usage}")
            return Order(action.name, text=rest)


def gpus_of(state: SessionState) -> list[str]:
    """Return the GPUs of a session, as it names them."""
    return [name for name in (state.started.devices if state.started else ()) if not is_cpu(name)]


def _refuse_more(action: Action, rest: str) -> None:
    if rest:
        raise NotUnderstood(f"{rest.split()[0]!r} is too much: {action.usage}")


def _instances(
    action: Action, words: Sequence[str], subject: Subject, state: SessionState
) -> tuple[str, ...]:
    for word in words:
        if word not in state.instances:
            raise NotUnderstood(f"no instance {word!r}{_nearest(word, state.instances)}")
    names = tuple(words) or subject.instances
    if not names:
        raise NotUnderstood(f"no instance is under the cursor: {action.usage}")
    return names


def _attempt(action: Action, rest: str, subject: Subject, state: SessionState) -> tuple[str, str]:
    """Return the attempt that the line or the cursor names, and the text after its name."""
    word, text = _first_word(rest)
    if "/" in word and "#" in word:
        names = [attempt.attempt for attempt in state.attempts()]
        if word not in names:
            raise NotUnderstood(f"no attempt {word!r}{_nearest(word, names)}")
        return word, text
    if subject.attempt is None:
        raise NotUnderstood(f"no attempt is under the cursor: {action.usage}")
    return subject.attempt, rest


def _nearest(word: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(names), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def completions(text: str, state: SessionState | None) -> list[str]:
    """Return the words that can be at the end of the line, best first: actions, then names."""
    head, _, last = text.rpartition(" ")
    if not head:
        return [name for name in VERBS if name.startswith(last)]
    action = VERBS.get(head.split()[0])
    if action is None or state is None:
        return []
    attempts = [attempt.attempt for attempt in state.attempts()]
    match action.takes:
        case Takes.INSTANCES_OR_SESSION:
            names = [*state.instances, WHOLE_SESSION]
        case Takes.INSTANCES | Takes.HINT:
            names = list(state.instances)
        case Takes.ATTEMPT | Takes.FORK | Takes.DECISION:
            names = attempts
        case Takes.PLACE:
            names = [*state.instances, *attempts]
        case Takes.GPU:
            names = list(GPU_WORDS) if len(head.split()) > 1 else [*gpus_of(state), *nodes_of(gpus_of(state))]
        case _:
            names = []
    return [name for name in names if name.startswith(last)]
