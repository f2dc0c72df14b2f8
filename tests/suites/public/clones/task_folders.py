"""Small clones with one folder a task: AgentKernelArena, GEAK, GPU MODE."""

from __future__ import annotations

from pathlib import Path

from .files import TRITON, separated, write
from .scripts import PYTEST

RUNNER = """\
import importlib.util
import sys


def load_module():
    spec = importlib.util.spec_from_file_location("kernel", "source/scale.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reference_scale(x):
    return 2 * x


def run_correctness():
    import torch

    mod = load_module()
    x = torch.ones(3)
    return torch.equal(mod.scale(x), reference_scale(x))


def run_performance():
    load_module().scale_with_gradients(1)


if __name__ == "__main__":
    sys.exit(not run_correctness())
"""
CONFIG = """\
source_file_path:
  - source/scale.py

correctness_command:
  - python3 scripts/task_runner.py correctness

task_type: triton2triton

prompt:
  source_code: null
  instructions: |
    Make `scale` faster.

    - Keep its signature.
  cheatsheet: null
"""
PROBLEM = """\
import torch
from task import input_t, output_t
from utils import {imported}, Quiet


def generate_input(size: int, seed: int) -> input_t:
    x = torch.empty(size, device="cuda")
    x.uniform_(0, 1, generator=torch.Generator(device="cuda").manual_seed(seed))
    y = torch.empty(size, device="cuda")
    return x, y


def ref_kernel(data: input_t) -> output_t:
    with Quiet():
        return 2 * data[0]


{check}
"""
UTILS = """\
import os


class Quiet:
    def __enter__(self):
        os.environ["QUIET"] = "1"

    def __exit__(self, *_): ...


def make_match_reference(reference, rtol=1e-5, atol=1e-8): ...
"""
PROBLEM_SETTINGS = """\
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}

lang: "py"

description: |
  Double a vector. Really.

  Input: two tensors.

tests:
  # the largest first
  - {"size": 300, "seed": 7}
  - {"size": 3, "seed": 8}

benchmarks:
  - {"size": 9000, "seed": 9}
"""


def arena(root: Path) -> Path:
    """Write a clone with Triton tasks of two formats and a HIP task of AgentKernelArena."""
    escaped = 'prompt:\n  instructions: "\\nComplete the kernel `_scale_kernel`.\\n\\\n    \\  Then\\\n    \\ stop.\\n"\n'
    return write(
        root,
        {
            "tasks/triton2triton/vllm/triton_scale/config.yaml": CONFIG,
            "tasks/triton2triton/vllm/triton_scale/source/scale.py": TRITON,
            "tasks/triton2triton/vllm/triton_scale/scripts/task_runner.py": RUNNER,
            "tasks/instruction2triton/rocmbench/test_scale/config.yaml": f"{escaped}task_type: instruction2triton\n",
            "tasks/instruction2triton/rocmbench/test_scale/test_scale.py": separated(TRITON, PYTEST),
            "tasks/hip2hip/others/scale/config.yaml": "task_type: hip2hip\n",
        },
    )


def arena_of_schema_2(root: Path) -> Path:
    """Write a clone of AgentKernelArena in its second schema: the Triton task of `arena` and others, and tasks without one."""

    def config(language: str = "triton", file: str = "kernel.py", rest: str = "") -> str:
        return f"schema_version: 2\ncandidate:\n  language: {language}\n  editable: [{file}]\n{rest}"

    readme = "# scale\n\n- Keep its signature.\n\n## Evaluation contract\n\nRun `_arena_eval.py`.\n\n## Notes\n\nSmall.\n"
    helper = "from _arena_reference import check\n"
    timed = "from _aka_benchmark import samples\n"
    image = "workspace:\n  sources:\n  - {kind: image, image_path: /opt/ops, destination: ops}\n"
    return write(
        root,
        {
            "tasks/triton2triton/vllm/triton_scale/config.yaml": "description: Make `scale` faster.\n"
            + config(file="{path: source/scale.py, scope: symbols, symbols: [scale]}"),
            "tasks/triton2triton/vllm/triton_scale/README.md": readme,
            "tasks/triton2triton/vllm/triton_scale/source/scale.py": TRITON,
            "tasks/triton2triton/vllm/triton_scale/scripts/task_runner.py": RUNNER.replace(
                "run_correctness():", "run_correctness(*, case_index=None):", 1
            ),
            "tasks/triton2triton/rocmbench/easy/test_scale/config.yaml": config(file="test_scale.py"),
            "tasks/triton2triton/rocmbench/easy/test_scale/test_scale.py": separated(
                TRITON, helper + PYTEST.replace("geak_eval.perf", "performance_utils_pytest")
            ),
            "tasks/triton2triton/rocmbench/easy/test_scale/_arena_reference.py": "def check(): ...\n",
            "tasks/triton2triton/geak_eval/L1/scale/config.yaml": config(
                file="host.py", rest="  entrypoints: [{file: kernel.py, kind: function, symbol: scale}]\n"
            ),
            "tasks/triton2triton/geak_eval/L1/scale/kernel.py": TRITON,
            "tasks/triton2triton/geak_eval/L1/scale/test_kernel_harness.py": timed
            + RUNNER.replace("source/scale.py", "kernel.py").replace(
                "run_correctness():", "run_correctness(shapes):", 1
            ),
            "tasks/hip2hip/scale/config.yaml": config("hip"),
            "tasks/image_kernel/scale/config.yaml": config(file="ops/kernel.py", rest=image),
            "tasks/sikl/empty/config.yaml": config(rest="  initial_state: unimplemented\n"),
            "tasks/sikl/python/config.yaml": config(rest="  initial_language: python\n"),
            "tasks/sikl/outside/config.yaml": config(rest="instructions: [../../../secret.md]\n"),
            "tasks/sikl/later/config.yaml": config().replace("schema_version: 2", "schema_version: 3"),
            "secret.md": "A secret.\n",
            "src/tools/perf/performance_utils_pytest.py": "from _aka_benchmark import samples\n",
            "src/tools/perf/aka_benchmark.py": "def samples(): ...\n",
        },
    )


def geak_tasks(root: Path) -> Path:
    """Write task folders of GEAK: with settings, without, and without a test."""
    program = RUNNER.replace("source/scale.py", "kernel.py").replace(
        "def run_correctness():", "def run_correctness(shapes):"
    )
    return write(
        root,
        {
            "settings/config.yaml": CONFIG.replace("source/scale.py", "kernel.py").replace(
                "task_type", "harness_path: test_kernel_harness.py\ntask_type"
            ),
            "settings/kernel.py": TRITON,
            "settings/test_kernel_harness.py": program,
            "plain/kernel.py": TRITON,
            "plain/test_scale_harness.py": program,
            "alone/kernel.py": TRITON,
        },
    )


def gpu_mode(root: Path) -> Path:
    """Write a clone with problems of GPU MODE: two that can be judged, and others with a reason."""
    match = "make_match_reference"
    twice = PROBLEM.format(imported=match, check=f"check_implementation = {match}(ref_kernel, rtol=1e-3)")
    scaled = PROBLEM.format(
        imported=match,
        check=f"def check_implementation(data, output):\n    {match}(ref_kernel, rtol=data[0].numel())",
    )
    texts = {
        "amd/twice": twice,
        "pmpp_v2/scaled_py": scaled,
        "pmpp_v2/properties": scaled.replace("(ref_kernel, rtol=data[0].numel())", "(data)"),
        "amd/package": f"import aiter\n{twice}",
        "amd/evaluator": twice.replace("generate_input", "generate_inputs"),
        "amd/several": twice,
    }
    files = {f"problems/{name}/reference.py": text for name, text in texts.items()}
    files |= {f"problems/{name}/task.yml": PROBLEM_SETTINGS for name in texts}
    files["problems/amd/several/task.yml"] = PROBLEM_SETTINGS.replace('"size": 3,', '"world_size": 8,')
    return write(root, files | {"problems/amd/utils.py": UTILS, "problems/pmpp_v2/utils.py": UTILS})
