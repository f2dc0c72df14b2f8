"""Report of an ablation: the figures of each row, and the share of solved instances that each module adds."""

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
from .plain import table, wrapped
from .reporting import known_sum, markdown_table, ratio
from .tables import Column
from .vocabulary import UNKNOWN, grouped, money

NOT_RUN = "not run"
FAILED = "failed"


class ReportRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of an ablation, over all its tasks. A sample is one instance; shares are 0 to 1; `None` means unknown."""

    row: int
    knowledge: bool
    one_shot: bool
    optimizer: bool
    reflection: bool
    session: str | None = None
    state: str = NOT_RUN
    """`finished`, `running`, `stopped`, `crashed`, `failed` or `not run`."""
    why: str = ""
    """Why the row did not finish."""
    instances: int = 0
    """Instances with a counted verdict."""
    called: int = 0
    """Instances with an attempt that imports and runs."""
    correct: int = 0
    """Instances with a correct attempt."""
    confirmed: int | None = None
    """Instances with a confirmed attempt; `None` if no exam ran."""
    call_accuracy: float | None = None
    execution_accuracy: float | None = None
    execution_low: float | None = None
    """Lower end of Wilson's 95 % interval."""
    execution_high: float | None = None
    attempts: int = 0
    """Attempts with a counted verdict."""
    attempts_correct: int = 0
    uncounted: int = 0
    """Judged attempts that the metrics leave out."""
    timed: int = 0
    """Instances with a timed best attempt."""
    speedup_mean: float | None = None
    """Over the timed instances."""
    speedup_geomean: float | None = None
    against: str = ""
    """Names of the timing baselines; empty if nothing was timed."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    ended_early: dict[str, int] = {}
    """Number of instances that ended before their method was done, by reason."""


class ReportContribution(msgspec.Struct, frozen=True, kw_only=True):
    """Share of solved instances that a module adds, -1 to 1; `None` if one of its rows is not finished."""

    module: str
    to: str
    row_on: int
    row_off: int
    difference: float | None = None
    low: float | None = None
    """Lower end of Newcombe's 95 % interval."""
    high: float | None = None
    resolved: bool = False
    """True if the interval excludes 0."""


class AblationReport(msgspec.Struct, frozen=True, kw_only=True):
    """An ablation as `ablate --json` prints it."""

    schema: int = 1
    ablation: str
    method: str
    options: str
    """Method options of all rows that differ from the defaults, in words."""
    model: str
    tasks: tuple[str, ...]
    instances: int
    """Instances of each task in each row."""
    iterations: int
    seed: int
    devices: tuple[str, ...]
    rows: tuple[ReportRow, ...]
    contributions: tuple[ReportContribution, ...]


def ablation_report(
    ablation: Ablation,
    states: Mapping[int, SessionState],
    standings: Mapping[int, Standing],
    failed: Mapping[int, str],
) -> AblationReport:
    """
    Build the report from the sessions of the rows. All mappings are keyed by row number.

    `failed` holds the reason for each row that could not start or resume.
    """
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
    return AblationReport(
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
            _contribution(pair.module, pair.to, by_number[pair.on], by_number[pair.off])
            for pair in CONTRIBUTIONS
        ),
    )


def _row(
    number: int, without: Sequence[str], state: SessionState | None, standing: Standing | None, failed: str
) -> ReportRow:
    blank = ReportRow(
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
    judged = [(instance, _counted_verdicts(instance)) for instance in instances]
    sampled = [(instance, verdicts) for instance, verdicts in judged if verdicts]
    solved = [instance for instance, verdicts in sampled if Verdict.CORRECT in verdicts]
    called = sum(_called(instance) for instance, _ in sampled)
    bests = [
        best.evaluation for instance in solved if (best := best_of(instance.attempts)) and best.evaluation
    ]
    attempts = state.attempts()
    evaluations = [attempt.evaluation for attempt in attempts if attempt.evaluation is not None]
    counted = [evaluation for evaluation in evaluations if evaluation.verdict.counted]
    interval = wilson_interval(len(solved), len(sampled))
    costs = [attempt.cost_usd for attempt in attempts if attempt.cost_usd is not None]
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
        attempts_correct=sum(evaluation.verdict is Verdict.CORRECT for evaluation in counted),
        uncounted=len(evaluations) - len(counted),
        timed=sum(best.speedup is not None for best in bests),
        speedup_mean=speedup_mean(bests),
        speedup_geomean=speedup_geomean(bests),
        against=", ".join(
            dict.fromkeys(latency.against for best in bests for latency in best.latency if latency.against)
        ),
        input_tokens=known_sum([attempt.usage.input_tokens for attempt in attempts]),
        output_tokens=known_sum([attempt.usage.output_tokens for attempt in attempts]),
        cost_usd=sum(costs) if costs else None,
        ended_early=dict(
            Counter(
                instance.finished
                for instance in instances
                if instance.finished and instance.finished not in METHOD_DONE
            )
        ),
    )


def _counted_verdicts(instance: InstanceState) -> list[Verdict]:
    verdicts = (attempt.verdict for attempt in instance.attempts)
    return [verdict for verdict in verdicts if verdict is not None and verdict.counted]


def _called(instance: InstanceState) -> bool:
    return any(
        attempt.evaluation.call
        for attempt in instance.attempts
        if attempt.evaluation and attempt.evaluation.verdict.counted
    )


def _confirmed(instances: Sequence[InstanceState]) -> int | None:
    by_instance = [{attempt.confirmation for attempt in instance.attempts} for instance in instances]
    if not any(confirmations - {Confirmation.NOT_EXAMINED} for confirmations in by_instance):
        return None
    return sum(Confirmation.CONFIRMED in confirmations for confirmations in by_instance)


def _contribution(module: str, to: str, on: ReportRow, off: ReportRow) -> ReportContribution:
    interval = None
    if on.state == off.state == Standing.FINISHED:
        interval = difference_interval((on.correct, on.instances), (off.correct, off.instances))
    if interval is None or on.execution_accuracy is None or off.execution_accuracy is None:
        return ReportContribution(module=module, to=to, row_on=on.row, row_off=off.row)
    low, high = interval
    return ReportContribution(
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


def row_cells(row: ReportRow) -> tuple[str, ...]:
    """Return the cells of a row, in the order of `ROW_HEADS`."""
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
        grouped(row.confirmed),
        ratio(row.speedup_mean),
        ratio(row.speedup_geomean),
        f"{row.attempts_correct}/{row.attempts}{left_out}",
        grouped(row.input_tokens),
        grouped(row.output_tokens),
        money(row.cost_usd),
    )


def contribution_cells(contribution: ReportContribution) -> tuple[str, ...]:
    """Return the cells of a module, in the order of `CONTRIBUTION_HEADS`."""
    module, added_to = contribution.module, contribution.to
    rows = f"{contribution.row_on} - {contribution.row_off}"
    if contribution.difference is None or contribution.low is None or contribution.high is None:
        return module, added_to, rows, UNKNOWN, UNKNOWN, "not known yet"
    interval = f"{points(contribution.low)} to {points(contribution.high)}"
    remark = "" if contribution.resolved else "not resolved"
    return module, added_to, rows, points(contribution.difference), interval, remark


def points(difference: float) -> str:
    """Return a difference of shares in percentage points, with its sign."""
    return f"{100 * difference:+.0f}"


def session_cells(row: ReportRow) -> tuple[str, ...]:
    """Return the session of a row and its state, in the order of `SESSION_HEADS`."""
    early = ", ".join(f"{number} {reason.replace('_', ' ')}" for reason, number in row.ended_early.items())
    remark = "; ".join(part for part in (row.why, f"ended early: {early}" if early else "") if part)
    return str(row.row), row.session or UNKNOWN, row.state, remark or UNKNOWN


def legend(report: AblationReport) -> list[str]:
    """Return the lines that explain the figures and their limits."""
    lines = [
        "n: instances with a counted verdict. call, exec: shares of n with an attempt that runs, and with a correct attempt.",
        "95 %: Wilson's interval of exec. For a difference of exec, in points: Newcombe's; it resolves nothing if it contains 0.",
        "attempts: correct / judged. Verdicts are from the open cases; the intervals hold for these tasks alone.",
    ]
    partial = [str(row.row) for row in report.rows if row.instances and row.state != Standing.FINISHED]
    if partial:
        lines.append(f"Not finished, figures so far: row {', '.join(partial)}.")
    correct = sum(row.correct for row in report.rows)
    timed = sum(row.timed for row in report.rows)
    if correct and not timed:
        lines.append(f"No speedups: nothing is timed on device {', '.join(report.devices)}.")
    elif timed < correct:
        lines.append(f"Speedups cover the {timed} of {correct} solved instances with a timed best attempt.")
    names = list(dict.fromkeys(row.against for row in report.rows if row.against))
    if names:
        lines.append(f"Speedups are against {', '.join(names)}.")
    if report.model.startswith("recorded:"):
        lines.append("Tokens are as recorded; nothing was spent.")
    return lines


def heading(report: AblationReport) -> str:
    """Return the plan of the ablation on one line."""
    tasks = ", ".join(map(short_task, report.tasks))
    options = f" ({report.options})" if report.options else ""
    return (
        f"{report.ablation}: {report.method}{options} with {report.model} on {', '.join(report.devices)}, "
        f"seed {report.seed}; {tasks}; instances {report.instances}, iterations {report.iterations}"
    )


def share(value: float | None) -> str:
    """Return a share in percent, without a space: `61%`."""
    return UNKNOWN if value is None else f"{value:.0%}"


def as_table(report: AblationReport) -> str:
    """Return plain tables of rows, modules and sessions, with the legend below."""
    parts = [
        wrapped(heading(report)),
        table(ROW_HEADS, [row_cells(row) for row in report.rows], indent=2),
        table(CONTRIBUTION_HEADS, list(map(contribution_cells, report.contributions)), indent=2),
        table(SESSION_HEADS, [session_cells(row) for row in report.rows], indent=2),
        wrapped("\n".join(legend(report))),
    ]
    return "\n\n".join(parts)


def as_markdown(report: AblationReport) -> str:
    """Return the same tables in GitHub's Markdown."""
    parts = [
        f"### {report.ablation}",
        heading(report),
        markdown_table(ROW_HEADS, [row_cells(row) for row in report.rows]),
        markdown_table(CONTRIBUTION_HEADS, list(map(contribution_cells, report.contributions))),
        markdown_table(SESSION_HEADS, [session_cells(row) for row in report.rows]),
        *legend(report),
    ]
    return "\n\n".join(parts)


def as_csv(report: AblationReport) -> str:
    """Return every field of every row as CSV; an unknown value is an empty cell."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(("ablation", "method", "model", *ReportRow.__struct_fields__))
    for row in report.rows:
        values = [
            "; ".join(f"{number} {reason}" for reason, number in value.items())
            if isinstance(value, dict)
            else value
            for value in msgspec.structs.astuple(row)
        ]
        cells = ("" if value is None else value for value in values)
        writer.writerow((report.ablation, report.method, report.model, *cells))
    return page.getvalue().rstrip("\n")
