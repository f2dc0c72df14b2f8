"""Reads YAML files of public benchmarks: `config.yaml` of AgentKernelArena in both of its schemas, what a loader needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

_LANGUAGES = {"hip": "HIP", "flydsl": "FlyDSL"}
_IMAGE, _GIT = "image", "git"
_ORIGINS = {
    _IMAGE: "its kernels are inside a container image",
    _GIT: "it changes a whole repository that it downloads",
}
_PROTOCOL = re.compile(r"^## Evaluation contract\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
"""Part of a README about AgentKernelArena's own runner, which judges nothing here."""


class ArenaConfig(msgspec.Struct, frozen=True):
    """The values of a `config.yaml` that a loader needs."""

    problem: str = ""
    """Why the task cannot be judged; empty if it can."""
    sources: tuple[str, ...] = ()
    harness: str = ""
    correctness: tuple[str, ...] = ()
    """Commands that test correctness."""
    instructions: str = ""
    gives_reference: bool = False
    """The task gives a Triton kernel to improve."""


def read_config(path: Path) -> ArenaConfig:
    """Return the values of a `config.yaml`. Raises as `read_yaml`, and `ValueError` for files outside of its folder."""
    values = read_yaml(path)
    version = values.get("schema_version", 1)
    if version not in (1, 2):
        raise ValueError(f"its schema_version is {version}, and this Wavedeck reads 1 and 2")
    config = _schema_1(values) if version == 1 else _schema_2(values, path.parent)
    if not config.problem:
        _check_inside(path.parent, (*config.sources, config.harness))
    return config


def _schema_1(values: Mapping[str, Any]) -> ArenaConfig:
    """Return a `config.yaml` of AgentKernelArena's first schema; `problem` says why the task cannot be used, if so."""
    kind = _first(values.get("task_type"))
    origin = _IMAGE if "image_repo_path" in values else _GIT if "repo_url" in values else ""
    return ArenaConfig(
        problem=_problem(origin, kind.partition("2")[2]),
        sources=texts_of(values.get("source_file_path")),
        harness=_first(values.get("harness_path")),
        correctness=texts_of(values.get("correctness_command")),
        instructions=_first(_map(values, "prompt").get("instructions")).strip(),
        gives_reference=kind == "triton2triton",
    )


def _schema_2(values: Mapping[str, Any], folder: Path) -> ArenaConfig:
    """Return a `config.yaml` of AgentKernelArena's second schema; `problem` says why the task cannot be used, if so."""
    candidate = _map(values, "candidate")
    entries = [_first(entry.get("file")) for entry in _maps(candidate, "entrypoints")]
    scopes = [_first(scope.get("path")) for scope in _maps(candidate, "editable")]
    sources = tuple(dict.fromkeys((*entries, *texts_of(candidate.get("editable")), *scopes)))
    origins = (
        _first(origin.get("kind"))
        for origin in _maps(_map(values, "workspace"), "sources")
        if sources and sources[0].startswith(f"{_first(origin.get('destination'))}/")
    )
    language = _first(candidate.get("language"))
    problem = _problem(next(origins, ""), language)
    begins_with = _first(candidate.get("initial_language")) or language
    if candidate.get("initial_state") == "unimplemented" or begins_with != language:
        problem = problem or "it gives no Triton kernel to begin with"
    return ArenaConfig(
        problem=problem, sources=sources, instructions=_instructions(values, folder), gives_reference=True
    )


def _problem(origin: str, language: str) -> str:
    if origin in _ORIGINS:
        return _ORIGINS[origin]
    if language == "triton":
        return ""
    return f"its candidates are {_LANGUAGES.get(language, language)}" if language else "it names no language"


def _instructions(values: Mapping[str, Any], folder: Path) -> str:
    """Return the description and the texts of the files with instructions, without the protocol of the benchmark's runner.

    Files that are missing are left out. Raises `ValueError` for a file outside the folder, `OSError` if one cannot be read.
    """
    names = dict.fromkeys((*texts_of(values.get("instructions")), "README.md"))
    _check_inside(folder, names)
    texts = [(folder / name).read_text(encoding="utf-8") for name in names if (folder / name).is_file()]
    parts = [_first(values.get("description")), *(_PROTOCOL.sub("", text) for text in texts)]
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _check_inside(folder: Path, names: Iterable[str]) -> None:
    """Raise `ValueError` if a file is outside of the folder: its text would reach prompts."""
    for name in names:
        if not (folder / name).resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{name} is outside of its folder")


def _map(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = values.get(key)
    return value if isinstance(value, dict) else {}


def _maps(values: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the items of a list that are maps."""
    items = values.get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _first(value: object) -> str:
    return next(iter(texts_of(value)), "")


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the map in a YAML file. Raises `OSError`, or `ValueError` if the file is no text or holds no map."""
    try:
        return msgspec.yaml.decode(path.read_text(encoding="utf-8"), type=dict[str, Any])
    except msgspec.DecodeError as error:
        line = str(error).strip().partition("\n")[0]
        raise ValueError(f"{path.name} is no YAML map: {line}") from error


def texts_of(value: object) -> tuple[str, ...]:
    """Return the texts of a scalar or of a list; none for `null` and for maps."""
    items = value if isinstance(value, list) else [value]
    return tuple(str(item) for item in items if item is not None and not isinstance(item, dict))
