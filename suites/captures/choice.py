"""Chooses the cases of a task from the calls of a capture."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from suites.captures.capture import (
    CallSignature,
    Capture,
    DictValue,
    ListValue,
    ScalarValue,
    TensorValue,
    Value,
)

WANTED_COVERAGE = 0.95
EXAM_SHARE = 4
"""One exam case for so many open cases, but at least one."""
OTHER_FORM = 64.0
"""Distance of signatures that differ in more than sizes and whole numbers."""


class ChosenCase(msgspec.Struct, frozen=True):
    """A signature that becomes a case."""

    signature: CallSignature
    weight: float
    """Its share of the covered time, with the signatures that it represents; 0 for an exam case."""
    exam: bool = False


class Choice(msgspec.Struct, frozen=True):
    """The cases of a task."""

    cases: tuple[ChosenCase, ...]
    """Open cases by weight, with a sum of 1; then exam cases."""
    exact: float
    """Share of the time that was spent in exactly these signatures."""
    covered: float
    """Share of the time with the other signatures that the cases represent."""


def choose_cases(capture: Capture, cases: int = 8) -> Choice:
    """
    Return at most `cases` open cases that cover at least 95 % of the recorded time, and exam cases of other signatures.

    If so many signatures do not add up to 95 %, the cases are chosen far from each other. Each then represents the nearest
    signatures that differ from it in sizes and whole numbers only. Raises `ValueError` if no signature has a known time.
    """
    timed = [signature for signature in capture.signatures if signature.weight_us]
    if not timed:
        raise ValueError(
            f"no call of {capture.target} has a known time and frequency; let the program call it twice"
        )
    timed.sort(key=_time, reverse=True)
    whole = sum(map(_time, timed))
    chosen: list[CallSignature] = []
    while len(chosen) < len(timed) and sum(map(_time, chosen)) < WANTED_COVERAGE * whole:
        chosen.append(timed[len(chosen)])
    if len(chosen) > cases:
        chosen = _far_apart(timed, cases)
    weights = [_time(signature) for signature in chosen]
    rest = [signature for signature in timed if signature not in chosen]
    for signature in rest:
        distances = [_distance(signature, case) for case in chosen]
        nearest = distances.index(min(distances))
        if distances[nearest] < OTHER_FORM:
            weights[nearest] += _time(signature)
    covered = sum(weights)
    opened = [
        ChosenCase(signature, weight / covered) for signature, weight in zip(chosen, weights, strict=True)
    ]
    opened.sort(key=lambda case: case.weight, reverse=True)
    held_out = [*rest, *(signature for signature in capture.signatures if not signature.weight_us)]
    exams = [
        ChosenCase(signature, 0.0, exam=True) for signature in held_out[: max(1, len(opened) // EXAM_SHARE)]
    ]
    return Choice((*opened, *exams), sum(map(_time, chosen)) / whole, covered / whole)


def _time(signature: CallSignature) -> float:
    return signature.weight_us or 0.0


def _far_apart(timed: Sequence[CallSignature], cases: int) -> list[CallSignature]:
    """Return signatures with much time that are far from each other; the first has the most time."""
    chosen = [timed[0]]
    distances = [_distance(signature, timed[0]) for signature in timed]
    while len(chosen) < cases:
        gains = [_time(signature) * distance for signature, distance in zip(timed, distances, strict=True)]
        chosen.append(timed[gains.index(max(gains))])
        distances = [
            min(distance, _distance(signature, chosen[-1]))
            for signature, distance in zip(timed, distances, strict=True)
        ]
    return chosen


def _distance(first: CallSignature, second: CallSignature) -> float:
    """Return how far the sizes of two signatures are apart, in factors of two; `OTHER_FORM` if more than sizes differ."""
    form, sizes = _form_and_sizes(DictValue(first.arguments))
    other_form, other_sizes = _form_and_sizes(DictValue(second.arguments))
    if (form, first.same, first.shared) != (other_form, second.same, second.shared):
        return OTHER_FORM
    if first == second:
        return 0.0
    # Equal sizes with other strides still differ.
    pairs = zip(sizes, other_sizes, strict=True)
    return min(0.1 + sum(abs(math.log2((abs(a) + 1) / (abs(b) + 1))) for a, b in pairs), OTHER_FORM - 1)


def _form_and_sizes(value: Value) -> tuple[object, list[int]]:
    """Return what calls of one form have in common in an argument, and its sizes: of tensors, and whole numbers, in order."""
    match value:
        case TensorValue(shape=shape, dtype=dtype):
            return (dtype, len(shape)), list(shape)
        case ScalarValue(value=int(number)) if not isinstance(number, bool):
            return "whole number", [number]
        case ListValue(items=items):
            parts = [*map(_form_and_sizes, items)]
            return (value.is_tuple, [form for form, _ in parts]), [
                size for _, sizes in parts for size in sizes
            ]
        case DictValue(items=named):
            form, sizes = _form_and_sizes(ListValue(tuple(named.values())))
            return (tuple(named), form), sizes
        case _:
            return value, []
