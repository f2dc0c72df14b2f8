"""Packs: one file with the sessions of a study, from which every report is made again without a store or a network.

A pack is a gzipped tar of `manifest.json`, `plan.toml` and the journals, `sessions/NAME.jsonl`: all else is folded from a
journal. The same sessions give the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from sessions.errors import PackUnusable
from sessions.events import AnyEvent, CallFinished, CallStarted, SessionStarted
from sessions.home import Home
from sessions.journal.journal import Journal, parse
from sessions.settings import SCHEMA, Schema

from .anonymity import Anonymity
from .store import Store

SUFFIX = ".tar.gz"
MANIFEST, PLAN = "manifest.json", "plan.toml"
MOST_BYTES = 1 << 30
"""Most bytes of a pack after decompression; 1 MB can hold a gigabyte of zeros."""


class PackManifest(msgspec.Struct, frozen=True, kw_only=True):
    """`manifest.json`."""

    schema: Schema = SCHEMA
    study: str
    version: str
    """Version of Wavedeck that wrote the pack."""
    commit: str = ""
    """Commit of its code; empty if it does not run from a git work tree."""
    tasks: dict[str, str]
    """sha256 of each task on this machine when the pack was written, by name; without tasks that are not on it."""
    templates: dict[str, str] = {}
    """sha256 of each prompt template of the first session, by file name."""
    models: dict[str, list[str]] = {}
    """The ids that servers gave, by the model that was asked for."""
    sessions: dict[str, str] = {}
    """sha256 of each journal by session, in the order of the study's cells."""
    anonymous: bool = False


class Pack(NamedTuple):
    """A pack that was read."""

    manifest: PackManifest
    journals: Mapping[str, Journal]
    """The journals by session, in the order of the study's cells."""


def journal_bytes(home: Home, session: str) -> bytes:
    """Returns the journal of a session as its engine wrote it. Raises `NoSuchSession`."""
    try:
        return home.live(session).journal.read_bytes()
    except FileNotFoundError:
        with Store.read_only(home.store) as store:
            return store.session_bytes(session)


def pack_bytes(manifest: PackManifest, plan: str, journals: Mapping[str, bytes], *, anonymous: bool) -> bytes:
    """Returns the file of a pack. `manifest` gets the facts that the journals have."""
    events = _events(journals.values())
    if anonymous:
        hidden = Anonymity(events)
        plan = hidden.text(plan)
        journals = {name: hidden.journal(data) for name, data in journals.items()}
        events = _events(journals.values())
    started = next((event for event in events if isinstance(event, SessionStarted)), None)
    manifest = msgspec.structs.replace(
        manifest,
        templates=started.templates if started is not None else {},
        models=_served(events),
        sessions={name: hashlib.sha256(data).hexdigest() for name, data in journals.items()},
        anonymous=anonymous,
    )
    files = {
        MANIFEST: msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n",
        PLAN: plan.encode(),
        **{_path(name): data for name, data in journals.items()},
    }
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), mtime=0)


def read_pack(file: Path) -> Pack:
    """Returns the sessions of a pack; nothing is extracted. Raises `PackUnusable`."""
    try:
        with tarfile.open(fileobj=io.BytesIO(_inflated(file)), mode="r:") as archive:
            manifest = msgspec.json.decode(_member(archive, MANIFEST), type=PackManifest)
            journals = {name: _member(archive, _path(name)) for name in manifest.sessions}
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError, KeyError, RecursionError) as error:
        raise PackUnusable(file, why=str(error)) from error
    for name, data in journals.items():
        if hashlib.sha256(data).hexdigest() != manifest.sessions[name]:
            raise PackUnusable(file, why=f"the journal of {name} is not the one that was packed")
    return Pack(manifest, {name: parse(io.BytesIO(data)) for name, data in journals.items()})


def _path(session: str) -> str:
    return f"sessions/{session}.jsonl"


def _inflated(file: Path) -> bytes:
    with gzip.open(file) as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES >> 20} MB")
    return data


def _member(archive: tarfile.TarFile, path: str) -> bytes:
    # Not a link: a link can name itself.
    entry = archive.getmember(path)
    member = archive.extractfile(entry) if entry.isreg() else None
    if member is None:
        raise KeyError(f"{path} is not a file")
    return member.read()


def _events(journals: Iterable[bytes]) -> list[AnyEvent]:
    return [event for data in journals for event in parse(io.BytesIO(data)).events]


def _served(events: Iterable[AnyEvent]) -> dict[str, list[str]]:
    models: dict[str, str] = {}
    served: dict[str, set[str]] = {}
    for event in events:
        if isinstance(event, CallStarted):
            models[event.call] = event.model
            served.setdefault(event.model, set())
        elif isinstance(event, CallFinished) and event.served is not None and event.served.model:
            served[models[event.call]].add(event.served.model)
    return {model: sorted(ids) for model, ids in served.items()}
