"""GEAK's tables 3 to 9 and KernelBench-X's categories, rounds, bias and hardware, computed again from the lines of journals.

This file reads JSON and shares no code with the metrics, the tables or the fold of events.
"""

from __future__ import annotations

import itertools
import json
import math
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, geometric_mean, stdev
from typing import Any

import pytest

from sessions import fold
from sessions.journal.codec import encode
from sessions.metrics.attempt_row import attempt_rows
from sessions.metrics.task_kinds import task_kinds
from tests.support.sessions.invented_study import study
from tui.facts.report.document import Document, rows_document
from tui.facts.report.tables import RowSet
from tui.print.report import document_data

STARTER = Path(__file__).parents[3] / "suites" / "starter"
HARDWARE = ("product", "partition", "driver", "torch", "triton")
MODULES = ("knowledge", "one-shot", "examples", "optimizer", "reflection")
Figures = dict[tuple[Any, ...], dict[str, Any]]


@dataclass
class Raw:
    """One judged attempt, as its events say."""

    session: str
    method: str
    base: str
    shown: bool
    without: tuple[str, ...]
    model: str
    seed: int
    task: str
    chain: tuple[str, str, str]
    number: int
    origin: str
    verdict: str = ""
    call: bool = False
    passed: int = 0
    weak: bool = False
    speed: float | None = None
    geak: float | None = None
    hardware: tuple[str, ...] = ()
    tokens: int = 0
    usd: float | None = None
    device_s: float = 0.0
    exam: dict[str, Any] | None = None
    rejected: bool = False

    @property
    def correct(self) -> bool:
        return self.verdict == "correct"

    @property
    def confirmed(self) -> float | None:
        """The speedup by the exam, if it timed a correct kernel."""
        return _speed(self.exam)[0] if self.exam and self.exam["verdict"] == "correct" else None

    @property
    def speedup(self) -> float | None:
        return self.speed if self.confirmed is None else self.confirmed

    @property
    def mean(self) -> float | None:
        return self.geak if self.confirmed is None else _speed(self.exam)[1]

    @property
    def order(self) -> tuple[float, ...]:
        """Confirmed, then not failed, then correct; then by speed in steps of 1 %; then by passed stages."""
        if not self.correct:
            return (0, 0, self.passed)
        failed = self.exam is not None and self.exam["verdict"] != "correct"
        standing = 3 if self.confirmed else 1 if failed else 2
        return (standing, round(math.log(self.speedup or 1) / math.log(1.01)), 0)


def _speed(evaluation: dict[str, Any] | None) -> tuple[float | None, float | None]:
    ratios = [case["speedup"] for case in evaluation["latency"]] if evaluation else []
    return (geometric_mean(ratios), fmean(ratios)) if ratios else (None, None)


def raw_attempts(lines: Iterable[bytes]) -> list[Raw]:
    """Return the judged attempts of a session's journal, by instance and number."""
    attempts: dict[str, Raw] = {}
    task, start = "", {}
    for event in map(json.loads, lines):
        kind, name = event["type"], event.get("attempt", "")
        if kind == "session_started":
            start = event
        elif kind == "instance_started":
            task = event["task"]
        elif kind == "attempt_started":
            chain, _, number = name.partition("/")
            options = start["options"]
            variant = start["method"] + (
                f" without {', '.join(options['without'])}" if options["without"] else ""
            )
            attempts[name] = Raw(
                start["session"], variant + (", reference shown" if options["show_reference"] else ""),
                start["method"], options["show_reference"], tuple(options["without"]), start["model"], start["seed"],
                task, (start["session"], task, chain), int(number), event["origin"],
            )  # fmt: skip
        elif kind == "call_finished":
            attempt = attempts[event["call"].rsplit("/", 2)[0]]
            attempt.tokens += event["usage"]["input_tokens"] + event["usage"]["output_tokens"]
            attempt.usd = (attempt.usd or 0.0) + event["cost_usd"]
        elif kind == "attempt_judged":
            attempt, evaluation = attempts[name], event["evaluation"]
            attempt.verdict, attempt.call = evaluation["verdict"], evaluation["call"]
            attempt.passed = sum(stage["ok"] is True for stage in evaluation["stages"])
            attempt.weak, attempt.device_s = bool(evaluation["weak_oracle"]), event["device_s"]
            attempt.speed, attempt.geak = _speed(evaluation)
            attempt.hardware = tuple(evaluation["provenance"][part] for part in HARDWARE)
        elif kind == "winner_examined":
            attempts[name].exam = event["evaluation"]
        elif kind == "decision_made":
            attempts[name].rejected = not event["accepted"]
    return list(attempts.values())


@cache
def both() -> tuple[dict[str, list[dict[str, Any]]], list[Raw], Document]:
    """Return the tables of the report by name, the raw attempts that count, and the report."""
    journals = list(study())
    rows = tuple(row for events in journals for row in attempt_rows(fold(events)))
    row_set = RowSet(rows, task_kinds({row.task for row in rows}, None))
    document = rows_document(row_set)
    raw = [attempt for events in journals for attempt in raw_attempts(map(encode, events))]
    counted = [
        attempt
        for attempt in raw
        if attempt.verdict not in ("unsupported", "cancelled", "infra_error")
        and attempt.origin != "human"
        and not attempt.weak
    ]
    return {table["table"]: table["rows"] for table in document_data(document)["tables"]}, counted, document


def groups(
    attempts: Iterable[Raw], *keys: Callable[[Raw], Any]
) -> Iterator[tuple[tuple[Any, ...], list[Raw]]]:
    """Yield the attempts with the same values of the keys, sorted by these."""
    together: dict[tuple[Any, ...], list[Raw]] = {}
    for attempt in attempts:
        together.setdefault(tuple(key(attempt) for key in keys), []).append(attempt)
    yield from sorted(together.items(), key=lambda group: group[0])


def best(
    attempts: Iterable[Raw], by: Callable[[Raw], Any] = lambda raw: (raw.session, raw.task)
) -> list[Raw]:
    """Return the first of the highest order of each group that no person rejected; `call` is that of any of the group."""
    bests = []
    for _, own in groups((raw for raw in attempts if not raw.rejected), by):
        winner = max(own, key=lambda raw: raw.order)
        bests.append(Raw(**{**vars(winner), "call": any(raw.call for raw in own)}))
    return bests


def timed(attempts: Iterable[Raw]) -> list[Raw]:
    """Return the attempts on the hardware of most speeds of the study."""
    counts: dict[tuple[str, ...], int] = {}
    for raw in both()[1]:
        counts[raw.hardware] = counts.get(raw.hardware, 0) + (raw.speedup is not None)
    most = max(counts, key=counts.__getitem__)
    return [raw for raw in attempts if raw.speedup is not None and raw.hardware == most]


def geomean(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return geometric_mean(numbers) if numbers else None


def share(facts: Iterable[bool]) -> float:
    return fmean(map(float, facts))


METHOD, MODEL = (lambda raw: raw.method), (lambda raw: raw.model)


def accuracies(bests: list[Raw]) -> dict[str, Any]:
    measured = timed(bests)
    means = [raw.mean for raw in measured if raw.mean is not None]
    return {
        "n": len(bests),
        "call": share(raw.call for raw in bests),
        "exec": share(raw.correct for raw in bests),
        "speedup": geomean(raw.speedup for raw in measured),
        "GEAK mean": fmean(means) if means else None,
    }


def kind(name: str) -> Callable[[Raw], Any]:
    """Return the function that reads a value of a task's own file."""
    return lambda raw: str(
        tomllib.loads((STARTER / raw.task.partition("/")[2] / "task.toml").read_text())[name]
    )


def by_groups(*keys: Callable[[Raw], Any]) -> Figures:
    return {values: accuracies(own) for values, own in groups(best(both()[1]), *keys)}


def iterations() -> Figures:
    figures: Figures = {}
    tasks = {
        session: len({raw.task for raw in own})
        for (session,), own in groups(both()[1], lambda raw: raw.session)
    }
    for keys, group in groups(both()[1], METHOD, MODEL):
        sessions = {raw.session for raw in group}
        measured = {raw.session for raw in timed(group)} | (
            sessions - {raw.session for raw in group if raw.correct}
        )
        measured = measured if timed(group) else set()
        payers = measured or sessions
        for last in range(1, max(raw.number for raw in group) + 1):
            so_far = [raw for raw in group if raw.number <= last]
            bests = best(so_far)
            logs = [math.log(raw.speedup) for raw in timed(bests) if raw.session in measured]
            paid = [raw for raw in so_far if raw.session in payers]
            units = sum(tasks[session] for session in payers)
            spent = [raw.usd for raw in paid if raw.usd is not None]
            figures[(*keys, last)] = {
                "n": len(bests),
                "call": share(raw.call for raw in bests),
                "exec": share(raw.correct for raw in bests),
                "speedup": geomean(raw.speedup for raw in timed(bests)),
                "reached": math.exp(sum(logs) / sum(tasks[session] for session in measured))
                if measured
                else None,
                "tokens a task": sum(raw.tokens for raw in paid) / units,
                "cost a task": sum(spent) / units if spent else None,
                "device time a task": sum(raw.device_s for raw in paid) / units,
            }
    return figures


def passes() -> Figures:
    """Average over all draws of k of the instances of each task."""
    figures: Figures = {}
    for keys, group in groups(both()[1], METHOD, MODEL):
        samples = [own for _, own in groups(best(group, lambda raw: raw.chain), lambda raw: raw.task)]
        values = [[raw.speedup if raw.correct else 0.0 for raw in own] for own in samples]
        mixed = len(timed(group)) < sum(raw.speedup is not None for raw in group) or not timed(group)
        for k in range(1, min(map(len, samples)) + 1):

            def drawn(of: Callable[[tuple[Any, ...]], float], tasks: list[list[Any]], k: int = k) -> float:
                return fmean(fmean(map(of, itertools.combinations(own, k))) for own in tasks)

            figures[(*keys, k)] = {
                "n": len(samples),
                "call@k": drawn(lambda draw: any(raw.call for raw in draw), samples),
                "pass@k": drawn(lambda draw: any(raw.correct for raw in draw), samples),
                "speedup@k": None if mixed else drawn(max, values),
            }
    return figures


def rounds() -> Figures:
    figures: Figures = {}
    before: dict[int, bool] = {}
    for _, chain in groups(both()[1], lambda raw: raw.chain):
        ordered = sorted(chain, key=lambda raw: raw.number)
        before |= {id(raw): earlier.correct for earlier, raw in itertools.pairwise(ordered)}
    for keys, own in groups(both()[1], METHOD, MODEL, lambda raw: raw.number):
        measured = timed(own)
        figures[keys] = {
            "n": len(own),
            "ran": share(raw.call for raw in own),
            "correct": share(raw.correct for raw in own),
            "speedup": geomean(raw.speedup for raw in measured),
            "GEAK mean": fmean(raw.mean for raw in measured) if measured else None,
            "after a correct one": geomean(raw.speedup for raw in measured if before.get(id(raw)) is True),
            "after a failed one": geomean(raw.speedup for raw in measured if before.get(id(raw)) is False),
        }
    return figures


def biases() -> Figures:
    figures: Figures = {}
    for keys, own in groups(both()[1], METHOD, MODEL):
        if not timed(best(own)):
            continue
        pairs = timed(raw for raw in own if raw.confirmed is not None)
        chosen, confirmed = geomean(raw.speed for raw in pairs), geomean(raw.confirmed for raw in pairs)
        started, rescued = [], []
        for _, chain in groups(own, lambda raw: raw.chain):
            first = min(chain, key=lambda raw: raw.number)
            winner = best([raw for raw in chain if raw.correct], lambda raw: raw.chain)
            (started if first.correct else rescued).extend(winner)
        figures[keys] = {
            "timed again": len(pairs),
            "found": chosen,
            "confirmed": confirmed,
            "excess": chosen / confirmed - 1 if chosen and confirmed else None,
            "failed exam": sum(raw.exam is not None and raw.exam["verdict"] == "wrong" for raw in own),
            "started correct": len(started),
            "their speedup": geomean(raw.speedup for raw in timed(started)),
            "rescued": len(rescued),
            "speedup of rescued": geomean(raw.speedup for raw in timed(rescued)),
        }
    return figures


def hardware() -> Figures:
    winners = best(
        (raw for raw in both()[1] if raw.speedup is not None), lambda raw: (raw.task, raw.shown, raw.hardware)
    )
    figures: Figures = {}
    for (task, shown), own in groups(winners, lambda raw: raw.task, lambda raw: raw.shown):
        if len(own) > 1:
            speeds = {raw.hardware[0]: raw.speedup for raw in own}
            ratio = max(speeds.values()) / min(speeds.values())
            name = task.partition("/")[2] + (" (reference shown)" if shown else "")
            figures[(name,)] = speeds | {"highest/lowest": ratio}
    return figures


def seeds() -> Figures:
    figures: Figures = {}
    for keys, own in groups(best(both()[1]), METHOD, MODEL):
        sessions = [accuracies(bests) for _, bests in groups(own, lambda raw: raw.session)]
        figures[keys] = {"seeds": len({raw.seed for raw in own}), "sessions": len(sessions)}
        for title, name in (("call", "call"), ("exec", "exec"), ("speedup", "speedup of a session")):
            values = [session[title] for session in sessions if session[title] is not None]
            figures[keys] |= {name: fmean(values), f"{title} sd": stdev(values) if len(values) > 1 else None}
    return figures


def module(name: str) -> Callable[[Raw], str]:
    return lambda raw: "off" if name in raw.without else "on"


TABLES: dict[str, tuple[tuple[str, ...], Callable[[], Figures]]] = {
    "overall": (("method", "model"), lambda: by_groups(METHOD, MODEL)),
    "difficulty": (("method", "model", "difficulty"), lambda: by_groups(METHOD, MODEL, kind("difficulty"))),
    "categories": (("category", "method", "model"), lambda: by_groups(kind("category"), METHOD, MODEL)),
    "modules": (
        ("method", "model", "reference", *MODULES),
        lambda: by_groups(lambda raw: raw.base, MODEL, lambda raw: raw.shown, *map(module, MODULES)),
    ),
    "iterations": (("method", "model", "iterations"), iterations),
    "pass": (("method", "model", "k"), passes),
    "rounds": (("method", "model", "iteration"), rounds),
    "bias": (("method", "model"), biases),
    "hardware": (("task",), hardware),
    "seeds": (("method", "model"), seeds),
}


@pytest.mark.parametrize("name", TABLES)
def test_table_is_what_the_raw_events_say(name: str) -> None:
    keys, compute = TABLES[name]
    expected = compute()
    shown = {
        tuple(row[key] == "shown" if key == "reference" else row[key] for key in keys): row
        for row in both()[0][name]
    }
    assert set(shown) == set(expected), "the same rows"
    assert len(shown) > 2
    for values, figures in expected.items():
        row = {title: shown[values].get(title) for title in figures}
        assert row == pytest.approx(figures, rel=1e-9, nan_ok=True), values


def test_category_alone_explains_the_deviance_that_its_shares_leave() -> None:
    bests = best(both()[1])

    def deviance(own: list[Raw]) -> float:
        correct = share(raw.correct for raw in own)
        return -2 * len(own) * sum(p * math.log(p) for p in (correct, 1 - correct) if p)

    remaining = sum(deviance(own) for _, own in groups(bests, kind("category")))
    section = next(section for section in both()[2].sections if section.name == "categories")
    assert f"category {100 * (1 - remaining / deviance(bests)):.2f} %" in " ".join(section.sentences)
