"""Protects judging in Triton's real interpreter: results, exact byte counts, out-of-bounds reports, clean-up, and tapes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.judge.drivers import drive, line_of

pytestmark = pytest.mark.judge
STRAIGHT = ("rows", "misses", "promises", "blocks", "rounds", "changed_globals", "changed_pointers")
"""Kernels whose programs all take the same path."""


@pytest.fixture(scope="module")
def seen() -> Any:
    return drive("interpret_candidates.py", "gfx942")


@pytest.fixture(scope="module")
def taped() -> Any:
    """Results and counts of kernels with tapes and without tapes: in Python."""
    return drive("run_tapes.py")


@pytest.mark.parametrize(
    "name",
    ["vector_add", "softmax", "matmul", "tuned_matmul", "doubled", "histogram", "locked", "persistent", "amd_options", "bfloat16", "float8", "through_float8"],
)  # fmt: skip
def test_honest_kernel_is_correct_and_in_bounds(seen: Any, name: str) -> None:
    assert seen[name]["raised"] is None
    assert seen[name]["right"] is True
    assert seen[name]["wrote_output"] is True
    assert seen[name]["missed"] == []
    assert seen[name]["unsupported"] is None


@pytest.mark.parametrize("name", ["flipped", "sorted_rows", "recurrence_back"])
def test_reductions_and_scans_are_correct_and_fast(seen: Any, name: str) -> None:
    """Element by element, 16 rows of 1,024 would take minutes: they are fast enough if the driver ends."""
    assert seen[name]["raised"] is None
    assert seen[name]["right"] is True


ADDED = [8000, 4000]
X_LOAD = line_of("kernels.py", "x = tl.load(x_ptr + offsets)")
SHIFTED = line_of("kernels.py", "tl.store(out_ptr + offsets - 1")
COUNTING = line_of("kernels.py", "tl.atomic_add(counts_ptr")


@pytest.mark.parametrize(
    ("name", "fact", "expected"),
    [
        ("vector_add", "requested", ADDED),
        ("vector_add", "unique", ADDED),
        ("vector_add", "dot_flops", 0),
        ("vector_add", "wrote_inputs", []),
        ("softmax", "requested", [200_000, 200_000]),
        ("softmax", "unique", [200_000, 200_000]),
        ("softmax", "launches", [["softmax_kernel", [50, 1, 1], 50]]),
        # 2 x 2 tiles of 64 x 64: each row of a is read twice, each column of b twice, each once as unique bytes.
        ("matmul", "requested", [2 * (2 * 100 * 70 + 2 * 70 * 90), 2 * 100 * 90]),
        ("matmul", "unique", [2 * (100 * 70 + 70 * 90), 2 * 100 * 90]),
        ("matmul", "dot_flops", 4 * 3 * 2 * 64 * 64 * 32),
        # The first config after pruning has tiles of 32: a grid of 4 x 3, given as a list.
        ("tuned_matmul", "launches", [["tuned_kernel", [4, 3, 1], 12]]),
        ("histogram", "requested", [1000 * 8 + 1000 * 4, 1000 * 4]),  # atomics read and write
        ("histogram", "unique", [1000 * 8 + 16 * 4, 16 * 4]),
        ("locked", "wrote_inputs", ["x"]),
        # Accesses outside never touch memory, and reports name line, side, tensor and index.
        ("past_the_end", "right", True),
        (
            "past_the_end",
            "missed",
            [
                (
                    f"kernels.py line {SHIFTED}: store of 1 element before the start of `out_ptr` (index -1, size 1000) "
                    "in program (0, 0, 0); narrow its mask"
                ),
                (
                    f"kernels.py line {X_LOAD}: load of 24 elements past the end of `x_ptr` (index 1000 to 1023, size 1000) "
                    "in program (3, 0, 0); it has no mask"
                ),
            ],
        ),
        ("guarded", "right", True),
        ("histogram_out", "right", True),
        (
            "histogram_out",
            "missed",
            [
                (
                    f"kernels.py line {COUNTING}: atomic of 1 element past the end of `counts_ptr` (index 16, size 16) "
                    "in program (0, 0, 0); narrow its mask"
                )
            ],
        ),
        ("locked_out", "right", True),
        ("locked_out", "unique", [0, 0]),
    ],
)
def test_counts_and_reports_are_exact(seen: Any, name: str, fact: str, expected: object) -> None:
    assert seen[name][fact] == expected


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("locked_out", "`lock_ptr` (index 5, size 4)"),
        ("doubled_unchecked", "past the end of `x_ptr` (index 4000 to"),
        # The address is inside the storage, in the guard zone of an input.
        ("guarded", "past the end of `x_ptr` (index 1000 to 1023, size 1000)"),
    ],
)
def test_other_accesses_outside_are_found(seen: Any, name: str, words: str) -> None:
    assert any(words in miss for miss in seen[name]["missed"])


@pytest.mark.parametrize(
    ("name", "operation"),
    [("with_assembly", "inline_asm"), ("scaled_dot", "dot_scaled")],
)  # fmt: skip
def test_missing_or_wrong_interpreter_operation_is_unsupported(seen: Any, name: str, operation: str) -> None:
    assert seen[name]["right"] is None
    assert operation in seen[name]["unsupported"]


def test_error_of_the_kernel_is_not_unsupported(seen: Any) -> None:
    assert "undefined_name" in seen["broken"]["raised"]
    assert seen["broken"]["unsupported"] is None


def test_launches_restore_the_patched_language(seen: Any) -> None:
    assert [name for name, call in seen.items() if isinstance(call, dict) and call.get("left_patched")] == []


def test_cuda_tensors_share_cpu_memory(seen: Any) -> None:
    device = seen["device"]
    assert (device["same"], device["on_gpu"], device["numbers"] == seen["numbers"]) == (True, True, True)


def test_each_operation_of_bfloat16_rounds_as_torch_and_counts_two_bytes(seen: Any) -> None:
    same = seen["rounding"]
    assert len(same) == 24
    assert [operation for operation, is_same in same.items() if not is_same] == []


@pytest.mark.parametrize("name", [*STRAIGHT, "branches", "loops", "asserts"])
def test_tape_gives_results_of_python(taped: Any, name: str) -> None:
    assert taped[name]["tape"]["results"] == taped[name]["python"]["results"]
    assert taped[name]["python"]["by_tape"] == 0


@pytest.mark.parametrize("name", STRAIGHT)
def test_programs_on_the_same_path_never_resume_in_python(taped: Any, name: str) -> None:
    assert taped[name]["tape"]["by_tape"] > 0
    assert taped[name]["tape"]["resumed"] == 0


def test_program_on_a_different_path_resumes_in_python(taped: Any) -> None:
    assert 0 < taped["branches"]["tape"]["resumed"] < taped["branches"]["tape"]["by_tape"]


def test_false_assumption_in_later_program_is_noted_with_its_line(taped: Any) -> None:
    results = taped["asserts"]["tape"]["results"]
    assert [result["raised"] for result in results] == ["", "", ""]
    before, false, after = (result["promises"] for result in results)
    assert before == after == []
    assert "line" in false[0]
    assert "`tl.assume`" in false[0]


def test_errors_of_some_programs_are_reported_with_a_tape(taped: Any) -> None:
    """Checks that the kernels show their errors; else the comparisons above would prove nothing."""
    assert taped["misses"]["tape"]["results"][0]["missed"][0]
    assert taped["promises"]["tape"]["results"][0]["promises"]


def test_equal_launches_share_a_tape(taped: Any) -> None:
    """Two of three calls have the same sizes; the first program of each size is traced."""
    assert taped["rows"]["tape"]["traced"] == 2
    assert taped["changed_pointers"]["tape"]["traced"] == 2
    assert taped["changed_globals"]["tape"]["traced"] == 3
