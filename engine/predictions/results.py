"""Results of predictions, and the file that keeps them, so that nothing is judged twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from harness import Device, Evaluation, Verdict
from harness.stages.retries import NO_VERDICT
from sessions.state.speed import Speed, speed_of
from sessions.state.state import SessionState
from suites.privacy import make_private_folder
from suites.public.task import PublicTask

Item = TypeVar("Item")
Kept = TypeVar("Kept", bound=msgspec.Struct)
WAVEDECK = "wavedeck"
"""Protocol of results by this judge; the other one is `ORIGINAL`."""


class PredictionResult(msgspec.Struct, frozen=True):
    """How a prediction was judged."""

    task: str
    file: str
    """The suite's own name of the task."""
    sample: int
    protocol: str
    device: str
    verdict: str
    """A verdict of the judge; with the original protocol `passes`, `differs`, `fails` or `unsupported`."""
    call: bool
    """True if the candidate runs."""
    execution: bool
    """True if the candidate is correct."""
    key: str = ""
    """See `Sample.key`; empty if a session keeps the result."""
    kind: str = ""
    why: str = ""
    """The reason in one line; empty if it is correct."""
    printed: str = ""
    difficulty: int | None = None
    source: str = ""
    session: str = ""
    """The session that has the attempt; empty with the original protocol."""
    evaluation: Evaluation | None = None
    """`None` with the original protocol."""

    @property
    def counted(self) -> bool:
        """False if the device could not judge the candidate: accuracies then leave it out."""
        return self.verdict != "unsupported"

    @property
    def speed(self) -> Speed | None:
        """The speed that ranks a correct candidate; `None` if it was not measured."""
        return speed_of(self.evaluation) if self.evaluation is not None and self.execution else None

    @property
    def speedup(self) -> float | None:
        """The mean speedup of a correct candidate over its cases, by GEAK's definition; `None` if it was not measured."""
        return self.evaluation.speedup if self.evaluation is not None and self.execution else None


class ResultLines(Generic[Kept]):
    """A file of results by key, one JSON object a line, that survives an interrupted write.

    The last line of a key counts; a line that was cut off is skipped.
    """

    def __init__(self, path: Path, kind: type[Kept], key: Callable[[Kept], Hashable]) -> None:
        """`kind` is the type of the results, `key` returns a result's key."""
        self.path = path
        self._key = key
        self._results: dict[Hashable, Kept] = {}
        self._is_torn = False
        if path.is_file():
            data = path.read_bytes()
            self._is_torn = bool(data) and not data.endswith(b"\n")
            decoder = msgspec.json.Decoder(kind)
            for line in data.splitlines():
                try:
                    result = decoder.decode(line)
                except msgspec.DecodeError:
                    continue
                self._results[key(result)] = result

    def find(self, key: Hashable) -> Kept | None:
        """Return the result of a key; `None` if there is none."""
        return self._results.get(key)

    def add(self, result: Kept) -> None:
        """Keep a result."""
        self._results[self._key(result)] = result
        make_private_folder(self.path.parent)
        with self.path.open("ab") as file:
            file.write((b"\n" if self._is_torn else b"") + msgspec.json.encode(result) + b"\n")
        self._is_torn = False


async def judge_each(
    items: Sequence[Item],
    judge: Callable[[Item], Awaitable[str]],
    *,
    slots: int,
    say: Callable[[str], None],
    rest: str = "the same command judges the rest",
) -> None:
    """Judge items, so many at once. `judge` keeps an item's result and returns its name and result in words.

    A person who stops this learns that the results so far are kept, and about the rest.
    """
    waiting, done = iter(items), 0

    async def judge_next() -> None:
        nonlocal done
        for item in waiting:
            began = time.monotonic()
            words = await judge(item)
            done += 1
            say(f"{done} of {len(items)}: {words} ({time.monotonic() - began:.0f} s)")

    try:
        async with asyncio.TaskGroup() as tasks:
            for number in range(slots):
                tasks.create_task(judge_next(), name=f"judge/{number}")
    except asyncio.CancelledError:
        say(f"stopped; the results so far are kept, and {rest}")
        raise


def original_results(registry: Path, device: Device) -> ResultLines[PredictionResult]:
    """Returns the results by the original protocol on this kind of device, by `Sample.key`."""
    kind = device.kind if device.kind == "cpu" else "gpu"
    file = registry.parent / "recorded" / f"original-{kind}.jsonl"
    return ResultLines(file, PredictionResult, lambda result: result.key)


def judged_result(
    task: PublicTask, sample: int, source: str, evaluation: Evaluation, session: str = ""
) -> PredictionResult:
    """Returns the result of a candidate that this judge judged."""
    error = evaluation.error
    return PredictionResult(
        task=task.id,
        file=task.file,
        sample=sample,
        protocol=WAVEDECK,
        device=evaluation.device,
        verdict=evaluation.verdict.value,
        call=evaluation.call,
        execution=evaluation.verdict is Verdict.CORRECT,
        kind=error.kind if error is not None else "",
        why=error.first_line if error is not None else "",
        printed=evaluation.printed,
        difficulty=task.difficulty,
        source=source,
        session=session,
        evaluation=evaluation,
    )


def session_results(state: SessionState, tasks: Mapping[str, PublicTask]) -> list[PredictionResult]:
    """Returns the best attempt of each instance of these tasks, as the sample with the instance's number.

    An exam's times replace those of the verdict. Instances without a verdict on a candidate are left out.
    """
    session = state.started.session if state.started is not None else ""
    results = []
    for instance in state.instances.values():
        attempt = instance.best_attempt
        evaluation = attempt.timed_evaluation if attempt is not None else None
        if (
            attempt is None
            or evaluation is None
            or evaluation.verdict in NO_VERDICT
            or instance.task not in tasks
        ):
            continue
        results.append(
            judged_result(tasks[instance.task], instance.instance, attempt.source or "", evaluation, session)
        )
    return results
