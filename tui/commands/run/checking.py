"""The judging part of `wavedeck task check`: baselines must be correct, and oracles must refuse wrong answers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from harness import DevicePool, JudgeExtraMissing, OracleReport, Target, Verdict, weigh_oracle
from harness.node.discovery import CPU
from harness.node.selection import targets_for
from harness.processes.starting.judge_python import OUR_PYTHON, JudgePython
from suites import Task
from tui.commands.options import say_default_target
from tui.config import load
from tui.diagnostics import say
from tui.facts.tables import Column, Field, Number
from tui.facts.vocabulary import counted


def weigh(tasks: Sequence[Task], targets: str | None, python: JudgePython = OUR_PYTHON) -> list[OracleReport]:
    """Return the judge's reports on the tasks; empty, with a message, if the judge is not installed."""
    configured = load({"targets": targets}, environ=os.environ, folder=Path.cwd())
    compiled_for = targets_for((CPU,), configured.settings.targets)
    try:
        reports = asyncio.run(weigh_all(tasks, compiled_for, python))
    except JudgeExtraMissing as missing:
        say(f"the files have no problem; baselines and oracles were not judged: {missing}")
        return []
    say_default_target((report.refusing_target for report in reports), configured.settings.targets)
    return reports


async def weigh_all(
    tasks: Sequence[Task], targets: Sequence[Target], python: JudgePython
) -> list[OracleReport]:
    """Return one report per task, in the order of the tasks. Progress goes to standard error."""
    done = 0

    async def weigh(task: Task, pool: DevicePool, turns: asyncio.Semaphore) -> OracleReport:
        nonlocal done
        async with turns:
            report = await weigh_oracle(task, pool=pool, targets=targets)
        done += 1
        say(f"{done} of {counted(len(tasks), 'task')}: {task.short_id} is {verdict(report)}")
        return report

    async with DevicePool(("cpu",), python=python) as pool, asyncio.TaskGroup() as group:
        # One task more than slots: a task waits for its compiler without a slot. With all at once, none would end early.
        at_once = pool.slots + 1
        say(f"checking {counted(len(tasks), 'task')}, {min(at_once, len(tasks))} at a time")
        turns = asyncio.Semaphore(at_once)
        jobs = [group.create_task(weigh(task, pool, turns), name=f"weigh/{task.id}") for task in tasks]
    return [job.result() for job in jobs]


def verdict(report: OracleReport) -> str:
    """Return the result of a task in one phrase."""
    if report.problem or report.baseline is Verdict.UNSUPPORTED:
        return "not judged"
    if report.weaknesses:
        return "weak"
    return "sound" if report.sound else f"not sound: its baseline is {report.baseline}"


FIELDS: tuple[Field[OracleReport], ...] = (
    Field(Column("task", keep=True), lambda report: report.task.removeprefix("starter/")),
    Field(Column("baseline", keep=True), lambda report: str(report.baseline)),
    Field(
        Number("tolerance used"),
        lambda report: f"{report.closest.used:.1%}" if report.closest is not None else "",
    ),
    Field(
        Column("by", drop=1),
        lambda report: f"{report.closest.case} {report.closest.output}" if report.closest is not None else "",
    ),
    Field(Number("wrong answers"), lambda report: str(report.tried)),
    Field(
        Number("accepted"),
        lambda report: str(sum(weakness.control != "truth" for weakness in report.weaknesses)),
    ),
)
"""The figures of each task."""


def findings(reports: Sequence[OracleReport]) -> list[str]:
    """Return one line for each problem."""
    lines = []
    for report in reports:
        if report.baseline_error:
            lines.append(f"{report.task}: the baseline is {report.baseline}: {report.baseline_error}")
        if report.problem and report.problem != report.baseline_error:
            lines.append(f"{report.task}: {report.problem}")
        lines += [
            f"{report.task}: weak oracle, case {weakness.case}: {weakness.problem}"
            for weakness in report.weaknesses
        ]
    return lines
