"""Tables of winners over all sessions, of speeds by hardware and software, and of costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.attempts import HARDWARE, model_name, variant_of
from sessions.metrics.formulas import share
from sessions.names import short_task
from sessions.state.speed import fastest_first
from tui.facts.report.section import Bars, NamedSpeed, Section
from tui.facts.report.winner_sections import CAUTION, interval_cell
from tui.facts.vocabulary import grouped as digits

from .row_set import KEYS, SAMPLE, RowSet, best_of, by, frame_of, speeds, table_section

if TYPE_CHECKING:
    from pandas import DataFrame

TASK = ["task", "reference_shown"]
"""A kernel of prompts with the reference and a kernel of prompts without it are winners of their own."""


def winning_rows(rows: RowSet) -> list[AttemptRow]:
    """Return the best correct attempt of each task over all sessions, the fastest first.

    Of attempts that tie, that of the earlier session is the best.
    """
    best = best_of(rows.bests.sort_values("session", kind="stable").reset_index(names="place"), TASK)
    return fastest_first([rows.rows[place] for place in best[best.correct].place], lambda row: row.speed)


def winners(rows: RowSet) -> Section:
    """Return the best attempt of each task over all sessions, and a bar for each."""
    tried = rows.bests.groupby(TASK).correct.agg(["sum", "size"])
    ordered = winning_rows(rows)
    records = []
    for row in ordered:
        solved, sessions = tried.loc[(row.task, row.reference_shown)]
        records.append(
            {
                "task": _task_name(row.task, row.reference_shown),
                "speedup": row.headline,
                "speedup sign": row.speed.sign if row.speed else "",
                "95 %": interval_cell(row.speed).text,
                "exam": str(row.confirmation),
                "solved": int(solved),
                "sessions": int(sessions),
                "attempt": row.attempt,
                "session": row.session,
                "method": variant_of(row),
                "model": model_name(row),
                "against": row.against,
                "hardware": (row.provenance or ("",))[0],
            }
        )
    timed = [row for row in ordered if row.speed is not None]
    bars = tuple(
        NamedSpeed(_task_name(row.task, row.reference_shown), row.speed)
        for row in ordered
        if row.speed is not None
    )
    caution = CAUTION if len({(row.against, row.provenance) for row in timed}) > 1 else ""
    sample = f"n: {len({row.task for row in ordered})} of {rows.bests.task.nunique()} tasks are solved. solved: sessions that solve the task, of those that tried."
    sentences = (sample, rows.coverage(rows.bests), caution, rows.left_out(rows.rejected))
    plots = (Bars(bars),) if bars else ()
    title = "Winners of all sessions"
    drop = {"against": 6, "hardware": 5, "model": 4, "method": 3, "95 %": 2, "solved": 1, "sessions": 1}
    return table_section("winners", title, frame_of(records), *sentences, drop=drop, plots=plots)


def _task_name(task: str, reference_shown: bool) -> str:  # noqa: FBT001
    return short_task(task) + (" (reference shown)" if reference_shown else "")


def devices(rows: RowSet) -> Section:
    """Return the speedups on each hardware and software."""
    timed = best_of(rows.counted[rows.counted.speedup.notna()], [*SAMPLE, *HARDWARE])

    def figures(own: DataFrame) -> dict[str, Any]:
        return {
            "n": len(own),
            **speeds(own),
            "slower than baseline": share(own.speedup < 1),
            "best share of peak": own[["bandwidth", "compute"]].max().max(),
        }

    table = by(timed, KEYS | {name: name for name in HARDWARE}, figures)
    sample = (
        "n: timed winners. best share of peak: max(IOU, MFU) of any of them (TritonBench, KernelBench-X)."
    )
    sentences = (sample, rows.coverage(timed), rows.against, rows.left_out())
    return table_section("devices", "By hardware and software", table, *sentences)


def across(rows: RowSet) -> Section:
    """Return the best speedup of each task on each hardware, for tasks that were timed on several."""
    timed = rows.counted[rows.counted.speedup.notna()]
    different = [name for name in HARDWARE[1:] if timed[name].nunique() > 1]
    places = zip(*(timed[name] for name in ("hardware", *different)), strict=True)
    names = [" ".join(filter(None, place)) or "unknown" for place in places]
    best = best_of(timed.assign(place=names), [*TASK, "place"])
    several = best[best.groupby(TASK).place.transform("size") > 1]
    records = []
    for (task, shown), own in several.groupby(TASK, sort=False):
        record: dict[str, Any] = {"task": _task_name(task, shown)} | dict.fromkeys(best.place.unique())
        record |= dict(zip(own.place, own.speedup, strict=True))
        record |= {f"{place} sign": sign for place, sign in zip(own.place, own.sign, strict=True)}
        records.append(record | {"highest/lowest": own.speedup.max() / own.speedup.min()})
    alone = timed.task.nunique() - several.task.nunique()
    sentence = f"n: {digits(len(records))} tasks with the best attempt on each. Each speedup is against the baseline there."
    apart = f"{digits(alone)} tasks that were timed on one hardware alone" if alone else ""
    sentences = (sentence, rows.coverage(timed), rows.left_out(apart))
    return table_section("hardware", "Across hardware", frame_of(records), *sentences, words="{:.2f}x".format)


COSTS = {"tokens": "tokens", "cost": "cost_usd", "device time": "device_s", "wall time": "wall_s"}
OF_SOLVED = {
    "tokens in": "input_tokens",
    "tokens out": "output_tokens",
    "cost": "cost_usd",
    "device time": "device_s",
}
COST_MEANING = (
    "n: tasks, once for each session. attempts, tokens, cost, device time and wall time: sums over all judged attempts with a "
    "known figure, also those without a verdict on the candidate; attempts may run at the same time. A solved task: all judged "
    "attempts of a model over the solved tasks, without tasks that have a weak oracle."
)


def cost(rows: RowSet) -> Section:
    """Return tokens, money, device time and wall time of each method and model, and for each solved task."""
    reasons = ("unsupported", "cancelled", "our failure")

    def figures(own: DataFrame) -> dict[str, Any]:
        of_models = own[own.independent & (own.weak_oracle == "")]
        solved = len(of_models[of_models.correct].drop_duplicates(SAMPLE))
        return {
            "n": len(of_models[~of_models.left_out.isin(reasons)].drop_duplicates(SAMPLE)),
            "solved": solved,
            "attempts": len(own),
            **{title: own[column].sum(min_count=1) for title, column in COSTS.items()},
            **{
                f"{title} a solved task": of_models[column].sum(skipna=False) / solved if solved else None
                for title, column in OF_SOLVED.items()
            },
        }

    return table_section(
        "cost", "Cost", by(rows.frame, KEYS, figures), COST_MEANING, rows.coverage(rows.frame)
    )
