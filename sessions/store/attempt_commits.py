"""Builds the files, message and trailers of an attempt's commit from the folded state alone.

The same state gives the same bytes, so an attempt that is committed again gets the same id.
"""

from __future__ import annotations

import hashlib
import math
import textwrap
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from harness import Verdict
from sessions import events as ev
from sessions.events import Message, Role, ServedModel, Usage
from sessions.settings import SCHEMA
from sessions.state.speed import baseline_names, speed_of
from sessions.state.state import AttemptState, CallState, InstanceState, SessionState

LINE_CHARS = 300
"""Longest strategy and error in a commit's message."""


class CommitPiece(msgspec.Struct, frozen=True):
    """A line of `reasoning.jsonl`: a streamed piece of reasoning."""

    call: str
    mono: float
    """Seconds of the engine's monotonic clock."""
    text: str


class CallRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of `calls.jsonl`."""

    call: str
    role: Role
    model: str
    messages: tuple[Message, ...]
    """As sent, but the content of a system message is its path in the commit."""
    text: str
    stop_reason: str
    usage: Usage
    cost_usd: float | None
    seconds: float | None
    temperature: float | None
    retries: int
    failed: str
    served: ServedModel | None = None


class AttemptRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`attempt.json`."""

    schema: int = SCHEMA
    attempt: str
    task: str
    instance: int
    number: int
    origin: ev.Origin
    base: str | None
    strategy: str
    verdict: Verdict
    same_as: str
    """The attempt with the same source that was judged; empty if this one was judged."""
    started: float
    """Seconds since the epoch, UTC."""
    usage: Usage
    cost_usd: float | None


class Reasoning:
    """When each piece of a call's reasoning arrived, for the commits of their attempts. The text itself is in the state."""

    def __init__(self) -> None:
        self._arrivals: dict[str, array[float]] = {}
        """Time and length of each piece, alternating, by call."""

    def see(self, event: ev.Event) -> None:
        """Take in an event: a piece is added; a retry or a new start of a call discards its pieces."""
        match event:
            case ev.ReplyPiece(kind="reasoning"):
                self._arrivals.setdefault(event.call, array("d")).extend((event.mono, len(event.text)))
            case ev.CallStarted() | ev.CallRetried():
                self._arrivals.pop(event.call, None)
            case ev.CallFinished() if self._length(event.call) != len(event.reasoning):
                whole = (event.mono, len(event.reasoning)) if event.reasoning else ()
                self._arrivals[event.call] = array("d", whole)

    def forget(self, attempt: AttemptState) -> None:
        """Drop the times of an attempt's calls."""
        for call in attempt.calls:
            self._arrivals.pop(call.call, None)

    def _length(self, call: str) -> float:
        return sum(self._arrivals.get(call, array("d"))[1::2])

    def of(self, attempt: AttemptState) -> list[CommitPiece]:
        """Returns the pieces of an attempt's finished calls, in the order of the calls."""
        return [piece for call in attempt.calls if call.finished for piece in self._pieces(call)]

    def _pieces(self, call: CallState) -> Iterator[CommitPiece]:
        arrivals = self._arrivals.get(call.call, array("d"))
        text, start = call.reasoning, 0
        for mono, length in zip(arrivals[::2], arrivals[1::2], strict=True):
            yield CommitPiece(call.call, mono, text[start : start + int(length)])
            start += int(length)


def committed(instance: InstanceState) -> list[AttemptState]:
    """Returns the attempts with a commit, in the order of their commits."""
    return sorted(
        (attempt for attempt in instance.attempts if attempt.commit is not None),
        key=lambda attempt: attempt.committed_seq,
    )


def parents_of(state: SessionState, attempt: AttemptState, instance: InstanceState) -> list[str]:
    """Returns the base's commit, then the commit of the attempt that was committed before.

    Attempts of one instance may run at the same time, so the order is the order of their commits, which the journal
    has.
    """
    base = _commit_of(state, attempt.base)
    order = attempt.committed_seq or math.inf
    earlier = [sibling.commit for sibling in committed(instance) if 0 < sibling.committed_seq < order]
    return list(dict.fromkeys(filter(None, [base, *earlier[-1:]])))


def _commit_of(state: SessionState, attempt: str | None) -> str | None:
    try:
        return state.attempt(attempt or "").commit
    except KeyError:
        return None


def is_built_on(state: SessionState, attempt: AttemptState, instance: InstanceState) -> bool:
    """True if something refers to the attempt's commit, so that the commit must not change."""
    return (
        attempt.decision is not None
        or any(sibling.committed_seq > attempt.committed_seq for sibling in committed(instance))
        or any(child.base == attempt.attempt and child.commit for child in state.attempts())
    )


def attempt_files(
    instance: InstanceState, attempt: AttemptState, reasoning: Sequence[CommitPiece]
) -> dict[str, bytes]:
    """Returns the tree of a judged attempt, by path; `ValueError` if it has no evaluation."""
    evaluation = attempt.evaluation
    if evaluation is None:
        raise ValueError(f"{attempt.attempt} is not judged")
    calls = [call for call in attempt.calls if not call.live]
    call = code_call(calls)
    record = AttemptRecord(
        **_shared_fields(AttemptRecord, attempt),
        task=instance.task,
        instance=instance.instance,
        started=attempt.started_wall,
    )
    trace = ""
    if evaluation.error is not None:
        trace = "\n".join(part for part in (evaluation.error.trace, evaluation.error.message) if part) + "\n"
    files = {
        "kernel.py": attempt.source or "",
        "trace.txt": trace,
        "prompt.md": prompt_text(call.messages) if call else "",
        "reply.md": call.text if call else "",
    }
    reflections = [call.text.strip() for call in calls if call.finished and call.role is Role.REFLECTOR]
    if reflections:
        files["reflection.md"] = "\n\n".join(reflections) + "\n"
    # A file of its own: git keeps each system prompt once.
    system = [message.content for call in calls for message in call.messages if message.role == "system"]
    files |= {_system_path(content): content for content in system}
    return {
        **{path: text.encode("utf-8", "replace") for path, text in files.items()},
        "attempt.json": _pretty(record),
        "evaluation.json": _pretty(evaluation),
        "calls.jsonl": _lines([_call_record(call) for call in calls]),
        "reasoning.jsonl": _lines(reasoning),
    }


def prompt_text(messages: Sequence[Message]) -> str:
    """Returns a prompt as Markdown, with a heading for each message; a system message is named by its path."""
    return "\n".join(
        f"## {message.role}\n\n{message.content.rstrip()}\n" for message in _with_named_system(messages)
    )


def _system_path(content: str) -> str:
    return f"prompts/{hashlib.sha256(content.encode('utf-8', 'replace')).hexdigest()[:12]}.md"


def _with_named_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(
        Message(message.role, _system_path(message.content)) if message.role == "system" else message
        for message in messages
    )


def attempt_message(attempt: AttemptState) -> str:
    """Returns subject and trailers of an attempt's commit."""
    evaluation = attempt.evaluation
    if evaluation is None:
        raise ValueError(f"{attempt.attempt} is not judged")
    speed = speed_of(evaluation)
    trailers = {
        "Verdict": evaluation.verdict,
        "Speedup": speed.words if speed is not None else "",
        "Against": baseline_names(evaluation) if speed is not None else "",
        "Device": evaluation.device,
        "Origin": attempt.origin,
        "Base": attempt.base or "",
        "Same-As": attempt.same_as,
        "Strategy": _shorten(attempt.strategy),
        "Error": _shorten(evaluation.error.first_line) if evaluation.error else "",
    }
    figure = speed.figure if speed is not None else ""
    subject = " ".join(part for part in (attempt.attempt, evaluation.verdict, figure, attempt.origin) if part)
    return with_trailers(subject, trailers)


def _shorten(text: str) -> str:
    return textwrap.shorten(text, LINE_CHARS, placeholder=" ...")


def with_trailers(subject: str, trailers: Mapping[str, str]) -> str:
    """Returns a commit message; trailers without a value are left out, and line ends in values become spaces."""
    lines = [f"{key}: {' '.join(value.split())}" for key, value in trailers.items() if value.strip()]
    return "\n".join([subject, "", *lines]) + "\n"


def trailers_of(message: str) -> dict[str, str]:
    """Returns the trailers that `with_trailers` wrote."""
    body = message.partition("\n\n")[2]
    pairs = (line.partition(": ") for line in body.splitlines())
    return {key: value for key, mark, value in pairs if mark}


def code_call(calls: Sequence[CallState]) -> CallState | None:
    """Returns the call that made an attempt's candidate: the last finished call that asked for code."""
    code_calls = (call for call in reversed(calls) if call.finished and call.role is not Role.REFLECTOR)
    return next(code_calls, None)


def _call_record(call: CallState) -> CallRecord:
    fields = _shared_fields(CallRecord, call)
    text = call.text if call.finished else ""
    return CallRecord(**fields | {"messages": _with_named_system(call.messages), "text": text})


def _shared_fields(record: type[msgspec.Struct], state: AttemptState | CallState) -> dict[str, Any]:
    """Returns the fields of a record that the state has by the same name."""
    return {name: getattr(state, name) for name in record.__struct_fields__ if hasattr(state, name)}


def _lines(records: Sequence[msgspec.Struct]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def _pretty(record: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"
