"""Commands for kernels that no task names yet: the page that says what is assumed, the question, and the task."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from harness.processes.starting.judge_python import JudgePython
from suites import Task
from suites.captures.capture import read_capture
from suites.folder import read_task
from suites.own.captured import captured_inputs
from suites.own.draft import Draft
from suites.own.entry import KernelFile
from suites.own.folder import check_new_folder, kept_own, own_name, write_draft
from suites.own.request import KernelRequest, allowance_of
from tui.actions.own_kernels import assumptions, draft_of
from tui.commands.options import OwnOptions
from tui.diagnostics import Complaint, say, write_error
from tui.facts.tables import Column
from tui.print.plain import emit, table
from tui.print.waiting_line import WaitingLine


@contextmanager
def own_task(
    where: str,
    options: OwnOptions,
    targets: Sequence[str],
    registry: Path,
    python: JudgePython,
    *,
    sends: bool,
) -> Iterator[Task | None]:
    """Give the task of a kernel file in the person's home; `None` if the person does not want it.

    If the block raises, a new task is removed: the block only prepares what uses the task.
    """
    KernelFile.named(where)  # a missing file is a better answer than a missing terminal
    if not (options.yes or options.dry_run or (sys.stdin is not None and sys.stdin.isatty())):
        raise Complaint(
            f"no task names {where}, and there is no terminal to ask whether the assumptions about it are right: "
            "add -y, or --dry-run to read them"
        )
    draft = _draft(where, options, targets, python)
    if not _is_wanted(draft, options, sends=sends):
        yield None
        return
    with kept_own(draft, registry) as task:
        say(f"task {task.id}, in {task.folder}")
        yield task


def new_task(
    where: str, folder: Path | None, options: OwnOptions, targets: Sequence[str], python: JudgePython
) -> Task | None:
    """Return the task of a kernel file in a folder of the person; `None` after `--dry-run`."""
    if folder is not None and not options.dry_run:
        check_new_folder(folder.absolute())  # before the kernel is called, which takes seconds
    draft = _draft(where, options, targets, python)
    # The person asks for files, which nothing runs: there is nothing to ask.
    if not _is_wanted(draft, msgspec.structs.replace(options, yes=True), sends=False):
        return None
    chosen = (folder or Path(own_name(draft).partition("-")[0])).absolute()
    write_draft(draft, chosen)
    say(f"task {chosen.name}, in {chosen}")
    return read_task(chosen, suite=chosen.parent.name)


def _is_wanted(draft: Draft, options: OwnOptions, *, sends: bool) -> bool:
    """Show the page, and ask; false if the person says no, or only wants the page."""
    page = table((Column("", keep=True), Column("", least=40)), assumptions(draft, sends=sends))
    if options.dry_run:
        emit(page)
        return False
    write_error(f"{page}\n")
    if options.yes or click.confirm("Go on?", default=True, err=True):
        return True
    say("nothing was started")
    return False


def _draft(where: str, options: OwnOptions, targets: Sequence[str], python: JudgePython) -> Draft:
    request = KernelRequest(
        where,
        options.shapes,
        options.reference,
        allowed=allowance_of(options.tolerance),
        send_only=options.send_only,
    )
    if options.calls is not None:
        captured = captured_inputs(read_capture(options.calls))
        say(captured.words)
        request = msgspec.structs.replace(request, calls=captured.cases)
    with WaitingLine(f"calling the kernel of {where} once", wanted=True):
        return draft_of(request, targets, python)
