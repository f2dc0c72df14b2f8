"""Reads `config.yaml` of AgentKernelArena: the keys that a loader needs."""

from __future__ import annotations

from pathlib import Path

import msgspec

from suites.public.yaml_files import read_yaml, texts_of


class ArenaConfig(msgspec.Struct, frozen=True):
    """The values of a `config.yaml` that a loader needs."""

    task_type: str = ""
    sources: tuple[str, ...] = ()
    harness: str = ""
    functions: tuple[str, ...] = ()
    correctness: tuple[str, ...] = ()
    instructions: str = ""


def read_config(path: Path) -> ArenaConfig:
    """Return the values of a `config.yaml`. Raises as `read_yaml`."""
    values = read_yaml(path)
    prompt = values.get("prompt")

    def first(value: object) -> str:
        return next(iter(texts_of(value)), "")

    names = [
        name.strip() for text in texts_of(values.get("target_kernel_functions")) for name in text.split(",")
    ]
    return ArenaConfig(
        task_type=first(values.get("task_type")),
        sources=texts_of(values.get("source_file_path")),
        harness=first(values.get("harness_path")),
        functions=tuple(name for name in names if name),
        correctness=texts_of(values.get("correctness_command")),
        instructions=first(prompt.get("instructions") if isinstance(prompt, dict) else None).strip(),
    )
