"""The page of `wavedeck capture --lookups`: which tuned configurations a program looked up, and what to tune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from suites.captures.capture import Capture
from suites.captures.lookups import Lookup, lookups_of, tuner_commands
from tui.facts.tables import Column, Field, Number
from tui.facts.vocabulary import counted
from tui.print.plain import listing

LEAST_SHARE = 0.01
"""Below this share of the GPU's time a kernel is not worth a sweep."""
FIELDS: tuple[Field[Lookup], ...] = (
    Field(Number("GPU time", if_known=True), lambda row: "" if row.share is None else f"{row.share:.1%}"),
    Field(Column("result", least=7), lambda row: row.result),
    Field(Column("backend", least=7), lambda row: row.backend),
    Field(Column("loader", least=14), lambda row: f"{row.project} {row.function}"),
    Field(Column("shape", least=30), lambda row: ", ".join(f"{key}={row.shape[key]}" for key in row.shape)),
    Field(Column("M", least=6), lambda row: ",".join(map(str, row.rows))),
    Field(Column("device", least=12), lambda row: row.device),
)


def lookups_page(capture: Capture, shares: Mapping[str, float]) -> str:
    """Return the table of look-ups, what it cannot say, and the commands that tune what takes time on the GPU."""
    lookups = lookups_of(capture, shares)
    missed = [row for row in lookups if row.path and not row.is_found]
    in_aiter = any(row.backend == "aiter" for row in lookups)
    unplanned = [row for row in lookups if not (row.path or row.is_found or row.backend == "aiter")]
    by_path: dict[str, list[Lookup]] = {}
    for row in missed:
        if not shares or (row.share or 0.0) >= LEAST_SHARE:
            by_path.setdefault(row.path, []).append(row)
    lost = f"{capture.others} further, {capture.compiled} compiled, {capture.missed} unreadable look-ups: {capture.error}"
    lines = {
        "M is rounded up to a power of two. Loaders cache, and a graph's replay runs no Python: calls say nothing about time": True,
        "--server TRACE, a kernel trace, says which of them take time on the GPU": not shares,
        "GPU time is that of all kernels that the loader chooses; below 1 %, or not in the trace, nothing is tuned": shares,
        "backend aiter: MoE layers run in aiter and read no MoE file of their own project": in_aiter,
        f"no plan for {', '.join(sorted({row.function for row in unplanned}))}: see the project's own tuner": unplanned,
        f"not in the table: {lost}": capture.others + capture.compiled + capture.missed,
        f"to tune: {sum(map(len, by_path.values()))} of {counted(len(missed), 'missing row')}": True,
    }
    remarks = "\n".join(line for line, is_said in lines.items() if is_said)
    return "\n\n".join((listing(FIELDS, lookups), remarks, *(plan(*item) for item in by_path.items())))


def plan(path: str, rows: Sequence[Lookup]) -> str:
    """Return the commands that tune one file."""
    if path.endswith(".csv"):
        return f"{path} names compiled kernels, which aiter's tuner times:\n{tuner_commands(path, rows)}"
    sizes = [f"{name}={rows[0].shape[name]}" for name in ("E", "N", "K") if name in rows[0].shape]
    numbers = ",".join(map(str, sorted({size for row in rows for size in row.rows})))
    return (
        f"{path}: with a TASK of its kernel that has the sizes {' '.join(sizes)} M={numbers or '...'}\n"
        f'wavedeck tune TASK --by case\nwavedeck apply latest ATTEMPT --to REPO --config "{path}"'
    )
