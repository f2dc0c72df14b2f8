"""Turns the calls of a capture into the inputs of a task's cases."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from suites.captures.capture import CallSignature, Capture, signature_text
from suites.captures.choice import choose_cases
from suites.errors import BadKernelFile

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
            (inputs,) = parse_shapes((signature_text(signature),))
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
    inputs_of = {id(signature): inputs for signature, inputs in alike}
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
        (name, len(tensor.shape), tensor.transposed, tensor.strides is None)
        for name, tensor in inputs.tensors.items()
    ]
    return layouts, inputs.scalars
