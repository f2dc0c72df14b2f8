"""Rows for training: which attempts become pairs, and that a row has the keys and types of KernelBench-X's corpus."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from harness import Evaluation, Verdict
from harness.wire.results.provenance import Provenance
from sessions import SessionState, fold
from sessions import events as ev
from sessions.metrics.training_rows import pairs, transitions
from tests.support.judge.evaluations import failed, judged
from tests.support.sessions.journals import EventLog
from tests.support.sessions.measured_sessions import latency

GPU = Provenance(product="MI300X", driver="6.4")
LICENCES = {"starter": "Apache-2.0"}


def timed(candidate_us: float, **fields: object) -> Evaluation:
    """Return a correct evaluation with one case of 10 us by the baseline, with an interval of 2 % on both sides."""
    case = latency("fp32", 10.0, candidate_us, roof=0.9)
    return judged(Verdict.CORRECT, 6, **({"latency": (case,), "provenance": GPU} | fields))


def chain(*evaluations: Evaluation, exam: tuple[int, Evaluation] | None = None) -> SessionState:
    """Return a session with one instance of these attempts; each is derived from the one before."""
    log = EventLog()
    log.open(devices=("2",))
    log.add(ev.InstanceStarted(task="starter/softmax", instance=1))
    for number, evaluation in enumerate(evaluations, start=1):
        base = f"softmax#1/{number - 1}" if number > 1 else None
        log.attempt(f"softmax#1/{number}", f"a = {number}\n\nb = 0\n", evaluation, base=base)
    if exam is not None:
        log.exam(f"softmax#1/{exam[0]}", msgspec.structs.replace(exam[1], exam=True))
    return fold(log.events)


def named(rows: Iterator[object]) -> list[tuple[str, str]]:
    """Return transition and kind of each row."""
    return [(row["transition"], row["kind"]) for row in rows]


def test_each_failed_attempt_is_paired_with_the_next_right_code() -> None:
    state = chain(failed(), failed(Verdict.CALL_ERROR), timed(9.0), failed(), timed(8.0))
    assert named(pairs(state, LICENCES)) == [
        ("round_0_to_round_2", "exe_fail_to_pass,perf_ok_newly"),
        ("round_1_to_round_2", "exe_fail_to_pass,call_fail_to_pass,perf_ok_newly"),
        ("round_3_to_round_4", "exe_fail_to_pass,perf_ok_newly"),
    ]


def test_verdicts_that_are_not_about_the_candidate_make_no_row() -> None:
    state = chain(failed(Verdict.INFRA_ERROR), timed(9.0))
    assert named(pairs(state, LICENCES)) == named(transitions(state, LICENCES)) == []


def test_kernel_that_failed_its_exam_is_no_right_code() -> None:
    state = chain(failed(), timed(9.0), timed(8.0), exam=(2, failed()))
    assert named(pairs(state, LICENCES)) == [("round_0_to_round_2", "exe_fail_to_pass,perf_ok_newly")]


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        (timed(8.0), ["speedup_increase"]),
        (timed(8.9), []),
        (timed(8.0, provenance=Provenance(product="MI300X", driver="7.0")), []),
        (timed(8.0, latency=(msgspec.structs.replace(latency("fp32", 10.0, 8.0), against="eager"),)), []),
    ],
    ids=["intervals apart", "intervals overlap", "another driver", "another baseline"],
)
def test_only_a_proven_gain_is_an_optimization(after: Evaluation, kind: list[str]) -> None:
    state = chain(timed(9.0), after)
    assert [row["kind"] for row in pairs(state, LICENCES)] == kind
    assert [row["kind"] for row in transitions(state, LICENCES)] == kind


def test_transitions_have_regressions_too() -> None:
    rows = list(transitions(chain(timed(9.0), failed(), failed(), timed(8.0)), LICENCES))
    assert named(iter(rows)) == [
        ("round_0_to_round_1", "regression_exe,regression_perf"),
        ("round_2_to_round_3", "exe_fail_to_pass,perf_ok_newly"),
    ]
    assert [row["notes"] for row in rows] == ["regression", ""]


SIDE = {
    "call_ok": bool, "exe_ok": bool, "perf_ok": bool, "dtype": str, "runtime_ms": float, "gbs": float, "tflops": float,
    "speedup": float, "maintainability": float, "error": str,
}  # fmt: skip
CORPUS = {
    "task_id": str, "transition": str, "from_round": str, "to_round": str, "kind": str, "before": SIDE, "after": SIDE,
    "before_code_present": bool, "after_code_present": bool, "before_code": str, "after_code": str, "unified_diff": str,
    "diff_stats": {"lines_a": int, "lines_b": int, "similarity_ratio": float, "opcodes_len": int},
}  # fmt: skip
"""Keys and types of a row of `data/kbx_corpus/performance_events.jsonl`, KernelBench-X at fd41922, but for its last two keys."""


def types_of(value: object) -> object:
    """Return the type of a value, and of the values of a dictionary."""
    return {key: types_of(item) for key, item in value.items()} if isinstance(value, dict) else type(value)


def test_row_has_the_keys_and_types_of_the_corpus() -> None:
    (row,) = (msgspec.to_builtins(row) for row in pairs(chain(timed(9.0), timed(8.0)), LICENCES))
    assert list(row) == [*CORPUS, "llm_fields", "notes", "task_license", "provenance"]
    assert {key: types_of(row[key]) for key in CORPUS} == CORPUS
    assert row["task_id"] == "starter/softmax.py"
    assert row["after"] | {"maintainability": 0.0} == {
        "call_ok": True, "exe_ok": True, "perf_ok": True, "dtype": "fp32", "runtime_ms": 0.008,
        "gbs": 131.072, "tflops": 0.1311, "speedup": 1.25, "maintainability": 0.0, "error": "",
    }  # fmt: skip
    assert row["unified_diff"].splitlines()[:2] == [
        "--- starter/softmax.py::before",
        "+++ starter/softmax.py::after",
    ]
    assert row["diff_stats"] == {"lines_a": 3, "lines_b": 3, "similarity_ratio": 0.666667, "opcodes_len": 2}
    assert (row["task_license"], row["provenance"]["after"]) == ("Apache-2.0", "softmax#1/2")
    assert row["provenance"]["after_hardware"]["driver"] == "6.4"
    (unknown,) = pairs(chain(timed(9.0), timed(8.0)), {})
    assert unknown["task_license"] is None
