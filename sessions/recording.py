"""Recordings: the replies of sessions as a folder, from which the same session runs again without a model."""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from sessions.settings import SCHEMA
from suites.privacy import make_private_folder

from .errors import BadRecording
from .events import UNASKED, Origin, Role, Usage
from .names import TaskName, split_attempt, split_call
from .state.state import CallState, InstanceState, SessionState

NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


class RecordedReply(msgspec.Struct, frozen=True):
    """A line of a chain: one complete reply."""

    attempt: int
    role: Role
    n: int
    """Number of the role's call in the attempt."""
    text: str
    reasoning: str = ""
    stop_reason: str = ""
    usage: Usage = Usage()
    seconds: float | None = None


class ChainEntry(msgspec.Struct, frozen=True):
    """A chain in `recording.toml`."""

    task: TaskName
    chain: int
    """From 1; instance n plays chain n."""
    attempts: int
    start: bool = False
    """True if the chain starts from a kernel, which is in `start_path`."""
    fork: bool = False
    """True if a person began the instance by a fork: the chain waits for a fork."""


class RecordingFacts(msgspec.Struct, frozen=True):
    """`recording.toml`."""

    schema: int
    name: str
    model: str
    date: str
    session: str
    """One session, or several separated by commas."""
    chains: tuple[ChainEntry, ...]
    templates: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording in memory."""

    folder: Path
    facts: RecordingFacts
    chains: Mapping[tuple[str, int], tuple[RecordedReply, ...]]
    """Replies in order, by full task name and chain."""
    starts: Mapping[tuple[str, int], str]
    """The kernels that chains start from, by full task name and chain."""

    def reply(self, task: str, chain: int, attempt: int, role: Role, n: int) -> RecordedReply | None:
        """Returns the reply to one call; `None` if the recording has none."""
        for recorded in self.chains.get((task, chain), ()):
            if (recorded.attempt, recorded.role, recorded.n) == (attempt, role, n):
                return recorded
        return None

    def tasks(self) -> list[str]:
        """Returns the full names of its tasks, in order."""
        return list(dict.fromkeys(entry.task for entry in self.facts.chains))

    def chain_count(self, task: str) -> int:
        """Returns how many instances of a task it can play; chains of forks do not count."""
        return sum(entry.task == task and not entry.fork for entry in self.facts.chains)

    def longest_chain(self) -> int:
        """Returns the attempts of its longest chain; 0 if it has none."""
        return max((entry.attempts for entry in self.facts.chains), default=0)


REPLY: msgspec.json.Decoder[RecordedReply] = msgspec.json.Decoder(RecordedReply)


def chain_path(task: str, chain: int) -> str:
    """Returns the path of a chain's file in its recording."""
    return f"chains/{task}/{chain}.jsonl"


def start_path(task: str, chain: int) -> str:
    """Returns the path, in its recording, of the kernel that a chain starts from."""
    return f"chains/{task}/{chain}-start.txt"


def load_recording(folder: Path) -> Recording:
    """Load a recording; `BadRecording` names the file and the error."""
    facts = _read_facts(folder / "recording.toml")
    chains, starts = {}, {}
    for entry in facts.chains:
        if entry.chain < 1 or (entry.task, entry.chain) in chains:
            raise BadRecording(
                f"{folder / 'recording.toml'}: chain {entry.chain} of {entry.task} is repeated or less than 1"
            )
        chains[entry.task, entry.chain] = _read_chain(folder / chain_path(entry.task, entry.chain))
        if entry.start:
            starts[entry.task, entry.chain] = _read_start(folder / start_path(entry.task, entry.chain))
    return Recording(folder, facts, chains, starts)


def _read_facts(path: Path) -> RecordingFacts:
    try:
        facts = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), RecordingFacts)
    except FileNotFoundError as error:
        raise BadRecording(f"{path} does not exist; a recording is a folder with this file") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadRecording(f"{path} cannot be read: {error}") from error
    if facts.schema > SCHEMA:
        raise BadRecording(
            f"{path} has schema {facts.schema}; this version reads up to {SCHEMA}, so update it"
        )
    return facts


def _read_chain(path: Path) -> tuple[RecordedReply, ...]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise BadRecording(f"{path} cannot be read: {error.strerror}") from error
    replies = []
    seen = set()
    for number, line in enumerate(lines, start=1):
        try:
            reply = REPLY.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadRecording(f"{path} line {number} is not a reply: {error}") from error
        place = (reply.attempt, reply.role, reply.n)
        if place in seen:
            raise BadRecording(
                f"{path} line {number} repeats call {reply.n} of {reply.role} in attempt {reply.attempt}"
            )
        seen.add(place)
        replies.append(reply)
    return tuple(replies)


def _read_start(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadRecording(f"{path} cannot be read: {error}") from error


def write_recording(states: Sequence[SessionState], name: str, folder: Path) -> Path:
    """Write the replies of finished sessions to `folder/name`, completely or not at all; returns its path.

    The chains of a later session follow the chains of the earlier sessions: on each task, instance n becomes chain n
    plus the number of earlier instances. The chains of forks come last. Raises `BadRecording` if a session is not
    finished, models or prompts differ, there is no reply, or the name is taken or invalid.
    """
    if not NAME.fullmatch(name):
        raise BadRecording(f"{name!r} cannot name a recording; use small letters, digits, dots and dashes")
    begun = [state.started for state in states if state.started is not None]
    if not states or len(begun) < len(states) or not all(state.finished for state in states):
        raise BadRecording("only a finished session becomes a recording; resume it to its end first")
    started = begun[0]
    for field, words in (("model", "another model"), ("templates", "other prompts")):
        for event in begun[1:]:
            if getattr(event, field) != getattr(started, field):
                raise BadRecording(
                    f"{event.session} was made with {words} than {started.session}; a recording has one"
                )
    target = folder / name
    if target.exists():
        raise BadRecording(f"recording {name} already exists ({target}); choose another name")
    sessions = ", ".join(event.session for event in begun)
    chains = _chains_of(states)
    if not any(chain.replies for chain in chains):
        raise BadRecording(f"session {sessions} has no reply to record")
    facts = RecordingFacts(
        schema=SCHEMA,
        name=name,
        model=started.model,
        date=datetime.fromtimestamp(started.started, UTC).isoformat(timespec="seconds"),
        session=sessions,
        chains=tuple(chain.entry for chain in chains),
        templates=dict(sorted(started.templates.items())),
    )
    try:
        make_private_folder(folder)
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=folder) as place:
            unfinished = Path(place) / name
            _write_files(unfinished, facts, chains)
            unfinished.rename(target)
    except OSError as error:
        raise BadRecording(f"{target} cannot be written: {error.strerror}") from error
    return target


class _Chain(NamedTuple):
    """A chain to be written."""

    entry: ChainEntry
    replies: Sequence[RecordedReply]
    start: str


def _chains_of(states: Sequence[SessionState]) -> list[_Chain]:
    """The chains of sessions, in order of task and number; those of forks have the highest numbers of a task."""
    places: Counter[str] = Counter()
    chains = []
    for forks in (False, True):
        for state in states:
            assert state.started is not None
            for key, instance in state.instances.items():
                if (key in state.forks) is not forks:
                    continue
                number = places[instance.task] + (1 if forks else instance.instance)
                chain = _chain_of(instance, number, is_fork=forks)
                if chain.replies or not forks:
                    chains.append(chain)
                    places[instance.task] += forks
            if not forks:
                places.update(dict.fromkeys(state.started.tasks, state.started.instances))
    return sorted(chains, key=lambda chain: (chain.entry.task, chain.entry.chain))


def _chain_of(instance: InstanceState, number: int, *, is_fork: bool) -> _Chain:
    replies = [
        _reply(_asked_number(instance, split_attempt(call.attempt).number), call)
        for attempt in instance.attempts
        for call in attempt.calls
        if call.finished
    ]
    first = instance.attempts[0] if instance.attempts else None
    start = first.source or "" if first is not None and first.origin is Origin.HUMAN and not is_fork else ""
    attempts = max((reply.attempt for reply in replies), default=0)
    return _Chain(ChainEntry(instance.task, number, attempts, bool(start), is_fork), replies, start)


def _asked_number(instance: InstanceState, number: int) -> int:
    """Number of an attempt among those that asked a model: a replay may have other attempts without a model."""
    return number - sum(earlier.origin in UNASKED for earlier in instance.attempts if earlier.number < number)


def _reply(attempt: int, call: CallState) -> RecordedReply:
    number = split_call(call.call).number
    return RecordedReply(
        attempt,
        call.role,
        number,
        call.text,
        call.reasoning,
        call.stop_reason,
        call.usage,
        call.seconds,
    )


def _write_files(folder: Path, facts: RecordingFacts, chains: Sequence[_Chain]) -> None:
    folder.mkdir()
    (folder / "recording.toml").write_text(_facts_text(facts), encoding="utf-8")
    for entry, replies, start in chains:
        path = folder / chain_path(entry.task, entry.chain)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(msgspec.json.encode(reply) + b"\n" for reply in replies))
        if start:
            (folder / start_path(entry.task, entry.chain)).write_text(start, encoding="utf-8")


def _facts_text(facts: RecordingFacts) -> str:
    """`recording.toml`; Python's standard library reads TOML but does not write it."""
    head = {key: getattr(facts, key) for key in ("schema", "name", "model", "date", "session")}
    tables = [head, facts.templates, *map(msgspec.structs.asdict, facts.chains)]
    titles = ["", "\n[templates]\n", *["\n[[chains]]\n"] * len(facts.chains)]
    return "".join(title + _table_text(table) for title, table in zip(titles, tables, strict=True))


def _table_text(table: Mapping[str, str | int]) -> str:
    """A table; a flag that is off is left out."""
    return "".join(
        f"{key if key.isalpha() else _quoted(key)} = {_value_text(value)}\n"
        for key, value in table.items()
        if value is not False
    )


def _value_text(value: str | int) -> str:
    if isinstance(value, str):
        return _quoted(value)
    return "true" if value is True else str(value)


def _quoted(text: str) -> str:
    """A TOML basic string: TOML has the escapes of JSON, except for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
