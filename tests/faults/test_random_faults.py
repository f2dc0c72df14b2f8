"""Protects sessions from random faults of engine, store, socket, model server and workers; a seed is one home with many faults.

After each fault the session is resumed to its end. Then no finished reply was asked again, all attempts are in git, each
session can be listed, shown and replayed, and right kernels are right. A failure prints its seed and the faults of its home.
`test_kill_at_each_write.py` and `tests/sessions/test_repairs.py` have each damage of a store at rest.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from engine.process import launch
from harness import Verdict
from sessions import Home, fold
from sessions.engine_info import read_engine_info
from sessions.errors import NothingToResume
from sessions.events import CallFinished, CallStarted, SessionFinished
from sessions.repairs import repairs
from tests.support.command_line import ROOT, Shell, run_script
from tests.support.engine.live_engines import journal, plan_for, right, started, until_left, wrong
from tests.support.engine.model_server import Answer, Seen, cuts, model_server, says
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


@dataclass
class Model:
    """Answers with a wrong kernel, a reflection, then right kernels; each whole reply has a mark of its own."""

    chance: random.Random
    wire: str
    cut_request: int = -1
    """Number of the request whose answer breaks off."""
    whole: set[str] = field(default_factory=set)
    """Marks of the replies that were sent to their end."""
    gate: threading.Event = field(default_factory=threading.Event)
    """No request is answered before it is set."""
    number: int = 0

    def answer(self, seen: Seen) -> Answer:
        """Return the answer to a request."""
        self.gate.wait(LIMIT_S)
        number, self.number = self.number, self.number + 1
        mark = f"mark-{self.chance.getrandbits(64):016x}"
        if "Explain the failure" in seen.prompt:
            text = "It subtracts."
        else:
            text = right(mark) if "It subtracts." in seen.prompt or "+ tl.load(" in seen.prompt else wrong()
        text += f"\n{mark}\n"
        if number == self.cut_request:
            return cuts(text, after=self.chance.randrange(4))
        self.whole.add(mark)
        return says(text)


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
    store, live = damage.home.store, damage.home.files(damage.session)
    heads = store / "refs/heads" / damage.session
    wait_until(lambda: heads.exists() or not live.running, "the first commit")
    damage.kill()
    until_quiet(store)
    loosen(store)
    others = objects(store, f"--exclude={damage.session}/*", "--branches")
    own = objects(store, f"--branches={damage.session}/*") - others
    files = [store / "objects" / name[:2] / name[2:] for name in sorted(own)]
    files = [file for file in files if file.is_file()]
    if not files:
        damage.faults.append("  nothing to spoil: all is packed")
        return
    file, way = damage.chance.choice(files), damage.chance.choice(("remove", "halve", "empty"))
    damage.faults.append(f"  {way} {file.relative_to(damage.home.root)}")
    data = file.read_bytes()
    file.unlink()
    if way != "remove":
        file.write_bytes(data[: len(data) // 2] if way == "halve" else b"")
        repair()  # a resume finds what is missing; only a repair reads the contents


def repair() -> None:
    """Repair the home as a person does."""
    repaired = run_script("doctor", "--repair")
    assert repaired.code == 0, repaired.out + repaired.err


def add_texts(damage: Damage, model: Model) -> None:
    """Put a text that is not what its name says among the compiler's texts, while the engine runs."""
    folder = damage.home.files(damage.session).texts
    folder.mkdir(exist_ok=True)
    (folder / ("0" * 64)).write_bytes(b"no gzip")
    model.gate.set()
    damage.kill()


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


def cut_reply(damage: Damage, model: Model) -> None:
    """Drop the connection in the middle of one reply."""
    model.cut_request = damage.chance.randrange(4)
    damage.faults.append(f"  request {model.cut_request}")
    model.gate.set()


TABLE = (
    kill_engine,
    kill_worker,
    damage_store,
    add_texts,
    flood_socket,
    cut_reply,
)


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
