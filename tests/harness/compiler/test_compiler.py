"""Protects compilation for targets without a GPU, with Triton's real compiler: binaries, resources and errors."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.stages.compilation import TargetReport
from harness.stages.verdicts import conclude
from harness.wire.results.evaluation import ErrorReport, KernelResources, Verdict
from tests.support.draws import drawn
from tests.support.judge.drivers import drive, line_of

pytestmark = pytest.mark.judge


NVIDIA = ("vector_add", "matmul", "spilling", "amd_options", "nvidia_options", "persistent", "huge")
OTHERS = drawn(("gfx90a", "gfx950", "sm_100"), 1)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Triton's cache folder of the compiling processes."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def reports(cache: str) -> Any:
    others = [f"{name}=vector_add" for name in OTHERS]
    arguments = ("gfx942", f"sm_90={','.join(NVIDIA)}", *others)
    return drive("compile_candidates.py", *arguments, TRITON_CACHE_DIR=cache)


@pytest.fixture(scope="module")
def amd(reports: Any) -> Any:
    return reports["gfx942"]


@pytest.fixture(scope="module")
def nvidia(reports: Any) -> Any:
    return reports["sm_90"]


@pytest.mark.soak
def test_gpu_process_reuses_compiled_binaries(nvidia: Any, cache: str) -> None:
    assert nvidia["vector_add"]["error"] is None
    before, after = drive("find_compiled.py", TRITON_CACHE_DIR=cache)
    assert len(before) >= 2, "one size is divisible by 16, one is not"
    assert after == before, "nothing is compiled again"


def rows(report: Any) -> list[KernelResources]:
    return msgspec.convert(report["resources"], list[KernelResources])


def test_binaries_of_a_report_are_for_its_target(reports: Any) -> None:
    for target, candidates in reports.items():
        compiled = [
            row for report in candidates.values() for row in rows(report) if "failed" not in row.flags
        ]
        assert {row.architecture for row in compiled} == {target}
    for target in OTHERS:
        assert reports[target]["vector_add"]["error"] is None
        assert all(row.occupancy for row in rows(reports[target]["vector_add"]))


def test_kernel_is_specialised_by_divisible_sizes(amd: Any) -> None:
    """16,777,216 is divisible by 16 and gets wide loads; 99,999 gets narrow loads."""
    big, odd = rows(amd["vector_add"])
    assert (big.case, big.grid, big.load_widths) == ("big", (16384, 1, 1), {"128": 2})
    assert (odd.case, odd.grid, odd.load_widths) == ("odd", (98, 1, 1), {"32": 8})


def test_storage_over_two_gigabytes_changes_only_amd_code(amd: Any, nvidia: Any) -> None:
    """On AMD, pointer ranges are part of the specialisation, because buffer operations have 32-bit offsets."""
    small, huge = rows(amd["vector_add"])[0], rows(amd["huge"])[0]
    assert small.binary_sha256 != huge.binary_sha256
    assert rows(nvidia["vector_add"])[0].binary_sha256 == rows(nvidia["huge"])[0].binary_sha256


def test_matmul_report_has_matrix_instructions_and_lds(amd: Any, nvidia: Any) -> None:
    (row,) = rows(amd["matmul"])
    assert (row.matrix_instructions or 0) >= 8
    assert (row.lds_bytes or 0) > 0
    assert row.vgprs is not None
    assert row.vgpr_spills == row.scratch_bytes == 0
    assert row.config | {"BM": "64", "BN": "64", "BK": "32", "num_warps": "4"} == row.config
    (row,) = rows(nvidia["matmul"])
    assert row.matrix_instructions
    assert row.registers
    assert row.vgprs is None


def test_spills_are_reported(amd: Any, nvidia: Any) -> None:
    (row,) = rows(amd["spilling"])
    assert (row.vgprs, row.agprs, row.occupancy, row.occupancy_limit) == (512, 256, 1.0, "vgprs")
    assert (row.vgpr_spills or 0) > 0
    assert (row.scratch_bytes or 0) > 0
    (row,) = rows(nvidia["spilling"])
    assert row.registers == 255
    assert (row.spill_bytes or 0) > 0


def test_every_config_after_pruning_has_a_row_and_bad_configs_are_flagged(amd: Any) -> None:
    report = amd["tuned_matmul"]
    assert report["error"] is None
    small, middle, large, asserting = rows(report)
    assert [(row.autotune_index, row.grid, row.config["BM"], row.flags) for row in rows(report)] == [
        (0, (32, 32, 1), "32", ()),
        (1, (16, 16, 1), "64", ()),
        (2, (8, 8, 1), "128", ("too_large",)),
        (3, (32, 32, 1), "32", ("failed",)),
    ]
    assert small.config["EVEN"] == middle.config["EVEN"] == "True"
    assert small.compile_seconds
    assert (large.occupancy, large.occupancy_limit, large.fits) == (0, "lds", ())
    assert "196608 bytes of LDS a workgroup, gfx942 has 65536" in large.failure
    assert report["notes"][0].startswith("tuned_kernel config 2 (BM=128, BN=128, BK=128")
    assert (asserting.architecture, bool(asserting.failure)) == ("", True)


def test_too_large_launch_fails_the_candidate(amd: Any) -> None:
    report = amd["hungry"]
    assert "needs 196608 bytes of LDS a workgroup, gfx942 has 65536" in report["error"]
    assert "hungry_kernel (BM=128, BN=128, BK=128" in report["error"]
    assert report["line"] == line_of("kernels.py", "kernel[grid](")
    assert rows(report)[0].lds_bytes == 196608


def test_compile_error_names_line_in_helper(amd: Any) -> None:
    report = amd["broken"]
    assert "undefined_name is not defined" in report["error"]
    assert len(report["error"].splitlines()) == 1
    assert report["line"] == line_of("kernels.py", "return x + undefined_name")


def test_caught_compile_error_is_a_note(amd: Any) -> None:
    report = amd["broken_but_caught"]
    assert report["error"] is None
    assert [row.kernel for row in rows(report)] == ["add_kernel"]
    assert "undefined_name" in report["notes"][0]


def test_exception_at_gpu_sizes_names_case_and_line(amd: Any) -> None:
    report = amd["asserts_at_gpu_sizes"]
    assert report["error"] == "the entry point raised AssertionError: small only at the gpu sizes of case big"
    assert (report["line"], report["in_host"]) == (line_of("kernels.py", '"small only"'), True)
    assert [row.case for row in rows(report)] == ["small"]


def test_memory_that_no_gpu_has_is_the_candidates_error(amd: Any) -> None:
    """The error is of host code, so that a GPU's own message comes first; a smaller amount may fit on a GPU."""
    large, small = amd["asks_for_a_petabyte"], amd["asks_for_half_a_terabyte"]
    assert "you tried to allocate 1125899906842624 bytes" in large["error"]
    assert (large["line"], large["in_host"]) == (line_of("kernels.py", "torch.empty(1 << 50"), True)
    assert small["error"] is None


# Host code that loops at `gpu` sizes ends soon, and the error names the line.


def refusal(report: Any) -> ErrorReport:
    target_report = msgspec.convert(report, TargetReport)
    error = target_report.failure("gfx942") or target_report.host_work_error()
    assert error is not None
    return error


def test_python_loop_is_a_timeout_that_names_its_line(amd: Any) -> None:
    error = refusal(amd["loop_in_python"])
    assert conclude(error) is Verdict.TIMEOUT
    assert error.line in (line_of("kernels.py", "# for a day"), line_of("kernels.py", "total += number"))
    assert "did not end within 0.3 s of CPU time at its gpu sizes" in error.message


def test_loop_of_large_copies_is_unsupported(amd: Any) -> None:
    """A GPU may run these copies in time, so they are not the candidate's fault."""
    error = refusal(amd["loop_of_copies"])
    assert (conclude(error), error.line) == (Verdict.UNSUPPORTED, line_of("kernels.py", "x.clone()"))
    assert "tensor operators, which a GPU may run faster" in error.message


def test_loop_of_copies_into_parts_is_refused_as_on_a_gpu(amd: Any) -> None:
    error = refusal(amd["loop_of_parts"])
    assert (conclude(error), error.kind) == (Verdict.REJECTED, "moved_by_host")
    assert error.line == line_of("kernels.py", "out[place] = x[place]")


def test_option_of_different_vendor_is_unsupported(amd: Any, nvidia: Any) -> None:
    assert nvidia["amd_options"]["error"] is None
    assert "`waves_per_eu`" in nvidia["amd_options"]["unsupported"]
    assert "`maxnreg`" in amd["nvidia_options"]["unsupported"]
    assert nvidia["nvidia_options"]["unsupported"] is None
    assert rows(nvidia["nvidia_options"])[0].config["maxnreg"] == "64"


def test_vendor_options_reach_compiler_with_notes(amd: Any) -> None:
    (row,) = rows(amd["amd_options"])
    assert (row.config["waves_per_eu"], row.config["kpack"]) == ("2", "2")
    assert any("instruction_sched_variant" in note for note in row.notes)


def test_kernel_with_grid_by_register_count_compiles(amd: Any, nvidia: Any) -> None:
    for reports in (amd, nvidia):
        assert reports["persistent"]["error"] is None
        (row,) = rows(reports["persistent"])
        assert row.occupancy
    assert rows(nvidia["persistent"])[0].spill_bytes == 0
