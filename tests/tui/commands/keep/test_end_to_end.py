"""`wavedeck apply --e2e`: what is proven about the new kernel, and the numbers of a command that behaves badly."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

import pytest

from sessions import Home
from sessions.applying import before_after
from sessions.applying.before_after import BenchmarkComparison
from sessions.applying.witness import NO_PROOF, Load, ProcessReport, WatchedKernel, prove
from suites import baseline_source
from tests.support.command_line import Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tests.support.sessions.story import commit_all, git
from tests.support.tasks.kernel_repositories import TASK, WINNER, add_task, kernel_repository
from tests.support.tasks.packaged_task import write_packaged_task
from tests.tui.commands.keep.test_apply import apply, assert_untouched
from tui.diagnostics import ExitCode
from tui.print.pull_request import change_words

PROJECT = Path(__file__).parents[4]
LAUNCHING = """
import sys
sys.path.append({project!r})
from harness.hardware.targets import target
from harness.worker.triton_hooks import stub_driver
stub_driver.install(target("sm_90"))
import torch
from {module} import {function}
{function}(torch.ones(1000), torch.ones(1000))
print("warming up")
print(100)
"""
"""Compiles the kernel and loads it for a simulated GPU, as a process on a GPU does."""


@pytest.fixture
def repository(home: Home, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a repository with a kernel that is a task; an attempt solved it. The command runs in two pairs."""
    monkeypatch.setattr(before_after, "PAIRS", 2)
    add_task(shell, tmp_path / "mine")
    stored.solved(home, {TASK: WINNER})
    return kernel_repository(tmp_path / "repository")


def launching(folder: Path, module: str, function: str = "vector_add") -> str:
    """Write a benchmark that launches the kernel of a module; return its command."""
    (folder / "bench.py").write_text(LAUNCHING.format(project=str(PROJECT), module=module, function=function))
    return shlex.join([sys.executable, str(folder / "bench.py")])


def test_new_binary_of_a_package_is_named_and_equal_numbers_show_nothing(
    home: Home, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(before_after, "PAIRS", 2)
    task, repository = write_packaged_task(tmp_path), tmp_path / "repo"
    commit_all(repository)
    assert shell("suites", "add", "mine", str(task.folder.parent)).code == ExitCode.DONE
    stored.solved(home, {"mine/scale": baseline_source(task).replace("_scale_kernel", "_fast_kernel")})
    launch = launching(tmp_path, "ops.scale", "scale_")
    new = f"if grep -q _fast_kernel src/ops/scale.py; then {launch}; else echo 100; fi"
    command = shlex.join(["sh", "-c", new])
    done = shell("apply", "mine/scale#1/1", "--to", str(repository), "--e2e", command)
    assert done.code == ExitCode.DONE, done.err
    assert "binary        1 new of _fast_kernel (" in done.out
    assert "), loaded in 3 of 3 runs after the change" in done.out
    assert "launches      not counted: no GPU" in done.out
    assert "last line     100 before, 100 after; after / before 1.000 [1.000, 1.000]: not shown" in done.out
    page = (home.root / "applied/scale-1-1-aaaa/PR.md").read_text().replace("\\", "")
    assert "- binary: 1 new of _fast_kernel (" in page


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("echo NaN", "prints last line without a positive number"),
        ("echo tok/s=nan", "prints tok/s without a positive number"),
        ("no-such-program --fast", "'no-such-program --fast' fails: it cannot be started"),
        ("sh -c 'echo died; exit 3'", "fails (exit code 3); nothing is left behind, it prints: died"),
        ("mkdir second-run-dies", "fails (exit code 1)"),
        ("echo 'open", "cannot be read: No closing quotation"),
        ("", "--e2e needs a command"),
    ],
)
def test_command_that_gives_no_number_or_fails_leaves_nothing_behind(
    home: Home, shell: Shell, repository: Path, command: str, words: str
) -> None:
    done = apply(shell, repository, "--e2e", command or " ")
    assert done.code == ExitCode.USAGE
    assert words in done.err.splitlines()[-1]
    assert_untouched(repository, home)


def test_metric_finds_the_number_of_a_table_and_no_shell_reads_the_command(
    home: Home, shell: Shell, repository: Path
) -> None:
    table = "Output token throughput (tok/s):         1,234.50  $(touch ran) | cat"
    metric = r"Output token throughput \(tok/s\): +([\d.,]+)"
    done = apply(shell, repository, "--e2e", f"echo '{table}'", "--e2e-metric", metric)
    assert done.code == ExitCode.DONE, done.err
    assert "1234 before, 1234 after" in done.out or "1235 before" in done.out
    assert "binary        not known: no Python of the command reported" in done.out
    missing = apply(shell, repository, "--e2e", "echo 1", "--e2e-metric", "tok/s: (.*)")
    assert missing.code == ExitCode.USAGE
    assert "--e2e-metric are" in one_line(apply(shell, repository, "--e2e-metric", metric))


def test_interrupt_in_a_command_that_hangs_leaves_nothing_behind(
    home: Home, shell: Shell, repository: Path
) -> None:
    began = time.monotonic()
    done = apply(shell, repository, "--e2e", "sh -c 'kill -INT $PPID; sleep 600'")
    assert done.code == ExitCode.INTERRUPTED
    assert time.monotonic() - began < 60
    assert_untouched(repository, home)
    assert git(repository, "status", "--porcelain") == ""


def test_process_that_left_the_commands_group_ends_with_the_run(
    home: Home, shell: Shell, repository: Path, tmp_path: Path
) -> None:
    late = tmp_path / "pid"
    command = f"sh -c 'setsid sleep 600 >/dev/null 2>&1 & echo $! >> {late}; echo 1'"
    assert apply(shell, repository, "--e2e", command).code == ExitCode.DONE
    pids = late.read_text().split()
    assert len(pids) == 6
    for pid in pids:
        stat = Path(f"/proc/{pid}/stat")
        assert not stat.exists() or ") Z" in stat.read_text()


OLD, NEW, OTHER = Load("k", "/old/ops.py", "OLD"), Load("k", "/new/ops.py", "NEW"), Load("j", "/x.py", "J")
KERNEL = WatchedKernel(frozenset({"k", "f"}), frozenset({"/new/ops.py"}), speedup=2.0)


def traced(load: Load, kernels: dict[str, tuple[int, float]]) -> list[ProcessReport]:
    """Return the reports of a run with a trace of 10 s."""
    return [ProcessReport((load, OTHER), kernels, 10.0), ProcessReport(traced_s=10.0)]


def test_share_and_amdahl_follow_from_the_trace() -> None:
    before = traced(OLD, {"k": (100, 20.0), "j": (1, 80.0)})
    proof = prove(KERNEL, [before], [traced(NEW, {"k": (100, 10.0), "j": (1, 80.0)})])
    assert dict(proof.rows) == {
        "binary": "1 new of k (NEW), loaded in 1 of 1 runs after the change",
        "launches": "100 in 10 s of a trace",
        "GPU time": "20.0% before, 11.1% after",
        "Amdahl": "at most 1.111x for 2.00x of the kernel alone; 1.250x if the kernel took no time",
    }
    assert (proof.refusal, proof.most) == ("", pytest.approx(1.25))


def test_share_before_is_that_of_the_kernel_that_went_also_under_another_name() -> None:
    moved = [Load("n", "/old/ops.py", "N1"), Load("n", "/new/ops.py", "N2")]
    before = [
        ProcessReport((Load("slow", "/old/ops.py", "S"), moved[0]), {"slow": (9, 40.0), "n": (9, 60.0)}, 10.0)
    ]
    after = [ProcessReport((NEW, moved[1]), {"k": (9, 20.0), "n": (9, 60.0)}, 10.0)]
    rows = dict(prove(KERNEL, [before], [after]).rows)
    assert rows["GPU time"] == "40.0% before, 25.0% after"
    assert rows["Amdahl"].startswith("at most 1.250x for 2.00x")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (traced(OLD, {}), traced(NEW, {"j": (5, 1.0)}), "never launched"),
        (traced(OLD, {}), traced(OTHER, {"j": (5, 1.0)}), "never loaded: no process"),
        (traced(OLD, {}), traced(OLD, {"k": (5, 1.0)}), "never loaded: k comes from another copy"),
    ],
)
def test_kernel_that_never_ran_is_refused(
    before: list[ProcessReport], after: list[ProcessReport], words: str
) -> None:
    assert prove(KERNEL, [before], [after]).refusal.startswith(words)


def test_trace_that_sees_no_kernel_at_all_counts_nothing_and_refuses_nothing() -> None:
    proof = prove(KERNEL, [traced(OLD, {})], [traced(NEW, {})])
    assert dict(proof.rows)["launches"] == "not counted: the trace saw no kernel at all"
    assert proof.refusal == ""


def test_configuration_without_effect_is_refused_and_host_code_alone_is_not() -> None:
    same = [ProcessReport((Load("k", "/new/ops.py", "OLD"),))]
    assert prove(KERNEL, [[ProcessReport((OLD,))]], [same]).refusal == ""
    tuned = WatchedKernel(frozenset())
    assert "has the binaries from before" in prove(tuned, [[ProcessReport((OLD,))]], [same]).refusal
    assert prove(tuned, [[ProcessReport((OLD,))]], [[ProcessReport((NEW,))]]).refusal == ""


@pytest.mark.parametrize(
    ("gain", "is_shown"),
    [(0.9997, False), (1.0, False), (1.05, True)],
    ids=["0.03 % less", "none", "5 % more"],
)
def test_change_is_shown_only_if_the_printed_interval_excludes_one(gain: float, *, is_shown: bool) -> None:
    before = (100.0, 100.1, 99.9, 100.0, 100.1, 99.9)
    noise = (1.0, 1.0001, 0.9999, 1.0, 1.0001, 0.9999)
    after = tuple(number * gain * factor for number, factor in zip(before, noise, strict=True))
    words = change_words(BenchmarkComparison("bench", "number", before, after), NO_PROOF)
    assert words.endswith("not shown") is not is_shown
