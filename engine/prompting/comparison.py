"""Compares the correct candidates of an instance: which is better in which case, and how their code differs."""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Sequence
from typing import NamedTuple

from engine.reply.module_text import parse_module
from harness import Evaluation
from sessions.state.cases import case_rows
from sessions.state.figure_words import ratio_words
from sessions.state.ranking import EXCESS_TIE
from sessions.state.speed import are_comparable
from suites.source.python_source import source_lines

from .figures import own_cases

CLEARLY = 1.02
"""A timed case counts as better elsewhere only beyond this ratio: two timings from scratch differ by up to 1 %."""
CONTEXT_LINES = 2
"""Unchanged lines around each change of a diff."""
WORTH_A_DIFF = 0.6
"""A diff is shown only if it is shorter than this share of the source."""


class Better(NamedTuple):
    """Another attempt that is clearly faster in one case than the best attempt."""

    attempt: str
    words: str
    """`1.35x in softmax#1/1`, or without a time `in softmax#1/1`."""


def case_speeds(evaluation: Evaluation) -> dict[str, float]:
    """Returns a figure by case, greater is better: the speedup if timed, else needed over requested bytes."""
    if any(row.speedup is not None for row in own_cases(evaluation)):
        return {row.case: row.speedup for row in case_rows(evaluation) if row.speedup is not None}
    return {row.case: 1 / row.excess for row in evaluation.traffic if row.excess is not None}


def better_elsewhere(best: Evaluation, others: Sequence[tuple[str, Evaluation]]) -> dict[str, Better]:
    """Returns, by case, the fastest other attempt if it is clearly faster than the best one.

    Attempts are compared only if all were timed, or none, and with the same hardware and software. A case in which the
    best one was not timed or not counted is left out: nothing says that it is worse there.
    """
    # A timed case without a ratio counts as 1.00 in the rank.
    own = dict.fromkeys((latency.case for latency in best.latency), 1.0) | case_speeds(best)
    clearly = CLEARLY if best.latency else 1 + EXCESS_TIE
    better: dict[str, tuple[float, str]] = {}
    for attempt, evaluation in others:
        if bool(evaluation.latency) != bool(best.latency) or not are_comparable(evaluation, best):
            continue
        for case, speed in case_speeds(evaluation).items():
            if speed > clearly * own.get(case, math.inf) and speed > better.get(case, (0.0, ""))[0]:
                better[case] = (speed, attempt)
    timed = bool(best.latency)
    return {
        case: Better(attempt, f"{ratio_words(speed)} in {attempt}" if timed else f"in {attempt}")
        for case, (speed, attempt) in better.items()
    }


def code_difference(source: str, best: str) -> str:
    """Returns the lines of `best` that `source` replaces as a unified diff without header.

    Empty if the diff would be nearly as long as the source.
    """
    lines = list(
        difflib.unified_diff(source_lines(best), source_lines(source), lineterm="", n=CONTEXT_LINES)
    )[2:]
    text = "\n".join(lines)
    return text if lines and len(text) < WORTH_A_DIFF * len(source) else ""


def changed_functions(source: str, best: str) -> str:
    """Returns the top-level functions of `source` that `best` does not have in exactly this form.

    The whole source if Python cannot parse it, or if no function differs.
    """
    tree = parse_module(source)
    if tree is None:
        return source
    lines = source_lines(source)
    functions = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            text = "\n".join(lines[first - 1 : node.end_lineno])
            if text not in best:
                functions.append(text)
    return "\n\n\n".join(functions) if functions else source
