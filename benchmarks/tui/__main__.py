"""The cockpit's numbers: `python -m benchmarks.tui [--only NAME] [--runs N] [--seconds S]`.

The real program runs in a pseudo terminal and reads a journal that the benchmark writes (`benchmarks.generated_session`).
All processes together have two cores. The keys are letters of a command line: they are on the screen when the terminal
has received the whole line.

- `start`: first frame of `wavedeck` and of `wavedeck run`, median of the runs.
- `stream`: 80 instances with 20 tokens a second each at 160x48.
- `slow`: the same, with a terminal that takes 50 KB a second.
- `idle`: nothing runs, at Home and in a session that has ended.
- `screens`: from the first key that opens a screen to the whole screen, with 80 instances and 8 GPUs at 160x48, p95
  of 20 programs.
- `replay`: a session of 10,000 attempts is opened; once its marks are found, jumps between its ends and its marks; memory.
- `memory`: a session of 100,000 events is watched.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.generated_session.eighty_instances import SESSION, session
from benchmarks.tui.pseudo_terminal import Program, program
from sessions import Home
from sessions import events as ev
from sessions.engine_info import read_engine_info
from sessions.files import FileLock
from sessions.journal.codec import encode

CORES = 2
SIZE = (160, 48)
WAVEDECK = str(Path(sys.executable).with_name("wavedeck"))
ENTERED = b"\x1b[?1049h"
DRAWN = b"help"
"""Words of the key bar, which is part of the first frame."""
PLAYS = b"playing"
BATCH_S = 0.1
TOKENS = "abcdefgh"
"""Two tokens: 20 a second come in ten pieces."""
LETTERS = "qzkxjwvybpfgmucdq"
SLOW_BYTES_PER_S = 50_000.0
SCREENS = {"Review": "V", "Report": "R", "Latency": "L", "Fleet": "F"}
SCREEN_PROGRAMS = 20
MARKS_CPU_S = 0.1
"""A replay that still reads needs more CPU time in a second."""


class Row(NamedTuple):
    """One line of the table."""

    name: str
    measured: float
    bound: float
    unit: str

    @property
    def holds(self) -> bool:
        """Whether the measured figure is within its bound."""
        return self.measured <= self.bound


class Options(NamedTuple):
    """How long to measure."""

    runs: int
    seconds: float


def environ_of(home: Path) -> dict[str, str]:
    """Return the environment of the measured programs."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return kept | {
        "HOME": str(home),
        "WAVEDECK_HOME": str(home / "wavedeck"),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
    }


@contextmanager
def new_home() -> Iterator[Path]:
    """Yield an empty home folder."""
    with tempfile.TemporaryDirectory(prefix="wavedeck-benchmark-") as folder:
        Home(Path(folder) / "wavedeck").ensure()
        yield Path(folder)


def write_journal(folder: Path, events: Iterable[ev.AnyEvent]) -> Path:
    """Write the journal of a session and return its path."""
    live = Home(folder / "wavedeck").files(SESSION)
    live.folder.mkdir(parents=True, exist_ok=True)
    with live.journal.open("ab") as file:
        file.writelines(encode(event) + b"\n" for event in events)
    return live.journal


def start(options: Options) -> Iterator[Row]:
    """Measure first frames."""
    homes, runs = [], []
    for _ in range(options.runs):
        with new_home() as folder:
            homes.append(_first_frame([WAVEDECK], folder))
        with new_home() as folder:
            command = [
                WAVEDECK,
                "run",
                "softmax",
                "--devices",
                "cpu",
                "--instances",
                "1",
                "--iterations",
                "1",
            ]
            runs.append(_first_frame(command, folder))
    yield Row("first frame of wavedeck", statistics.median(homes), 0.45, "s")
    yield Row("first frame of wavedeck run", statistics.median(runs), 0.8, "s")


def _first_frame(command: list[str], folder: Path) -> float:
    began = time.monotonic()
    with program(command, size=SIZE, environ=environ_of(folder)) as screen:
        screen.wait_for(ENTERED)
        seconds = screen.wait_for(DRAWN) - began
        if "run" in command:
            _end_engine(folder)
    return seconds


def _end_engine(folder: Path) -> None:
    """Wait for the engine that the command starts, and end it."""
    for _ in range(600):
        infos = [read_engine_info(live) for live in Home(folder / "wavedeck").session_folders()]
        if infos and infos[0] is not None:
            os.kill(infos[0].pid, 15)
            break
        time.sleep(0.05)
    while any(live.running for live in Home(folder / "wavedeck").session_folders()):
        time.sleep(0.05)


def stream(options: Options) -> Iterator[Row]:
    """Measure 80 streaming instances with a fast terminal."""
    with _streaming(bytes_per_s=None) as screen:
        spent, sent, began = screen.cpu_s(), screen.received, time.monotonic()
        time.sleep(options.seconds)
        took = time.monotonic() - began
        yield Row("80 instances x 20 tokens/s: CPU", (screen.cpu_s() - spent) / took * 100, 15, "%")
        yield Row("80 instances x 20 tokens/s: bytes", (screen.received - sent) / took / 1000, 30, "KB/s")
        delays = _key_delays(screen, options.seconds)
    yield Row("80 instances x 20 tokens/s: key to screen p95", _p95(delays) * 1000, 80, "ms")


def slow(options: Options) -> Iterator[Row]:
    """Measure 80 streaming instances with a slow terminal."""
    with _streaming(bytes_per_s=SLOW_BYTES_PER_S) as screen:
        delays = _key_delays(screen, options.seconds)
    yield Row("50 KB/s: key to screen median", statistics.median(delays) * 1000, 400, "ms")
    yield Row("50 KB/s: key to screen p95", _p95(delays) * 1000, 1000, "ms")


@contextmanager
def _streaming(*, bytes_per_s: float | None) -> Iterator[Program]:
    """Watch a session whose 80 instances stream."""
    with new_home() as folder:
        events = session()
        journal = write_journal(folder, events)
        lock = FileLock(journal.with_name("lock"))
        lock.acquire(wait_s=1.0)
        ended = threading.Event()
        writer = threading.Thread(target=_write_pieces, args=(journal, events, ended))
        writer.start()
        command = [WAVEDECK, "attach", SESSION]
        try:
            with program(command, size=SIZE, environ=environ_of(folder), bytes_per_s=bytes_per_s) as screen:
                screen.wait_for(b"softmax")
                time.sleep(3.0)
                yield screen
        finally:
            ended.set()
            writer.join()
            lock.release()


def _write_pieces(journal: Path, events: list[ev.AnyEvent], ended: threading.Event) -> None:
    """Start a call of each instance and write its pieces until `ended`."""
    keys = [f"{event.task.rpartition('/')[2]}#{event.instance}" for event in events if _starts(event)]
    calls = [f"{key}/99/generator/1" for key in keys]
    begun: list[ev.AnyEvent] = []
    for call in calls:
        attempt = call.rsplit("/", 2)[0]
        begun.append(ev.AttemptStarted(attempt=attempt, origin=ev.Origin.FRESH))
        begun.append(
            ev.CallStarted(call=call, attempt=attempt, role=ev.Role.GENERATOR, model="m", messages=())
        )
    numbers = itertools.count(len(events) + 1)
    mono, wall = events[-1].mono, time.time()

    def append(batch: Iterable[ev.AnyEvent]) -> None:
        passed = time.time() - wall
        stamped = (_stamped(event, next(numbers), wall + passed, mono + passed) for event in batch)
        with journal.open("ab") as file:
            file.write(b"".join(encode(event) + b"\n" for event in stamped))

    append(begun)
    while not ended.wait(BATCH_S):
        append(ev.ReplyPiece(call=call, kind="reasoning", text=TOKENS) for call in calls)


def _starts(event: ev.AnyEvent) -> bool:
    return isinstance(event, ev.InstanceStarted)


def _stamped(event: ev.AnyEvent, seq: int, wall: float, mono: float) -> ev.AnyEvent:
    return msgspec.structs.replace(event, seq=seq, wall=wall, mono=mono)


def _key_delays(screen: Program, seconds: float) -> list[float]:
    """Return the seconds from each key to its letter on the screen."""
    delays: list[float] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        before = screen.received
        screen.press(":")
        screen.wait_for_silence(0.2)
        for count in range(1, len(LETTERS) + 1):
            pressed = time.monotonic()
            screen.press(LETTERS[count - 1])
            delays.append(screen.wait_for(LETTERS[:count].encode(), after=before) - pressed)
            time.sleep(0.13)
        screen.press("\x1b")
        time.sleep(0.5)
    return delays


def _p95(delays: list[float]) -> float:
    return statistics.quantiles(delays, n=20)[-1]


def idle(options: Options) -> Iterator[Row]:
    """Measure a cockpit in which nothing happens."""
    with new_home() as folder:
        write_journal(folder, session())
        with program([WAVEDECK], size=SIZE, environ=environ_of(folder)) as screen:
            screen.wait_for(DRAWN)
            for place, keys in (("Home", ""), ("an ended session", "\r")):
                screen.press(keys)
                time.sleep(3.0)
                screen.wait_for_silence()
                spent, sent, began = screen.cpu_s(), screen.received, time.monotonic()
                time.sleep(options.seconds)
                took = time.monotonic() - began
                yield Row(f"{place} at rest: bytes", (screen.received - sent) / took, 0, "B/s")
                yield Row(f"{place} at rest: CPU", (screen.cpu_s() - spent) / took * 100, 1, "%")


def screens(_options: Options) -> Iterator[Row]:
    """Measure the first opening of each screen, in new programs that show a session at its end."""
    seconds: dict[str, list[float]] = {name: [] for name in SCREENS}
    spent: dict[str, list[float]] = {name: [] for name in SCREENS}
    with new_home() as folder:
        write_journal(folder, session())
        for _ in range(SCREEN_PROGRAMS):
            with program([WAVEDECK, "replay", SESSION], size=SIZE, environ=environ_of(folder)) as screen:
                screen.wait_for(PLAYS)
                _wait_for_marks(screen)
                screen.seconds_to_settle("$")
                for name, key in SCREENS.items():
                    before = screen.cpu_s()
                    seconds[name].append(screen.seconds_to_settle(key))
                    spent[name].append(screen.cpu_s() - before)
    for name in SCREENS:
        yield Row(f"first key to the whole of {name}: p95", _p95(seconds[name]) * 1000, 300, "ms")
        yield Row(f"{name}: CPU, median", statistics.median(spent[name]) * 1000, 300, "ms")


def replay(options: Options) -> Iterator[Row]:
    """Measure the replay of a session with 10,000 attempts."""
    with new_home() as folder:
        events = session(attempts=165)
        write_journal(folder, events)
        attempts = sum(isinstance(event, ev.AttemptStarted) for event in events)
        del events
        began = time.monotonic()
        command = [WAVEDECK, "replay", SESSION]
        with program(command, size=SIZE, environ=environ_of(folder)) as screen:
            opened = screen.wait_for(PLAYS) - began
            yield Row(f"replay of {attempts:,} attempts: open", opened, 1, "s")
            yield Row(f"replay of {attempts:,} attempts: open, CPU", screen.cpu_s(), 1, "s")
            _wait_for_marks(screen)
            screen.seconds_to_settle("$")
            keys = ["0", "$", *("B" * options.runs), *("X" * options.runs), *("(" * options.runs)]
            before = screen.cpu_s()
            delays = [screen.seconds_to_settle(key) for key in keys]
            spent = (screen.cpu_s() - before) / len(keys)
            memory_mb = screen.memory_bytes() / 1e6
        name = f"replay of {attempts:,} attempts: seek"
        yield Row(f"{name}, median", statistics.median(delays) * 1000, 100, "ms")
        yield Row(f"{name}, longest", max(delays) * 1000, 100, "ms")
        yield Row(f"{name}, CPU", spent * 1000, 100, "ms")
        yield Row(f"replay of {attempts:,} attempts: memory", memory_mb, 250, "MB")


def _wait_for_marks(screen: Program) -> None:
    """Return when the replay has found its marks: then it plays with little work."""
    spent = screen.cpu_s()
    for _ in range(60):
        time.sleep(1.0)
        if screen.cpu_s() - spent < MARKS_CPU_S:
            return
        spent = screen.cpu_s()


def memory(_options: Options) -> Iterator[Row]:
    """Measure the memory of a cockpit that watches a session of 100,000 events."""
    with new_home() as folder:
        events = session(attempts=57)
        journal = write_journal(folder, events)
        count = len(events)
        del events
        lock = FileLock(journal.with_name("lock"))
        lock.acquire(wait_s=1.0)
        with program([WAVEDECK, "attach", SESSION], size=SIZE, environ=environ_of(folder)) as screen:
            screen.wait_for(DRAWN)
            screen.wait_for_silence(3.0)
            yield Row(f"memory after {count:,} events", screen.memory_bytes() / 1e6, 250, "MB")
        lock.release()


BENCHMARKS: dict[str, Callable[[Options], Iterable[Row]]] = {
    "start": start,
    "stream": stream,
    "slow": slow,
    "idle": idle,
    "screens": screens,
    "replay": replay,
    "memory": memory,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure the cockpit in a pseudo terminal.")
    parser.add_argument("--only", choices=BENCHMARKS, help="Measure this alone.")
    parser.add_argument("--runs", type=int, default=5, help="Starts and jumps of each kind.")
    parser.add_argument("--seconds", type=float, default=10.0, help="Length of each measurement.")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    options = Options(arguments.runs, arguments.seconds)
    table = Table("name", "measured", "bound", "holds")
    for name in [arguments.only] if arguments.only else BENCHMARKS:
        for row in BENCHMARKS[name](options):
            measured, bound = f"{row.measured:,.3g} {row.unit}", f"{row.bound:g} {row.unit}"
            table.add_row(row.name, measured, bound, "yes" if row.holds else "NO")
    Console().print(table)


if __name__ == "__main__":
    main()
