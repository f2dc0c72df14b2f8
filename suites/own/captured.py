"""Turns the calls of a capture into the inputs of a task's cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from suites.captures.capture import CallSignature, Capture
from suites.captures.choice import choose_cases
from suites.captures.signature_texts import shapes_text
from suites.dtypes import is_exact
from suites.errors import BadKernelFile
from suites.input_kinds import Integers

from .shapes import Inputs, parse_shapes


@dataclass(frozen=True, slots=True)
class CapturedInputs:
    """The inputs of cases that represent a program's calls."""

    cases: tuple[Inputs, ...]
    words: str
    """Line for people: numbers of cases, their share of the recorded time, and how many lack the aliasing of their calls."""


def captured_inputs(capture: Capture) -> CapturedInputs:
    """Return the inputs of open cases with weights, then of exam cases.

    Only signatures that a task can have beside the one with the most time are chosen: they differ in sizes and dtypes.
    Raises `BadKernelFile` if that signature cannot become a case, or has no time.
    """
    alike: list[tuple[CallSignature, Inputs]] = []
    for signature in capture.signatures:
        try:
            (inputs,) = parse_shapes((shapes_text(signature),))
        except BadKernelFile as problem:
            if not alike:
                raise BadKernelFile(
                    f"a call of {capture.target} cannot become a case: {problem}"
                ) from problem
            continue
        if not alike or _form(inputs) == _form(alike[0][1]):
            alike.append((signature, inputs))
    try:
        choice = choose_cases(
            msgspec.structs.replace(capture, signatures=tuple(signature for signature, _ in alike))
        )
    except ValueError as problem:
        raise BadKernelFile(str(problem)) from problem
    ranged = _with_common_ranges([inputs for _, inputs in alike])
    inputs_of = {id(signature): inputs for (signature, _), inputs in zip(alike, ranged, strict=True)}
    cases = tuple(
        msgspec.structs.replace(inputs_of[id(case.signature)], weight=case.weight, exam=case.exam)
        for case in choice.cases
    )
    share = sum(signature.weight_us or 0.0 for signature, _ in alike) / capture.weight_us
    exams = sum(case.exam for case in choice.cases)
    words = (
        f"open cases: {len(cases) - exams}, exam cases: {exams}, signatures: {len(capture.signatures)}; the open cases stand for "
        f"{choice.covered * share:.0%} of the recorded time, {choice.exact * share:.0%} with exactly their sizes"
    )
    aliased = sum(bool(case.signature.same or case.signature.shared) for case in choice.cases)
    return CapturedInputs(cases, words + f"; {aliased} lack the aliasing of the calls" * bool(aliased))


def _form(inputs: Inputs) -> object:
    """Return what cases must have in common: the layouts of their tensors and their plain arguments."""
    layouts = [
        (name, len(tensor.shape), tensor.transposed, tensor.strides is None, type(tensor.kind))
        for name, tensor in inputs.tensors.items()
    ]
    return layouts, inputs.scalars


def _with_common_ranges(cases: Sequence[Inputs]) -> list[Inputs]:
    """Return the cases; an integer range that differs between them, and ends at no size of each case, becomes that of all."""
    changed = [dict(case.tensors) for case in cases]
    for name in cases[0].tensors:
        columns: list[Any] = [tensors[name] for tensors in changed]
        kinds = [column.kind for column in columns if type(column.kind) not in (Integers, type(None))]
        if kinds or not all(isinstance(column.low, int) and is_exact(column.dtype) for column in columns):
            continue
        sizes = [{size for tensor in tensors.values() for size in tensor.shape} for tensors in changed]
        is_size = all(column.high in of_case for column, of_case in zip(columns, sizes, strict=True))
        low, most = min(column.low for column in columns), max(column.high for column in columns)
        for tensors, column in zip(changed, columns, strict=True):
            high = column.high if is_size else most
            kind = column.kind and Integers(low, high)
            tensors[name] = msgspec.structs.replace(column, low=low, high=high, kind=kind)
    return [
        msgspec.structs.replace(case, tensors=tensors) for case, tensors in zip(cases, changed, strict=True)
    ]
