"""Tables of accuracies and speedups: overall, over seeds, by difficulty, suite, category, module and shots, and fast_p."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sessions.metrics.attempts import variant_of
from sessions.metrics.attribution import explained_deviance
from sessions.metrics.formulas import FAST_P, fast_p, share
from sessions.metrics.intervals import bootstrap_interval, wilson_interval
from sessions.metrics.task_kinds import TaskKind
from sessions.settings import MODULES
from sessions.state.figure_words import interval_words
from tui.facts.report.section import Section

from .row_set import KEYS, RowSet, by, share_words, shares_interval, speeds, table_section

if TYPE_CHECKING:
    from pandas import DataFrame

SAMPLES = (
    "n: tasks, once for each session. call: an attempt of the task imports and runs on the first case. exec: the best "
    "attempt is correct."
)
EXEC_INTERVAL = (
    "exec 95 %: Wilson's interval over tasks; a task of several sessions counts once, with its mean."
)
MEANS = (
    "speedup: geometric mean of the timed winners. GEAK mean: arithmetic, over cases and then over winners."
)


def accuracies(rows: RowSet, bests: DataFrame) -> dict[str, Any]:
    """Return the accuracies and speedups of a group of best attempts."""
    by_task = bests.groupby("task").correct.mean()
    interval = wilson_interval(by_task.sum(), len(by_task))
    return {
        "n": len(bests),
        "call": share(bests.call),
        "exec": share(bests.correct),
        "exec 95 %": shares_interval(*interval) if interval else "",
        "correct/call": share(bests[bests.call].correct),
        **speeds(rows.timed(bests)),
    }


def notes(rows: RowSet, attempts: DataFrame, *sentences: str) -> list[str]:
    """Return what a reader of a table of accuracies and speeds must know."""
    means = (MEANS, rows.against) if rows.provenance is not None else ()
    return [*sentences, rows.coverage(attempts), *means, rows.left_out(rows.apart, rows.rejected)]


def overall(rows: RowSet) -> Section:
    """Return accuracies and speedups of each method with each model."""

    def figures(bests: DataFrame) -> dict[str, Any]:
        figures = list(accuracies(rows, bests).items())
        place = [title for title, _ in figures].index("GEAK mean")
        interval = ("speedup 95 %", _speed_interval(rows.timed(bests)))
        return dict([*figures[:place], interval, *figures[place:]])

    bootstrap = "speedup 95 %: bootstrap over tasks." if rows.provenance is not None else ""
    sentences = notes(rows, rows.bests, SAMPLES, EXEC_INTERVAL, bootstrap)
    return table_section("overall", "Overall", by(rows.bests, KEYS, figures), *sentences)


def _speed_interval(timed: DataFrame) -> str:
    """Return the bootstrap interval of the geometric mean; a task of several sessions is drawn as a whole."""
    # Sums by task: a draw then costs two additions a task.
    tasks = [
        (math.fsum(map(math.log, own.speedup)), len(own)) for _, own in timed.groupby("task", sort=False)
    ]

    def mean(drawn: Sequence[tuple[float, int]]) -> float | None:
        sums, counts = zip(*drawn, strict=True)
        return math.exp(sum(sums) / sum(counts))

    ends = bootstrap_interval(tasks, mean) if tasks else None
    return "" if ends is None else interval_words(*ends)


def seeds(rows: RowSet) -> Section:
    """Return mean and standard deviation of the figures of sessions that differ in seed only."""

    def figures(bests: DataFrame) -> dict[str, Any]:
        sessions = by(bests, {"session": "session"}, lambda own: accuracies(rows, own))
        spread: dict[str, Any] = {"seeds": bests.seed.nunique(), "sessions": len(sessions)}
        for title, name in (("call", "call"), ("exec", "exec"), ("speedup", "speedup of a session")):
            figures = sessions[title].astype("float64")
            spread |= {name: figures.mean(), f"{title} sd": figures.std()}
        return spread

    groups = [*KEYS.values(), "configuration"]
    bests = rows.bests[rows.bests.groupby(groups).seed.transform("nunique") > 1]
    table = by(bests, KEYS | {"settings": "configuration"}, figures)
    meaning = (
        "Mean and standard deviation (sd) over sessions that differ in seed only. speedup of a session: geometric mean of its "
        "timed winners. settings: a digest that such sessions share."
    )
    sentences = (meaning, rows.coverage(bests), rows.against, rows.left_out(rows.apart, rows.rejected))
    return table_section("seeds", "Over seeds", table, *sentences)


def _explained(rows: RowSet) -> str:
    """Return how much category and method explain of whether a task is solved."""
    factors = {
        "category": lambda row: rows.kinds.get(row.task, TaskKind()).category,
        "method": variant_of,
    }
    explained = explained_deviance((rows.rows[place] for place in rows.bests.index), factors)
    if explained is None:
        return ""
    alone = ", ".join(f"{name} {share_words(part)}" for name, part in explained.alone.items())
    return (
        f"Deviance of exec that a logistic model explains (KernelBench-X): {alone}, together "
        f"{share_words(explained.together)}."
    )


BASE = {"method": "method", "model": "model_name"}
"""The method without its options, for tables that have these as columns."""
SPLITS = {
    "difficulty": ("By difficulty", KEYS | {"difficulty": "difficulty"}),
    "suites": ("By suite", KEYS | {"suite": "suite"}),
    "categories": ("By category and method", {"category": "category"} | KEYS),
    "shots": ("By model and shots", BASE | {"reference": "reference", "shots": "shots"}),
    "modules": ("By module", BASE | {"reference": "reference"} | {name: name for name in MODULES}),
}
"""Title and keys of each table with a row for each group of best attempts."""


def split(name: str) -> Callable[[RowSet], Section]:
    """Return the function that makes a table of `SPLITS`; it is empty if its groups do not differ, or are not known."""
    title, keys = SPLITS[name]

    def table(rows: RowSet) -> Section:
        off = {module: rows.bests.without.str.split(", ").map(set) for module in MODULES}
        known_difficulty = rows.bests.difficulty.map("{:.0f}".format, na_action="ignore")
        groups = rows.bests.assign(
            difficulty=known_difficulty,
            reference=rows.bests.reference_shown.map({True: "shown", False: ""}),
            **{module: ["off" if module in names else "on" for names in off[module]] for module in MODULES},
        )
        groups = groups.assign(shots=groups["one-shot"].map({"on": "1-shot", "off": "0-shot"}))
        varying = [column for key, column in keys.items() if key not in (*KEYS, "reference")]
        values = groups[varying].drop_duplicates()
        is_known = values.notna() & (values != "")
        shown = groups if len(values) > 1 and is_known.to_numpy().any() else groups.iloc[:0]
        explained = _explained(rows) if name == "categories" else ""
        sentences = notes(rows, rows.bests, SAMPLES, EXEC_INTERVAL, explained)
        return table_section(name, title, by(shown, keys, lambda own: accuracies(rows, own)), *sentences)

    return table


def fast(rows: RowSet) -> Section:
    """Return for several p the share of the tasks with a winner more than p times as fast as the baseline."""

    def figures(bests: DataFrame) -> dict[str, Any]:
        mixed = len(rows.timed(bests)) < bests.speedup.notna().sum()
        speedups = [] if mixed else bests.speedup.where(bests.correct, 0.0)
        return {"n": len(bests), **{f"fast_{p:g}": fast_p(speedups, p) for p in FAST_P}}

    of_timed = rows.timed(rows.bests)[list(KEYS.values())].drop_duplicates()
    meaning = (
        "n: tasks, once for each session. Share of n that is correct and more than p times as fast as the baseline "
        "(KernelBench), by the speedup that ranks. Unknown if a winner was not timed, or with several kinds of hardware or software."
    )
    sentences = (meaning, rows.coverage(rows.bests), rows.against, rows.left_out(rows.rejected))
    table = by(rows.bests.merge(of_timed), KEYS, figures)
    return table_section("fast", "fast_p", table, *sentences, words=share_words)
