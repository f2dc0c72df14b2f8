"""Prompt profiles of models trained for kernels: the prompt format, and candidates from their replies."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.corpus.retrieval import build_corpus
from engine.errors import UsageProblem
from engine.methods import open_method
from engine.plan.plan import resolve
from engine.plan.request import RunPlan
from engine.prompting.profiles import PROFILES, check_profile, read_answer, task_module
from engine.prompting.prompting import Setting, first_prompt, reflect_prompt, repair_prompt
from engine.reply.candidate import Candidate
from harness import target
from sessions import Home
from sessions.settings import MethodOptions
from suites import EntryPoint, Task, load_suite, load_task
from tests.support.engine.scripted_context import ScriptedContext
from tests.support.judge.judged_candidates import failing
from tests.support.programs import python

STARTER = load_suite("starter")
TARGETS = (target("gfx942"),)
TRAINED = sorted(set(PROFILES) - {"chat"})

NEW = """import torch
import triton


class ModelNew(torch.nn.Module):
    def forward(self, x, weight, bias, eps=1e-5):
        return x
"""


def prompts(task: Task, profile: str) -> dict[str, str]:
    """Return every prompt of the two methods that support profiles, as one text each."""
    setting = Setting(task, TARGETS, profile=profile)
    example = build_corpus(STARTER, [task]).by_instruction(task)
    failed = failing(reflection="Lane 781 took part.")
    prompts_by_name = {
        "first": first_prompt(setting, example=example),
        "repair": repair_prompt(setting, failed=failed, failures=1, trap=None, example=example),
        "reflect": reflect_prompt(setting, failed=failed),
    }
    return {
        name: "\n".join(message.content for message in messages) for name, messages in prompts_by_name.items()
    }


@pytest.mark.parametrize("task", STARTER, ids=lambda task: task.name)
@pytest.mark.parametrize("profile", TRAINED)
def test_every_task_has_prompts_in_every_format(task: Task, profile: str) -> None:
    prompt = prompts(load_task(task.id), profile)
    assert "# Triton, in short" not in prompt["first"], (
        "a trained model gets its own format without knowledge pages"
    )
    assert "Lane 781 took part." in prompt["repair"]
    assert "words of the judge" in prompt["repair"]
    assert "return x" in prompt["repair"]
    assert "Do not write the module" in prompt["reflect"]


@pytest.mark.parametrize("task", STARTER, ids=lambda task: task.name)
def test_kernelllm_prompt_is_one_message_with_module_and_example(task: Task) -> None:
    module = task_module(task)
    setting = Setting(task, TARGETS, profile="kernelllm")
    example = build_corpus(STARTER, [task]).by_instruction(task)
    [message] = first_prompt(setting, example=example)
    assert message.role == "user"
    assert module in message.content
    assert example
    assert example.module in message.content
    assert "class ModelNew(torch.nn.Module):" in message.content
    ast.parse(f"{example.source}\n\n{example.bound}")
    assert message.content.count("class Model(nn.Module)") == 2
    [alone] = first_prompt(setting)
    assert alone.content.count("class Model(nn.Module)") == 1
    assert "ModelNew(torch" not in alone.content


def test_autotriton_prompt_contains_description_and_wrapper() -> None:
    system, user = first_prompt(Setting(load_task("layer_norm"), TARGETS, profile="autotriton"))
    assert (system.role, user.role) == ("system", "user")
    assert load_task("layer_norm").instruction.strip() in user.content
    assert "def layer_norm(x, weight, bias, eps=1e-5)" in user.content
    assert "Functional Description:" in user.content
    assert "Wrapper Entry Information:" in user.content


def test_module_in_a_reply_is_bound_to_the_entry_point() -> None:
    task, reply = load_task("layer_norm"), f"```python\n{NEW}```\n"
    answer = read_answer("kernelllm", reply, task)
    assert answer.source == (
        f"{NEW}\n\ndef layer_norm(x, weight, bias, eps=1e-5):\n    return ModelNew()(x, weight, bias, eps)\n"
    )
    assert read_answer("chat", reply, task).source == NEW, "the judge reports the missing entry point"


def test_reply_with_the_entry_point_is_unchanged() -> None:
    task = load_task("softmax")
    source = "import triton\n\n\ndef softmax(x):\n    return x\n"
    for profile in PROFILES:
        assert read_answer(profile, f"<think>Rows.</think>\n```python\n{source}```", task) == Candidate(
            source, ""
        )


def test_profile_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    softmax = load_task("softmax")
    for method in ("direct", "reflexion"):
        assert check_profile("kernelllm", method, [softmax]).of_modules
    assert check_profile("chat", "geak", [softmax]).name == "chat"
    with pytest.raises(UsageProblem, match="fits the methods direct and reflexion, not geak"):
        check_profile("autotriton", "geak", [softmax])
    with pytest.raises(
        UsageProblem, match="no prompt style is called 'kernelmm'; there are: chat, kernelllm"
    ):
        check_profile("kernelmm", "direct", [softmax])
    two = msgspec.structs.replace(softmax, entry_points=(*softmax.entry_points, EntryPoint("g", "g(x)")))
    with pytest.raises(UsageProblem, match="one entry point; starter/softmax has 2"):
        check_profile("kernelllm", "direct", [two])
    elsewhere = msgspec.structs.replace(softmax, folder=tmp_path, suite="mine")
    with pytest.raises(UsageProblem, match=r"mine/softmax has no module\.py"):
        check_profile("kernelllm", "direct", [elsewhere])
    assert check_profile("autotriton", "direct", [elsewhere])


@pytest.mark.parametrize("method", ["direct", "reflexion"])
@pytest.mark.parametrize("profile", TRAINED)
def test_methods_use_the_format_of_their_profile(method: str, profile: str) -> None:
    context = ScriptedContext("wrong", "correct", options=MethodOptions(prompt_style=profile))
    asyncio.run(open_method(method).run(context))
    prompts = [messages for attempt in context.attempts for _, messages in attempt.calls]
    assert prompts[0] == first_prompt(Setting(context.task, context.targets, profile=profile))
    assert len(prompts) == (1 if method == "direct" else 3)
    assert not [messages for messages in prompts if "# Triton, in short" in messages[0].content]


def plan_with(home: Path, method: str, **options: Any) -> MethodOptions:
    run_plan = RunPlan(model="anthropic:test", tasks=("softmax",), method=method, **options)
    return resolve(run_plan, home=Home(home), environ={"ANTHROPIC_API_KEY": "key"}).options


def test_run_with_a_wrong_profile_or_corpus_is_an_error(tmp_path: Path) -> None:
    kept = plan_with(tmp_path, "direct", prompt_style="kernelllm", corpus=str(tmp_path))
    assert (kept.prompt_style, kept.corpus) == ("kernelllm", str(tmp_path))
    with pytest.raises(UsageProblem, match=r"--prompt-style is an option of .*reflexion.*, not of geak"):
        plan_with(tmp_path, "geak", prompt_style="kernelllm")
    with pytest.raises(UsageProblem, match="no prompt style is called 'gpt'"):
        plan_with(tmp_path, "reflexion", prompt_style="gpt")
    with pytest.raises(UsageProblem, match="--show-reference does not go with --prompt-style kernelllm"):
        plan_with(tmp_path, "direct", prompt_style="kernelllm", show_reference=True)
    missing = re.escape(str(tmp_path / "missing"))
    with pytest.raises(UsageProblem, match=f"--corpus {missing} cannot be read"):
        plan_with(tmp_path, "geak", corpus=str(tmp_path / "missing"))


SAME = """
import sys
import torch
from importlib.util import module_from_spec, spec_from_file_location
from suites import load_suite

def loaded(file):
    spec = spec_from_file_location(file.stem, file)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

for task in load_suite("starter"):
    problem, module = loaded(task.folder / "problem.py"), loaded(task.folder / "module.py")
    case = task.open_cases[0]
    inputs = problem.make_inputs(case.cpu, getattr(torch, case.dtype), torch.Generator().manual_seed(7))
    got, expected = module.Model(*module.get_init_inputs())(**inputs), problem.oracle(**inputs)
    pairs = zip(*((result if isinstance(result, tuple) else (result,)) for result in (got, expected)), strict=True)
    for output, truth in pairs:
        close = torch.allclose(output.double(), truth.double(), rtol=2e-3, atol=2e-3)
        print(task.name, "same" if close and output.shape == truth.shape else "differs")
"""


@pytest.mark.judge
@pytest.mark.soak
def test_task_modules_compute_the_same_as_their_oracles() -> None:
    words = [line.split() for line in python(SAME).splitlines()]
    assert {name for name, _ in words} == {task.name for task in STARTER}
    assert [name for name, result in words if result != "same"] == []
