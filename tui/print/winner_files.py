"""The winners of sessions as a folder of importable kernels, with a README of the evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sessions.kept_kernels import KeptKernel
from sessions.metrics.training_rows import is_right
from tui.diagnostics import Complaint, printable

from .export_files import HOW, facts
from .markdown_text import facts_list

INIT = '"""Triton kernels that Wavedeck judged correct; README.md has the evidence of each."""\n'
HEAD = (
    "Each module is the code of a candidate, unchanged. It needs torch and Triton, but not Wavedeck. "
    "The licence named here is that of the task's suite, whose instruction and reference the model may have seen. "
    "`wavedeck export` writes the whole evidence of a kernel with a test and a benchmark."
)


def winner_files(kernels: Iterable[KeptKernel], licences: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of the folder by file name: a module for each kernel, `__init__.py` and `README.md`.

    Kernels that a person or the exam refused are left out, and the README says so. `licences` are SPDX names by suite. Raises
    `Complaint` if no kernel is left.
    """
    modules: dict[str, str] = {}
    sections, refused = [], []
    for kernel in kernels:
        state, attempt = kernel.state, kernel.attempt_state
        if state is None or attempt is None or not is_right(attempt):
            refused.append(f"{kernel.attempt} of {kernel.session}")
            continue
        name = _module_name(kernel.task, modules)
        modules[f"{name}.py"] = kernel.source
        licence = licences.get(kernel.task.partition("/")[0], "not known")
        lines = [*facts(kernel, state, attempt), ("licence of the task's suite", licence)]
        sections += [f"## {name}.py", facts_list(lines)]
    if not modules:
        raise Complaint("these sessions have no correct kernel that neither a person nor the exam refused")
    if refused:
        sections += ["## Left out", f"Refused by a person or the exam, or not correct: {', '.join(refused)}."]
    readme = "\n\n".join(["# Kernels and their evidence", HEAD, HOW, *sections])
    return modules | {"__init__.py": INIT, "README.md": printable(readme) + "\n"}


def _module_name(task: str, taken: Mapping[str, str]) -> str:
    """Return a module's name for a task: `softmax_kernel`, or `softmax_kernel_2` if it is taken."""
    stem = re.sub(r"\W", "_", task.partition("/")[2], flags=re.ASCII) + "_kernel"
    stem = f"task_{stem}" if stem[:1].isdigit() else stem
    name, number = stem, 1
    while f"{name}.py" in taken:
        number += 1
        name = f"{stem}_{number}"
    return name
