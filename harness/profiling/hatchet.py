"""Reads Proton's `.hatchet`: a tree of scopes as JSON, with times alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.wire.messages.profiled import SCOPE
from harness.wire.results.kernel_counts import KernelProfile

from .launches import ProfileFailed

_TIME, _COUNT = "time (ns)", "count"


class _Frame(msgspec.Struct):
    name: str = ""


class _Node(msgspec.Struct):
    frame: _Frame
    metrics: dict[str, Any] = {}
    children: list[_Node] = []


def read_hatchet(file: Path) -> list[KernelProfile]:
    """Return the kernels below the call's scope. Raises `ProfileFailed` if the file is no such tree."""
    try:
        tree, *_ = msgspec.json.decode(file.read_bytes(), type=list[msgspec.Raw])
        root = msgspec.json.decode(tree, type=_Node)
    except (OSError, ValueError, RecursionError) as error:
        raise ProfileFailed(f"Proton wrote no tree of kernels: {error}") from error
    return [
        KernelProfile(
            name=node.frame.name, launches=int(node.metrics.get(_COUNT, 1)), us=node.metrics[_TIME] / 1e3
        )
        for scope in _nodes(root)
        if scope.frame.name == SCOPE
        for node in _nodes(scope)
        if not node.children and isinstance(node.metrics.get(_TIME), (int, float))
    ]


def _nodes(node: _Node) -> Iterator[_Node]:
    yield node
    for child in node.children:
        yield from _nodes(child)
