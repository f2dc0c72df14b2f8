"""Makes texts of a benchmark for AMD's GPUs run on CUDA: without AMD's launch options, with CUDA's device library."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, TypeVar

from suites.source.python_source import parse_python

Item = TypeVar("Item")
OPTIONS = frozenset({"waves_per_eu", "matrix_instr_nonkdim", "kpack"})
"""Launch options that only AMD's back end of Triton has. They change the speed of a kernel, not its results."""


def for_cuda(text: str) -> str:
    """Return a module's text for CUDA. It is unchanged if it names nothing of AMD's, or if Python cannot parse it.

    An option stays if a function of the module has a parameter of its name: then it may be the kernel's own.
    """
    text = text.replace("extra.hip.libdevice", "extra.cuda.libdevice")
    if not any(option in text for option in OPTIONS):
        return text
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError):
        return text
    parameters = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    remover = _Remover(OPTIONS - parameters)
    tree = remover.visit(tree)
    return ast.unparse(tree) if remover.count else text


class _Remover(ast.NodeTransformer):
    """Removes options from launches (`kernel[grid](...)`) and from the dictionaries of `triton.Config`."""

    def __init__(self, options: frozenset[str]) -> None:
        self._options = options
        self.count = 0

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        config = node.args[0] if node.args else None
        if isinstance(node.func, ast.Subscript):
            node.keywords = self._kept((keyword.arg, keyword) for keyword in node.keywords)
        elif ast.unparse(node.func).rpartition(".")[2] == "Config" and isinstance(config, ast.Dict):
            items = list(zip(config.keys, config.values, strict=True))
            items = self._kept((getattr(key, "value", None), (key, value)) for key, value in items)
            config.keys, config.values = [key for key, _ in items], [value for _, value in items]
        return node

    def _kept(self, items: Iterable[tuple[object, Item]]) -> list[Item]:
        named = list(items)
        kept = [item for name, item in named if name not in self._options]
        self.count += len(named) - len(kept)
        return kept
