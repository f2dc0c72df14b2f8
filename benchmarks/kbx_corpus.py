"""Compares verdicts on the recorded model answers of KernelBench-X with the outcomes that its corpus recorded.

    wavedeck suites add kernelbench-x CLONE
    .venv/bin/python -m benchmarks.kbx_corpus [SUITE] [RESULTS]

Reads `data/kbx_corpus` in the suite's clone, and judges on `cpu` each different answer to a task that the suite still has.
RESULTS (default `kbx-corpus.jsonl`) gets one JSON object for each answer; answers with a result are not judged again. A table
counts the verdicts by recorded outcome. After it come the answers that the corpus and the judge see differently.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from benchmarks.usage import arguments
from harness import DevicePool, Verdict, evaluate, target
from harness.recording.recorder import find_or_record
from harness.wire.errors import NotRecorded
from sessions.home import home_from
from suites import load_public_suite
from suites.public.loaders.separated import SEPARATOR
from suites.public.task import PublicTask

TARGET = target("gfx942")
SEED = 1
AT_ONCE = 2
PROGRESS = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)


class _Side(msgspec.Struct):
    call_ok: bool | None = None
    exe_ok: bool | None = None


class _Row(msgspec.Struct):
    task_id: str
    before: _Side
    after: _Side
    before_code: str | None = None
    after_code: str | None = None


class Answer(msgspec.Struct, frozen=True):
    """A recorded answer of a model: a kernel file without the benchmark's test."""

    file: str
    code: str
    called: bool
    """The corpus recorded that the file ran with the test."""
    right: bool
    """The corpus recorded that its outputs were right."""

    @property
    def digest(self) -> str:
        """Name of the answer in the results."""
        return blake2b(f"{self.file}\n{self.code}".encode(), digest_size=6).hexdigest()


class Result(msgspec.Struct, frozen=True):
    """Verdict on one answer."""

    digest: str
    file: str
    called: bool
    right: bool
    verdict: str
    kind: str = ""
    why: str = ""
    seconds: float = 0.0


def read_answers(corpus: Path) -> list[Answer]:
    """Return the different answers of a corpus, in its order."""
    answers: dict[str, Answer] = {}
    for path in sorted(corpus.glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            row = msgspec.json.decode(line, type=_Row)
            for side, code in ((row.before, row.before_code), (row.after, row.after_code)):
                if code:
                    kernel = code.partition(SEPARATOR)[0].rstrip() + "\n"
                    answer = Answer(row.task_id, kernel, bool(side.call_ok), bool(side.exe_ok))
                    answers[answer.digest] = answer
    return list(answers.values())


async def judge_answers(answers: Sequence[Answer], tasks: dict[str, PublicTask], file: Path) -> None:
    """Judge answers, two at a time, and append their results to a file."""
    waiting = iter(answers)
    done = 0
    async with DevicePool(["cpu"], slots=AT_ONCE) as pool:

        async def judge_next() -> None:
            nonlocal done
            for answer in waiting:
                result = await _judge(answer, tasks[answer.file], pool)
                done += 1
                PROGRESS.print(f"{done} of {len(answers)}: {_line(result)}")
                with file.open("ab") as results:
                    results.write(msgspec.json.encode(result) + b"\n")

        async with asyncio.TaskGroup() as group:
            for number in range(AT_ONCE):
                group.create_task(judge_next(), name=f"answers/{number}")


async def _judge(answer: Answer, public: PublicTask, pool: DevicePool) -> Result:
    began = time.monotonic()
    result = Result(answer.digest, answer.file, answer.called, answer.right, "not recorded")
    try:
        task = await find_or_record(public, home_from(os.environ).suites, pool=pool, target=TARGET)
    except NotRecorded as reason:
        return msgspec.structs.replace(result, why=str(reason))
    evaluation = await evaluate(answer.code, task, pool, targets=[TARGET], seed=SEED)
    error = evaluation.error
    return msgspec.structs.replace(
        result,
        verdict=evaluation.verdict.value,
        kind=error.kind if error else "",
        why=error.first_line if error else "",
        seconds=round(time.monotonic() - began, 1),
    )


def _line(result: Result) -> str:
    return f"{result.digest} {result.file}: {result.verdict} {result.kind}: {result.why}"


def print_tables(results: Sequence[Result]) -> None:
    """Print the counts by record and verdict, then the answers that the corpus and the judge see differently."""
    counts = Counter((result.right, f"{result.verdict} {result.kind}".strip()) for result in results)
    table = Table("verdict here", "recorded right", "recorded wrong")
    for verdict in sorted({verdict for _, verdict in counts}):
        table.add_row(verdict, str(counts[True, verdict]), str(counts[False, verdict]))
    console = Console(soft_wrap=True, highlight=False, markup=False)
    console.print(table)
    for result in results:
        if result.right != (result.verdict == Verdict.CORRECT):
            record = "right" if result.right else "wrong" if result.called else "not run"
            console.print(f"recorded {record}: {_line(result)}")


def main(suite: str = "kernelbench-x", results: str = "kbx-corpus.jsonl") -> None:
    """Judge the answers that have no result yet, and print the tables."""
    tasks = {
        task.file: task for task in load_public_suite(suite, registry=home_from(os.environ).suites).tasks
    }
    folder = next(iter(tasks.values())).folder
    answers = read_answers(folder / "data/kbx_corpus")
    present = {answer.digest: answer for answer in answers if answer.file in tasks}
    PROGRESS.print(f"{len(answers)} different answers, {len(present)} to tasks of {suite}")
    file = Path(results)
    judged = _read(file)
    missing = [answer for digest, answer in present.items() if digest not in judged]
    if missing:
        asyncio.run(judge_answers(missing, tasks, file))
    print_tables([result for digest, result in _read(file).items() if digest in present])


def _read(file: Path) -> dict[str, Result]:
    """Return the results in a file by answer; the last result of an answer counts."""
    lines = file.read_bytes().splitlines() if file.is_file() else []
    results = [msgspec.json.decode(line, type=Result) for line in lines]
    return {result.digest: result for result in results}


if __name__ == "__main__":
    main(*arguments(__doc__))
