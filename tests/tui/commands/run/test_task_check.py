"""`wavedeck task check` with the judge: a sound task, a weak oracle and a wrong baseline."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.oracle.test_strength import BASELINE
from tests.suites.folders import PROBLEM, TASK, write_folder
from tests.support.command_line import Shell, one_line
from tui.diagnostics import ExitCode

pytestmark = pytest.mark.judge


def test_task_check_judges_every_task(shell: Shell, tmp_path: Path) -> None:
    suite = tmp_path / "mine"
    write_folder(suite, baseline=BASELINE)
    weak = TASK.replace('"double"', '"weak"', 1).replace("atol = 0.0", "atol = 0.5")
    write_folder(
        suite, name="weak", task=weak, problem=PROBLEM.replace("2 * x", "1e-3 * x"), baseline=BASELINE
    )
    wrong = BASELINE.replace("x * 2", "x * 3")
    write_folder(suite, name="wrong", task=TASK.replace('"double"', '"wrong"', 1), baseline=wrong)
    eight_bits = TASK.replace('"double"', '"eight_bits"', 1).replace("float32", "float8_e4m3fn")
    write_folder(suite, name="eight_bits", task=eight_bits, baseline=BASELINE)
    assert shell("suites", "add", "mine", str(suite)).code == 0

    checked = shell("task", "check", "mine")
    assert checked.code == ExitCode.NO
    assert "mine/weak: weak oracle, case plain: accepted as `out`: zeros" in checked.out
    assert "mine/wrong: the baseline is wrong: case plain: output `out` is wrong at index [0]" in checked.out
    assert "no problem found" not in checked.out
    assert "mine/double:" not in checked.out
    assert "checking 4 tasks, " in checked.err
    assert "double is sound" in checked.err
    assert "eight_bits is sound" not in checked.err
    lines = [line for line in checked.out.splitlines() if line.startswith("mine/eight_bits:")]
    assert lines == [
        "mine/eight_bits: the baseline is unsupported: gfx942 has no float8_e4m3fn; judge the task for gfx950 or sm_90 (--targets)"
    ]
    assert "did you mean 'mine/double'" in one_line(shell("task", "check", "mine/doubl"))
