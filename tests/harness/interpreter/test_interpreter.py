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
    ["vector_add", "softmax", "matmul", "tuned_matmul", "doubled", "described", "histogram", "locked", "gathered",
     "persistent", "amd_options", "bfloat16", "float8", "through_float8"],
)  # fmt: skip
def test_honest_kernel_is_correct_and_in_bounds(seen: Any, name: str) -> None:
    assert seen[name]["raised"] is None
    assert seen[name]["right"] is True
    assert seen[name]["wrote_output"] is True
    assert seen[name]["missed"] == []
    assert seen[name]["unsupported"] is None


@pytest.mark.parametrize("name", ["flipped", "sorted_rows", "recurrence", "recurrence_back", "variance"])
def test_reductions_and_scans_are_correct_and_fast(seen: Any, name: str) -> None:
    """Element by element, 16 rows of 1,024 would take minutes: they are fast enough if the driver ends."""
    assert seen[name]["raised"] is None
    assert seen[name]["right"] is True


def test_requested_and_unique_bytes_are_exact(seen: Any) -> None:
    assert seen["vector_add"]["requested"] == seen["vector_add"]["unique"] == [8000, 4000]
    assert seen["softmax"]["requested"] == seen["softmax"]["unique"] == [200_000, 200_000]
    # 2 x 2 tiles of 64 x 64: each row of a is read twice, each column of b twice, each once as unique bytes.
    assert seen["matmul"]["requested"] == [2 * (2 * 100 * 70 + 2 * 70 * 90), 2 * 100 * 90]
    assert seen["matmul"]["unique"] == [2 * (100 * 70 + 70 * 90), 2 * 100 * 90]


def test_dot_flops_count_whole_tiles(seen: Any) -> None:
    assert seen["matmul"]["dot_flops"] == 4 * 3 * 2 * 64 * 64 * 32
    assert seen["vector_add"]["dot_flops"] == 0


def test_atomics_are_reads_and_writes(seen: Any) -> None:
    assert seen["histogram"]["requested"] == [1000 * 8 + 1000 * 4, 1000 * 4]
    assert seen["histogram"]["unique"] == [1000 * 8 + 16 * 4, 16 * 4]


def test_launches_carry_kernel_grid_and_programs(seen: Any) -> None:
    assert seen["softmax"]["launches"] == [["softmax_kernel", [50, 1, 1], 50]]
    assert seen["matmul"]["launches"] == [["matmul_kernel", [2, 2, 1], 4]]


def test_autotune_takes_first_config_after_pruning(seen: Any) -> None:
    """The first config has tiles of 32: a grid of 4 x 3, given as a list."""
    assert seen["tuned_matmul"]["launches"] == [["tuned_kernel", [4, 3, 1], 12]]


def test_only_stored_inputs_count_as_written(seen: Any) -> None:
    assert seen["vector_add"]["wrote_inputs"] == []
    assert seen["locked"]["wrote_inputs"] == ["x"]


def test_out_of_bounds_report_names_line_side_tensor_and_index(seen: Any) -> None:
    load, store = (
        line_of("kernels.py", "x = tl.load(x_ptr + offsets)"),
        line_of("kernels.py", "tl.store(out_ptr + offsets - 1"),
    )
    assert seen["past_the_end"]["missed"] == [
        (
            f"kernels.py line {store}: store of 1 element before the start of `out_ptr` (index -1, size 1000) "
            "in program (0, 0, 0); narrow its mask"
        ),
        (
            f"kernels.py line {load}: load of 24 elements past the end of `x_ptr` (index 1000 to 1023, size 1000) "
            "in program (3, 0, 0); it has no mask"
        ),
    ]


def test_out_of_bounds_access_never_touches_memory(seen: Any) -> None:
    assert seen["past_the_end"]["right"] is True
    assert seen["histogram_out"]["right"] is True
    assert seen["locked_out"]["right"] is True
    assert seen["locked_out"]["unique"] == [0, 0]


def test_out_of_bounds_atomics_and_block_pointers_are_found(seen: Any) -> None:
    line = line_of("kernels.py", "tl.atomic_add(counts_ptr")
    assert seen["histogram_out"]["missed"] == [
        (
            f"kernels.py line {line}: atomic of 1 element past the end of `counts_ptr` (index 16, size 16) "
            "in program (0, 0, 0); narrow its mask"
        )
    ]
    assert "`lock_ptr` (index 5, size 4)" in seen["locked_out"]["missed"][0]
    assert "past the end of `x_ptr` (index 4000 to" in seen["doubled_unchecked"]["missed"][0]


def test_guard_zone_of_input_is_out_of_bounds(seen: Any) -> None:
    """The address stays inside the storage, but past the end of the input."""
    assert any(
        "past the end of `x_ptr` (index 1000 to 1023, size 1000)" in miss
        for miss in seen["guarded"]["missed"]
    )
    assert seen["guarded"]["right"] is True


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


def test_fake_device_answers_as_target(seen: Any) -> None:
    device = seen["device"]
    assert (device["backend"], device["arch"], device["warp_size"]) == ("hip", "gfx942", 64)
    assert (device["processors"], device["shared"], device["capability"]) == (304, 65536, [9, 4])
    assert "MI300X" in device["name"]
    assert (device["available"], device["hip"], device["cuda"]) == (True, True, False)


def test_cuda_tensors_share_cpu_memory(seen: Any) -> None:
    device = seen["device"]
    assert (device["same"], device["on_gpu"]) == (True, True)
    assert device["stream"] == 0
    assert device["numbers"] == seen["numbers"]


def test_each_operation_of_bfloat16_rounds_as_torch_and_counts_two_bytes(seen: Any) -> None:
    same = seen["rounding"]
    assert len(same) == 24
    assert [operation for operation, is_same in same.items() if not is_same] == []


@pytest.mark.parametrize("name", [*STRAIGHT, "shares", "branches", "loops", "asserts"])
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
