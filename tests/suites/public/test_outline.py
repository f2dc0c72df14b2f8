"""Outlines of modules: definitions are found and parsed without a parse of the whole module."""

from __future__ import annotations

import ast

import pytest

from suites.public.syntax.outline import Outline

SOURCE = '''\
import torch

BLOCK: int = 4
TABLE = {
    "a": 1,
}


@triton.autotune(
    configs=[],
    key=["n"],
)
@triton.jit
def kernel(x, n):
    """
Writes.
def no_function(): it is text
"""
    pass


# a comment
@torch.no_grad()
def wrapper(x, n=BLOCK):
    return helper(x)


def helper(x):
    kernel[(1,)](x, 1)


if torch.cuda.is_available():
    def hidden(x): ...
'''


def test_definitions_are_those_of_the_syntax_tree() -> None:
    outline = Outline(SOURCE)
    assert list(outline.pieces) == ["BLOCK", "TABLE", "kernel", "wrapper", "helper"]
    assert [name for name in outline.pieces if outline.is_kernel(name)] == ["kernel"]
    wrapper = outline.definition("wrapper")
    assert isinstance(wrapper, ast.FunctionDef)
    assert ast.unparse(wrapper.args) == "x, n=BLOCK"
    assert isinstance(outline.definition("hidden"), ast.FunctionDef)
    assert outline.definition("no_function") is None


def test_closure_holds_all_used_definitions() -> None:
    assert Outline(SOURCE).closure("wrapper") == {"wrapper", "helper", "kernel", "BLOCK"}


def test_broken_module_raises() -> None:
    with pytest.raises(SyntaxError):
        Outline("def broken(x:\n    pass\n").definition("broken")
