"""The form of a new run as rows, and what the run will do, in words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.models import NoModel
from engine.plan.plan import SessionPlan
from harness.wire.device import is_cpu
from sessions.names import short_task
from tui.actions.run_estimates import EstimatedRange, RunEstimate
from tui.actions.run_form import (
    TUNES_OWN,
    CheckedRun,
    Values,
    command_line,
    shown_fields,
    usual_method,
)
from tui.cockpit.draw.lines import Line, clean, line, wrap
from tui.facts import vocabulary
from tui.facts.node_facts import NodeFacts, blocked_words
from tui.facts.settings_words import task_words
from tui.facts.tables import Cell, Column, Row, Table, named_values

COLUMNS = (Column("field", 17, 17), Column("value", 20, 200))
WAITS = {
    "auto": "nothing waits for you",
    "first": "the first better attempt waits for you",
    "manual": "each better attempt waits for you",
}
"""What the setting `review` means for a person."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Everything that the preview shows."""

    values: Values
    checked: CheckedRun | None = None
    """`None` while it is checked."""
    usual: SessionPlan | None = None
    """The last plan without an error: where the defaults of the form come from."""
    estimate: RunEstimate | None = None
    node: NodeFacts | None = None
    reached: Mapping[str, str] | None = None
    """Reason for no answer by model, empty for a server that answers; `None` before the reply."""


def form_rows(
    values: Values, checked: CheckedRun | None, usual: SessionPlan | None, *, width: int
) -> list[Row]:
    """Return one row a field, and the error of a field below it; `usual` is the last plan without an error."""
    rows: list[Row] = []
    errors = checked.errors if checked is not None else {}
    for entry in shown_fields(values):
        text = values.get(entry.key, "")
        error = errors.get(entry.key, "")
        default = Cell(default_of(entry.key, usual), "dim")
        value = Cell(clean(text), "bad" if error else "") if text else default
        rows.append(Row(entry.key, (Cell(entry.label), value)))
        is_chosen = entry.key == "method" and text == usual_method(values, "") != ""
        words, style = (error, "bad") if error else (TUNES_OWN * is_chosen, "dim")
        for number, part in enumerate(wrap(clean(words), max(width - 4, 20)) if words else ()):
            rows.append(Row(f"{entry.key}/{number}", (Cell(f"   {part}", style),), between=True))
    return rows


def default_of(key: str, plan: SessionPlan | None) -> str:
    """Return the value that a field has without an entry."""
    if key.startswith("budget"):
        return "no cap"
    if key in ("title", "file", "agent"):
        return "none"
    if plan is None:
        return "default"
    derived = {
        "suite": plan.tasks[0].partition("/")[0],
        "tasks": f"all {len(plan.tasks)}" if len(plan.tasks) > 1 else short_task(plan.tasks[0]),
        "model": plan.model or "none",
        "devices": f"idle: {', '.join(plan.devices)}",
        "against": plan.against or "task",
    }
    return derived.get(key) or str(getattr(plan, key, "default"))


def preview_tables(outlook: Outlook) -> list[Table]:
    """Return what the run will do, what is missing, and the same line for a shell; before the file is read, what to do."""
    checked = outlook.checked
    does = Table("What it will do")
    if checked is None:
        does = does.with_sentences("checking ...", style="dim")
    elif checked.plan is None:
        style = "" if checked.wanted else "bad"
        does = does.with_sentences(checked.wanted or "Nothing yet: correct the values in red.", style=style)
    else:
        does = named_values(does.title, _deeds(checked.plan, outlook))
    if checked is not None and checked.wanted:
        return [does]
    missing = tuple(missing_cells(outlook)) or (
        Cell("checking ..." if checked is None else "nothing", "dim"),
    )
    shell = Table("The same in a shell (y copies it)")
    return [
        does,
        Table("Missing", sentences=missing),
        shell.with_sentences(command_line(outlook.values), style="key"),
    ]


def summary_line(outlook: Outlook) -> Line:
    """Return the run in one line, for screens without room for the preview; or what keeps it from succeeding."""
    checked, estimate = outlook.checked, outlook.estimate
    if checked is None:
        return line(" checking ...", "dim")
    if checked.wanted:
        return line(f" {checked.wanted}")
    if checked.plan is None:
        number = len(checked.errors)
        return line(f" {vocabulary.counted(number, 'error')}: correct the values in red", "bad")
    if bad := blockers(outlook):
        return line(f" {bad[0]}", "bad")
    at_most = f" at most {vocabulary.counted(estimate.attempts, 'attempt')}" if estimate else ""
    cost = money_words(checked.plan, estimate) if estimate else ""
    return line(f"{at_most} · cost: {cost}")


def missing_cells(outlook: Outlook) -> list[Cell]:
    """Return each thing that the run lacks, what stops it first."""
    lines = []
    checked, node = outlook.checked, outlook.node
    if checked is not None:
        lines += [(f"! {words}", "bad") for words in checked.errors.values()]
    for model, why in (outlook.reached or {}).items():
        if why:
            lines.append((f"! {model} is not reachable: {why}", "bad"))
    if checked is not None and checked.models and outlook.reached is None:
        lines.append(("asking whether the model answers ...", "dim"))
    if node is not None and node.problem:
        lines.append((f"! GPUs are not known: {node.problem}", "bad"))
    if blocked := blocked_words(node):
        lines.append((f"! {blocked}", "bad"))
    if checked is not None and checked.plan is not None and all(map(is_cpu, checked.plan.devices)):
        lines.append(("no GPU: speed is not measured", ""))
    return [Cell(words, style) for words, style in lines]


def blockers(outlook: Outlook) -> list[str]:
    """Return the missing things without which the run cannot succeed."""
    return [cell.text for cell in missing_cells(outlook) if cell.style == "bad"]


def money_words(plan: SessionPlan, estimate: RunEstimate) -> str:
    """Return the expected cost, with the cap."""
    cap = f", cap ${plan.budget_usd:g}" if plan.budget_usd is not None else ", no cap"
    if plan.model == NoModel.model:
        return "$0.00, no model is asked"
    if plan.model.startswith("recorded:"):
        return "$0.00, replies are recorded"
    if estimate.unknown:
        return f"unknown{cap}"
    if estimate.cost_usd is None:
        return f"unknown: no past session has prices{cap}"
    return f"{_range_words(estimate.cost_usd, vocabulary.money)}{cap}"


def _deeds(plan: SessionPlan, outlook: Outlook) -> list[tuple[str, str]]:
    estimate = outlook.estimate
    facts = [(vocabulary.counted(len(plan.tasks), "task"), task_words(plan.tasks, 12))]
    if estimate is not None:
        product = f"{len(plan.tasks)} x {vocabulary.counted(plan.instances, 'instance')} x {plan.iterations}"
        facts.append(("attempts", f"at most {estimate.attempts:,} ({product})"))
        facts += _estimated(plan, estimate)
    waits = WAITS[plan.review]
    return [
        *facts,
        ("devices", devices_words(plan, outlook.node)),
        ("compiles for", ", ".join(plan.targets)),
        ("against", plan.against or "the task's own baseline"),
        ("review", f"{plan.review}: {waits}"),
    ]


def _estimated(plan: SessionPlan, estimate: RunEstimate) -> list[tuple[str, str]]:
    facts = [("money", money_words(plan, estimate))]
    if estimate.unknown:
        names = ", ".join(estimate.unknown[:3]) + (" ..." if len(estimate.unknown) > 3 else "")
        if plan.model != NoModel.model:
            facts += [("calls", "unknown"), ("tokens", "unknown")]
        return [*facts, ("wall time", f"unknown: no past session of {names} with this model and method")]
    tokens = [
        f"{_range_words(tokens, lambda value: vocabulary.count(round(value)))} {side}"
        for tokens, side in ((estimate.input_tokens, "in"), (estimate.output_tokens, "out"))
        if tokens is not None
    ]
    facts.append(("calls", _range_words(estimate.calls, lambda value: f"{round(value):,}")))
    facts.append(("tokens", "; ".join(tokens) or "unknown"))
    facts.append(("wall time", _range_words(estimate.wall_s, vocabulary.duration)))
    past = vocabulary.counted(estimate.sessions, "past session")
    facts.append(("estimates", f"median (lowest to highest) of {past}, if all attempts are made"))
    return facts


def devices_words(plan: SessionPlan, node: NodeFacts | None) -> str:
    """Return the devices with their present load."""
    gpus = {gpu.name: gpu for gpu in node.gpus} if node is not None else {}
    words = []
    for name in plan.devices:
        gpu = gpus.get(name)
        if gpu is None:
            words.append(f"{name} (Triton's interpreter)" if is_cpu(name) else f"GPU {name}")
        else:
            words.append(f"GPU {name} {gpu.model} {gpu.busy or 'idle'}")
    unused = [
        f"GPU {gpu.name} {gpu.busy}" for gpu in gpus.values() if gpu.busy and gpu.name not in plan.devices
    ]
    return ", ".join(words) + (f"; not used: {', '.join(unused)}" if unused else "")


def _range_words(estimate: EstimatedRange | None, words: Callable[[float], str]) -> str:
    if estimate is None:
        return "unknown"
    if estimate.low == estimate.high:
        return f"about {words(estimate.median)}"
    return f"about {words(estimate.median)} ({words(estimate.low)} to {words(estimate.high)})"
