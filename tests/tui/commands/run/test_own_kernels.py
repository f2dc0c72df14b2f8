"""Kernels that no task names: `eval FILE`, `run FILE` and `task new FILE`, with the real judge on cpu."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import msgspec
import pytest

from sessions import Home
from suites import baseline_source, load_task
from suites.captures.capture import read_capture
from suites.folder import read_task
from tests.support.command_line import ROOT, Done, Shell, one_line
from tests.support.draws import drawn
from tests.support.engine.model_server import Seen, model_server, says
from tests.support.sessions import stored_sessions as stored
from tests.support.sessions.story import git
from tui.diagnostics import ExitCode

pytestmark = pytest.mark.judge

KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def scale_rows_kernel(x_ptr, weight_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=0).to(tl.float32)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0).to(tl.float32)
    tl.store(out_ptr + row * columns + offsets, (x * weight).to(out_ptr.dtype.element_ty), mask=mask)
"""
RETURNS = """

def scale_rows(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    rows, columns = x.shape
    scale_rows_kernel[(rows,)](x, weight, out, columns, BLOCK=triton.next_power_of_2(columns))
    return out
"""
REFERENCE = """

def scale_rows_ref(x, weight):
    return x * weight
"""
SHAPES = "x=4096x256:fp16, weight=256:fp16"


def write(text: str, name: str = "scale.py") -> str:
    Path(name).write_text(text)
    return name


def evaluated(done: Done) -> dict[str, object]:
    document: dict[str, object] = json.loads(done.out)
    return document


def nothing_left(home: Home) -> bool:
    return not (home.root / "own").exists() and {path.name for path in Path.cwd().iterdir()} <= {"scale.py"}


def test_eval_makes_a_task_of_a_file_and_judges_it(shell: Shell, home: Home) -> None:
    # The reference knows the default of `factor` alone.
    kernel = (KERNEL + RETURNS).replace("columns, BLOCK", "columns, factor, BLOCK")
    kernel = kernel.replace("(x * weight)", "(x * weight * factor)")
    kernel = kernel.replace("weight: torch.Tensor)", "weight: torch.Tensor, factor: float = 1.0)")
    write(kernel + REFERENCE)
    done = shell("eval", "scale.py", "--shapes", SHAPES, "-y", "--json")
    assert done.code == ExitCode.DONE, done.err
    assert evaluated(done)["verdict"] == "correct"
    for words in (
        "scale_rows(x, weight, factor=1.0) in scale.py",
        "scale_rows_ref in scale.py, in float64",
        "no size varies",
    ):
        assert words in done.err

    (folder,) = (home.root / "own").iterdir()
    task = load_task(f"own/{folder.name}", registry=home.suites)
    assert [case.gpu for case in task.cases] == [{"x_0": 4096, "x_1": 256}]
    assert (folder / "baseline.py").read_text() == Path("scale.py").read_text()
    assert folder.stat().st_mode & 0o077 == 0 or folder.parent.stat().st_mode & 0o077 == 0

    wrong = write(kernel.replace("x * weight", "0.99 * x * weight"), "wrong.py")
    judged = shell("eval", wrong, "--task", task.id)
    assert judged.code == ExitCode.NO
    assert "1 % off the exact values (rms); careful arithmetic is 0.0" in judged.out


@pytest.mark.soak
def test_a_named_size_is_swept_and_varies_as_documented(shell: Shell, home: Home) -> None:
    page = (ROOT / "docs" / "tutorial.md").read_text().partition("### Judge the kernel with one command")[2]
    blocks = page.split("```")
    kernel = write(blocks[1].removeprefix("python\n"), "rms.py")
    words = shlex.split(blocks[3])
    assert words[:3] == ["wavedeck", "eval", kernel]
    done = shell(*words[1:], "-y", "--json")
    assert done.code == ExitCode.DONE, done.err
    assert blocks[5].strip() in done.err
    (folder,) = (home.root / "own").iterdir()
    task = load_task(f"own/{folder.name}", registry=home.suites)
    assert [(case.name, case.gpu["M"]) for case in task.cases] == [
        ("1x4096-float16", 1),
        ("16x4096-float16", 16),
        ("8192x4096-float16", 8192),
    ]
    judged = {margin["case"] for margin in json.loads(done.out)["margins"]}
    assert "hidden: ragged float16" in judged


@pytest.mark.soak
def test_a_size_with_one_value_stays_and_one_with_two_finds_a_missing_mask(shell: Shell, home: Home) -> None:
    blocks = KERNEL.replace(", mask=mask, other=0", "").replace(", mask=mask", "")
    kernel = blocks.replace("    mask = offsets < columns\n", "") + RETURNS.replace(
        "(rows,)](x, weight, out, columns, BLOCK=triton.next_power_of_2(columns))",
        "(rows, triton.cdiv(columns, 64))](x, weight, out, columns, BLOCK=64)",
    )
    kernel = kernel.replace("tl.arange(0, BLOCK)", "tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)")
    write(kernel + REFERENCE)
    shapes = "x=MxD:fp16, weight=D:fp16, M=4,64"
    fixed = shell("eval", "scale.py", "--shapes", f"{shapes}, D=64", "-y", "--json")
    assert evaluated(fixed)["verdict"] == "correct", fixed.err
    assert "any number from 4 to 64, such as 4, 64" in fixed.err
    assert "always 64" in fixed.err
    varied = shell("eval", "scale.py", "--shapes", f"{shapes}, D=64,128", "-y", "--json")
    assert evaluated(varied)["error"]["kind"] == "out_of_bounds"  # type: ignore[index]


@pytest.mark.soak
def test_task_new_writes_an_ordinary_task_and_checks_it(shell: Shell, home: Home) -> None:
    write(KERNEL + RETURNS)
    done = shell("task", "new", "scale.py", "mine/scale", "--reference", "torch:mul", "--shapes", SHAPES)
    assert done.code == ExitCode.DONE, done.err
    assert "mine/scale: 1 checked, no problem found" in done.out.replace(f"{Path.cwd()}/", "")
    task = read_task(Path("mine/scale"), suite="mine")
    assert task.entry_points[0].signature == "scale_rows(x, weight)"
    assert not (home.root / "own").exists()
    again = shell("task", "new", "scale.py", "mine/scale", "--reference", "torch:mul", "--shapes", SHAPES)
    assert "exists already" in again.err.splitlines()[-1]
    assert shell("task", "check", "mine/scale", "--json").code == ExitCode.DONE


@pytest.mark.soak
def test_none_in_a_result_is_compared_and_parameters_by_name_are_passed(shell: Shell, home: Home) -> None:
    kernel = KERNEL + RETURNS.replace("weight: torch.Tensor)", "*, weight, dtype=torch.half)")
    write(
        kernel.replace("-> torch.Tensor", "").replace("return out", "return out, None, columns") + REFERENCE
    )
    refused = shell("eval", "scale.py", "--shapes", SHAPES, "-y")
    assert "returns 256 as part 2, but the reference scale_rows_ref in scale.py None" in one_line(refused)
    write(kernel.replace("-> torch.Tensor", "").replace("return out", "return out, None") + REFERENCE)
    done = shell("eval", "scale.py", "--shapes", SHAPES, "-y", "--json")
    assert evaluated(done)["verdict"] == "correct", done.err
    (folder,) = (home.root / "own").iterdir()
    task = load_task(f"own/{folder.name}", registry=home.suites)
    assert task.returns == ("out", "")
    assert task.entry_points[0].signature == "scale_rows(x, *, weight)"
    fewer = write(kernel.replace("-> torch.Tensor", ""), "fewer.py")
    judged = shell("eval", fewer, "--task", task.id, "--json")
    assert evaluated(judged)["error"]["message"].endswith("expected a tuple of 2: out, None")
    assert shell("task", "check", str(folder), "--json").code == ExitCode.DONE


def test_the_page_allows_copies_of_the_host_that_the_file_makes_itself(shell: Shell, home: Home) -> None:
    kept = "    out[:, 128:] = x[:, 128:]\n    columns = 128\n"
    write(KERNEL + RETURNS.replace("    scale_rows_kernel[", kept + "    scale_rows_kernel[") + REFERENCE)
    page = shell("eval", "scale.py", "--shapes", SHAPES, "--dry-run")
    assert "copy_, as in the kernel's own file" in page.out + page.err


@pytest.mark.soak
def test_task_of_recorded_calls_has_their_sizes_and_weights(shell: Shell, home: Home) -> None:
    write(KERNEL + RETURNS + REFERENCE)
    Path("bench.py").write_text("""
import torch
from scale import scale_rows_ref
for rows in (512, 8, 64):
    for _ in range(2):
        scale_rows_ref(torch.randn(rows, 256, dtype=torch.float16), torch.randn(256, dtype=torch.float16))
""")
    recorded = shell("capture", "scale:scale_rows_ref", "-o", "calls", "--", sys.executable, "bench.py")
    assert recorded.code == ExitCode.DONE, recorded.err
    capture = read_capture(Path("calls"))
    times_us = {512: 600.0, 8: 360.0, 64: 40.0}
    rows = [
        msgspec.structs.replace(row, timed=2, total_us=times_us[row.arguments["x"].shape[0]])
        for row in capture.signatures
    ]
    Path("calls").write_bytes(msgspec.json.encode(msgspec.structs.replace(capture, signatures=tuple(rows))))
    done = shell("task", "new", "scale.py", "mine/scale", "--from", "calls")
    assert done.code == ExitCode.DONE, done.err
    assert (
        "open cases: 2, exam cases: 1, signatures: 3; the open cases stand for 100% of the recorded time, 96%"
        in done.err
    )
    task = read_task(Path("mine/scale"), suite="mine")
    assert {case.gpu["x_0"]: case.exam for case in task.cases} == {512: False, 8: False, 64: True}
    assert [case.weight for case in task.open_cases] == [0.6, 0.4], "the exam case is nearer to 8 or 512"
    assert task.axes["x_0"].vary
    both = shell("task", "new", "scale.py", "other", "--from", "calls", "--shapes", SHAPES)
    assert one_line(both).startswith("wavedeck: --from and --shapes both give the inputs")


PARTS = """

def scale_pairs(pair, window):
    assert window == (-1, 2)
    factor, x = pair
    out = torch.empty_like(x)
    scale_rows_kernel[(x.shape[0],)](x, x.new_full(x.shape[1:], factor + window[1]), out, x.shape[1], BLOCK=256)
    return out


def scale_pairs_ref(pair, window):
    return pair[1] * (pair[0] + window[1])
"""


@pytest.mark.judge
def test_captured_tuples_of_tensors_and_plain_values_are_inputs(shell: Shell) -> None:
    write(KERNEL + PARTS)
    Path("bench.py").write_text("""
import torch
from scale import scale_pairs_ref
for rows in (64, 8) * 4:
    scale_pairs_ref((3, torch.randn(rows, 256)), (-1, 2))
""")
    recorded = shell("capture", "scale:scale_pairs_ref", "-o", "calls", "--", sys.executable, "bench.py")
    assert recorded.code == ExitCode.DONE, recorded.err
    done = shell("task", "new", "scale.py:scale_pairs", "mine/pairs", "--from", "calls")
    assert done.code == ExitCode.DONE, done.err
    task = read_task(Path("mine/pairs"), suite="mine")
    assert {size for case in task.cases for size in case.gpu.values()} == {8, 64, 256}


@pytest.mark.soak
def test_run_judges_the_kernel_and_then_what_the_model_writes(
    shell: Shell, home: Home, engines: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(KERNEL + RETURNS + REFERENCE)
    monkeypatch.setenv("WAVEDECK_MODEL_KEY", "key")
    reply = f"```python\n{KERNEL}{RETURNS}```"
    prompts: list[Seen] = []

    def answer(seen: Seen) -> object:
        prompts.append(seen)
        return says(reply)

    with model_server(answer=answer) as server:  # type: ignore[arg-type]
        done = shell(
            *("run", "scale.py", "--shapes", SHAPES, "-y", "--model", f"openai:test@{server.openai_url}"),
            *("--instances", "1", "--iterations", "2", "--headless", "--devices", "cpu"),
        )
    assert done.code == ExitCode.DONE, done.err
    assert "sent to models" in done.err
    assert "scale_rows_ref" in prompts[-1].prompt
    assert "correct" in done.out
    assert "session               finished, 1 task solved" in done.out


REFUSED = {
    "no Python": ("def f(:\n", [SHAPES], "line 1 is no Python"),
    "no kernel": ("def f(x):\n    return x\n", [SHAPES], "no function that launches a Triton kernel"),
    "two entry points": (
        KERNEL + RETURNS + RETURNS.replace("def scale_rows(", "def other("), [SHAPES],
        "has 2 functions that launch kernels: scale_rows, other",
    ),
    "no shapes": (KERNEL + RETURNS + REFERENCE, [], "the inputs of scale_rows(x, weight) are not known"),
    "no dtype": (KERNEL + RETURNS + REFERENCE, ["x=8x8, weight=8:fp16"], "x=8x8 has no dtype"),
    "no such input": (KERNEL + RETURNS + REFERENCE, ["y=8x8:fp16"], "y is no parameter"),
    "missing input": (KERNEL + RETURNS + REFERENCE, ["x=8x8:fp16"], "there is no input weight"),
    "shapes that do not fit": (
        KERNEL + RETURNS + REFERENCE, ["x=64x64:fp16, weight=32:fp16"],
        "the reference scale_rows_ref in scale.py fails: RuntimeError",
    ),
    "more than a GPU holds": (
        KERNEL + RETURNS + REFERENCE, ["x=1000000x1000000:fp32, weight=1000000:fp32"], "x is 3.64 TiB",
    ),
    "missing module": (
        "import no_such_module\n" + KERNEL + RETURNS + REFERENCE, ["x=64x64:fp16, weight=64:fp16"],
        "No module named 'no_such_module'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", drawn([*REFUSED], 2))
def test_a_mistake_is_one_line_and_leaves_nothing(shell: Shell, home: Home, mistake: str) -> None:
    text, shapes, words = REFUSED[mistake]
    write(text)
    done = shell("eval", "scale.py", *(part for shape in shapes for part in ("--shapes", shape)), "-y")
    assert done.code == ExitCode.USAGE
    assert words in one_line(done)
    assert nothing_left(home)


def test_without_a_terminal_the_page_needs_a_yes(shell: Shell, home: Home) -> None:
    write(KERNEL + RETURNS + REFERENCE)
    done = shell("run", "scale.py", "--shapes", SHAPES, "--method", "tune")
    assert done.code == ExitCode.USAGE
    assert "add -y" in one_line(done)
    no_model = shell("run", "scale.py", "--shapes", SHAPES, "--dry-run")
    assert no_model.code == ExitCode.DONE
    assert "scale_rows(x, weight) in scale.py" in no_model.out
    assert "copy_" not in no_model.out, "only a file that copies itself may copy"
    assert "recorded" not in no_model.err, "no recording is played for a file"
    assert nothing_left(home)


@pytest.mark.soak
def test_a_kernel_of_a_package_has_get_inputs(shell: Shell, home: Home) -> None:
    package = Path("ops")
    package.mkdir()
    Path(".git").mkdir()
    (package / "__init__.py").write_text("")
    (package / "sizes.py").write_text(
        "import triton\n\n\ndef block(n):\n    return triton.next_power_of_2(n)\n"
    )
    text = (KERNEL + RETURNS).replace("triton.next_power_of_2(columns)", "block(columns)")
    inputs = "\n\ndef get_inputs():\n    return [torch.randn(64, 128, device='cuda').half(), torch.rand(128, device='cuda')]\n"
    truth = write("def truth(x, weight):\n    return x * weight\n", "truth.py")
    (package / "scale.py").write_text("from .sizes import block\n" + text + inputs)
    done = shell("eval", "ops/scale.py", "--reference", f"{truth}:truth", "-y", "--json")
    assert done.code == ExitCode.DONE, done.err
    (folder,) = (home.root / "own").iterdir()
    task = load_task(f"own/{folder.name}", registry=home.suites)
    assert task.package is not None
    assert task.package.module == "ops.scale"
    assert task.original == "ops/scale.py"


@pytest.mark.soak
def test_a_kernel_of_another_module_is_judged_with_its_function_and_goes_back_into_both_files(
    shell: Shell, home: Home
) -> None:
    package = Path("ops")
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "_kernels.py").write_text(KERNEL)
    imports = "import torch\nimport triton\n\nfrom ._kernels import scale_rows_kernel\n"
    (package / "scale.py").write_text(imports + RETURNS + REFERENCE)
    git(Path.cwd(), "init", "-q", "-b", "main")
    done = shell("eval", "ops/scale.py", "--shapes", SHAPES, "-y", "--json")
    assert evaluated(done)["verdict"] == "correct", done.err
    assert "kernels from       ops._kernels" in done.err
    (folder,) = (home.root / "own").iterdir()
    task = load_task(f"own/{folder.name}", registry=home.suites)
    assert task.package is not None
    assert task.package.kernels == ("ops._kernels",)
    faster = baseline_source(task).replace("x * weight).to", "weight * x).to").replace("rows,)]", "rows, 1)]")
    stored.solved(home, {task.id: faster})
    assert shell("export", f"{task.id}#1/1", "out", "--patch").code == ExitCode.DONE
    (patch,) = Path("out").rglob("*.patch")
    git(Path.cwd(), "apply", str(patch.absolute()))
    assert "weight * x).to" in (package / "_kernels.py").read_text()
    assert "rows, 1)]" in (package / "scale.py").read_text()
    assert (package / "scale.py").read_text().startswith(imports)
