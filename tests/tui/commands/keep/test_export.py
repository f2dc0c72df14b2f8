"""`wavedeck export`: files that run without Wavedeck, the evidence, and the patch."""

from __future__ import annotations

import ast
import builtins
import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.standalone.files import standalone_files
from harness.wire.results.provenance import Provenance
from sessions import Home, fold
from sessions.catalog import journal_of
from sessions.kept_kernels import session_kernels
from suites import baseline_source, load_task
from tests.support.command_line import Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tests.support.sessions.measured_sessions import latency
from tests.support.sessions.story import git
from tests.support.tasks.kernel_repositories import PATH, TASK, WINNER, add_task, kernel_repository
from tui.cockpit.desk.writing import write_export
from tui.diagnostics import ExitCode

WITHOUT_WAVEDECK = """
import runpy, sys
sys.modules.update(dict.fromkeys(["suites", "harness", "sessions", "engine", "tui"]))
sys.path.insert(0, ".")
runpy.run_path(sys.argv[1], run_name="__main__")
"""
WITH_A_CLOCK = """
import torch, triton.testing
import test_vector_add
test_vector_add.ON_GPU = True
for case in test_vector_add.CASES:
    case["gpu"] = case["cpu"]
torch.cuda.get_device_name = lambda: "a card"
times_ms = []
def do_bench(function, quantiles):
    times_ms.append(len(times_ms) % 2 * -1e-3 + 2e-3 + 0 * function().sum().item())
    return [times_ms[-1]] * 3
triton.testing.do_bench = do_bench
import bench_vector_add
"""
"""Runs the benchmark on the CPU, with a clock that says 2 us and 1 us in turn."""
SOFTMAX = {"starter/softmax": baseline_source(load_task("softmax"))}


def run_alone(folder: Path, file: str) -> subprocess.CompletedProcess[str]:
    """Run an exported file in an interpreter that cannot import Wavedeck."""
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_WAVEDECK, file]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.soak
@pytest.mark.judge
def test_exported_test_runs_without_wavedeck_and_refuses_a_wrong_kernel(home: Home, shell: Shell) -> None:
    stored.solved(home, {"starter/vector_add": baseline_source(load_task("vector_add"))})
    assert shell("export", "vector_add#1/1", "out").code == ExitCode.DONE
    right = run_alone(Path("out"), "test_vector_add.py")
    cases = [case.name for case in load_task("vector_add").cases]
    assert right.stdout.splitlines() == [f"{case}: correct" for case in cases], right.stderr
    kernel = Path("out/vector_add_kernel.py")
    kernel.write_text(kernel.read_text().replace("x + y", "x - y"))
    wrong = run_alone(Path("out"), "test_vector_add.py")
    assert wrong.returncode == 1
    assert f"AssertionError: case {cases[0]}, output out: " in wrong.stderr
    assert "no GPU: there is nothing to time" in run_alone(Path("out"), "bench_vector_add.py").stderr
    Path("out/timed.py").write_text(WITH_A_CLOCK)
    timed = run_alone(Path("out"), "timed.py")
    rows = [
        line
        for line in timed.stdout.splitlines()
        if "baseline 2.00 [2.00, 2.00], kernel 1.00 [1.00, 1.00], ratio 2.00x" in line
    ]
    assert [row.partition(" (")[0] for row in rows] == cases, timed.stderr


@pytest.mark.judge
@pytest.mark.soak
def test_exported_test_lacks_no_definition_of_the_judge() -> None:
    """Any tolerance may apply, so each formula has to be whole, and not only the branches of one task."""
    text = standalone_files(load_task("softmax"), "")["test_softmax.py"]
    nodes = list(ast.walk(ast.parse(text)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    defined = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    defined |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    defined |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            defined |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    missing = {node.id for node in names} - defined - set(dir(builtins))
    assert missing <= {"__file__"}


def test_exported_test_judges_quantized_work_by_the_metrics_of_the_task(tmp_path: Path) -> None:
    task = load_task("matmul_w8a8")
    for name, text in standalone_files(task, baseline_source(task)).items():
        (tmp_path / name).write_text(text)
    *right, last = task.cases
    wrong = f"""
_right = matmul_w8a8


def matmul_w8a8(**inputs):
    out = _right(**inputs)
    return out * 1.01 if len(out) == {last.cpu["m"]} else out
"""
    kernel = tmp_path / "matmul_w8a8_kernel.py"
    kernel.write_text(kernel.read_text() + wrong)
    done = run_alone(tmp_path, "test_matmul_w8a8.py")
    assert done.stdout.splitlines() == [f"{case.name}: correct" for case in right], done.stderr
    assert f"case {last.name}, output out" in done.stderr


def test_evidence_says_times_hardware_seed_and_how_it_was_judged(home: Home, shell: Shell) -> None:
    hardware = Provenance(product="MI300X", driver="6.12", torch="2.10.0", triton="3.7.1", max_clock_mhz=2100)
    stored.solved(
        home,
        SOFTMAX,
        latency=(latency("fp32", 251.0, 130.2), latency("fp16", 160.1, 97.6)),
        provenance=hardware,
        printed="![x](http://x/a.png)",
    )
    assert shell("export", stored.FIRST, "out").code == ExitCode.DONE
    folder = Path("out/starter/softmax")
    page = (folder / "evidence.md").read_text()
    for words in (
        "softmax#1/1 of session",
        "MI300X, driver 6.12, torch 2.10.0, triton 3.7.1, clock up to 2100 MHz",
        "seed of the judge's inputs: 7",
        "| fp32 | float32 | standard |",
        "rtol 5e-05, atol 1e-08",
        "251.0",
        "130.2",
        "1.93x [1.89, 1.97]",
        "not examined",
        "sandboxed process",
        r"![x\](http\://x/a.png)",
    ):
        assert words in page, words
    document = json.loads((folder / "evidence.json").read_text())
    assert (document["verdict"], document["seed"], document["exam"]) == ("correct", 7, "not examined")
    assert [case["case"] for case in document["evaluation"]["latency"]] == ["fp32", "fp16"]
    assert document["tolerances"]["float16"]["rtol"] == 6e-4
    assert "not the method of the judge" in (folder / "bench_softmax.py").read_text().replace("\n", " ")


def test_patch_applies_to_the_original_file(home: Home, shell: Shell, tmp_path: Path) -> None:
    add_task(shell, tmp_path / "mine", original=PATH)
    stored.solved(home, {TASK: WINNER})
    done = shell("export", stored.FIRST, "out", "--patch")
    assert done.code == ExitCode.DONE, done.err
    repository = kernel_repository(tmp_path / "repository")
    git(repository, "apply", str(Path("out", TASK, "vector_add.patch").absolute()))
    text = (repository / PATH).read_text()
    assert text.startswith("# Copyright of the repository\n")
    assert "fast_kernel" in text
    assert "old_kernel" in text, "another file may use it"
    assert "def add_twice" in text
    assert git(repository, "status", "--porcelain").split() == ["M", PATH]


def test_patch_without_a_known_original_and_a_folder_with_files_are_refused(home: Home, shell: Shell) -> None:
    stored.solved(home, SOFTMAX)
    unknown = shell("export", "softmax#1/1", "out", "--patch")
    assert unknown.code == ExitCode.USAGE
    assert "the original file of starter/softmax is not known" in one_line(unknown)
    assert not Path("out").exists(), "whole or not at all"
    Path("full").mkdir()
    Path("full/mine.txt").write_text("mine")
    assert "full is not an empty folder" in one_line(shell("export", "softmax#1/1", "full"))
    assert "name what to export" in one_line(shell("export", "softmax#1/1"))


def test_a_wrong_kernel_is_exported_only_when_asked(home: Home, shell: Shell) -> None:
    stored.finished(home)
    refused = shell("export", "softmax#1/1", "out")
    assert refused.code == ExitCode.USAGE
    assert "softmax#1/1 is wrong, and only a correct kernel is exported" in one_line(refused)
    assert not Path("out").exists()
    forced = shell("export", "softmax#1/1", "out", "--force")
    assert forced.code == ExitCode.DONE
    assert "softmax#1/1 is wrong; its evidence says so" in forced.err
    assert "wrong" in Path("out/evidence.md").read_text()


def test_cockpit_exports_the_same_files_and_replaces_none(home: Home, shell: Shell, tmp_path: Path) -> None:
    stored.solved(home, SOFTMAX)
    [kernel] = session_kernels(stored.FIRST, fold(journal_of(home, stored.FIRST).events))
    first, second = (write_export(kernel, load_task("softmax"), tmp_path) for _ in range(2))
    assert (first.name, second.name) == ("softmax-1-1", "softmax-1-1~2")
    assert shell("export", "softmax#1/1", "out").code == ExitCode.DONE
    assert sorted(file.name for file in second.iterdir()) == sorted(
        file.name for file in Path("out").iterdir()
    )
