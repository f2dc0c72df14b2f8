"""The compiler's texts of an attempt: which kernel is asked for, why a text is missing, and a form to compare two texts.

Two texts in this form differ only where their code does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from harness.wire.results.evaluation import Evaluation, KernelResources

from .listing import Kind, jump_target, parse

ASSEMBLY = ("amdgcn", "ptx")
TEXTS = ("ttgir", "llir", *ASSEMBLY, "sass")
"""Names of texts, from Triton's to the machine's."""
NEVER_KEPT = "its session was recorded without the compiler's texts"
_RANGE = re.compile(r"\b([vsa])\[(\d+):(\d+)\]")
_REGISTER = re.compile(r"\b([vsa])\d+\b")
_PTX_REGISTER = re.compile(r"(%[a-z]+)\d+\b")
_SASS_REGISTER = re.compile(r"\b(U?[RP])\d+\b")
_VALUE = re.compile(r"%[\w.$-]+(?:[:#]\d+)?")
_PLACES = re.compile(r"\s*(?:,\s*!dbg !\d+|loc\([^)]*\))")
_NUMBERED = re.compile(r"([!#][a-z]*)\d+\b")
_DEBUG = ("#loc", "!", "source_filename", "; ModuleID", "  #dbg_")


def named_kernel(kernel: KernelResources) -> str:
    """Return a kernel's name, with the index of its config if it is autotuned: `softmax @2`."""
    return kernel.kernel + ("" if kernel.autotune_index is None else f" @{kernel.autotune_index}")


class NoText(Exception):
    """There is no such text; the message says why."""


class CodeText(NamedTuple):
    """One text of a kernel."""

    target: str
    kernel: KernelResources
    name: str
    """One of `TEXTS`."""
    content: str

    @property
    def title(self) -> str:
        """Return the kernel, the text's name, the target, the case and the configuration, in one line."""
        config = " ".join(f"{name}={value}" for name, value in self.kernel.config.items())
        return (
            f"{named_kernel(self.kernel)}, {self.name} for {self.target}, case {self.kernel.case}: {config}"
        )


def code_texts(
    evaluation: Evaluation | None,
    read: Callable[[str], str | None],
    *,
    kernel: str = "",
    case: str = "",
    name: str = "",
) -> list[CodeText]:
    """Return the texts of one case's kernels on the first target, by default the assembly for the first case.

    `kernel`: this kernel alone, `name @2` for a config of an autotuned one. `read` returns a text by its digest. Raises `NoText`.
    """
    target, rows = next(iter(evaluation.resources.items()), ("", ())) if evaluation is not None else ("", ())
    compiled = [row for row in rows if row.architecture]
    if not compiled:
        raise NoText("no kernel of it was compiled")
    wanted = [row for row in compiled if not kernel or kernel in (row.kernel, named_kernel(row))]
    if not wanted:
        raise NoText(
            f"it has no kernel {kernel}; it has {', '.join(dict.fromkeys(map(named_kernel, compiled)))}"
        )
    cases = dict.fromkeys(name for row in wanted for name in row.cases)
    case = case or next(iter(cases))
    chosen = {row.kernel: row for row in reversed(wanted) if case in row.cases}
    if not chosen:
        raise NoText(f"there is no code for case {case}; there is code for {', '.join(cases)}")
    return [_read(row, target, read, name) for row in reversed(chosen.values())]


def _read(row: KernelResources, target: str, read: Callable[[str], str | None], name: str) -> CodeText:
    """Return a text of a kernel, by default its assembly. Raises `NoText` if it was not kept or cannot be read."""
    name = name or next((assembly for assembly in ASSEMBLY if assembly in row.texts), ASSEMBLY[0])
    if name not in row.texts:
        raise NoText(f"{named_kernel(row)} has no {name}: {_why_missing(row, target, name)}")
    content = read(row.texts[name])
    if content is None:
        raise NoText(f"This session was stored without the {name} of {named_kernel(row)}.")
    return CodeText(target, row, name, content)


def _why_missing(row: KernelResources, target: str, name: str) -> str:
    if name in row.texts_left_out:
        return row.texts_left_out[name]
    if not row.texts:
        return NEVER_KEPT
    return f"for {target} there is {', '.join(row.texts)}"


Reader = Callable[[Callable[[str], str | None]], CodeText]
"""Reads one text with a function that returns a text by its digest; raises `NoText`."""


def all_assembly(evaluation: Evaluation) -> list[Reader]:
    """Return a reader for each different assembly of the first target, in the order of the launches."""
    target, rows = next(iter(evaluation.resources.items()), ("", ()))
    kept: dict[str, KernelResources] = {}
    for row in rows:
        for name in ASSEMBLY:
            if name in row.texts:
                kept.setdefault(row.texts[name], row)
    return [partial(_read, row, target, name="") for row in kept.values()]


def normal_lines(text: str, name: str) -> list[str]:
    """Return the code of a text alone, in lines; `name` is that of the text, such as `amdgcn`.

    Of a register its kind and its width are left, of an SSA value nothing; labels are numbered in the order of their places.
    Comments, debug information and directives are left out.
    """
    if name in ("amdgcn", "ptx"):
        return _normal_assembly(text, is_ptx=name == "ptx")
    if name == "sass":
        return [_SASS_REGISTER.sub(r"\1", line) for line in text.splitlines()]
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith(_DEBUG))
    return [_NUMBERED.sub(r"\1", _VALUE.sub("%", _PLACES.sub("", line))).rstrip() for line in lines]


def _normal_assembly(text: str, *, is_ptx: bool) -> list[str]:
    """Return the instructions one a line, in a form in which two texts of the same code are equal.

    Comments and unused labels are left out, labels are numbered in order, and registers lose their numbers. A range of
    registers keeps its length.
    """
    listing = parse(text)
    targets = {
        jump_target(instruction.text)
        for instruction in listing.instructions
        if instruction.kind is Kind.BRANCH
    }
    labels = {
        label: f"L{number}" for number, label in enumerate(name for name in listing.labels if name in targets)
    }
    starts: dict[int, list[str]] = {}
    for label, new in labels.items():
        starts.setdefault(listing.labels[label], []).append(f"{new}:")
    lines: list[str] = []
    for place, instruction in enumerate(listing.instructions):
        lines += starts.get(place, ())
        code = instruction.text
        if instruction.kind is Kind.BRANCH and (target := jump_target(code)) in labels:
            code = code.replace(target, labels[target])
        if is_ptx:
            code = _PTX_REGISTER.sub(r"\1", code)
        else:
            code = _RANGE.sub(lambda match: f"{match[1]}[{int(match[3]) - int(match[2]) + 1}]", code)
            code = _REGISTER.sub(r"\1", code)
        lines.append(f"  {' '.join(code.split())}")
    return lines
