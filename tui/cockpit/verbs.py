"""The language of the `:` line: verbs of the shell, their arguments, and what completes them. Pure, no Textual."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from sessions.state.state import SessionState

WHOLE_SESSION = "session"
"""Argument that stands for all instances."""


class Takes(Enum):
    """What the arguments of a verb are about."""

    NOTHING = ""
    INSTANCES = "[INSTANCE...]"
    HINT = "[INSTANCE] TEXT"
    ATTEMPT = "[ATTEMPT]"
    DECISION = "[ATTEMPT] [REASON]"
    GPU = "N drain|return"
    NUMBER = "N"
    TEXT = "TEXT"


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb of the `:` line."""

    name: str
    takes: Takes
    does: str

    @property
    def usage(self) -> str:
        """The verb with its arguments: `pause [INSTANCE...]`."""
        return f"{self.name} {self.takes.value}".rstrip()


VERBS = {
    verb.name: verb
    for verb in (
        Verb("pause", Takes.INSTANCES, "no call and no attempt starts; `pause session` pauses all"),
        Verb("go", Takes.INSTANCES, "end a pause"),
        Verb("stop", Takes.INSTANCES, "stop instances for good, or the session until a resume"),
        Verb("hint", Takes.HINT, "quote a text in the next prompts of an instance"),
        Verb("pin", Takes.ATTEMPT, "make an attempt the base of the next optimizations"),
        Verb("ban", Takes.ATTEMPT, "build on an attempt no more"),
        Verb("fork", Takes.DECISION, "add an instance that starts from an attempt, with a hint"),
        Verb("edit", Takes.ATTEMPT, "edit an attempt's kernel in $EDITOR; the edit is judged"),
        Verb("measure", Takes.ATTEMPT, "time an attempt again on every GPU"),
        Verb("accept", Takes.DECISION, "accept a correct attempt"),
        Verb("reject", Takes.DECISION, "reject an attempt"),
        Verb("undo", Takes.ATTEMPT, "take the decision about an attempt back"),
        Verb("extend", Takes.NUMBER, "give each instance N more attempts"),
        Verb("gpu", Takes.GPU, "lend a GPU to others, or take it back"),
        Verb("title", Takes.TEXT, "give the session a title"),
        Verb("fleet", Takes.NOTHING, "go to Fleet"),
        Verb("latency", Takes.ATTEMPT, "go to Latency"),
        Verb("review", Takes.NOTHING, "go to Review"),
        Verb("report", Takes.NOTHING, "go to Report"),
        Verb("home", Takes.NOTHING, "leave the session and go Home"),
        Verb("open", Takes.TEXT, "open an instance or an attempt"),
        Verb("help", Takes.NOTHING, "explain this pane and its keys"),
        Verb("quit", Takes.NOTHING, "leave the cockpit; engines go on"),
    )
}


class NotUnderstood(Exception):
    """A line that is no command; the message says what is wrong and what would be right."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What the keys are about now; a verb without names acts on it."""

    instances: tuple[str, ...] = ()
    """The marked instances, else the one under the cursor."""
    attempt: str | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """One command, ready to be carried out."""

    verb: str
    instances: tuple[str, ...] = ()
    """Empty: the whole session."""
    attempt: str = ""
    text: str = ""
    """Hint, reason, title, number, or what `gpu` does."""


def parse(text: str, subject: Subject, state: SessionState | None) -> Order:
    """Return the order of a line; `state` is `None` at Home. Raises `NotUnderstood`.

    A text is the rest of the line as typed; quotation marks have no meaning.
    """
    name, rest = _first_word(text)
    if not name:
        raise NotUnderstood("type a command; tab shows all of them")
    verb = VERBS.get(name)
    if verb is None:
        near = difflib.get_close_matches(name, VERBS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else "tab shows all commands"
        raise NotUnderstood(f"unknown command {name!r}; {hint}")
    if state is None and name not in ("help", "quit"):
        raise NotUnderstood(f"{name} needs an open session")
    return _order(verb, rest, subject, state or SessionState())


def _first_word(text: str) -> tuple[str, str]:
    """Return the first word and the rest, which starts and ends without spaces."""
    word, rest = [*text.split(maxsplit=1), "", ""][:2]
    return word, rest.rstrip()


def _order(verb: Verb, rest: str, subject: Subject, state: SessionState) -> Order:
    words = rest.split()
    match verb.takes:
        case Takes.NOTHING:
            _refuse_more(verb, rest)
            return Order(verb.name)
        case Takes.INSTANCES:
            return Order(verb.name, _instances(verb, words, subject, state))
        case Takes.HINT:
            named = [word for word in words[:1] if word in state.instances]
            hint = _first_word(rest)[1] if named else rest
            if not hint:
                raise NotUnderstood(f"the text is missing: {verb.usage}")
            return Order(verb.name, _instances(verb, named, subject, state), text=hint)
        case Takes.ATTEMPT | Takes.DECISION:
            attempt, reason = _attempt(verb, rest, subject, state)
            if verb.takes is Takes.ATTEMPT:
                _refuse_more(verb, reason)
            return Order(verb.name, attempt=attempt, text=reason)
        case Takes.GPU:
            gpus = [device for device in state.started.devices if device != "cpu"] if state.started else []
            if len(words) != 2 or words[1] not in ("drain", "return") or words[0] not in gpus:
                raise NotUnderstood(f"{verb.usage}; GPUs of the session are {', '.join(gpus) or 'none'}")
            return Order(verb.name, attempt=words[0], text=words[1])
        case Takes.NUMBER:
            if len(words) != 1 or not words[0].isdecimal() or not int(words[0]):
                raise NotUnderstood(f"{verb.usage}: N is a number above 0")
            return Order(verb.name, text=words[0])
        case _:
            if not rest:
                raise NotUnderstood(f"the text is missing: {verb.usage}")
            return Order(verb.name, text=rest)


def _refuse_more(verb: Verb, rest: str) -> None:
    if rest:
        raise NotUnderstood(f"{rest.split()[0]!r} is too much: {verb.usage}")


def _instances(verb: Verb, words: Sequence[str], subject: Subject, state: SessionState) -> tuple[str, ...]:
    if list(words) == [WHOLE_SESSION]:
        return ()
    for word in words:
        if word not in state.instances:
            raise NotUnderstood(f"no instance {word!r}{_nearest(word, state.instances)}")
    names = tuple(words) or subject.instances
    if not names:
        raise NotUnderstood(f"no instance is under the cursor: {verb.usage}")
    return names


def _attempt(verb: Verb, rest: str, subject: Subject, state: SessionState) -> tuple[str, str]:
    """Return the attempt that the line or the cursor names, and the text after its name."""
    word, text = _first_word(rest)
    if "/" in word and "#" in word:
        names = [attempt.attempt for attempt in state.attempts()]
        if word not in names:
            raise NotUnderstood(f"no attempt {word!r}{_nearest(word, names)}")
        return word, text
    if subject.attempt is None:
        raise NotUnderstood(f"no attempt is under the cursor: {verb.usage}")
    return subject.attempt, rest


def _nearest(word: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(names), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def completions(text: str, state: SessionState | None) -> list[str]:
    """Return the words that can be at the end of the line, best first: verbs, then names."""
    head, _, last = text.rpartition(" ")
    if not head:
        return [name for name in VERBS if name.startswith(last)]
    verb = VERBS.get(head.split()[0])
    if verb is None or state is None:
        return []
    match verb.takes:
        case Takes.INSTANCES | Takes.HINT:
            names = [*state.instances, WHOLE_SESSION]
        case Takes.ATTEMPT | Takes.DECISION:
            names = [attempt.attempt for attempt in state.attempts()]
        case Takes.GPU:
            names = ["drain", "return"] if len(head.split()) > 1 else list(state.devices)
        case Takes.TEXT if verb.name == "open":
            names = [*state.instances, *(attempt.attempt for attempt in state.attempts())]
        case _:
            names = []
    return [name for name in names if name.startswith(last)]
