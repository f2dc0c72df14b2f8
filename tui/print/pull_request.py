"""The text of a pull request for a kernel: times by case, how they were measured, and how the kernel was judged."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Evaluation, Latency
from sessions.kept_kernels import KeptKernel
from sessions.state.speed import attempt_speed, baseline_names, missing_speed
from sessions.store.attempt_commits import code_call
from suites import Task
from tui.diagnostics import printable
from tui.facts.attempt import origin_words
from tui.facts.evaluation.counted import case_sizes
from tui.facts.evaluation.task_cases import sizes_words
from tui.facts.evaluation.times import case_speedup, side_us
from tui.facts.tables import Column, Field, table_of

from .export_files import HOW, facts
from .plain import tables_markdown

SIGN_OFF = "The person who submits it checks it and signs it off: `git commit --amend -s`."


def subject(kernel: KeptKernel, task: Task) -> str:
    """Return the first line of the commit and of the pull request."""
    name = task.entry_points[0].name
    speed = attempt_speed(kernel.attempt_state) if kernel.attempt_state is not None else None
    if speed is None or not speed.is_gain:
        return f"Replace the kernel of {name}"
    return f"Replace the kernel of {name}: {speed.figure} as fast"


def commit_message(kernel: KeptKernel, task: Task) -> str:
    """Return the message of the commit."""
    origin = f"Attempt {kernel.attempt} of the Wavedeck session {kernel.session}, task {kernel.task}."
    return f"{subject(kernel, task)}\n\n{origin}\n{author_words(kernel)} {SIGN_OFF}\n"


def author_words(kernel: KeptKernel) -> str:
    """Return who wrote the kernel, in a sentence."""
    attempt = kernel.attempt_state
    call = code_call(attempt.calls) if attempt is not None else None
    if call is not None:
        return f"A language model ({call.model}) wrote this kernel."
    made = f" ({origin_words(attempt)})" if attempt is not None else ""
    return f"No call of a language model wrote this kernel itself{made}."


def pull_request(kernel: KeptKernel, task: Task, paths: Sequence[str], *, test: str) -> str:
    """Return the text in Markdown; `test` is the command that passed before and after, if any."""
    attempt, state, timed = kernel.attempt_state, kernel.state, kernel.judged
    if attempt is None or state is None or timed is None:
        raise ValueError(f"the session of {kernel.attempt} is gone")
    tests = (
        f"`{test}` passed before and after the change."
        if test
        else "The tests of this repository were not run."
    )
    listed = "\n".join(f"- {name}: {value}" for name, value in facts(kernel, state, attempt) if value)
    parts = [
        f"# {subject(kernel, task)}",
        f"Replaces `{task.entry_points[0].name}` in {', '.join(f'`{path}`' for path in paths)}. {tests}",
        f"{author_words(kernel)} {SIGN_OFF}",
        "## Times",
        *_times(timed, task),
        "## How it was judged",
        HOW,
        listed,
    ]
    return printable("\n\n".join(parts)) + "\n"


def _times(timed: Evaluation, task: Task) -> list[str]:
    """Return the cases, the smallest speedup first; without times the reason."""
    if not timed.latency:
        return [f"No time was measured: {missing_speed(timed)}."]
    shapes = {case.name: sizes_words(case.gpu) for case in task.cases} | case_sizes(timed)
    fields: tuple[Field[Latency], ...] = (
        Field(Column("case"), lambda case: case.case),
        Field(Column("shape"), lambda case: shapes.get(case.case, "")),
        Field(Column("before us", right=True), lambda case: side_us(case, baseline=True)),
        Field(Column("after us", right=True), lambda case: side_us(case)),
        Field(Column("speedup [95 %]", right=True), lambda case: case_speedup(case) or case.outcome.value),
        Field(Column("outcome"), lambda case: case.outcome.value),
    )
    worst_first = sorted(timed.latency, key=lambda case: case.speedup if case.speedup is not None else 1.0)
    against = baseline_names(timed.latency)
    return [
        tables_markdown([table_of("", fields, worst_first)]),
        f"Before: {against or 'the baseline'}. Medians of a call; `<` says that a time is too short to be timed exactly, "
        f"`>=` and `<=` are bounds. {clocks_words(timed.latency)}".rstrip(),
        *([f"Not timed: {', '.join(timed.not_timed)}."] if timed.not_timed else []),
    ]


def clocks_words(latency: Sequence[Latency]) -> str:
    """Return the clocks of the device while it timed; empty if it did not report them."""
    sides = [side for case in latency for side in (case.baseline, case.candidate) if side is not None]
    clocks = [side.clock_mhz for side in sides if side.clock_mhz is not None]
    if not clocks:
        return ""
    return f"Clock during the timing: {min(clocks)} to {max(clocks)} MHz."
