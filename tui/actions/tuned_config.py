"""The rows that `wavedeck apply --config` writes into a configuration file, from a session of `tune`."""

from __future__ import annotations

from engine.tuning.best_by_case import best_by_case
from engine.tuning.config_files import TunedRow, config_file, rows_by_size, with_rows
from engine.tuning.launch_config import launch_config
from sessions.applying.worktree import Repository
from sessions.kept_kernels import KeptKernel
from sessions.names import short_task
from suites import Task, baseline_source
from tui.actions.holding import timed_target
from tui.diagnostics import Complaint
from tui.print.pull_request import TunedChange


def tuned_change(kernel: KeptKernel, task: Task, path: str, repository: Repository) -> TunedChange:
    """Return the new text of a configuration file.

    Raises `Complaint`, `UsageProblem` or `NotApplicable` if the session measured no configuration for it.
    """
    state = kernel.state
    bests = best_by_case(state, kernel.task) if state is not None else []
    if state is None or not bests:
        raise Complaint(
            f"the session of {kernel.attempt} timed no launch parameters; run it on a GPU with --method tune --by case"
        )
    baseline = baseline_source(task)
    prefix = f"{short_task(kernel.task)}#"
    swept = next(attempt.source for attempt in state.attempts() if attempt.attempt.startswith(prefix))
    if swept != baseline:
        raise Complaint(
            f"{kernel.session} swept another kernel than the baseline of {task.id}, so its gains are not the file's"
        )
    file = config_file(path)
    provenance = bests[0].provenance
    timed_on = timed_target(provenance)
    file.check(provenance, timed_on)
    sizes = {case.name: {name.upper(): size for name, size in case.gpu.items()} for case in task.open_cases}
    rows = rows_by_size(
        file,
        [
            TunedRow(best.row.case, sizes[best.row.case], best.config, best.is_faster)
            for best in bests
            if best.row.case in sizes
        ],
    )
    present = repository.read_if_there(path)
    default = repository.read_if_there(file.default) if file.default and present is None else None
    start = launch_config(baseline)
    text, written = with_rows(file, present, rows, start=start, target=timed_on, default=default)
    if not written:
        raise Complaint(f"no configuration was measured as faster than those that {path} has")
    cases = {row.case for row in rows.values()}
    shown = tuple(best for best in bests if best.row.case in cases)
    return TunedChange(path, text, file.home, tuple(written), shown, file.default if default else "")
