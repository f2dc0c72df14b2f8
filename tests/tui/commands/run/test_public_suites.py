"""`wavedeck suites` with clones of public benchmarks: add, list and show, without torch."""

from __future__ import annotations

import json
from pathlib import Path

from tests.suites.public import clones
from tests.support.command_line import Shell
from tui.diagnostics import ExitCode


def test_clone_is_added_listed_and_shown(shell: Shell, tmp_path: Path) -> None:
    clone = clones.arena(tmp_path / "AgentKernelArena")
    added = shell("suites", "add", "arena", str(clone))
    assert "arena: the clone has 3 of 426 tasks" in added.err
    assert "suite arena added: agentkernelarena, 3 tasks, 1 of them cannot be judged" in added.err

    tasks = json.loads(shell("suites", "list", "arena", "--json").out)
    assert {task["task"]: task["unsupported"] for task in tasks} == {
        "arena/instruction-rocmbench-test_scale": None,
        "arena/vllm-triton_scale": None,
        "arena/hip2hip-others-scale": "its candidates are HIP",
    }
    everything = json.loads(shell("suites", "list", "--json").out)
    assert {"starter/softmax", "arena/vllm-triton_scale"} <= {task["task"] for task in everything}

    table = shell("suites", "list", "arena").out
    judged, others = table.split("\n\n")
    assert "arena/vllm-triton_scale" in judged
    assert others.splitlines()[0].split("  ")[-1] == "why it cannot be judged"
    assert "its candidates are HIP" in others
    assert "wavedeck suites list arena" in shell("suites").out

    page = shell("task", "show", "arena/vllm-triton_scale").out
    assert "def scale(x: torch.Tensor, factor: float=2.0)" in page
    assert "oracle: reference_scale" in page
    assert "- Keep its signature." in page
    assert (
        "It cannot be judged: its candidates are HIP."
        in shell("task", "show", "arena/hip2hip-others-scale").out
    )
    shown = json.loads(shell("task", "show", "arena/vllm-triton_scale", "--json").out)
    assert shown["public_task"]["runner"] == "run_correctness"


def test_clone_of_two_benchmarks_needs_its_kind(shell: Shell, tmp_path: Path) -> None:
    clone = str(clones.tritonbench(tmp_path / "TritonBench"))
    refused = shell("suites", "add", "tb", clone)
    assert refused.code == ExitCode.USAGE
    assert "choose one with --kind" in refused.err
    assert shell("suites", "add", "tb", clone, "--kind", "tritonbench-g").code == 0
    assert "Scale a vector by a factor." in shell("task", "show", "tb/scale").out
    assert shell("eval", clone, "--task", "tb/scale").code == ExitCode.USAGE
