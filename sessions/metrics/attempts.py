"""The judged attempts of sessions as one DataFrame: a row for each attempt, a column for each fact, with dtype and meaning.

pandas is imported here alone, and only by `attempts_frame`: the extra `reports` has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from .attempt_row import AttemptRow
from .selection import reason_left_out
from .task_kinds import TaskKind

if TYPE_CHECKING:
    from pandas import DataFrame

DTYPES = {bool: "bool", int: "int64", float: "float64"}
"""dtype by type; an unknown number is NaN, so a number that may be unknown is `float64`. Text is `category`."""
HARDWARE = ("hardware", "partition", "driver", "torch", "triton")
"""Names of the values of `AttemptRow.provenance`, as in `compared_values`."""


class AttemptColumn(NamedTuple):
    """A column of the DataFrame."""

    name: str
    dtype: str
    sentence: str
    value: Callable[[AttemptRow], Any]


def method_name(method: str, without: Sequence[str], *, reference_shown: bool, label: str = "") -> str:
    """Returns a method, or its label, and what its prompts lacked or showed: `geak without one-shot, reference shown`."""
    lacks = f" without {', '.join(without)}" if without else ""
    return (label or f"{method}{lacks}") + (", reference shown" if reference_shown else "")


def variant_of(row: AttemptRow) -> str:
    """Returns the method of a row, with its options that no table pools."""
    return method_name(row.method, row.without, reference_shown=row.reference_shown, label=row.label)


def model_name(row: AttemptRow) -> str:
    """Returns the model of a row, by its label if it has one."""
    return row.model_label or row.model


def _of_speed(name: str) -> Callable[[AttemptRow], Any]:
    return lambda row: getattr(row.speed, name) if row.speed is not None else None


def _of_provenance(place: int) -> Callable[[AttemptRow], str]:
    return lambda row: row.provenance[place] if row.provenance else ""


def _own_columns() -> list[AttemptColumn]:
    """The fields of a row with plain values."""
    columns = []
    for name, hint in get_type_hints(AttemptRow, include_extras=True).items():
        kind, sentence = hint.__origin__, hint.__metadata__[0].description
        if name == "without":
            columns.append(AttemptColumn(name, "category", sentence, lambda row: ", ".join(row.without)))
        elif name not in ("place", "provenance", "speed"):
            dtype = "float64" if kind in (int | None, float | None) else DTYPES.get(kind, "category")
            columns.append(AttemptColumn(name, dtype, sentence, attrgetter(name)))
    return columns


COLUMNS: tuple[AttemptColumn, ...] = (
    *_own_columns(),
    AttemptColumn("variant", "category", "Label of the method, else the method with the modules that were off; and whether prompts showed the reference.", variant_of),
    AttemptColumn("model_name", "category", "Label of the model, else its name.", model_name),
    AttemptColumn("suite", "category", "Suite of the task.", attrgetter("suite")),
    AttemptColumn("left_out", "category", "Why accuracies leave it out; empty if they count it.", reason_left_out),
    AttemptColumn("correct", "bool", "True if the verdict is correct.", attrgetter("correct")),
    AttemptColumn("speedup", "float64", "Speed as the exam timed it, else as found; mean over all open cases.", _of_speed("value")),
    AttemptColumn("sign", "category", "Sign of the speedup: `>=`, `<=`, `~`; empty if it is exact.", _of_speed("sign")),
    AttemptColumn("low", "float64", "Lower end of the 95 % interval of the speedup.", _of_speed("low")),
    AttemptColumn("high", "float64", "Upper end of this interval.", _of_speed("high")),
    AttemptColumn("cases", "float64", "Cases with a ratio.", _of_speed("cases")),
    AttemptColumn("all_cases", "float64", "Open cases of the task.", _of_speed("all_cases")),
    AttemptColumn("weighted", "bool", "True if the speedup is time-weighted over the cases.", lambda row: bool(_of_speed("weighted")(row))),
    *(
        AttemptColumn(name, "category", f"Provenance of the times: {name}.", _of_provenance(place))
        for place, name in enumerate(HARDWARE)
    ),
)  # fmt: skip
"""Every column but `category`, `difficulty` and `rank`, which one row alone does not have."""
FURTHER = (
    ("category", "category", "Category of the task; empty if its suite has none."),
    ("difficulty", "float64", "Difficulty of the task in its suite."),
    ("rank", "int64", "Rank among all attempts of the DataFrame by the judge's order; greater is better."),
)


def column_meanings() -> list[tuple[str, str, str]]:
    """Returns (name, dtype, sentence) of each column of `attempts_frame`."""
    return [(column.name, column.dtype, column.sentence) for column in COLUMNS] + list(FURTHER)


def attempts_frame(rows: Sequence[AttemptRow], kinds: Mapping[str, TaskKind] | None = None) -> DataFrame:
    """Returns the rows as a DataFrame, in their order; `kinds` are known tasks by full name. Needs the extra `reports`."""
    import pandas

    kinds = kinds or {}
    tasks = [kinds.get(row.task, TaskKind()) for row in rows]
    ranks = {place: rank for rank, place in enumerate(sorted({row.place for row in rows}))}
    values: dict[str, list[Any]] = {column.name: [column.value(row) for row in rows] for column in COLUMNS}
    values["category"] = [task.category for task in tasks]
    values["difficulty"] = [task.difficulty for task in tasks]
    values["rank"] = [ranks[row.place] for row in rows]
    return pandas.DataFrame(
        {
            name: pandas.Series(
                ["" if cell is None else str(cell) for cell in values[name]]
                if dtype == "category"
                else values[name],
                dtype=dtype,
            )
            for name, dtype, _ in column_meanings()
        }
    )
