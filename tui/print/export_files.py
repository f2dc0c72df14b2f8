"""A kernel as files for people without Wavedeck: kernel, changes, evidence, a test and a benchmark."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator

import msgspec

from harness import HarnessError
from harness.standalone.files import file_stem, standalone_files
from sessions.applying.placing import merge_files
from sessions.applying.worktree import homes_on_disk, original_path
from sessions.kept_kernels import KeptKernel
from sessions.names import split_attempt
from sessions.state.state import AttemptState, SessionState
from sessions.store.attempt_commits import code_call
from suites import Task, baseline_source
from tui.diagnostics import Complaint, printable
from tui.facts.attempt import dated_decision, origin_words
from tui.facts.evaluation.certainty import exam_sentence
from tui.facts.evaluation.page import evaluation_tables
from tui.facts.evaluation.provenance import provenance_words
from tui.facts.evaluation.spread import spread_tables
from tui.facts.evaluation.task_cases import cases_table
from tui.facts.evaluation.verdict import headline
from tui.facts.vocabulary import moment

from .markdown_text import facts_list, tables_markdown
from .plain import json_document

HOW = (
    "The judge ran the kernel in a sandboxed process. Outside of that process it compared the outputs with the task's "
    "oracle, in float64 or integers, by the task's tolerances. It added hidden cases with other sizes and values, "
    "and checked that Triton kernels do the work. Times, if there are any, are of recorded launches that were played in "
    "turn with the baseline's, in several pairs of processes; an interval covers 95 %."
)


def standalone_or_none(task: Task, source: str) -> dict[str, str]:
    """Return the test, the benchmark and what they need, by file name; empty if the task can have none."""
    try:
        return standalone_files(task, source)
    except HarnessError:
        return {}


def export_files(kernel: KeptKernel, task: Task) -> dict[str, str]:
    """Return the texts of an export by file name. Raises `SuiteError` if a file of the task cannot be read."""
    name, baseline = file_stem(task), baseline_source(task)
    try:
        files, missing = standalone_files(task, kernel.source), ""
    except HarnessError as error:
        files = {f"{name}_kernel.py": kernel.source, f"{name}_baseline.py": baseline}
        missing = str(error)
    diff = unified_diff(baseline, kernel.source, f"{name}_baseline.py", f"{name}_kernel.py")
    return {
        **files,
        f"{name}.diff": diff,
        "evidence.md": evidence_page(kernel, task, missing),
        "evidence.json": json_document(evidence(kernel, task), indented=True).decode() + "\n",
    }


def patch_file(kernel: KeptKernel, task: Task) -> dict[str, str]:
    """Return the diff of the task's original files for `git apply`, by file name. Raises `Complaint` or `NotApplicable`."""
    if not original_path(task):
        raise Complaint(
            f"the original file of {task.id} is not known, so there is no patch; `wavedeck apply` finds it in a repository"
        )
    homes = homes_on_disk(task, baseline_source(task))
    texts = merge_files(homes, kernel.source, [entry.name for entry in task.entry_points])
    before = {home.path: home.text for home in homes}
    diffs = [unified_diff(before[path], text, f"a/{path}", f"b/{path}") for path, text in texts.items()]
    return {f"{file_stem(task)}.patch": "".join(diffs)}


def unified_diff(old: str, new: str, old_name: str, new_name: str) -> str:
    """Return a unified diff that `patch` and `git apply` take; empty if the texts are equal."""
    old_lines, new_lines = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (old, new))
    lines = difflib.unified_diff(old_lines, new_lines, old_name, new_name)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def facts(kernel: KeptKernel, state: SessionState, attempt: AttemptState) -> Iterator[tuple[str, str]]:
    """Yield what a reader of the evidence must know first; empty values are left out."""
    started, call = state.started, code_call(attempt.calls)
    instance = state.instances[split_attempt(attempt.attempt).instance]
    timed = kernel.judged
    yield "kernel", f"{attempt.attempt} of session {kernel.session}, task {kernel.task}"
    yield "verdict", headline(attempt.evaluation) if attempt.evaluation is not None else "not judged"
    yield "exam", exam_sentence(attempt, instance)
    yield "decision", dated_decision(attempt.decision) if attempt.decision is not None else ""
    yield "written by", f"the language model {call.model}" if call is not None else "no model call"
    yield "origin", origin_words(attempt)
    yield "idea" + ", in the model's words" * (call is not None), " ".join(attempt.strategy.split())
    yield "judged", f"{moment(attempt.judged_wall)} UTC" if attempt.judged_wall else ""
    yield "hardware and software", provenance_words(timed.provenance if timed is not None else None)
    yield "seed of the judge's inputs", str(started.seed) if started is not None else ""
    yield "sha256 of the kernel", _digest(kernel.source)


def evidence_page(kernel: KeptKernel, task: Task, missing: str = "") -> str:
    """Return the evidence in Markdown; `missing` is why there is no test and benchmark."""
    state, attempt = _known(kernel)
    parts = [
        f"# {kernel.attempt}: evidence",
        facts_list(facts(kernel, state, attempt)),
        "## How it was judged",
        HOW,
        *filter(None, [missing]),
        tables_markdown([cases_table(task, "cases and tolerances")]),
    ]
    for evaluation, title in ((attempt.evaluation, "Verdict"), (attempt.exam, "Exam")):
        if evaluation is not None:
            parts += [f"## {title}", tables_markdown(evaluation_tables(evaluation), level=3)]
    parts.append(tables_markdown(spread_tables(attempt)))
    return printable("\n\n".join(filter(None, parts))) + "\n"


def evidence(kernel: KeptKernel, task: Task) -> dict[str, object]:
    """Return the same facts for programs."""
    state, attempt = _known(kernel)
    started, call = state.started, code_call(attempt.calls)
    return {
        "schema": 1,
        "session": kernel.session,
        "task": kernel.task,
        "attempt": kernel.attempt,
        "model": call.model if call is not None else None,
        "origin": attempt.origin,
        "base": attempt.base,
        "strategy": attempt.strategy,
        "commit": attempt.commit,
        "kernel_sha256": _digest(kernel.source),
        "baseline_sha256": _digest(baseline_source(task)),
        "seed": started.seed if started is not None else None,
        "against": started.against if started is not None else "",
        "verdict": attempt.verdict,
        "exam": attempt.confirmation,
        "speed": attempt.speed,
        "accepted": attempt.decision.accepted if attempt.decision is not None else None,
        "cases": task.cases,
        "outputs": task.outputs,
        "tolerances": task.tolerances,
        "quantization": task.quantization,
        "evaluation": attempt.evaluation,
        "exam_evaluation": attempt.exam,
        "spread": [msgspec.to_builtins(measured.evaluation) for measured in attempt.spread],
    }


def _known(kernel: KeptKernel) -> tuple[SessionState, AttemptState]:
    if kernel.state is None:
        raise ValueError(f"the session of {kernel.attempt} is gone")
    return kernel.state, kernel.state.attempt(kernel.attempt)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
