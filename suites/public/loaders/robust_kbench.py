"""Tasks of robust-kbench: its own tasks, forward and backward, and two levels of KernelBench that it converted."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from suites.public.clone import Clone
from suites.public.instructions import differentiable_instruction, resized_instruction
from suites.public.known import ROBUST_KBENCH, issues_of
from suites.public.loaders.separated import unsupported
from suites.public.loading import Loading
from suites.public.syntax.model_calls import Arguments, call_configs
from suites.public.syntax.outline import Outline, entry_point
from suites.public.task import Issue, Part, PublicTask, ReferenceKind, TestForm

_NEEDED = ("forward_fn", "Model", "get_inputs")
_FILTERS = ("filter_output_range", "filter_output_std", "filter_output_axes", "filter_input_impact")
_ON_GPU = """def on_gpu(values):
    return [value.cuda() if isinstance(value, torch.Tensor) else value for value in values]"""
_CALL = """
with torch.{mode}_grad():
    {call}
"""


class _Configs(msgspec.Struct):
    """Keyword arguments of `get_inputs` and of `Model`. Shared arguments are for both, and override both."""

    single_input_configs: list[Arguments] = []
    single_init_configs: list[Arguments] = []
    single_shared_configs: list[Arguments] = []
    multi_input_configs: list[Arguments] = []
    multi_init_configs: list[Arguments] = []
    multi_shared_configs: list[Arguments] = []

    def combined(self) -> list[tuple[Arguments, Arguments]]:
        """Return all pairs of arguments, of `Model` and of `get_inputs`, that the task's lists of arguments give."""
        pairs: list[tuple[Arguments, Arguments]] = []
        for inputs, inits, shares in (
            (self.single_input_configs, self.single_init_configs, self.single_shared_configs),
            (self.multi_input_configs, self.multi_init_configs, self.multi_shared_configs),
        ):
            if not any((*inputs, *inits, *shares)) and pairs:
                continue  # converted tasks have no second kind of config
            pairs += [
                (init | shared, config | shared) for shared in shares for init in inits for config in inputs
            ]
        return pairs


def load_robust_kbench(loading: Loading) -> Iterable[PublicTask]:
    """Yield the benchmark's own tasks by name, forward before backward, then the tasks of KernelBench by number."""
    root = loading.clone.folder / "tasks"
    for folder in sorted(root.iterdir()):
        for direction in ("forward", "backward"):
            if (folder / f"func_{direction}.py").is_file():
                name = folder.name if direction == "forward" else f"{folder.name}_backward"
                yield _task(loading.clone, folder, name, direction)
    for level in (1, 2):
        folders = (root / "kernelbench" / f"level_{level}").glob("task_*")
        for folder in sorted(folders, key=lambda folder: (len(folder.name), folder.name)):
            number = folder.name.removeprefix("task_")
            yield _task(loading.clone, folder, f"level{level}_{number}", "forward")


def _task(clone: Clone, folder: Path, name: str, direction: str) -> PublicTask:
    """Return the task of a folder's `forward` or `backward`; `unsupported`, with the reason, if it breaks the format."""
    path = folder / f"func_{direction}.py"
    named = next(iter(sorted(folder.glob("[0-9]*_*.py"))), folder)
    task = PublicTask(
        suite=clone.name,
        kind=clone.kind,
        name=name,
        file=path.relative_to(clone.folder / "tasks").as_posix(),
        title=named.stem.lstrip("0123456789").replace("_", " ").strip(),
        folder=clone.folder,
        reference_kind=ReferenceKind.TORCH,
        test_form=TestForm.MODEL,
        tolerances=ROBUST_KBENCH,
    )
    config = folder / f"config_{direction}.json"
    try:
        text = path.read_text(encoding="utf-8")
        configs = msgspec.json.decode(config.read_bytes(), type=_Configs)
        outline = Outline(text)
        missing = [needed for needed in _NEEDED if not outline.defines(needed)]
        if missing:
            return unsupported(task, f"{task.file} does not define {', '.join(missing)}")
        test = _test(outline, configs, backward=direction == "backward")
        entry = entry_point(outline, "forward_fn")
    except (OSError, msgspec.DecodeError, SyntaxError, ValueError, RecursionError) as error:
        return unsupported(task, f"{task.file} or its {config.name} cannot be read: {error}")
    issues = issues_of(task, text, outline.pieces["forward_fn"])
    task = msgspec.structs.replace(
        task,
        reference=Part(path, text),
        test=Part(path, test),
        entry_points=(entry,),
        issues=(*issues, Issue.DEGENERATE) if _is_degenerate(folder) else issues,
    )
    instruction = differentiable_instruction(task) if direction == "backward" else resized_instruction(task)
    return msgspec.structs.replace(task, instruction=instruction)


def _is_degenerate(folder: Path) -> bool:
    """True if one of the benchmark's own numerical filters flags the task."""
    try:
        verdicts = msgspec.json.decode((folder / "filter_results.json").read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        return False
    return any(verdicts.get(name) is True for name in _FILTERS)


def _test(outline: Outline, configs: _Configs, *, backward: bool) -> str:
    """Return statements that call `forward_fn` once for each config, through `Model` with its parameters."""
    call = "Model(**get_init_inputs()).cuda().forward(*on_gpu(get_inputs({inputs})), fn=forward_fn)"
    statement = _CALL.format(
        mode="enable" if backward else "no", call=f"{call}.sum().backward()" if backward else call
    )
    blocks = call_configs(outline, "get_inputs", configs.combined(), statement)
    return "\n\n\n".join(["import torch", _ON_GPU, outline.pieces["get_inputs"].strip(), *blocks])
