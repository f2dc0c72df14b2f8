"""Reads YAML files of public benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec


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
