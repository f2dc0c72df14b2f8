"""Prompt profiles: the format in which a model that was trained for kernels expects its task, and how its reply is read.

`chat` is what every other template here is written for. `kernelllm` is the format of facebook/KernelLLM: a PyTorch module
in, a module `ModelNew` out. `autotriton` is that of AI9Stars/AutoTriton: a functional description and the wrapper's
parameters in, kernels and wrapper out, after thoughts in `<think>`. Both models answer one prompt with one module; they were
not trained on histories, so the profiles fit `direct` and `reflexion` alone.

A task says itself as a PyTorch module in an optional file `module.py` of its folder, in KernelBench's form (`Model`,
`get_inputs`, `get_init_inputs`, no arguments to `Model`); `forward` takes what the entry point takes. A reply that defines
`ModelNew` and not the entry point gets one function appended, which makes `ModelNew` and calls it. Nothing else of a reply
is changed, and the judge sees the module as it then is.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from engine.candidate import Candidate, Unusable, defines, read_reply
from engine.errors import UsageProblem
from suites import EntryPoint, Task

MODULE_FILE = "module.py"
NEW_MODULE = "ModelNew"


@dataclass(frozen=True, slots=True)
class Profile:
    """One format."""

    name: str
    about: str
    """One line for people."""
    methods: frozenset[str] | None
    """That it fits; `None`: all."""
    of_modules: bool = False
    """Whether the task goes out, and the answer comes back, as a PyTorch module."""


PROFILES = {
    profile.name: profile
    for profile in (
        Profile("chat", "Markdown with knowledge, for models that follow instructions", None),
        Profile(
            "kernelllm",
            "a PyTorch module in, ModelNew out: facebook/KernelLLM",
            frozenset({"direct", "reflexion"}),
            of_modules=True,
        ),
        Profile(
            "autotriton",
            "a functional description in, kernels and wrapper out: AI9Stars/AutoTriton",
            frozenset({"direct", "reflexion"}),
        ),
    )
}


def open_profile(name: str) -> Profile:
    """The profile of this name; `UsageProblem` lists them when there is none."""
    found = PROFILES.get(name)
    if found is None:
        raise UsageProblem(f"no prompt profile is called {name!r}; there are: {', '.join(PROFILES)}")
    return found


def check_profile(name: str, method: str, tasks: Sequence[Task]) -> Profile:
    """The profile, where it fits the method and every task; `UsageProblem` says what does not fit."""
    profile = open_profile(name)
    if profile.methods is not None and method not in profile.methods:
        fitting = " and ".join(sorted(profile.methods))
        raise UsageProblem(
            f"--profile {name} fits the methods {fitting}, not {method}: its model answers one prompt"
        )
    if profile.of_modules:
        for task in tasks:
            if len(task.entry_points) > 1:
                raise UsageProblem(
                    f"--profile {name} needs tasks with one entry point; {task.id} has {len(task.entry_points)}"
                )
            if not task_module(task):
                raise UsageProblem(
                    f"--profile {name} needs the task as a PyTorch module; {task.id} has no {MODULE_FILE}"
                )
    return profile


def task_module(task: Task) -> str:
    """The task as a PyTorch module, from its first import on; empty where its folder has none."""
    file = task.folder / MODULE_FILE
    if not file.is_file():
        return ""
    source = file.read_text(encoding="utf-8")
    first = next((line for line in source.splitlines() if line.startswith(("import ", "from "))), "")
    return source[source.index(first) :].strip()


def bound_module(entry: EntryPoint) -> str:
    """`ModelNew` over a module that defines the entry point, as an example shows it."""
    names = ", ".join(parameters(entry))
    forward = f"    def forward(self, {signature_of(entry)}):\n        return {entry.name}({names})"
    return f"class {NEW_MODULE}(torch.nn.Module):\n{forward}"


def bound_entry(entry: EntryPoint) -> str:
    """The entry point over a module that defines `ModelNew`."""
    names = ", ".join(parameters(entry))
    return f"\n\ndef {entry.signature}:\n    return {NEW_MODULE}()({names})\n"


def read_answer(name: str, text: str, task: Task, *, stop_reason: str = "end") -> Candidate | Unusable:
    """The candidate of a reply to a prompt of the profile of this name, or why there is none."""
    names = [entry.name for entry in task.entry_points]
    profile = open_profile(name)
    if not profile.of_modules:
        return read_reply(text, names, stop_reason=stop_reason)
    whole = read_reply(text, names, stop_reason=stop_reason)
    if isinstance(whole, Candidate) and defines(whole.source, names):
        return whole
    found = read_reply(text, [NEW_MODULE], stop_reason=stop_reason)
    if isinstance(found, Candidate) and defines(found.source, [NEW_MODULE]):
        return Candidate(found.source.rstrip("\n") + "\n" + bound_entry(task.entry_points[0]), found.strategy)
    return found


def parameters(entry: EntryPoint) -> list[str]:
    """Names of what an entry point takes, in order."""
    [function] = ast.parse(f"def {entry.signature}: ...").body
    assert isinstance(function, ast.FunctionDef)
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]


def signature_of(entry: EntryPoint) -> str:
    """What stands between the brackets: `x, weight, bias, eps=1e-5`."""
    return entry.signature.partition("(")[2].rpartition(")")[0]
