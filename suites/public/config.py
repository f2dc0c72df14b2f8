"""Reads `config.yaml` of AgentKernelArena: the keys that a loader needs."""

from __future__ import annotations

from pathlib import Path

import msgspec

from suites.public.plain_yaml import yaml_scalars


class ArenaConfig(msgspec.Struct, frozen=True):
    """The values of a `config.yaml` that a loader needs."""

    task_type: str = ""
    sources: tuple[str, ...] = ()
    harness: str = ""
    functions: tuple[str, ...] = ()
    correctness: tuple[str, ...] = ()
    instructions: str = ""


def read_config(path: Path) -> ArenaConfig:
    """Return the values of a `config.yaml`. Raises `OSError`, or `ValueError` if the file is no text."""
    values = yaml_scalars(path.read_text(encoding="utf-8"))

    def first(key: str) -> str:
        return next(iter(values.get(key, ())), "")

    names = [name.strip() for text in values.get("target_kernel_functions", ()) for name in text.split(",")]
    return ArenaConfig(
        task_type=first("task_type"),
        sources=tuple(values.get("source_file_path", ())),
        harness=first("harness_path"),
        functions=tuple(name for name in names if name),
        correctness=tuple(values.get("correctness_command", ())),
        instructions=first("prompt.instructions").strip(),
    )
