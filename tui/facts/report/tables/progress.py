"""Tables of progress: after each iteration, of each iteration alone, by instances, and of biases by selection and repair."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sessions.metrics.formulas import expected_best, geomean_speedup, mean_pass_at_k, mean_speedup, share
from sessions.state.speed import joint_sign
from tui.facts.report.section import Curve, Plot, Point, Section

from .accuracy import notes
from .row_set import INSTANCE, KEYS, SAMPLE, SIGN, RowSet, best_of, by, frame_of, speed, speeds, table_section

if TYPE_CHECKING:
    from pandas import DataFrame

SPENT = {"tokens a task": "tokens", "cost a task": "cost_usd", "device time a task": "device_s"}
AXES = ("tokens a task", "US dollars a task", "device seconds a task")
START = Point(0.0, 1.0, 1.0, 1.0)
"""Before the first attempt there is only the baseline."""
REACHED = (
    "reached: geometric mean over all tasks of the speedup of the best attempt so far; a task without a timed kernel counts "
    "as 1.00x. Its plots have a band from the lowest to the highest session."
)


def iterations(rows: RowSet) -> Section:
    """Return accuracy and speedup after each iteration, and curves of the speedup against what was spent."""
    steps = list(_steps(rows))
    if max((step["iterations"] for step in steps), default=0) < 2:
        steps = []
    table = frame_of(steps)
    plots = tuple(_plots(table)) if len(table) else ()
    table = table.drop(columns=["lowest", "highest"], errors="ignore").sort_values(
        [*KEYS, "iterations"] if steps else []
    )
    reached = REACHED if len(table) and table.reached.notna().any() else ""
    sample = "n: tasks, once for each session, with the best attempt of the iterations so far."
    sentences = notes(rows, rows.bests, sample, reached)
    return table_section("iterations", "By iteration", table, *sentences, plots=plots)


def _steps(rows: RowSet) -> Iterator[dict[str, Any]]:
    """Yield each group after each of its iterations."""
    import pandas

    tasks = rows.counted.drop_duplicates(SAMPLE).groupby("session").size()
    for keys, group in rows.counted.groupby(list(KEYS.values())):
        timed = rows.timed(group)
        # If the correct kernels of a session were not timed, or on other hardware, its speedup is not known.
        untimed = set(group[group.correct].session) - set(timed.session)
        sessions = [name for name in group.session.unique() if name not in untimed and len(timed)]
        payers = sessions or list(group.session.unique())
        last = range(1, int(group.number.max()) + 1)
        of_payers = group[group.session.isin(payers)].groupby("number")[list(SPENT.values())]
        spent = of_payers.sum(min_count=1).reindex(last).cumsum().ffill() / tasks[payers].sum()
        bests = group.iloc[:0]
        for iteration in last:
            bests = best_of(pandas.concat([bests, group[group.number == iteration]]).sort_index(), SAMPLE)
            winners = rows.timed(bests)
            logs = (
                winners.speedup.map(math.log).groupby(winners.session).sum().reindex(sessions, fill_value=0.0)
            )
            alone = (logs / tasks[sessions]).map(math.exp)
            yield {
                **dict(zip(KEYS, keys, strict=True)),
                "iterations": iteration,
                "n": len(bests),
                "call": share(bests.call),
                "exec": share(bests.correct),
                **speed("speedup", winners),
                "reached": math.exp(logs.sum() / tasks[sessions].sum()) if sessions else None,
                "reached" + SIGN: joint_sign(winners.sign),
                **{title: spent[column][iteration] for title, column in SPENT.items()},
                "lowest": alone.min(),
                "highest": alone.max(),
            }


def _plots(table: DataFrame) -> Iterator[Plot]:
    for axis, title in zip(AXES, SPENT, strict=True):
        points = table[table[title].notna() & table.reached.notna()]
        curves = [
            Curve(
                " with ".join(keys),
                (START, *map(Point, own[title], own.reached, own.lowest, own.highest)),
            )
            for keys, own in points.groupby(list(KEYS))
        ]
        if curves:
            yield Plot(axis, "speedup", tuple(curves))


def rounds(rows: RowSet) -> Section:
    """Return correctness and speed of the candidates of each iteration (KernelBench-X)."""
    attempts = rows.counted[rows.counted.independent].sort_values("number", kind="stable")
    attempts = attempts.assign(before=attempts.groupby(INSTANCE).correct.shift())

    def figures(own: DataFrame) -> dict[str, Any]:
        timed = rows.timed(own)
        return {
            "n": len(own),
            "ran": share(own.call),
            "correct": share(own.correct),
            **speeds(timed),
            **speed("after a correct one", timed[timed.before.eq(True)]),
            **speed("after a failed one", timed[timed.before.eq(False)]),
        }

    table = by(attempts, KEYS | {"iteration": "number"}, figures)
    table = table[table.groupby(list(KEYS)).iteration.transform("size") > 1] if len(table) else table
    sample = "n: judged attempts of this iteration alone, not the best so far."
    meaning = (
        "speedup: geometric mean of the correct ones; the last columns: those after a correct, or after a failed attempt of the "
        "same instance."
    )
    about_speed = (meaning, rows.against) if rows.provenance is not None else ()
    sentences = (sample, rows.coverage(attempts), *about_speed, rows.left_out(rows.apart))
    return table_section("rounds", "Candidates of each iteration", table, *sentences)


def bias(rows: RowSet) -> Section:
    """Return found against confirmed speed, and the speed of rescued kernels against those that started correct."""
    independent = rows.counted[rows.counted.independent].sort_values("number", kind="stable")
    first = independent.drop_duplicates(INSTANCE).set_index(INSTANCE).correct
    best = best_of(independent[independent.correct], INSTANCE)
    best = best.assign(started=first.reindex(best.set_index(INSTANCE).index).to_numpy(dtype=bool))

    def figures(own: DataFrame) -> dict[str, Any]:
        pairs = rows.timed(own[own.correct & own.found.notna() & own.confirmed.notna()])
        chosen, confirmed = geomean_speedup(pairs.found), geomean_speedup(pairs.confirmed)
        of_group = best[(best.variant == own.variant.iloc[0]) & (best.model_name == own.model_name.iloc[0])]
        started, rescued = of_group[of_group.started], of_group[~of_group.started]
        sign = joint_sign(pairs.sign)
        return {
            "timed again": len(pairs),
            "found": chosen,
            "found" + SIGN: sign,
            "confirmed": confirmed,
            "confirmed" + SIGN: sign,
            "excess": chosen / confirmed - 1 if chosen and confirmed else None,
            "failed exam": int((own.correct & (own.confirmation == "failed exam")).sum()),
            "started correct": len(started),
            **speed("their speedup", rows.timed(started)),
            "rescued": len(rescued),
            **speed("speedup of rescued", rows.timed(rescued)),
        }

    groups = rows.timed(rows.bests)[list(KEYS.values())].drop_duplicates()
    meaning = (
        "found and confirmed: geometric means of the same winners, by the verdict's timing and by the exam's. excess: found over "
        "confirmed, minus 1. started correct, rescued: solved instances whose first attempt was correct, or failed."
    )
    table = by(rows.counted.merge(groups), KEYS, figures)
    return table_section(
        "bias", "Selection and repair", table, meaning, rows.coverage(rows.counted), rows.left_out(rows.apart)
    )


def passes(rows: RowSet) -> Section:
    """Return pass@k for call and exec, and speedup@k, for each number of instances that every task has."""
    independent = rows.counted[rows.counted.independent]
    drawn = [
        {**dict(zip(KEYS, keys, strict=True)), **step}
        for keys, own in independent.groupby(list(KEYS.values()))
        for step in _draws(rows, own)
    ]
    if max((step["k"] for step in drawn), default=0) < 2:
        drawn = []
    meaning = (
        "n: tasks. A sample is one instance with all its iterations. call@k and pass@k: chance that one of k instances runs, or is "
        "correct, by the unbiased estimate (Chen et al. 2021)."
    )
    speed = "speedup@k: expected best speedup of k instances (ParEval); an unsolved instance counts as 0."
    about_speed = (speed, rows.against) if any(step["speedup@k"] is not None for step in drawn) else ()
    sentences = (meaning, rows.coverage(independent), *about_speed, rows.left_out())
    return table_section("pass", "pass@k", frame_of(drawn), *sentences)


def _draws(rows: RowSet, attempts: DataFrame) -> Iterator[dict[str, Any]]:
    samples = best_of(attempts, INSTANCE)
    by_task = samples.assign(speedup=samples.speedup.where(samples.correct, 0.0)).groupby("task")
    tasks = by_task.agg(
        size=("task", "size"), ran=("call", "sum"), correct=("correct", "sum"), speedups=("speedup", list)
    )
    ran, correct = (list(zip(tasks["size"], tasks[name], strict=True)) for name in ("ran", "correct"))
    speedups = tasks.speedups.tolist()
    timed = rows.timed(attempts)
    is_known = len(timed) and len(timed) == attempts.speedup.notna().sum()
    is_known = is_known and not any(math.isnan(speedup) for own in speedups for speedup in own)
    for k in range(1, int(tasks["size"].min()) + 1):
        yield {
            "k": k,
            "n": len(tasks),
            "call@k": mean_pass_at_k(ran, k),
            "pass@k": mean_pass_at_k(correct, k),
            "speedup@k": mean_speedup(expected_best(own, k) for own in speedups) if is_known else None,
            "speedup@k" + SIGN: joint_sign(samples.sign),
        }
