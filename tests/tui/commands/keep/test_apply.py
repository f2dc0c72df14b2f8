"""`wavedeck apply`: one commit on a new branch of the repository, or nothing at all."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import msgspec
import pytest

from harness import Verdict
from harness.wire.results.latency import Timed
from harness.wire.results.provenance import Provenance
from harness.wire.results.served_calls import ServedCall
from sessions import Home
from suites import baseline_source
from tests.support.command_line import Done, Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tests.support.sessions.journals import write_live
from tests.support.sessions.measured_sessions import latency
from tests.support.sessions.story import commit_all, git
from tests.support.sessions.tuned_sessions import SESSION as TUNED
from tests.support.sessions.tuned_sessions import tuned_events, write_gemm_task
from tests.support.tasks.kernel_repositories import ORIGINAL, PATH, TASK, WINNER, add_task, kernel_repository
from tests.support.tasks.packaged_task import write_packaged_task
from tui.diagnostics import ExitCode

BRANCH = "wavedeck/vector_add-1-1-aaaa"
HARDWARE = Provenance(product="MI300X", driver="6.12", torch="2.10.0", triton="3.7.1", max_clock_mhz=2100)
SLOW = msgspec.structs.replace(
    latency("fp32", 50.0, 48.0), candidate=Timed(0.048, 0.047, 0.049, 90, clock_mhz=1980)
)
FAST = msgspec.structs.replace(
    latency("fp16-ragged", 80.0, 40.0, roof=0.9), candidate=Timed(0.04, 0.03, 0.05, 90, clock_mhz=2050)
)


@pytest.fixture
def repository(home: Home, shell: Shell, tmp_path: Path) -> Path:
    """Returns a repository with a kernel that is a task; a timed attempt solved it."""
    add_task(shell, tmp_path / "mine")
    serving = (ServedCall(case="fp32", host_us=21.0, no_graph="", host_waits=True, same_bits=True),)
    stored.solved(home, {TASK: WINNER}, latency=(FAST, SLOW), provenance=HARDWARE, serving=serving)
    return kernel_repository(tmp_path / "repository")


def apply(shell: Shell, repository: Path, *options: str) -> Done:
    return shell("apply", "mine/vector_add#1/1", "--to", str(repository), *options)


def assert_untouched(repository: Path, home: Home) -> None:
    """Assert that the repository has its first branch alone, and that no worktree is left."""
    assert git(repository, "branch", "--format=%(refname:short)").split() == ["main"]
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    applied = home.root / "applied"
    assert not applied.exists() or not list(applied.iterdir())


def test_winner_is_one_commit_on_a_new_branch_and_the_persons_files_stay(
    home: Home, shell: Shell, repository: Path
) -> None:
    done = apply(shell, repository, "--test", f"grep -q vector_add {PATH}")
    assert done.code == ExitCode.DONE, done.err
    assert git(repository, "status", "--porcelain") == ""
    assert (repository / PATH).read_text() == ORIGINAL
    assert git(repository, "diff", "--name-only", "main", BRANCH).split() == [PATH]
    assert git(repository, "rev-list", "--count", f"main..{BRANCH}").strip() == "1"
    text = git(repository, "show", f"{BRANCH}:{PATH}")
    assert text.startswith("# Copyright of the repository\n")
    assert "fast_kernel" in text
    assert "import math" in text
    assert "old_kernel" not in text
    assert "def add_twice" in text
    assert (home.root / "applied/vector_add-1-1-aaaa/tree" / PATH).read_text() == text
    assert "Signed-off-by" not in git(repository, "log", "-1", "--format=%B", BRANCH)


def test_pull_request_has_the_worst_shape_on_top_and_says_who_wrote_it(
    home: Home, shell: Shell, repository: Path
) -> None:
    assert apply(shell, repository).code == ExitCode.DONE
    page = (home.root / "applied/vector_add-1-1-aaaa/PR.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith(("| fp32 ", "| fp16-ragged "))]
    assert [row.split(" | ")[0] for row in rows] == ["| fp32", "| fp16-ragged"]
    assert "50.0 | 48.0 | 1.04x [1.02, 1.06]" in rows[0]
    assert "| 4.1 TB/s |" in rows[1]
    for words in (
        "MI300X, driver 6.12, torch 2.10.0, triton 3.7.1, clock up to 2100 MHz",
        "Clock during the timing: 1980 to 2050 MHz.",
        "- captured in a graph: yes, in case fp32",
        "- host waits for the device: yes, in case fp32",
        "The tests of this repository were not run.",
        "A language model (openai:m) wrote this kernel. The person who submits it checks it",
        "hidden cases",
        "git commit --amend -s",
    ):
        assert words in page, words


def test_template_of_the_repository_is_filled_and_test_and_benchmark_lie_beside_the_page(
    home: Home, shell: Shell, repository: Path
) -> None:
    form = (
        "Read this first.\n\n## Motivation\n\n<!-- why -->\n\n## Test Result\n\n## Checklist\n\n- [ ] Docs\n"
    )
    (repository / ".github").mkdir()
    (repository / ".github" / "PULL_REQUEST_TEMPLATE.md").write_text(form)
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "form")
    assert apply(shell, repository).code == ExitCode.DONE
    place = home.root / "applied/vector_add-1-1-aaaa"
    page = (place / "PR.md").read_text()
    order = (
        "Read this first",
        "## Motivation",
        "Replaces",
        "## Test Result",
        "50.0 |",
        "- [ ] Docs",
        "## How it was",
    )
    assert [*order] == sorted(order, key=page.index)
    assert {path.name for path in (place / "standalone").iterdir()} >= {
        "test_vector_add.py",
        "bench_vector_add.py",
    }


def test_file_is_found_by_its_text_at_any_path(home: Home, shell: Shell, repository: Path) -> None:
    git(repository, "mv", PATH, "moved.py")
    git(repository, "commit", "-q", "-m", "move")
    assert apply(shell, repository).code == ExitCode.DONE
    assert git(repository, "diff", "--name-only", "main", BRANCH).split() == ["moved.py"]
    again = apply(shell, repository)
    assert f"the branch {BRANCH} exists already" in one_line(again)


def test_kernel_of_a_package_goes_back_into_its_module(home: Home, shell: Shell, tmp_path: Path) -> None:
    task = write_packaged_task(tmp_path)
    repository = tmp_path / "repo"
    # The kernel's file has a copy, so that its text alone does not say where it goes.
    commit_all(repository)
    assert shell("suites", "add", "mine", str(task.folder.parent)).code == ExitCode.DONE
    stored.solved(home, {"mine/scale": baseline_source(task).replace("_scale_kernel", "_fast_kernel")})
    done = shell("apply", "mine/scale#1/1", "--to", str(repository))
    assert done.code == ExitCode.DONE, done.err
    assert git(repository, "diff", "--name-only", "main", "wavedeck/scale-1-1-aaaa").split() == [
        "src/ops/scale.py"
    ]
    assert shell("export", "mine/scale#1/1", "out", "--patch").code == ExitCode.DONE
    assert "+++ b/src/ops/scale.py\n" in Path("out/scale.patch").read_text()
    assert not Path("out/test_scale.py").exists()
    assert "its kernel is the module ops.scale of a package" in Path("out/evidence.md").read_text()


def test_changed_dirty_or_missing_file_is_refused(home: Home, shell: Shell, repository: Path) -> None:
    assert "is no file of HEAD" in one_line(apply(shell, repository, "--file", "ops/other.py"))
    (repository / "README").write_text("A library.\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "text")
    assert "README is no Python (invalid syntax" in one_line(apply(shell, repository, "--file", "README"))
    assert "is not a git repository" in one_line(apply(shell, repository.parent))
    (repository / PATH).write_text(f"{ORIGINAL}\nMORE = 1\n")
    dirty = apply(shell, repository)
    assert dirty.code == ExitCode.USAGE
    assert f"{PATH} has changes that are not committed" in one_line(dirty)
    (repository / PATH).write_text(ORIGINAL.replace("x + y", "x + y + 0"))
    git(repository, "commit", "-qam", "change")
    changed = one_line(apply(shell, repository, "--file", PATH))
    assert f"`old_kernel` in {PATH} is not as in the original of {TASK}: the file changed" in changed
    nowhere = one_line(apply(shell, repository))
    assert "no file of HEAD is mine/vector_add's original" in nowhere
    assert f"wire it by hand where the function is called: {PATH}:" in nowhere
    assert_untouched(repository, home)


def test_function_is_replaced_in_a_file_that_has_more_than_the_original(
    home: Home, shell: Shell, repository: Path
) -> None:
    (repository / PATH).write_text(f"{ORIGINAL}\n\ndef add_one(x):\n    return vector_add(x, x * 0 + 1)\n")
    git(repository, "commit", "-qam", "add a function")
    assert apply(shell, repository, "--file", PATH).code == ExitCode.DONE
    text = git(repository, "show", f"{BRANCH}:{PATH}")
    assert ("fast_kernel" in text, "def add_one" in text) == (True, True)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "echo broken; false",
            "fails before the change (exit code 1); nothing is left behind, it prints: broken",
        ),
        (f"grep -q old_kernel {PATH}", "passes before the change and fails after it"),
    ],
)
def test_failing_tests_of_the_repository_leave_nothing_behind(
    home: Home, shell: Shell, repository: Path, command: str, words: str
) -> None:
    done = apply(shell, repository, "--test", command)
    assert done.code == ExitCode.USAGE
    assert words in one_line(done)
    assert_untouched(repository, home)


def test_commands_before_and_after_stand_in_the_pull_request(
    home: Home, shell: Shell, repository: Path
) -> None:
    numbers = f"if grep -q fast_kernel {PATH}; then echo tok/s=9 tok/s=1.2e3; else echo tok/s=1000; fi; echo in loss=9; echo acc=0.5"
    done = apply(shell, repository, "--e2e", shlex.join(["sh", "-c", numbers]), "--gate", "acc")
    assert done.code == ExitCode.DONE, done.err
    assert "after / before 1.200 [1.200, 1.200]" in done.out
    assert "acc           0.5 before, 0.5 after; after / before 1.000 [1.000, 1.000]" in done.out
    assert "loss" not in done.out, "a line with other words has no number"
    assert "end to end: pair 6 of 6" in done.err
    page = (home.root / "applied/vector_add-1-1-aaaa/PR.md").read_text()
    assert "| tok/s | 1000 | 1200 | after / before 1.200 [1.200, 1.200] | 6 |" in page
    assert "- binary: not known: no Python of the command reported" in page
    assert not (home.root / "applied/vector_add-1-1-aaaa/original").exists()
    assert len(git(repository, "worktree", "list").splitlines()) == 2


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (
            f"grep -q fast_kernel {PATH} && echo acc=0.4 || echo acc=0.5",
            ExitCode.NO,
            "acc drops beyond its noise: 0.5 before, 0.4 after; after / before 0.800 [0.800, 0.800]; nothing is left",
        ),
        (f"cat {PATH}", ExitCode.USAGE, "the command prints no acc=NUMBER; its numbers are: wall time, s"),
        (f"cat {PATH} >&2; echo acc=0", ExitCode.USAGE, "prints acc without a positive number"),
        (
            f"grep -q fast_kernel {PATH} && echo acc=1 || echo err=1",
            ExitCode.USAGE,
            "not print the same keys",
        ),
    ],
)
def test_drop_of_the_gate_or_command_that_measures_nothing_leaves_nothing_behind(
    home: Home, shell: Shell, repository: Path, command: str, code: ExitCode, words: str
) -> None:
    done = apply(shell, repository, "--e2e", shlex.join(["sh", "-c", command]), "--gate", "acc")
    assert done.code == code
    assert words in done.err
    assert_untouched(repository, home)


def test_tuned_rows_go_into_the_configuration_file_of_the_repository(
    home: Home, shell: Shell, tmp_path: Path
) -> None:
    write_gemm_task(tmp_path / "mine" / "gemm")
    assert shell("suites", "add", "mine", str(tmp_path / "mine")).code == ExitCode.DONE
    write_live(home, tuned_events(task="mine/gemm"), session=TUNED)
    repository = kernel_repository(tmp_path / "repository")
    path = "configs/triton_3_6_0/E=8,N=512,device_name=AMD_Instinct_MI300X.json"
    tune = ("apply", TUNED, "mine/gemm#1/1", "--to", str(repository), "--config")
    command = f"test ! -e '{path}' || cat '{path}' >&2"
    done = shell(*tune, path, "--e2e", shlex.join(["sh", "-c", command]))
    assert done.code == ExitCode.DONE, done.err
    name = "gemm-1-1-aaaa-E-8-N-512-device_name-AMD_Instinct_MI300X"
    assert git(repository, "show", "--format=%s", "--name-only", f"wavedeck/{name}").splitlines() == [
        "Tune 3 rows for gemm",
        "",
        path,
    ]
    rows = json.loads(git(repository, "show", f"wavedeck/{name}:{path}"))
    assert [(size, row["BLOCK_SIZE_M"]) for size, row in rows.items()] == [
        ("16", 64),
        ("64", 32),
        ("1024", 128),
    ]
    page = (home.root / "applied" / name / "PR.md").read_text()
    assert f"Writes the rows M=16, 64, 1024 of `{path}`; all others stay." in page
    assert "| mine/gemm#1/3 | 90.0 | 60.0 | 1.50x [1.47, 1.53] |" in page
    assert "is for AMD Instinct MI325X" in one_line(shell(*tune, path.replace("300", "325")))


def test_attempt_that_is_not_correct_is_refused(home: Home, shell: Shell, tmp_path: Path) -> None:
    repository = kernel_repository(tmp_path / "repository")
    recorder = stored.begin(home)
    stored.attempt(recorder, 1, Verdict.WRONG)
    stored.attempt(recorder, 2, Verdict.CORRECT)
    stored.examine(recorder, 2, Verdict.WRONG)
    stored.finish(recorder)
    for attempt, why in (("softmax#1/1", "is wrong"), ("softmax#1/2", "failed its exam")):
        done = shell("apply", attempt, "--to", str(repository))
        assert done.code == ExitCode.USAGE
        assert why in one_line(done)


@pytest.mark.soak
def test_guard_has_the_faster_sizes_and_must_hold_judges_elsewhere(
    home: Home, shell: Shell, repository: Path
) -> None:
    done = apply(shell, repository, "--guard", "n", "--must-hold", "gfx950,sm_90")
    assert done.code == ExitCode.DONE, done.err
    text = git(repository, "show", f"{BRANCH}:{PATH}")
    assert "def vector_add_tuned(" in text
    assert "def vector_add_original(" in text
    condition = "x.ndim == 1 and (67108864 <= x.shape[0] <= 100663319)"
    assert f'    if {condition} and x.is_cuda and _vector_add_target(x.device) == "gfx942":\n' in text
    page = (home.root / "applied/vector_add-1-1-aaaa/PR.md").read_text()
    assert (
        "Also compiled for gfx950, sm_90 and judged there in Triton's interpreter, but never run there."
        in page
    )
    assert f"where `{condition}`: measured ranges in which it is faster. Every other call goes" in page


def test_guard_without_times_or_with_an_unknown_size_is_refused(
    home: Home, shell: Shell, repository: Path
) -> None:
    unknown = apply(shell, repository, "--guard", "M")
    assert "--guard M: mine/vector_add has the sizes n" in one_line(unknown)
    stored.solved(home, {TASK: WINNER}, stored.SECOND)
    untimed = apply(shell, repository, "--guard", "n")
    assert untimed.code == ExitCode.USAGE
    assert "mine/vector_add#1/1 has none (no GPU judged it); judge it on a GPU" in one_line(untimed)
    assert_untouched(repository, home)
