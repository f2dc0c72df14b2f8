"""What the failing cases have in common, in words."""

from __future__ import annotations

import pytest

from harness.cases.judged_case import JudgedCase
from harness.worker.oracle.comparison.case_pattern import CaseOutcome, describe_cases
from suites.task import Case, Distribution


def outcome(name: str, verdict: str, columns: int, **other: object) -> CaseOutcome:
    scalars = {"eps": float(other["eps"])} if "eps" in other else {}  # type: ignore[arg-type]
    case = Case(
        name=name,
        dtype=str(other.get("dtype", "float32")),
        cpu={"rows": 4, "columns": columns},
        gpu={},
        distribution=Distribution(str(other.get("distribution", "standard"))),
    )
    return CaseOutcome(JudgedCase(case), case.cpu, scalars, verdict == "passed")


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        (
            [("a", "passed", 512), ("b", "wrong", 781), ("c", "passed", 64)],
            "with columns % 64 != 0 (b); passes: a, c",
        ),
        (
            [("a", "wrong", 1), ("b", "passed", 7), ("c", "passed", 8), ("d", "wrong", 1)],
            "2 of 4 cases, all with columns = 1 (a, d)",
        ),
        (
            [("a", "passed", 1023), ("b", "wrong", 4097), ("c", "passed", 77)],
            "columns >= 4097, and passing up to 1023",
        ),
        (
            [("a", "passed", 9, {"dtype": "float16"}), ("b", "wrong", 9), ("c", "wrong", 9)],
            "all with dtype float32 (b, c)",
        ),
        (
            [("a", "passed", 9), ("b", "wrong", 9, {"distribution": "outlier"}), ("c", "passed", 7)],
            "with outliers in the inputs",
        ),
        (
            [("a", "passed", 9), ("b", "wrong", 9, {"eps": 0.3}), ("c", "passed", 9)],
            "with eps = 0.3, and passing with eps = 1e-05: is `eps` hard-coded?",
        ),
        (
            [("a", "passed", 9), ("b", "wrong", 9), ("c", "passed", 9)],
            "fails: 1 of 3 cases (b); passes: a, c",
        ),
    ],
)
def test_common_property_of_the_failing_cases_is_named(cases: list[tuple[object, ...]], words: str) -> None:
    outcomes = [
        outcome(name, verdict, columns, **(rest[0] if rest else {}))
        for name, verdict, columns, *rest in cases
    ]  # type: ignore[arg-type,misc]
    assert words in describe_cases(outcomes, defaults={"eps": 1e-5})


def test_two_cases_prove_no_property_and_without_a_pass_none_is_sought() -> None:
    two = [outcome("a", "passed", 512), outcome("b", "wrong", 781)]
    assert describe_cases(two, defaults={}) == "fails: 1 of 2 cases (b); passes: a"
    assert (
        describe_cases([outcome("a", "wrong", 1), outcome("b", "wrong", 1)], defaults={})
        == "fails: all 2 cases that were judged"
    )
    assert describe_cases([outcome("a", "wrong", 1)], defaults={}) == ""
