"""What the failing cases of a candidate have in common that no passing case has. Torch-free."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.cases.judged_case import JudgedCase
from suites.source.python_source import parse_literal
from suites.source.signature import parse_signature
from suites.task import Distribution, Task

_FEWEST = 3
"""With fewer cases, almost anything separates the failing from the passing ones."""
_MOST_NAMES = 6
_LARGEST_BLOCK = 1024

Scalars = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """A judged case: its sizes on this device, its arguments that are no tensors, and whether it passed."""

    case: JudgedCase
    sizes: Mapping[str, int]
    scalars: Scalars
    passed: bool


def number_defaults(task: Task) -> Scalars:
    """Return the defaults of the entry point's parameters that are numbers."""
    signature = parse_signature(task.entry_points[0].signature)
    values = {name: parse_literal(text) for name, text in signature.defaults.items()}
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def describe_cases(
    outcomes: Sequence[CaseOutcome], *, defaults: Scalars, not_judged: int = 0, sizes: str = ""
) -> str:
    """Return `fails: 4 of 7 cases, all with columns % 8 != 0 (...); passes: ...`; empty if only one case was judged.

    `defaults` are the values of parameters that a case leaves out. `not_judged` cases had no time left. `sizes` names the
    sizes of the calls, ` at cpu sizes`, if the task has others at which a case that passes here can fail.
    """
    words = _outcome_words(outcomes, defaults, sizes)
    return f"{words}; not judged: {not_judged} more" if words and not_judged else words


def _outcome_words(outcomes: Sequence[CaseOutcome], defaults: Scalars, sizes: str) -> str:
    """Say which cases fail, which pass, and what the failing ones have in common; empty if there is only one."""
    failed = [outcome for outcome in outcomes if not outcome.passed]
    passed = [outcome for outcome in outcomes if outcome.passed]
    if not failed or not passed:
        return f"fails: all {len(failed)} cases that were judged" if len(failed) > 1 else ""
    common = next(_common(failed, passed, defaults), "") if len(outcomes) >= _FEWEST else ""
    names = [f"{'all ' if len(failed) > 1 else ''}with {common}"] if common else []
    return (
        f"fails: {', '.join([f'{len(failed)} of {len(outcomes)} cases', *names])} ({_names(failed)}); "
        f"passes{sizes}: {_names(passed)}"
    )


def _names(outcomes: Sequence[CaseOutcome]) -> str:
    shown = [outcome.case.name for outcome in outcomes[:_MOST_NAMES]]
    more = len(outcomes) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _common(failed: Sequence[CaseOutcome], passed: Sequence[CaseOutcome], defaults: Scalars) -> Iterator[str]:
    """Yield properties of all failing and no passing case, the most telling first."""
    yield from _arguments(failed, passed, defaults)
    dtypes = {outcome.case.case.dtype for outcome in failed}
    if len(dtypes) == 1 and not dtypes & {outcome.case.case.dtype for outcome in passed}:
        yield f"dtype {dtypes.pop()}"
    for axis in failed[0].sizes:
        if all(axis in outcome.sizes for outcome in (*failed, *passed)):
            bad, good = ([outcome.sizes[axis] for outcome in side] for side in (failed, passed))
            yield from _sizes(axis, bad, good)
    bad_outliers, good_outliers = (
        [outcome.case.case.distribution is Distribution.OUTLIER for outcome in side]
        for side in (failed, passed)
    )
    if all(bad_outliers) and not any(good_outliers):
        yield "outliers in the inputs"
    layouts = {outcome.case.layout for outcome in failed}
    if len(layouts) == 1 and not layouts & {outcome.case.layout for outcome in passed}:
        yield f"inputs that are {layouts.pop()}"


def _sizes(axis: str, bad: Sequence[int], good: Sequence[int]) -> Iterator[str]:
    """Yield in words what the sizes of the failing cases along one axis have in common that no passing size has."""
    if set(bad) == {1} and 1 not in good:
        yield f"{axis} = 1"
    block = min(_LARGEST_BLOCK, math.gcd(*good) & -math.gcd(*good)) if any(good) else 0
    if block > 1 and all(size % block for size in bad):
        yield f"{axis} % {block} != 0"
    if min(bad) > max(good):
        yield f"{axis} >= {min(bad)}, and passing up to {max(good)}"
    if max(bad) < min(good):
        yield f"{axis} <= {max(bad)}, and passing from {min(good)}"


def _arguments(
    failed: Sequence[CaseOutcome], passed: Sequence[CaseOutcome], defaults: Scalars
) -> Iterator[str]:
    """An argument that has one value in all passing cases, and another in each failing case."""
    for name in dict.fromkeys(name for outcome in failed for name in outcome.scalars):
        bad, good = (
            {outcome.scalars.get(name, defaults.get(name)) for outcome in side} for side in (failed, passed)
        )
        if len(good) == 1 and not bad & good and None not in good | bad:
            [usual], values = good, ", ".join(f"{value:.4g}" for value in bad if value is not None)
            yield f"{name} = {values}, and passing with {name} = {usual:.4g}: is `{name}` hard-coded?"
