"""Public benchmarks: what each loader reads from a small clone, and what it says about a damaged one."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.recording.recorder import helpers_of
from suites import (
    BadSuite,
    SuiteError,
    UnknownTask,
    add_suite,
    load_public_suite,
    load_public_task,
    load_suite,
    load_task,
    suite_names,
)
from suites.public.task import (
    EntryKind,
    Issue,
    PublicEntryPoint,
    PublicTask,
    ReferenceKind,
    SuiteKind,
    TestForm,
)
from tests.suites.folders import write_folder
from tests.suites.public import clones


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    return tmp_path / "home" / "suites.toml"


def loaded(registry: Path, name: str, folder: Path, kind: SuiteKind | None = None) -> dict[str, PublicTask]:
    """Add a clone and return its tasks by name."""
    add_suite(name, folder, registry, kind=kind)
    return {task.name: task for task in load_public_suite(name, registry=registry).tasks}


def test_triton_script_has_its_entry_points(tmp_path: Path, registry: Path) -> None:
    task = loaded(registry, "tritonbench-g", clones.tritonbench(tmp_path / "TritonBench"))["scale"]
    assert task.entry_points == (
        PublicEntryPoint("scale", EntryKind.FUNCTION, "scale(x: torch.Tensor, factor: float=2.0)"),
        PublicEntryPoint("scale_with_gradients", EntryKind.VALUE, "scale_with_gradients(x, factor=3.0)"),
    ), "`pack` reaches no kernel: it prepares inputs"
    assert (task.reference_kind, task.test_form, task.result_name) == (
        ReferenceKind.TRITON,
        TestForm.SCRIPT,
        "result_gold",
    )
    assert clones.SEPARATOR not in task.reference.text + task.test.text
    assert task.test.path.read_text().splitlines()[task.test.line :][0] == task.test.text.splitlines()[1]
    assert task.instruction == "Scale a vector by a factor.\n  Use blocks."
    assert task.difficulty == 2
    assert task.performance is not None


def test_revised_suite_takes_instructions_from_the_original(tmp_path: Path, registry: Path) -> None:
    alone = loaded(registry, "tritonbench-revised", clones.geak_eval(tmp_path / "GEAK-eval"))["scale"]
    assert alone.instruction.startswith("Write a faster Triton implementation of `scale`")
    assert any(
        "add it as tritonbench-g" in note
        for note in load_public_suite("tritonbench-revised", registry=registry).notes
    )
    add_suite("tb", clones.tritonbench(tmp_path / "TritonBench"), registry, kind=SuiteKind.TRITONBENCH_G)
    task = load_public_task("tritonbench-revised/scale", registry=registry)
    assert (task.instruction.splitlines()[0], task.difficulty) == ("Scale a vector by a factor.", 2)


def test_torch_function_is_the_reference(tmp_path: Path, registry: Path) -> None:
    task = loaded(registry, "tritonbench-t", clones.tritonbench(tmp_path / "TritonBench"))["twice"]
    assert [entry.signature for entry in task.entry_points] == ["twice(x, *, out=None)"]
    assert (task.reference_kind, task.title, task.result_name) == (
        ReferenceKind.TORCH,
        "Adds x to itself",
        "test_results",
    )
    assert "Math: 2x" in task.instruction


def test_pytest_launches_kernels(tmp_path: Path, registry: Path) -> None:
    task = loaded(registry, "rocm", clones.geak_eval(tmp_path / "GEAK-eval"))["test_scale"]
    assert [(entry.name, entry.kind) for entry in task.entry_points] == [
        ("_scale_kernel", EntryKind.KERNEL)
    ], "only `test_performance` calls `scale`"
    assert (task.test_form, task.result_name, task.oracles) == (
        TestForm.PYTEST,
        "result_gold",
        ("torch_scale",),
    )


def test_kernelbench_x_reads_its_list(tmp_path: Path, registry: Path) -> None:
    tasks = loaded(registry, "kernelbench-x", clones.kernelbench_x(tmp_path / "KernelBenchX"))
    assert list(tasks) == ["twice", "twice_w8"], "the list has no twice_fp16"
    quantized = tasks["twice_w8"]
    assert (tasks["twice"].category, tasks["twice"].file, quantized.category) == (
        "Math",
        "Math/twice.py",
        "Quantization",
    )
    assert tasks["twice"].quantization is None
    assert quantized.quantization.relative_l1_max == 0.05
    assert quantized.widths == {"weight": 4}, "an activation in float16 is not quantized"
    assert load_public_task("kernelbench-x/Math/twice.py", registry=registry) == tasks["twice"]


def test_kernelbench_has_modules(tmp_path: Path, registry: Path) -> None:
    tasks = loaded(registry, "kernelbench", clones.kernelbench(tmp_path / "KernelBench"))
    assert list(tasks) == ["level1_2", "level1_10", "level2_1", "level4_1"]
    task = tasks["level1_2"]
    assert task.entry_points == (PublicEntryPoint("ModelNew", EntryKind.CLASS, "ModelNew(width, bias=True)"),)
    assert (task.reference_kind, task.test_form, task.test) == (ReferenceKind.MODULE, TestForm.MODEL, None)
    assert Issue.RANDOM not in task.issues, "initial parameters have a seed"
    assert "does not define get_inputs, get_init_inputs" in tasks["level2_1"].unsupported
    assert "network" in tasks["level4_1"].unsupported


def test_robust_kbench_calls_a_function_through_its_model(tmp_path: Path, registry: Path) -> None:
    tasks = loaded(registry, "robust-kbench", clones.robust_kbench(tmp_path / "robust-kbench"))
    assert list(tasks) == ["scale", "scale_backward", "level1_12"]
    task = tasks["scale"]
    assert [entry.name for entry in task.entry_points] == ["forward_fn"]
    assert task.test.text.count("fn=forward_fn)") == 2, "the single config is one of the several"
    assert "dict(out=out, factor=factor, features=features)" in task.test.text, (
        "a default size is an argument too"
    )
    assert "no_parameter" not in task.test.text
    backward = tasks["scale_backward"].test
    assert ".sum().backward()" in backward.text
    assert "gradients" in tasks["scale_backward"].instruction
    assert (tasks["level1_12"].title, tasks["level1_12"].issues) == ("Scale rows", (Issue.DEGENERATE,))


def test_arena_lists_other_languages_with_the_reason(tmp_path: Path, registry: Path) -> None:
    tasks = loaded(registry, "agentkernelarena", clones.arena(tmp_path / "AgentKernelArena"))
    task = tasks["vllm-triton_scale"]
    assert [entry.name for entry in task.entry_points] == ["scale"]
    assert (task.test_form, task.runner, task.arguments, task.oracles) == (
        TestForm.RUNNER,
        "run_correctness",
        ("correctness",),
        ("reference_scale",),
    )
    assert task.instruction == "Make `scale` faster.\n\n- Keep its signature."
    written = tasks["instruction-rocmbench-test_scale"]
    assert (written.test_form, written.entry_points[0].name) == (TestForm.PYTEST, "_scale_kernel")
    assert written.instruction == "Complete the kernel `_scale_kernel`.\n  Then stop."
    assert tasks["hip2hip-others-scale"].unsupported == "its candidates are HIP"


def test_both_schemas_of_arena_give_the_same_task(tmp_path: Path, registry: Path) -> None:
    first = loaded(registry, "first", clones.arena(tmp_path / "first"))["vllm-triton_scale"]
    tasks = loaded(registry, "second", clones.arena_of_schema_2(tmp_path / "second"))
    second = tasks["vllm-triton_scale"]
    for name in (
        "kind",
        "entry_points",
        "test_form",
        "runner",
        "oracles",
        "arguments",
        "gives_reference",
        "unsupported",
    ):
        assert getattr(first, name) == getattr(second, name), name
    assert second.instruction.startswith("Make `scale` faster.\n\n# scale\n\n- Keep its signature.")
    assert "_arena_eval" not in second.instruction, "that runner judges nothing here"
    assert second.instruction.endswith("Small.")
    pytest_task = tasks["rocmbench-easy-test_scale"]
    assert (pytest_task.test_form, pytest_task.unsupported) == (TestForm.PYTEST, "")
    assert helpers_of(pytest_task).keys() >= {
        "_arena_reference.py",
        "performance_utils_pytest.py",
        "_aka_benchmark.py",
    }
    program = tasks["geak_eval-l1-scale"]
    assert (program.arguments, program.unsupported) == (("--correctness",), "")
    assert "_aka_benchmark.py" in helpers_of(program), "the benchmark copies it beside the test"


def test_tasks_of_schema_2_without_a_triton_kernel_say_so(tmp_path: Path, registry: Path) -> None:
    tasks = loaded(registry, "arena", clones.arena_of_schema_2(tmp_path / "arena"))
    assert {name: task.unsupported for name, task in tasks.items() if task.unsupported} == {
        "hip2hip-scale": "its candidates are HIP",
        "image_kernel-scale": "its kernels are inside a container image",
        "sikl-empty": "it gives no Triton kernel to begin with",
        "sikl-python": "it gives no Triton kernel to begin with",
        "sikl-outside": "tasks/sikl/outside/config.yaml cannot be read: ../../../secret.md is outside of its folder",
        "sikl-later": "tasks/sikl/later/config.yaml cannot be read: its schema_version is 3, and this Wavedeck reads 1 "
        "and 2",
    }


def test_task_folder_of_geak_needs_no_settings(tmp_path: Path, registry: Path) -> None:
    tasks = loaded(registry, "mine", clones.geak_tasks(tmp_path / "tasks"))
    for name in ("settings", "plain"):
        task = tasks[name]
        assert (task.unsupported, [entry.name for entry in task.entry_points]) == ("", ["scale"])
        assert (task.test_form, task.runner) == (TestForm.RUNNER, "")
    assert tasks["plain"].arguments == ("--correctness",)
    assert "no test program" in tasks["alone"].unsupported


def test_atrex_judges_the_shapes_with_the_most_gpu_time(tmp_path: Path, registry: Path) -> None:
    tasks = loaded(registry, "atrex-bench", clones.atrex(tmp_path / "atrex-bench"))
    task = tasks["unified_attention"]
    assert task.test.text.count("get_inputs(num_seqs=num_seqs,") == 3
    assert task.test.text.index("[64, 64") < task.test.text.index("[32, 32") < task.test.text.index("[16, 16")
    assert "num_seqs = len(lengths)" in task.test.text, (
        "a count of items must not become smaller than the list"
    )
    assert task.entry_points == (PublicEntryPoint("ModelNew", EntryKind.CLASS, "ModelNew(block: int=32)"),)
    assert "def _make_inputs" in task.instruction
    assert "float32" in task.tolerances, "production kernels round to bfloat16 before the last cast"
    assert tasks["stripped"].unsupported == ""
    assert "input.py" in tasks["broken"].unsupported


def test_test_that_copies_the_entry_point_calls_the_candidate(tmp_path: Path, registry: Path) -> None:
    folder = clones.tritonbench(tmp_path / "TritonBench")
    file = folder / "data/TritonBench_G_v1/scale.py"
    file.write_text(clones.separated(clones.TRITON, clones.TRITON + clones.SCRIPT))
    task = loaded(registry, "tritonbench-g", folder)["scale"]
    assert [entry.name for entry in task.entry_points] == ["scale", "scale_with_gradients"]
    assert Issue.OWN_COPY in task.issues
    assert "def scale(" not in task.test.text
    assert task.test.text.count("\n") == (clones.TRITON + clones.SCRIPT).count("\n") + 1


@pytest.mark.parametrize(
    ("text", "issue", "vendor"),
    [
        ("x = tl.make_block_ptr(x)", Issue.BLOCK_POINTERS, ""),
        ("x = tl.extra.hip.libdevice.tanh(x)", Issue.HIP_LIBDEVICE, "amd"),
        ("x = x + torch.rand(1)", Issue.RANDOM, ""),
    ],
)
def test_issue_in_the_reference_is_noted(
    tmp_path: Path, registry: Path, text: str, issue: Issue, vendor: str
) -> None:
    folder = clones.tritonbench(tmp_path / "TritonBench")
    reference = clones.TRITON.replace(
        "    y = torch.empty_like(x)", f"    {text}\n    y = torch.empty_like(x)"
    )
    (folder / "data/TritonBench_G_v1/scale.py").write_text(clones.separated(reference, clones.SCRIPT))
    task = loaded(registry, "tritonbench-g", folder)["scale"]
    assert (task.issues, task.vendor) == ((issue,), vendor)


def without_separator(folder: Path) -> None:
    (folder / "data/TritonBench_G_v1/scale.py").write_text(clones.TRITON)


def with_syntax_error(folder: Path) -> None:
    (folder / "data/TritonBench_G_v1/scale.py").write_text(clones.separated(clones.TRITON, "def ("))


def without_file(folder: Path) -> None:
    (folder / "data/TritonBench_G_v1/scale.py").unlink()


def without_calls(folder: Path) -> None:
    (folder / "data/TritonBench_G_v1/scale.py").write_text(
        clones.separated("import torch\n", "result_gold = 1\n")
    )


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (without_separator, "does not have exactly one separator line"),
        (with_syntax_error, "cannot be read"),
        (without_file, "is missing in the clone"),
        (without_calls, "calls nothing that its reference defines"),
    ],
)
def test_damaged_task_is_listed_with_its_reason(
    tmp_path: Path, registry: Path, damage: Callable[[Path], None], reason: str
) -> None:
    folder = clones.tritonbench(tmp_path / "TritonBench")
    damage(folder)
    task = loaded(registry, "tritonbench-g", folder)["scale"]
    assert reason in task.unsupported
    assert "\n" not in task.unsupported


def test_damaged_clone_gets_one_line_and_is_used(tmp_path: Path, registry: Path) -> None:
    folder = clones.tritonbench(tmp_path / "TritonBench")
    (folder / "data/TritonBench_G_v1.json").write_text("[{")
    clones.write(folder, {".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": "a" * 40 + "\n"})
    add_suite("tb", folder, registry, kind=SuiteKind.TRITONBENCH_G)
    suite = load_public_suite("tb", registry=registry)
    assert [task.name for task in suite.tasks] == ["scale"]
    assert suite.tasks[0].instruction
    commit, damaged, count = suite.notes
    assert commit == "tb: the clone is at commit aaaaaaa; this Wavedeck was written for 603e28a"
    assert "TritonBench_G_v1.json cannot be read" in damaged
    assert count == "tb: the clone has 1 of 184 tasks"


def test_registry_keeps_name_kind_and_folder(tmp_path: Path, registry: Path) -> None:
    folder = clones.geak_eval(tmp_path / "GEAK-eval")
    with pytest.raises(BadSuite, match="holds tritonbench-revised and rocm; choose one with --kind"):
        add_suite("amd", folder, registry)
    add_suite("amd", folder, registry, kind=SuiteKind.ROCM)
    add_suite("rocm", folder, registry)
    add_suite("mine", write_folder(tmp_path / "mine").parent, registry)
    add_suite("rocm", folder, registry)
    assert tomllib.loads(registry.read_text()) == {
        "suites": {"mine": str(tmp_path / "mine")},
        "clones": {name: {"kind": "rocm", "folder": str(folder)} for name in ("amd", "rocm")},
    }
    assert suite_names(registry=registry)[-1] == "mine"
    with pytest.raises(BadSuite, match="is already rocm"):
        add_suite("rocm", folder, registry, kind=SuiteKind.TRITONBENCH_REVISED)
    with pytest.raises(BadSuite, match="is no clone of kernelbench"):
        add_suite("kb", folder, registry, kind=SuiteKind.KERNELBENCH)
    for load in (load_task, load_suite):
        with pytest.raises(SuiteError, match="are not recorded yet"):
            load("rocm", registry=registry) if load is load_suite else load("rocm/x", registry=registry)
    with pytest.raises(UnknownTask, match="did you mean 'rocm/test_scale'"):
        load_public_task("rocm/test_scal", registry=registry)
    (folder / "geak_eval/data/ROCm").rename(tmp_path / "ROCm")
    with pytest.raises(BadSuite, match="restore the clone or add it again"):
        load_public_suite("rocm", registry=registry)
