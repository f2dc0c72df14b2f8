"""Whole clones of the public benchmarks, if `WAVEDECK_TEST_CLONES` names the folder that holds them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from suites.public.clone import Clone, commit_problem, kinds_of
from suites.public.known import COUNTS
from suites.public.loader import PublicSuite, load_clone
from suites.public.task import Issue, SuiteKind

CLONES = os.environ.get("WAVEDECK_TEST_CLONES", "")
UNSUPPORTED = {
    SuiteKind.TRITONBENCH_T: 1,
    SuiteKind.KERNELBENCH_X: 1,
    SuiteKind.KERNELBENCH: 20,
    SuiteKind.AGENTKERNELARENA: 231,
    SuiteKind.GPU_MODE: 16,
}
"""Tasks that are listed with a reason; none in the other suites."""


def clones() -> Iterator[Clone]:
    for folder in sorted(Path(CLONES).iterdir()):
        for kind in kinds_of(folder):
            yield Clone(kind.value, kind, folder)


def whole_suite(kind: SuiteKind) -> PublicSuite:
    """Return the tasks of the clone at hand; skips the test if there is none, or if it is of another commit."""
    if not CLONES:
        pytest.skip("WAVEDECK_TEST_CLONES names no folder of clones")
    at_hand = list(clones())
    for clone in at_hand:
        if clone.kind == kind:
            if (problem := commit_problem(clone)) is not None:
                pytest.skip(problem)
            return load_clone(clone, at_hand)
    pytest.skip(f"{CLONES} holds no clone of {kind}")


@pytest.mark.parametrize("kind", SuiteKind)
def test_every_task_loads_or_has_its_reason(kind: SuiteKind) -> None:
    suite = whole_suite(kind)
    names = [task.name for task in suite.tasks]
    assert (len(names), len(set(names)), suite.notes) == (COUNTS[kind], COUNTS[kind], ())
    assert sum(bool(task.unsupported) for task in suite.tasks) == UNSUPPORTED.get(kind, 0)
    for task in suite.tasks:
        if not task.unsupported:
            assert task.entry_points, task.name
            assert task.instruction, task.name
            assert (task.test is None) == (kind is SuiteKind.KERNELBENCH), task.name


def test_known_issues_of_the_revised_suite() -> None:
    suite = whole_suite(SuiteKind.TRITONBENCH_REVISED)
    counts = {issue: sum(issue in task.issues for task in suite.tasks) for issue in Issue}
    assert {issue: count for issue, count in counts.items() if count} == {
        Issue.WEAK_ORACLE: 12,
        Issue.SCALAR_ORACLE: 6,
        Issue.NAN_REFERENCE: 8,
        Issue.HIP_LIBDEVICE: 12,
        Issue.BLOCK_POINTERS: 27,
        Issue.RANDOM: 6,
        Issue.OWN_COPY: 1,
    }
