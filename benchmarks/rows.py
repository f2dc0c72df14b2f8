"""Time and memory of the rows of many sessions: `python -m benchmarks.rows [SESSIONS TASKS ATTEMPTS]`.

Invents sessions, by default 20 of 184 tasks with 10 attempts each, and stores them. Evaluations have a few kilobytes, without
calls of a model. Reads the rows twice, then runs `wavedeck report` over all sessions, each time in a process of its own. Prints
the seconds and the peak memory.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks.usage import arguments
from harness import Verdict
from sessions import events as ev
from sessions.home import Home
from sessions.journal.codec import encode
from sessions.journal.file import compress_journal
from sessions.metrics.formulas import geomean_speedup, share
from sessions.metrics.row_cache import rows_of_session
from tests.support.sessions import story

READ, REPORT = "read", "report"


def events(session: str, tasks: int, attempts: int) -> Iterator[ev.Event]:
    """Yield a session: of each task, failed attempts and then ever faster ones."""
    names = tuple(f"synthetic/task_{number}" for number in range(tasks))
    yield story.started(session, tasks=names, instances=1, iterations=attempts)
    judged = {
        (number, verdict): story.evaluation(
            verdict, speedup=1 + number / 10 if verdict is Verdict.CORRECT else None
        )
        for number in range(attempts)
        for verdict in (Verdict.WRONG, Verdict.CORRECT)
    }
    for task in names:
        yield ev.InstanceStarted(task=task, instance=1)
        for number in range(attempts):
            attempt = f"{task}#1/{number + 1}"
            verdict = Verdict.WRONG if number < 2 else Verdict.CORRECT
            yield ev.AttemptStarted(attempt=attempt, origin=ev.Origin.FRESH)
            yield ev.CandidateProposed(attempt=attempt, source=f"{story.KERNEL * 20}# {attempt}\n")
            yield ev.AttemptJudged(attempt=attempt, evaluation=judged[number, verdict], device_s=1.0)


def write(home: Home, sessions: int, tasks: int, attempts: int) -> int:
    """Store the sessions; returns the bytes of their journals."""
    home.ensure()
    written = 0
    for number in range(sessions):
        session = f"20260101-{number:06d}-geak-0000"
        numbered = (
            msgspec.structs.replace(event, seq=seq, wall=1.7e9 + seq)
            for seq, event in enumerate(events(session, tasks, attempts), 1)
        )
        files = home.files(session)
        files.folder.mkdir()
        written += files.journal.write_bytes(b"".join(encode(event) + b"\n" for event in numbered))
        compress_journal(files.journal)
    return written


def read(home: Home, sessions: int) -> None:
    """Read all rows and compute a few figures of them; prints what it took."""
    began = time.perf_counter()
    rows = [
        row for number in range(sessions) for row in rows_of_session(home, f"20260101-{number:06d}-geak-0000")
    ]
    read_s = time.perf_counter() - began
    figures = (
        share(row.correct for row in rows),
        geomean_speedup(row.headline for row in rows if row.headline),
    )
    whole_s = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{len(rows)} rows in {read_s:.2f} s, with figures {whole_s:.2f} s, {memory} MB; {figures}")  # noqa: T201


def report(root: str) -> None:
    """Run `wavedeck report` over all sessions; prints what it took."""
    began = time.perf_counter()
    names = sorted(path.name for path in (Path(root) / "rows").iterdir())
    command = [sys.executable, "-m", "tui", "report", *(name.partition(".")[0] for name in names)]
    done = subprocess.run(command, check=True, capture_output=True, env={**os.environ, "WAVEDECK_HOME": root})
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(  # noqa: T201
        f"report of {len(done.stdout)} bytes in {time.perf_counter() - began:.2f} s, "
        f"{usage.ru_utime + usage.ru_stime:.2f} s of CPU, {usage.ru_maxrss // 1024} MB"
    )


def main() -> None:
    """Write the sessions and read them twice."""
    if sys.argv[1:2] == [READ]:
        read(Home(Path(sys.argv[2])), int(sys.argv[3]))
        return
    if sys.argv[1:2] == [REPORT]:
        report(sys.argv[2])
        return
    sessions, tasks, attempts = map(int, arguments(__doc__)[:3] or (20, 184, 10))
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        print(f"journals of {write(home, sessions, tasks, attempts) / 1e6:.0f} MB")  # noqa: T201
        for _ in range(2):
            subprocess.run(
                [sys.executable, "-m", "benchmarks.rows", READ, str(home.root), str(sessions)], check=True
            )
        subprocess.run([sys.executable, "-m", "benchmarks.rows", REPORT, str(home.root)], check=True)


if __name__ == "__main__":
    main()
