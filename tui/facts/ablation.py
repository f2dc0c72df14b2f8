"""Report of an ablation: the figures of each row, and the share of solved instances that each module adds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from engine.plan.ablation import CONTRIBUTIONS, ROWS, Ablation
from sessions import InstanceState, SessionState
from sessions.catalog import Standing
from sessions.events import METHOD_DONE
from sessions.metrics.attempt_row import attempt_rows
from sessions.metrics.intervals import difference_interval, wilson_interval
from sessions.metrics.speedup import speedup_geomean, speedup_mean, speedup_sign
from sessions.state.state import Confirmation
from sessions.state.tally import tally
from sessions.state.winners import best_of

from .settings_words import option_words
from .spending import spending_of

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
    speedup_sign: str = ""
    """Sign of both means, as in a report's metrics."""
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
    instances, attempts = list(state.instances.values()), state.attempts()
    counts = tally(attempts)
    samples = [(instance, tally(instance.attempts)) for instance in instances]
    sampled = [instance for instance, counted in samples if counted.judged]
    solved = [instance for instance, counted in samples if counted.correct]
    called = sum(map(_called, sampled))
    names = {best.attempt for instance in solved if (best := best_of(instance.attempts)) is not None}
    bests = [row for row in attempt_rows(state) if row.attempt in names]
    low, high = wilson_interval(len(solved), len(sampled)) or (None, None)
    spent = spending_of(attempts)
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
        execution_low=low,
        execution_high=high,
        attempts=counts.judged,
        attempts_correct=counts.correct,
        uncounted=counts.uncounted,
        timed=sum(best.headline is not None for best in bests),
        speedup_mean=speedup_mean(bests),
        speedup_geomean=speedup_geomean(bests),
        speedup_sign=speedup_sign(bests),
        against=", ".join(dict.fromkeys(best.against for best in bests if best.against)),
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cost_usd=spent.cost_usd,
        ended_early=dict(
            Counter(
                instance.finished
                for instance in instances
                if instance.finished and instance.finished not in METHOD_DONE
            )
        ),
    )


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
