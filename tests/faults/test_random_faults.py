"""Protects sessions from random faults of store, journal, socket, model server and workers; a seed is one home with many faults.

After each fault the session is resumed to its end. Then no finished reply was asked again, all attempts are in git, each
session can be listed, shown and replayed, and right kernels are right. A failure prints its seed and the faults of its home.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from engine.process import launch
from harness import Verdict
from sessions import Home, fold, journal_of, record_at_rest
from sessions.engine_info import read_engine_info
from sessions.errors import NothingToResume
from sessions.events import CallFinished, CallStarted, SessionFinished, SessionTitled
from sessions.repairs import repairs
from tests.faults.odd_model import Model, cut, odd_count, odd_stop
from tests.support.command_line import ROOT, Shell, run_script
from tests.support.engine.live_engines import journal, plan_for, started, until_left
from tests.support.engine.model_server import model_server
from tests.support.sessions.story import assert_sound, git, loosen
from tests.support.waiting import LIMIT_S, wait_until

pytestmark = [pytest.mark.judge, pytest.mark.soak]

HOMES, FAULTS = 20, 10
"""Number of homes, and of faults in each."""
INSTANCES = 2
RESUMES = 3
"""Resumes that a session may need to its end: a fault can stop an engine, but not two in a row."""
UNCOUNTED = (Verdict.CANCELLED, Verdict.INFRA_ERROR)


@dataclass
class Damage:
    """A home with its sessions, and what was done to them."""

    home: Home
    chance: random.Random
    faults: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    lost: int = 0
    """Number of replies that the current session may lose or ask for again."""
    until_end: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """Connections that stay open until the session has ended."""

    @property
    def session(self) -> str:
        """The current session."""
        return self.sessions[-1]

    def engine(self) -> psutil.Process | None:
        """Return the process of the running engine."""
        info = read_engine_info(self.home.files(self.session))
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(info.pid) if info and self.home.files(self.session).running else None
        return None

    def let_work(self, most_events: int) -> None:
        """Let the engine record a random number of events, and a moment more."""
        live = self.home.files(self.session)
        count = self.chance.randrange(most_events)
        wait_until(
            lambda: not live.running or len(journal(self.home, self.session)) >= count, f"{count} events"
        )
        time.sleep(self.chance.random() * 0.05)  # the fault does not always follow an event

    def kill(self) -> None:
        """End the engine with SIGKILL at a random moment."""
        self.let_work(30)
        engine = self.engine()
        if engine is not None:
            self.lost += INSTANCES
            with contextlib.suppress(psutil.NoSuchProcess):
                engine.kill()
        until_left(self.home, self.session)


# Faults: each is called while the engine of a new session runs


def kill_engine(damage: Damage, model: Model) -> None:
    model.gate.set()
    for _ in range(damage.chance.randrange(1, 4)):
        damage.kill()
        resume(damage)


def kill_worker(damage: Damage, model: Model) -> None:
    """SIGKILL one process below the engine: its servers, its wardens or the candidate's."""
    model.gate.set()
    damage.let_work(15)
    time.sleep(damage.chance.random() * 4)
    engine = damage.engine()
    if engine is not None:
        with contextlib.suppress(psutil.NoSuchProcess):
            workers = engine.children(recursive=True)
            if workers:
                worker = damage.chance.choice(workers)
                damage.faults.append(f"  of {len(workers)}: {' '.join(worker.cmdline()[-3:])}")
                worker.kill()


def damage_store(damage: Damage, model: Model) -> None:
    """Remove, truncate or empty one object of the session that no other session has."""
    model.gate.set()
    kill_after_commit(damage)
    loosen(damage.home.store)
    others = objects(damage.home.store, f"--exclude={damage.session}/*", "--branches")
    own = objects(damage.home.store, f"--branches={damage.session}/*") - others
    files = [damage.home.store / "objects" / name[:2] / name[2:] for name in sorted(own)]
    if spoil(damage, [file for file in files if file.is_file()]) not in ("", "remove"):
        repair()  # a resume finds what is missing; only a repair reads the contents


def repair() -> None:
    """Repair the home as a person does."""
    repaired = run_script("doctor", "--repair")
    assert repaired.code == 0, repaired.out + repaired.err


def kill_after_commit(damage: Damage) -> None:
    """Kill the engine when the session has something in the store."""
    heads, live = damage.home.store / "refs/heads" / damage.session, damage.home.files(damage.session)
    wait_until(lambda: heads.exists() or not live.running, "the first commit")
    damage.kill()
    until_quiet(damage.home.store)


def damage_ref(damage: Damage, model: Model) -> None:
    """Remove or spoil one ref of the session."""
    model.gate.set()
    kill_after_commit(damage)
    heads = damage.home.store / "refs/heads" / damage.session
    spoil(damage, sorted(path for path in heads.rglob("*") if path.is_file()))


def damage_description(damage: Damage, model: Model) -> None:
    """Remove `session.json` of a finished session."""
    model.gate.set()
    finish(damage)
    tree = git(damage.home.store, "ls-tree", f"{damage.session}/_journal", "session.json").split()
    loosen(damage.home.store)
    spoil(damage, [damage.home.store / "objects" / tree[2][:2] / tree[2][2:]])


def damage_store_of_finished(damage: Damage, model: Model) -> None:
    """Remove the store after the session has finished: its journal has all of it."""
    model.gate.set()
    finish(damage)
    shutil.rmtree(damage.home.store)


def damage_files(damage: Damage, model: Model) -> None:
    """Spoil a file in the folder of a finished session: the compressed journal, the summary, a text of the compiler."""
    model.gate.set()
    finish(damage)
    files = damage.home.files(damage.session)
    texts = sorted(files.texts.iterdir()) if files.texts.is_dir() else []
    spoil(damage, [files.stored_journal, files.stored_journal, files.summary, *texts[:1]])


def add_texts(damage: Damage, model: Model) -> None:
    """Put a text that is not what its name says among the compiler's texts, while the engine runs."""
    folder = damage.home.files(damage.session).texts
    folder.mkdir(exist_ok=True)
    (folder / ("0" * 64)).write_bytes(b"no gzip")
    model.gate.set()
    damage.kill()


def decide(damage: Damage, model: Model) -> None:
    """Open the finished session again for an event of a person, and kill that process at a random moment."""
    model.gate.set()
    finish(damage)
    command = [sys.executable, "-m", "tui", "sessions", "title", damage.session, "mine"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as person:
        time.sleep(damage.chance.random() * 1.5)
        person.kill()
    until_quiet(damage.home.store)
    resume(damage)


def fetch_over(damage: Damage, model: Model) -> None:
    """Fetch the finished session from a copy of the home in which it went on."""
    model.gate.set()
    finish(damage)
    copy = Home(damage.home.root.with_name(f"copy-{damage.session}"))
    shutil.copytree(damage.home.root, copy.root)
    record_at_rest(copy, damage.session, SessionTitled(title="from a copy"))
    fetched = run_script("sessions", "fetch", str(copy.store), damage.session)
    assert fetched.code == 0, fetched.err
    assert fold(journal_of(damage.home, damage.session).events).title == "from a copy"
    spoil(damage, [damage.home.files(damage.session).fetched])


def tear_journal(damage: Damage, model: Model) -> None:
    """Cut the last line of the journal in its middle, as a full disk does."""
    model.gate.set()
    damage.kill()
    file = damage.home.files(damage.session).journal
    if file.exists():
        data = file.read_bytes()
        last = data.rstrip(b"\n").rfind(b"\n") + 1
        if last:
            file.write_bytes(data[: (last + len(data)) // 2])
            damage.lost += 1


def send_garbage(damage: Damage, model: Model) -> None:
    """Send bytes that are no command, also very deep JSON."""
    deep = b'{"a":' * 100_000 + b"\n"
    for data in (damage.chance.randbytes(4000) + b"\n", b"{}\n[]\n7\n", deep, b'"' * 9_000_000):
        with connection(damage) as client, contextlib.suppress(OSError):
            client.sendall(data)
            client.recv(65536)
    model.gate.set()


def flood_socket(damage: Damage, model: Model) -> None:
    """Send pings without reading an answer; then the session is stopped by a person."""
    ping = json.dumps(
        {"token": damage.home.files(damage.session).token.read_text().strip(), "command": "ping"}
    )
    client = damage.until_end.enter_context(connection(damage))
    client.settimeout(5)
    with contextlib.suppress(OSError):  # a time limit: the engine reads no more
        for _ in range(700):
            client.sendall((ping + "\n").encode() * 100)
    command = [sys.executable, "-m", "tui", "stop", damage.session]
    subprocess.run(command, cwd=ROOT, check=False, capture_output=True, timeout=LIMIT_S)
    until_left(damage.home, damage.session)
    damage.lost += INSTANCES
    model.gate.set()


def spoil_reply(damage: Damage, model: Model) -> None:
    """Send one odd reply, or one that breaks off."""
    model.odd = damage.chance.choice((cut, odd_count, odd_count, odd_stop))
    model.odd_request = damage.chance.randrange(4)
    damage.faults.append(f"  {model.odd.__name__} in request {model.odd_request}")
    model.gate.set()


TABLE = (
    kill_engine,
    kill_worker,
    damage_store,
    damage_ref,
    damage_description,
    damage_store_of_finished,
    damage_files,
    add_texts,
    decide,
    fetch_over,
    tear_journal,
    send_garbage,
    flood_socket,
    spoil_reply,
    spoil_reply,
)


def spoil(damage: Damage, files: list[Path]) -> str:
    """Remove, halve or empty one of the files, and return which; empty without a file."""
    if not files:
        damage.faults.append("  nothing to spoil: all is packed")
        return ""
    file, way = damage.chance.choice(files), damage.chance.choice(("remove", "halve", "empty"))
    damage.faults.append(f"  {way} {file.relative_to(damage.home.root)}")
    data = file.read_bytes()
    file.unlink()
    if way != "remove":
        file.write_bytes(data[: len(data) // 2] if way == "halve" else b"")
    return way


def objects(store: Path, *which: str) -> set[str]:
    """Return the names of all objects that these branches reach."""
    command = ["git", "-C", str(store), "rev-list", "--objects", *which]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return {line.split()[0] for line in done.stdout.splitlines()}


def until_quiet(store: Path) -> None:
    """Wait until no git process of a killed engine writes to the store."""

    def writers() -> list[int]:
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.name() == "git" and Path(process.cwd()).is_relative_to(store):
                    found.append(process.pid)
        return found

    wait_until(lambda: not writers(), "the end of git")


def connection(damage: Damage) -> socket.socket:
    """Connect to the engine's control socket."""
    info = read_engine_info(damage.home.files(damage.session))
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(LIMIT_S)
    client.connect(info.socket)
    return client


def resume(damage: Damage) -> None:
    """Resume the session unless it is finished, and keep its log."""
    with contextlib.suppress(NothingToResume):
        launch.resume(damage.home, damage.session)
    keep_log(damage)


def keep_log(damage: Damage) -> None:
    """Give the log a second name: it goes when the session is finished."""
    with contextlib.suppress(FileNotFoundError, FileExistsError):
        os.link(damage.home.files(damage.session).log, damage.home.root / f"{damage.session}.log")


def finish(damage: Damage) -> None:
    """Let the session end, with a resume where a fault stopped its engine."""
    for _ in range(RESUMES):
        until_left(damage.home, damage.session)
        live = damage.home.files(damage.session)
        if live.stored:
            return
        resume(damage)
    until_left(damage.home, damage.session)


@pytest.mark.parametrize("seed", range(HOMES))
def test_random_faults_lose_nothing(
    seed: int, isolated_home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    chance = random.Random(seed)
    damage = Damage(Home(isolated_home), chance)
    try:
        for _ in range(FAULTS):
            run_session(damage, chance.choice(TABLE), monkeypatch)
            check_home(damage, Shell(capsys))
    except BaseException as error:
        error.add_note("\n".join([f"seed {seed}; faults:", *damage.faults]))
        raise


def run_session(
    damage: Damage, fault: Callable[[Damage, Model], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run a new session with one fault to its end, and check what it lost."""
    real = fault is kill_worker
    monkeypatch.setattr(launch, "ENGINE", "engine" if real else "tests.support.engine.judgeless_engine")
    damage.faults.append(fault.__name__)
    damage.lost = 0
    model = Model(random.Random(damage.chance.random()), damage.chance.choice(("openai", "anthropic")))
    with model_server(answer=model.answer) as server, contextlib.ExitStack() as damage.until_end:
        url = server.openai_url if model.wire == "openai" else server.anthropic_url
        plan = plan_for(server, instances=INSTANCES, model=f"{model.wire}:test@{url}")
        with started(plan, damage.home) as session:
            damage.sessions.append(session)
            keep_log(damage)
            fault(damage, model)
            if damage.home.files(session).stored:
                repair()  # nothing else looks at a finished session
            finish(damage)
    check_session(damage, model)


def check_session(damage: Damage, model: Model) -> None:
    """Check that its replies were paid once, and that each attempt is in git with the verdict of its kernel."""
    events = journal(damage.home, damage.session)
    assert any(isinstance(event, SessionFinished) for event in events), f"not finished: {events[-1]}"
    assert damage.home.files(damage.session).stored, "the session is not in the store"
    assert [*repairs(damage.home)] == []
    assert_sound(damage.home.store)
    finished, kept = set[str](), set[str]()
    for event in events:
        if isinstance(event, CallStarted):
            assert event.call not in finished, f"{event.call} was asked again"
        elif isinstance(event, CallFinished):
            assert event.call not in finished, f"{event.call} finished twice"
            finished.add(event.call)
            kept |= set(re.findall(r"mark-[0-9a-f]{16}", event.text)[-1:])  # a kernel can quote earlier marks
    lost = model.whole - kept
    assert len(lost) <= damage.lost, f"paid replies lost: {lost}"
    commits = set(git(damage.home.store, "rev-list", f"--branches={damage.session}/*").split())
    for attempt in fold(events).attempts():  # type: ignore[arg-type]
        assert attempt.commit in commits, f"{attempt.attempt} is not in git"
        for line in git(damage.home.store, "ls-tree", "-r", str(attempt.commit)).splitlines():
            git(damage.home.store, "cat-file", "blob", line.split()[2])
        if attempt.source and attempt.verdict not in UNCOUNTED:
            expected = Verdict.WRONG if "x - y" in attempt.source else Verdict.CORRECT
            assert attempt.verdict is expected, f"{attempt.attempt} is {attempt.verdict}"


def check_home(damage: Damage, shell: Shell) -> None:
    """Check that all sessions can be listed, shown and replayed, and that no log has a traceback."""
    listed = shell("sessions")
    assert listed.code == 0, listed.err
    for session in damage.sessions:
        assert session in listed.out, f"{session} is not listed"
        for command in (("sessions", "show"), ("replay",)):
            done = shell(*command, session)
            assert "Traceback" not in done.out + done.err, done.err
            assert done.code == 0, f"{' '.join(command)}: {done.err}"
    for log in damage.home.root.glob("*.log"):
        words = log.read_text(errors="replace")
        assert "Traceback" not in words, words[-2000:]
