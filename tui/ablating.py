"""The table of an ablation: what each row has to show over its instances, and what each module adds."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from engine.ablation import CONTRIBUTIONS, ROWS, Ablation
from harness import Verdict
from sessions import InstanceState, SessionState
from sessions.catalog import Standing
from sessions.events import METHOD_DONE
from sessions.metrics import difference_interval, speedup_geomean, speedup_mean, wilson_interval
from sessions.names import short_task
from sessions.state import Confirmation
from sessions.winners import best_of

from .method_words import option_words
from .plain import UNKNOWN, Column, count, money, table, wrapped
from .reporting import known_sum, markdown_table, ratio, share

NOT_RUN = "not run"
FAILED = "failed"


class ToldRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of an ablation; shares are 0 to 1, unknown is `None`. A sample is one instance, over all tasks."""

    row: int
    knowledge: bool
    one_shot: bool
    optimizer: bool
    reflection: bool
    session: str | None = None
    state: str = NOT_RUN
    """`finished`, `running`, `stopped`, `crashed`, `failed` or `not run`."""
    why: str = ""
    """Of a row that did not finish."""
    instances: int = 0
    """With a counted verdict."""
    called: int = 0
    """Instances with an attempt that imports and runs."""
    correct: int = 0
    """Instances with a correct attempt."""
    confirmed: int | None = None
    """Instances with a confirmed attempt; `None` where nothing was examined."""
    call_accuracy: float | None = None
    execution_accuracy: float | None = None
    execution_low: float | None = None
    """95 %, by Wilson."""
    execution_high: float | None = None
    attempts: int = 0
    """Judged and counted ones."""
    attempts_correct: int = 0
    uncounted: int = 0
    """Judged ones that metrics leave out."""
    timed: int = 0
    """Instances whose best correct attempt was timed."""
    speedup_mean: float | None = None
    """Over those."""
    speedup_geomean: float | None = None
    against: str = ""
    """What those are against, by name; empty where nothing was timed."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    ended_early: dict[str, int] = {}
    """How many instances ended before their method was done, by reason."""


class ToldContribution(msgspec.Struct, frozen=True, kw_only=True):
    """What a module adds to the share of instances that are solved, -1 to 1; `None` where a row is not finished."""

    module: str
    to: str
    row_on: int
    row_off: int
    difference: float | None = None
    low: float | None = None
    """95 %, by Newcombe."""
    high: float | None = None
    resolved: bool = False
    """Whether the interval excludes 0."""


class ToldAblation(msgspec.Struct, frozen=True, kw_only=True):
    """An ablation as JSON has it."""

    schema: int = 1
    ablation: str
    method: str
    options: str
    """Of all rows, those that are not the usual ones, in words."""
    model: str
    tasks: tuple[str, ...]
    instances: int
    """Of each task and row."""
    iterations: int
    seed: int
    devices: tuple[str, ...]
    rows: tuple[ToldRow, ...]
    contributions: tuple[ToldContribution, ...]


def told_ablation(
    ablation: Ablation,
    states: Mapping[int, SessionState],
    standings: Mapping[int, Standing],
    failed: Mapping[int, str],
) -> ToldAblation:
    """The ablation from the states of its rows' sessions, by number; `failed` says why rows did not start or go on."""
    plan = ablation.checked
    rows = tuple(
        _row(
            row.number,
            row.without,
            states.get(row.number),
            standings.get(row.number),
            failed.get(row.number, ""),
        )
        for row in ROWS
    )
    by_number = {row.row: row for row in rows}
    return ToldAblation(
        ablation=ablation.name,
        method=plan.method,
        options=option_words(plan.options),
        model=plan.model,
        tasks=plan.tasks,
        instances=plan.instances,
        iterations=plan.iterations,
        seed=plan.seed,
        devices=plan.devices,
        rows=rows,
        contributions=tuple(
            _contribution(each.module, each.to, by_number[each.on], by_number[each.off])
            for each in CONTRIBUTIONS
        ),
    )


def _row(
    number: int, without: Sequence[str], state: SessionState | None, standing: Standing | None, failed: str
) -> ToldRow:
    blank = ToldRow(
        row=number,
        knowledge="knowledge" not in without,
        one_shot="one-shot" not in without,
        optimizer="optimizer" not in without,
        reflection="reflection" not in without,
        state=FAILED if failed else NOT_RUN,
        why=failed,
    )
    if state is None:
        return blank
    instances = list(state.instances.values())
    judged = [(each, _verdicts(each)) for each in instances]
    sampled = [(each, verdicts) for each, verdicts in judged if verdicts]
    solved = [each for each, verdicts in sampled if Verdict.CORRECT in verdicts]
    called = sum(_called(each) for each, _ in sampled)
    bests = [best.evaluation for each in solved if (best := best_of(each.attempts)) and best.evaluation]
    attempts = state.attempts()
    evaluations = [each.evaluation for each in attempts if each.evaluation is not None]
    counted = [each for each in evaluations if each.verdict.counted]
    interval = wilson_interval(len(solved), len(sampled))
    costs = [each.cost_usd for each in attempts if each.cost_usd is not None]
    return msgspec.structs.replace(
        blank,
        session=state.started.session if state.started else None,
        state=FAILED if failed else str(standing),
        instances=len(sampled),
        called=called,
        correct=len(solved),
        confirmed=_confirmed(instances),
        call_accuracy=called / len(sampled) if sampled else None,
        execution_accuracy=len(solved) / len(sampled) if sampled else None,
        execution_low=interval[0] if interval else None,
        execution_high=interval[1] if interval else None,
        attempts=len(counted),
        attempts_correct=sum(each.verdict is Verdict.CORRECT for each in counted),
        uncounted=len(evaluations) - len(counted),
        timed=sum(each.speedup is not None for each in bests),
        speedup_mean=speedup_mean(bests),
        speedup_geomean=speedup_geomean(bests),
        against=", ".join(
            dict.fromkeys(one.against for each in bests for one in each.latency if one.against)
        ),
        input_tokens=known_sum([each.usage.input_tokens for each in attempts]),
        output_tokens=known_sum([each.usage.output_tokens for each in attempts]),
        cost_usd=sum(costs) if costs else None,
        ended_early=dict(
            Counter(each.finished for each in instances if each.finished and each.finished not in METHOD_DONE)
        ),
    )


def _verdicts(instance: InstanceState) -> list[Verdict]:
    """Those that count."""
    return [each.verdict for each in instance.attempts if each.verdict is not None and each.verdict.counted]


def _called(instance: InstanceState) -> bool:
    return any(
        each.evaluation.call
        for each in instance.attempts
        if each.evaluation and each.evaluation.verdict.counted
    )


def _confirmed(instances: Sequence[InstanceState]) -> int | None:
    said = [{each.confirmation for each in instance.attempts} for instance in instances]
    if not any(words - {Confirmation.NOT_EXAMINED} for words in said):
        return None
    return sum(Confirmation.CONFIRMED in words for words in said)


def _contribution(module: str, to: str, on: ToldRow, off: ToldRow) -> ToldContribution:
    interval = None
    if on.state == off.state == Standing.FINISHED:
        interval = difference_interval((on.correct, on.instances), (off.correct, off.instances))
    if interval is None or on.execution_accuracy is None or off.execution_accuracy is None:
        return ToldContribution(module=module, to=to, row_on=on.row, row_off=off.row)
    low, high = interval
    return ToldContribution(
        module=module,
        to=to,
        row_on=on.row,
        row_off=off.row,
        difference=on.execution_accuracy - off.execution_accuracy,
        low=low,
        high=high,
        resolved=low > 0 or high < 0,
    )


ROW_HEADS = (
    Column("row", right=True),
    Column("knowledge", keep=True),
    Column("one-shot", keep=True),
    Column("optimizer", keep=True),
    Column("reflection", keep=True),
    Column("n", right=True),
    Column("call", right=True),
    Column("exec", right=True),
    Column("95 %", right=True),
    Column("confirmed", right=True, if_known=True, drop=1),
    Column("speedup", right=True, if_known=True),
    Column("geomean", right=True, if_known=True),
    Column("attempts", right=True, drop=2),
    Column("tokens in", right=True, drop=3),
    Column("out", right=True, drop=4),
    Column("cost", right=True, if_known=True, drop=5),
)
CONTRIBUTION_HEADS = (
    Column("module", keep=True),
    Column("added to"),
    Column("rows", right=True),
    Column("exec", right=True),
    Column("95 %", right=True),
    Column("", keep=True),
)
SESSION_HEADS = (
    Column("row", right=True),
    Column("session", keep=True),
    Column("state", keep=True),
    Column("remark", if_known=True),
)


def row_cells(row: ToldRow) -> tuple[str, ...]:
    """A row of the table."""
    marks = ("on" if on else "off" for on in (row.knowledge, row.one_shot, row.optimizer, row.reflection))
    left_out = f" (+{row.uncounted})" if row.uncounted else ""
    interval = (
        f"{row.execution_low:.0%}-{row.execution_high:.0%}"
        if row.execution_low is not None and row.execution_high is not None
        else UNKNOWN
    )
    return (
        str(row.row),
        *marks,
        str(row.instances),
        share(row.call_accuracy),
        share(row.execution_accuracy),
        interval,
        count(row.confirmed),
        ratio(row.speedup_mean),
        ratio(row.speedup_geomean),
        f"{row.attempts_correct}/{row.attempts}{left_out}",
        count(row.input_tokens),
        count(row.output_tokens),
        money(row.cost_usd),
    )


def contribution_cells(each: ToldContribution) -> tuple[str, ...]:
    """A module's row."""
    rows = f"{each.row_on} - {each.row_off}"
    if each.difference is None or each.low is None or each.high is None:
        return each.module, each.to, rows, UNKNOWN, UNKNOWN, "not known yet"
    said = f"{points(each.low)} to {points(each.high)}"
    return each.module, each.to, rows, points(each.difference), said, "" if each.resolved else "not resolved"


def points(difference: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    return f"{100 * difference:+.0f}"


def session_cells(row: ToldRow) -> tuple[str, ...]:
    """Where a row can be looked at."""
    early = ", ".join(f"{number} {reason.replace('_', ' ')}" for reason, number in row.ended_early.items())
    remark = "; ".join(part for part in (row.why, f"ended early: {early}" if early else "") if part)
    return str(row.row), row.session or UNKNOWN, row.state, remark or UNKNOWN


def legend(told: ToldAblation) -> list[str]:
    """What the figures are, and what they are not."""
    lines = [
        "n: instances with a verdict that counts. call, exec: share of them with an attempt that runs, that is correct.",
        "95 %: Wilson's interval of exec; of a difference of exec, in points, Newcombe's. One that holds 0 resolves nothing.",
        "Attempts: correct ones of those judged. Verdicts are of the open cases; intervals are about these tasks alone.",
    ]
    partial = [str(row.row) for row in told.rows if row.instances and row.state != Standing.FINISHED]
    if partial:
        lines.append(f"Not finished, with the figures of what is there: row {', '.join(partial)}.")
    correct = sum(row.correct for row in told.rows)
    timed = sum(row.timed for row in told.rows)
    if correct and not timed:
        lines.append(f"No speedups: nothing is timed on device {', '.join(told.devices)}.")
    elif timed < correct:
        lines.append(
            f"Speedups are of the {timed} of {correct} solved instances whose best attempt was timed."
        )
    names = list(dict.fromkeys(row.against for row in told.rows if row.against))
    if names:
        lines.append(f"Speedups are against {', '.join(names)}.")
    if told.model.startswith("recorded:"):
        lines.append("Tokens are as recorded; nothing was spent.")
    return lines


def heading(told: ToldAblation) -> str:
    """What was run, in one line."""
    tasks = ", ".join(map(short_task, told.tasks))
    options = f" ({told.options})" if told.options else ""
    return (
        f"{told.ablation}: {told.method}{options} with {told.model} on {', '.join(told.devices)}, seed {told.seed}; "
        f"{tasks}; instances {told.instances}, iterations {told.iterations}"
    )


def as_table(told: ToldAblation) -> str:
    """Rows, modules and sessions, one table below the other."""
    parts = [
        wrapped(heading(told)),
        table(ROW_HEADS, [row_cells(row) for row in told.rows], indent=2),
        table(CONTRIBUTION_HEADS, [contribution_cells(each) for each in told.contributions], indent=2),
        table(SESSION_HEADS, [session_cells(row) for row in told.rows], indent=2),
        wrapped("\n".join(legend(told))),
    ]
    return "\n\n".join(parts)


def as_markdown(told: ToldAblation) -> str:
    """The same as GitHub's Markdown."""
    parts = [
        f"### {told.ablation}",
        heading(told),
        markdown_table(ROW_HEADS, [row_cells(row) for row in told.rows]),
        markdown_table(CONTRIBUTION_HEADS, [contribution_cells(each) for each in told.contributions]),
        markdown_table(SESSION_HEADS, [session_cells(row) for row in told.rows]),
        *legend(told),
    ]
    return "\n\n".join(parts)


def as_csv(told: ToldAblation) -> str:
    """Every field of every row; unknown is an empty cell."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(("ablation", "method", "model", *ToldRow.__struct_fields__))
    for row in told.rows:
        values = [
            "; ".join(f"{number} {reason}" for reason, number in value.items())
            if isinstance(value, dict)
            else value
            for value in msgspec.structs.astuple(row)
        ]
        writer.writerow(
            (told.ablation, told.method, told.model, *("" if value is None else value for value in values))
        )
    return page.getvalue().rstrip("\n")
