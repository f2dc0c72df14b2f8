"""`wavedeck study pack`: write the sessions of a study into one file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import click
from git.exc import InvalidGitRepositoryError

from harness.linux.installed import installed_version
from sessions.catalog import Standing, find_study
from sessions.errors import NoSuchSession
from sessions.home import Home, home_from
from sessions.store.packing import SUFFIX, PackManifest, journal_bytes, pack_bytes
from sessions.store.repository import open_git
from suites import SuiteError, load_task
from tui.commands.files import write_document
from tui.diagnostics import Complaint, say
from tui.facts.vocabulary import counted


@click.command("pack", short_help="Write a study into one file for others.")
@click.argument("study")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar=f"FILE{SUFFIX}",
    help="File of the pack. An existing file is replaced.",
)
@click.option("--anonymous", is_flag=True, help="Remove names of people and hosts, and folders.")
def pack_command(study: str, *, output: Path, anonymous: bool) -> None:
    """Write the sessions of STUDY, its plan, and hashes of prompts and tasks into one file.

    `wavedeck report FILE` makes every table again from the file alone.
    """
    if not output.name.endswith(SUFFIX):
        raise Complaint(f"{output}: a pack is a file {SUFFIX}; name it so")
    home = home_from(os.environ)
    try:
        name, infos = find_study(home, study)
    except NoSuchSession:
        raise Complaint(f"no study {study!r}; list them with: wavedeck study") from None
    manifest = PackManifest(
        study=name,
        version=installed_version("wavedeck") or "not installed",
        commit=_commit(),
        tasks=task_digests({task for info in infos for task in info.settings.tasks}, home),
    )
    journals = {info.name: journal_bytes(home, info.name) for info in infos}
    data = pack_bytes(manifest, _plan(home, name), journals, anonymous=anonymous)
    write_document(output, data, "the pack")
    unfinished = sum(info.state is not Standing.FINISHED for info in infos)
    remark = f", {counted(unfinished, 'session')} of them not finished" if unfinished else ""
    say(
        f"{counted(len(infos), 'session')} of {name}{remark}, {len(data):,} bytes; next: wavedeck report {output}"
    )


def plan_file(home: Home, study: str) -> Path:
    """Return the home's copy of a study's plan."""
    return home.root / "studies" / f"{study}.toml"


def _plan(home: Home, study: str) -> str:
    try:
        return plan_file(home, study).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def task_digests(names: Iterable[str], home: Home) -> dict[str, str]:
    """Return the sha256 of all files of each task, by name; a task that is not on this machine is left out."""
    digests = {}
    for name in sorted(names):
        try:
            folder = load_task(name, registry=home.suites).folder
        except SuiteError:
            continue
        files = sorted(file for file in folder.iterdir() if file.is_file())
        whole = b"\0".join(part for file in files for part in (file.name.encode(), file.read_bytes()))
        digests[name] = hashlib.sha256(whole).hexdigest()
    return digests


def _commit() -> str:
    try:
        with open_git(Path(__file__).parents[3]) as code:
            return str(code.head.commit.hexsha)
    except (InvalidGitRepositoryError, ValueError):
        return ""
