"""Prompt profiles: prompt and reply formats of models that were trained on kernels.

`chat` is the format of all other templates. `kernelllm` is the format of facebook/KernelLLM: a PyTorch module in, a
module `ModelNew` out. `autotriton` is the format of AI9Stars/AutoTriton: a functional description and the wrapper's
parameters in, `<think>` text, kernels and wrapper out. Both models answer one prompt with one module and were not
trained on histories, so their profiles fit only `direct` and `reflexion`.

A task gives its PyTorch module in an optional file `module.py` of its folder, in KernelBench's form (`Model`,
`get_inputs`, `get_init_inputs`, no arguments to `Model`). Its `forward` has the parameters of the entry point. If a
reply defines `ModelNew` but not the entry point, one function is appended that creates `ModelNew` and calls it.
Nothing else of a reply is changed; the judge gets the module in this form.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import UsageProblem
from engine.reply.candidate import Candidate, Unusable, read_reply
from engine.reply.module_text import defines
from suites import EntryPoint, Task
from suites.source.python_source import parse_python

CHAT = "chat"
MODULE_FILE = "module.py"
NEW_MODULE = "ModelNew"


@dataclass(frozen=True, slots=True)
class PromptProfile:
    """One prompt format."""

    name: str
    methods: frozenset[str] | None
    """The methods that it fits; `None`: all."""
    of_modules: bool = False
    """True if prompt and answer are PyTorch modules."""


PROFILES = {
    profile.name: profile
    for profile in (
        PromptProfile(CHAT, None),
        PromptProfile(
            "kernelllm",
            frozenset({"direct", "reflexion"}),
            of_modules=True,
        ),
        PromptProfile(
            "autotriton",
            frozenset({"direct", "reflexion"}),
        ),
    )
}


def open_profile(name: str) -> PromptProfile:
    """Returns the profile of this name; `UsageProblem` lists the profiles if the name is unknown."""
    profile = PROFILES.get(name)
    if profile is None:
        raise UsageProblem(f"no prompt style is called {name!r}; there are: {', '.join(PROFILES)}")
    return profile


def check_profile(name: str, method: str, tasks: Sequence[Task]) -> PromptProfile:
    """Returns the profile if it fits the method and every task; else raises `UsageProblem`."""
    profile = open_profile(name)
    if profile.methods is not None and method not in profile.methods:
        fitting = " and ".join(sorted(profile.methods))
        raise UsageProblem(
            f"--prompt-style {name} fits the methods {fitting}, not {method}: its model answers one prompt"
        )
    if profile.of_modules:
        for task in tasks:
            if len(task.entry_points) > 1:
                raise UsageProblem(
                    f"--prompt-style {name} needs tasks with one entry point; {task.id} has {len(task.entry_points)}"
                )
            if not task_module(task):
                raise UsageProblem(
                    f"--prompt-style {name} needs the task as a PyTorch module; {task.id} has no {MODULE_FILE}"
                )
    return profile


def task_module(task: Task) -> str:
    """Returns the task as a PyTorch module, from its first import on; empty if its folder has none."""
    file = task.folder / MODULE_FILE
    if not file.is_file():
        return ""
    source = file.read_text(encoding="utf-8")
    first = next((line for line in source.splitlines() if line.startswith(("import ", "from "))), "")
    return source[source.index(first) :].strip()


def bound_module(entry: EntryPoint) -> str:
    """Returns the class `ModelNew` that calls the entry point, for an example."""
    names = ", ".join(parameters(entry))
    forward = f"    def forward(self, {signature_of(entry)}):\n        return {entry.name}({names})"
    return f"class {NEW_MODULE}(torch.nn.Module):\n{forward}"


def bound_entry(entry: EntryPoint) -> str:
    """Returns the entry point as a function that calls `ModelNew`."""
    names = ", ".join(parameters(entry))
    return f"\n\ndef {entry.signature}:\n    return {NEW_MODULE}()({names})\n"


def read_answer(name: str, text: str, task: Task, *, stop_reason: str = "end") -> Candidate | Unusable:
    """Returns the candidate in a reply to a prompt of this profile, or why there is none."""
    names = [entry.name for entry in task.entry_points]
    profile = open_profile(name)
    proposal = read_reply(text, names, stop_reason=stop_reason)
    if not profile.of_modules or (isinstance(proposal, Candidate) and defines(proposal.source, names)):
        return proposal
    module = read_reply(text, [NEW_MODULE], stop_reason=stop_reason)
    if isinstance(module, Candidate) and defines(module.source, [NEW_MODULE]):
        return Candidate(
            module.source.rstrip("\n") + "\n" + bound_entry(task.entry_points[0]), module.strategy
        )
    return module


def parameters(entry: EntryPoint) -> list[str]:
    """Returns the names of an entry point's parameters, in order."""
    [function] = parse_python(f"def {entry.signature}: ...").body
    assert isinstance(function, ast.FunctionDef)
    return [
        argument.arg
        for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    ]


def signature_of(entry: EntryPoint) -> str:
    """Returns the text between the parentheses: `x, weight, bias, eps=1e-5`."""
    return entry.signature.partition("(")[2].rpartition(")")[0]
