"""Tolerances: the choice for an output, and errors for invalid tolerances."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites import BadTask, Task, Tolerance
from suites.folder import read_task
from suites.tolerances import tolerance_of
from tests.suites.folders import TASK, write_folder

LINE = "float32 = { rtol = 1e-6, atol = 0.0 }"


def read(folder: Path, task: str) -> Task:
    return read_task(write_folder(folder, task=task), suite="mine")


def test_tolerance_follows_the_output_dtype_or_its_own_entry(tmp_path: Path) -> None:
    halves = TASK.replace('dtype = "float32"', 'dtype = "float16"')
    wide = read(tmp_path / "a", halves.replace('name = "out"', 'name = "out"\ndtype = "float32"'))
    assert tolerance_of(wide, wide.outputs[0], wide.cases[0]) == Tolerance(rtol=1e-6)
    own = read(
        tmp_path / "b", TASK.replace('name = "out"', 'name = "out"\ntolerances.float32 = { ulps = 0.5 }')
    )
    assert tolerance_of(own, own.outputs[0], own.cases[0]) == Tolerance(ulps=0.5)
    whole = read(tmp_path / "c", TASK.replace('name = "out"', 'name = "out"\ndtype = "int32"'))
    assert tolerance_of(whole, whole.outputs[0], whole.cases[0]) == Tolerance()


def test_fp8_dtype_is_allowed_in_cases_and_tolerances(tmp_path: Path) -> None:
    task = read(tmp_path, TASK.replace("float32", "fp8_e4m3"))
    assert tolerance_of(task, task.outputs[0], task.cases[0]) == Tolerance(rtol=1e-6)


@pytest.mark.parametrize(
    ("line", "key", "problem"),
    [
        ("float32 = { ulps = -1.0 }", "tolerances.float32.ulps", "0 or more"),
        ("float32 = { accumulation = inf, reduction = 'n' }", "tolerances.float32.accumulation", "0 or more"),
        ("float32 = { accumulation = 4.0 }", "tolerances.float32.reduction", "need each other"),
        ("float32 = { reduction = 'n' }", "tolerances.float32.reduction", "need each other"),
        (
            "float32 = { accumulation = 4.0, reduction = 'k' }",
            "tolerances.float32.reduction",
            "no size of the cases",
        ),
        ("flaot32 = { ulps = 1.0 }", "tolerances.flaot32", "did you mean 'float32'"),
        ("float16 = { ulps = 1.0 }", "tolerances", "has no entry for float32"),
        ("float32 = { ulp = 1.0 }", "tolerances[...].ulp", "did you mean 'ulps'"),
        (
            "[quantization]\ncosine_min = 0.9\nrelative_l1_max = 0.1\nrmse_max = 0.1\nworst_max = nan",
            "quantization.worst_max",
            "must be from 0",
        ),
        (
            "[quantization]\ncosine_min = 0.9\nrelative_l1_max = 0.1\nrmse_max = 0.1\nprobe = { rtol = 2.0 }",
            "quantization.probe.rtol",
            "must be from 0",
        ),
    ],
)
def test_invalid_tolerance_is_named(tmp_path: Path, line: str, key: str, problem: str) -> None:
    with pytest.raises(BadTask, match=problem) as caught:
        read(tmp_path, TASK.replace(LINE, line))
    assert caught.value.key == key
