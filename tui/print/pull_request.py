"""The text of a pull request for a kernel: times by case, how they were measured, and how the kernel was judged."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from engine.tuning.best_by_case import CaseBest
from harness import Evaluation, Latency
from harness.wire.results.serving_facts import serving_facts
from sessions.applying.before_after import BenchmarkComparison
from sessions.applying.guarding import Guard
from sessions.applying.witness import NO_PROOF, KernelProof
from sessions.kept_kernels import KeptKernel
from sessions.state.cases import CaseRow, case_rows
from sessions.state.speed import baseline_names, missing_speed
from sessions.store.attempt_commits import code_call
from suites import Task
from tui.diagnostics import printable
from tui.facts.attempt import origin_words
from tui.facts.evaluation.best_by_case import FIELDS as CASE_FIELDS
from tui.facts.evaluation.best_by_case import MEASURED
from tui.facts.evaluation.task_cases import sizes_words
from tui.facts.tables import Column, Field, Number, table_of
from tui.facts.vocabulary import counted

from .export_files import HOW, facts
from .markdown_text import facts_list, tables_markdown

SIGN_OFF = "The person who submits it checks it and signs it off: `git commit --amend -s`."

GUARDED = (
    "The kernel runs only on {0.target} and where `{0.condition}`: measured ranges in which it is faster. Every other call goes to "
    "the original, which stays."
)


_HEADING = re.compile(r"#{1,6} ")


class TemplateSection(Enum):
    """A part of the text: its own heading, and the headings of templates that it fits."""

    CHANGE = "", r"(?i)purpose|motivation|description|summary|what"
    TIMES = "## Times", r"(?i)result|benchmark|performance|speed"
    JUDGED = "## How it was judged", r"(?i)plan|accuracy|test|verif|\bhow\b"

    @property
    def heading(self) -> str:
        """The heading in a text without a template; empty at its beginning."""
        return self.value[0]

    @property
    def fits(self) -> re.Pattern[str]:
        """The words in the headings of templates."""
        return re.compile(self.value[1])


@dataclass(frozen=True, slots=True)
class TunedChange:
    """A configuration file with tuned rows."""

    path: str
    text: str
    home: str
    """The project that reads it."""
    sizes: tuple[int, ...]
    """M of the rows that were written."""
    bests: tuple[CaseBest, ...]
    """The cases of the file's problem."""
    copied_from: str = ""
    """The file that a new file has its other rows from."""


def subject(kernel: KeptKernel, task: Task, tuned: TunedChange | None = None) -> str:
    """Return the first line of the commit and of the pull request."""
    if tuned is not None:
        return f"Tune {counted(len(tuned.sizes), 'row')} for {task.entry_points[0].name}"
    name = task.entry_points[0].name
    speed = kernel.attempt_state.speed if kernel.attempt_state is not None else None
    if speed is None or not speed.is_gain:
        return f"Replace the kernel of {name}"
    return f"Replace the kernel of {name}: {speed.figure} as fast"


def commit_message(kernel: KeptKernel, task: Task, tuned: TunedChange | None = None) -> str:
    """Return the message of the commit."""
    origin = f"Attempt {kernel.attempt} of the Wavedeck session {kernel.session}, task {kernel.task}."
    return f"{subject(kernel, task, tuned)}\n\n{origin}\n{author_words(kernel)} {SIGN_OFF}\n"


def author_words(kernel: KeptKernel) -> str:
    """Return who wrote the kernel, in a sentence."""
    attempt = kernel.attempt_state
    call = code_call(attempt.calls) if attempt is not None else None
    if call is not None:
        return f"A language model ({call.model}) wrote this kernel."
    made = f" ({origin_words(attempt)})" if attempt is not None else ""
    return f"No call of a language model wrote this kernel itself{made}."


def pull_request(
    kernel: KeptKernel,
    task: Task,
    paths: Sequence[str],
    *,
    test: str,
    comparisons: Sequence[BenchmarkComparison] = (),
    proof: KernelProof = NO_PROOF,
    tuned: TunedChange | None = None,
    guard: Guard | None = None,
    targets: Sequence[str] = (),
    template: str = "",
) -> str:
    """Return the text in Markdown; `test` is the command that passed before and after, if any.

    `template` is the repository's own form of such texts: each section goes below the first heading that fits it.
    """
    attempt, state, timed = kernel.attempt_state, kernel.state, kernel.judged
    if attempt is None or state is None or timed is None:
        raise ValueError(f"the session of {kernel.attempt} is gone")
    tests = (
        f"`{test}` passed before and after the change."
        if test
        else "The tests of this repository were not run."
    )
    listed = facts_list(facts(kernel, state, attempt))
    change = [
        f"Replaces `{task.entry_points[0].name}` in {', '.join(f'`{path}`' for path in paths)}. {tests}"
        if tuned is None
        else f"Writes the rows M={', '.join(map(str, tuned.sizes))} of `{paths[0]}`; {_other_rows(tuned)}. {tests}",
        *([GUARDED.format(guard)] if guard else []),
        *(
            [
                f"Also compiled for {', '.join(targets)} and judged there in Triton's interpreter, but never run there."
            ]
            if targets
            else []
        ),
        f"{author_words(kernel)} {SIGN_OFF}",
    ]
    times = _times(timed, task) if tuned is None else _tuned_times(tuned)
    sections = {
        TemplateSection.CHANGE: change,
        TemplateSection.TIMES: [*times, *_compared(comparisons, proof), *_serving(timed)],
        TemplateSection.JUDGED: [HOW, listed],
    }
    texts = {section: "\n\n".join(parts) for section, parts in sections.items()}
    return printable(f"# {subject(kernel, task, tuned)}\n\n{in_template(template, texts)}") + "\n"


def in_template(template: str, texts: Mapping[TemplateSection, str]) -> str:
    """Return the template with each section below the first heading that fits it. The others follow, below headings of ours."""
    lines = template.strip().splitlines()
    rest = dict(texts)
    filled: list[str] = []
    for line in lines:
        filled.append(line)
        fitting = next(
            (section for section in rest if _HEADING.match(line) and section.fits.search(line)), None
        )
        if fitting is not None:
            filled += ["", rest.pop(fitting)]
    parts = ["\n".join(filled)] if lines else []
    for section, text in rest.items():
        parts += [section.heading, text] if section.heading else [text]
    return "\n\n".join(parts)


def _other_rows(tuned: TunedChange) -> str:
    if not tuned.copied_from:
        return "all others stay"
    return f"all others are copies from `{tuned.copied_from}`, which the loader then calls tuned, too"


def _tuned_times(tuned: TunedChange) -> list[str]:
    return [
        tables_markdown([table_of("", CASE_FIELDS, tuned.bests)]),
        f"{MEASURED} The kernel that was swept is a copy: nothing compares it with the kernel that {tuned.home} launches.",
    ]


def _times(timed: Evaluation, task: Task) -> list[str]:
    """Return the cases, the smallest speedup first; without times the reason."""
    rows = [row for row in case_rows(timed) if row.latency is not None]
    if not rows:
        return [f"No time was measured: {missing_speed(timed)}."]
    sizes, shares = {case.name: case.gpu for case in task.cases}, task.shares
    fields: tuple[Field[CaseRow], ...] = (
        Field(Column("case"), lambda row: row.case),
        Field(Column("shape"), lambda row: sizes_words(row.sizes or sizes.get(row.case, {}))),
        Field(
            Number("weight", if_known=True),
            lambda row: f"{shares[row.case]:.0%}" if row.case in shares else "",
        ),
        Field(Number("before us"), lambda row: str(row.baseline)),
        Field(Number("after us"), lambda row: str(row.candidate)),
        Field(Number("speedup [95 %]"), lambda row: row.words),
        Field(Number("after reaches", if_known=True), rate_words),
        Field(Column("outcome"), lambda row: row.outcome.value if row.outcome is not None else ""),
    )
    worst_first = sorted(rows, key=lambda row: row.speedup if row.speedup is not None else 1.0)
    against = baseline_names(timed)
    return [
        tables_markdown([table_of("", fields, worst_first)]),
        f"Before: {against or 'the baseline'}. Medians of a call; `<` says that a time is too short to be timed exactly, "
        f"`>=` and `<=` are bounds. {clocks_words(timed.latency)}".rstrip(),
        *([f"Not timed: {', '.join(timed.not_timed)}."] if timed.not_timed else []),
    ]


def rate_words(row: CaseRow) -> str:
    """Return the rate of what limits the kernel, by the task's cost model: `3.12 TB/s` or `410 TFLOP/s`; empty if unknown."""
    used = row.latency.efficiency if row.latency is not None else None
    if used is None or row.peak is None:
        return ""
    is_memory = row.peak.limit == "memory"
    rate = used.bytes_per_s if is_memory else used.flops_per_s
    return f"{rate / 1e12:.3g} {'TB/s' if is_memory else 'TFLOP/s'}"


def _serving(timed: Evaluation) -> list[str]:
    """Return the section about what serving needs; empty without such facts."""
    listed = facts_list((fact.name, fact.value) for fact in serving_facts(timed))
    return ["## In a server", listed] if listed else []


def _compared(comparisons: Sequence[BenchmarkComparison], proof: KernelProof) -> list[str]:
    """Return the section of commands that ran before and after the change; empty without one."""
    if not comparisons:
        return []
    fields: tuple[Field[BenchmarkComparison], ...] = (
        Field(Column("command"), lambda compared: f"`{compared.command}`"),
        Field(Column("number"), lambda compared: compared.number),
        Field(Number("before"), lambda compared: f"{statistics.fmean(compared.before):.4g}"),
        Field(Number("after"), lambda compared: f"{statistics.fmean(compared.after):.4g}"),
        Field(Number("change [95 %]"), lambda compared: change_words(compared, proof)),
        Field(Number("runs"), lambda compared: str(len(compared.before))),
    )
    return [
        "## Before and after the change",
        tables_markdown([table_of("", fields, comparisons)]),
        facts_list(proof.rows),
        "Means of runs in two worktrees, in the order A B B A, after one run each that does not count. Intervals are Student's.",
    ]


def comparison_words(comparison: BenchmarkComparison, proof: KernelProof) -> str:
    """Return both means and the change."""
    before, after = map(statistics.fmean, (comparison.before, comparison.after))
    return f"{before:.4g} before, {after:.4g} after; {change_words(comparison, proof)}"


def change_words(comparison: BenchmarkComparison, proof: KernelProof) -> str:
    """Return the ratio with its interval, and whether it shows a change, and one that the kernel can cause."""
    ratio, low, high = comparison.ratio
    words = f"after / before {ratio:.3f} [{low:.3f}, {high:.3f}]"
    if round(low, 3) <= 1 <= round(high, 3):  # as printed: an interval that ends at 1.000 shows nothing
        return f"{words}: not shown"
    return words if max(low, 1 / high) <= proof.most else f"{words}: more than the kernel can cause"


def clocks_words(latency: Sequence[Latency]) -> str:
    """Return the clocks of the device while it timed; empty if it did not report them."""
    sides = [side for case in latency for side in (case.baseline, case.candidate) if side is not None]
    clocks = [side.clock_mhz for side in sides if side.clock_mhz is not None]
    if not clocks:
        return ""
    return f"Clock during the timing: {min(clocks)} to {max(clocks)} MHz."
