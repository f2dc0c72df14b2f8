"""
Tells `turns` of the loops of interpreted kernels: where they begin and end, and what in them stands behind a condition.

Touches the internals of Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

import ast
import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import triton.language as tl
from triton.backends.amd.compiler import HIPOptions
from triton.backends.nvidia.compiler import CUDAOptions
from triton.runtime import interpreter

from harness.device import Target

from .feeding import feeding
from .observing import current

STAGES_PLACE = 3
"""Of `num_stages` among the arguments of `tl.range`."""
_FOLDED = frozenset({"cdiv", "min", "max", "next_power_of_2"})
"""Functions of bounds that a compiler works out and that do nothing else."""
_AROUND = "loops around"
"""Of what a transformer visits."""


def install(target: Target) -> None:
    """Once a process, after `loops.install` and `expressions.install`."""
    builder, semantic = interpreter.InterpreterBuilder, interpreter.interpreter_semantic
    # NVIDIA's loads come behind all stores of the turn in which they are fetched, AMD's before.
    less, usual = (2, CUDAOptions.num_stages) if target.backend == "cuda" else (1, HIPOptions.num_stages)
    for name, method in (
        ("create_loop", functools.partialmethod(_entering, less, usual)),
        ("create_turn", _turning),
        ("create_loop_end", _leaving),
        ("create_parting_of_ways", _forking),
        ("create_meeting_of_ways", _joining),
        ("create_feed", _feeding),
        ("create_spin", _spinning),
    ):
        setattr(builder, name, method)
    semantic.in_turns, semantic.feeds = _in_turns, _feeds
    semantic.forks, semantic.joins, semantic.spins = _forks, _joins, _spins
    transformer = interpreter.ASTTransformer
    transformer.visit_For = _loop(transformer.visit_For)
    transformer.visit_If, transformer.visit_While = _visit_if, _visit_while


def _loop(visit: Callable[..., Any]) -> Callable[..., Any]:
    def visit_for(self: Any, node: ast.For) -> ast.For:
        told = _told(self, node.iter)
        fed = feeding(node.body)
        around = vars(self).get(_AROUND, 0)
        vars(self)[_AROUND] = around + 1
        try:
            visit(self, node)
        finally:
            vars(self)[_AROUND] = around
        if told is not None:
            node.iter = _call("in_turns", node.iter, [node.iter, *told, ast.Constant(any(fed))])
        node.body = list(_with_word_of(node.body, fed))
        return node

    return visit_for


def _with_word_of(body: Sequence[ast.stmt], fed: Sequence[bool]) -> Iterator[ast.stmt]:
    """The statements, with word of it wherever those begin or end that feed dots; a turn begins without."""
    feeds = False
    for statement, feeding_now in zip(body, fed, strict=True):
        if feeding_now != feeds:
            feeds = feeding_now
            yield ast.copy_location(ast.Expr(_call("feeds", statement, [ast.Constant(feeds)])), statement)
        yield statement


def _told(transformer: Any, values: ast.expr) -> list[ast.expr] | None:
    """The stages that a loop is given, and its bounds, to be worked out once more; `None` where a compiler makes none of it."""
    if not isinstance(values, ast.Call) or "range" not in map(_name, ast.walk(values.func)):
        return None
    given = [one.value for one in values.keywords if one.arg == "num_stages"]
    stages = next(iter([*given, *values.args[STAGES_PLACE : STAGES_PLACE + 1]]), ast.Constant(None))
    bounds = values.args[:STAGES_PLACE]
    inner = [one for bound in bounds for one in ast.walk(bound)]
    plain = all(not isinstance(one, ast.Call) or _name(one.func) in _FOLDED for one in inner)
    if not plain or any(isinstance(one, (ast.Starred, ast.NamedExpr)) for one in inner):
        bounds = []
    told = (stages, ast.Tuple(elts=bounds, ctx=ast.Load()))
    return [transformer.visit(copy.deepcopy(one)) for one in told]


def _visit_if(self: Any, node: ast.If) -> ast.If:
    self.generic_visit(node)
    if vars(self).get(_AROUND, 0):
        node.test = _call("forks", node.test, [node.test])
        for way in (node.body, node.orelse):
            last = way[-1] if way else node.body[-1]
            way.append(ast.copy_location(ast.Expr(_call("joins", last, [])), last))
    return node


def _visit_while(self: Any, node: ast.While) -> ast.While:
    self.generic_visit(node)
    node.test = _call("spins", node.test, [node.test])
    return node


def _call(helper: str, node: ast.AST, args: list[ast.expr]) -> ast.expr:
    semantic = ast.Name(id="interpreter_semantic", ctx=ast.Load())
    function = ast.Attribute(value=semantic, attr=helper, ctx=ast.Load())
    return ast.copy_location(ast.Call(func=function, args=args, keywords=[]), node)


def _name(function: ast.AST) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _builder() -> Any:
    """Where operations are asked for, by which another program's are known too."""
    return interpreter.interpreter_semantic.builder


def _in_turns(values: Iterable[Any], stages: Any, bounds: Any, feeds: Any) -> Iterator[Any]:
    """The values, a turn each; `stages` are the loop's own, `feeds` says whether dots may be made of what it loads."""
    own = getattr(stages, "value", stages)
    _builder().create_loop(own, feeds=feeds, unrolled=_is_one_turn(bounds))
    for value in values:
        _builder().create_turn()
        yield value
    _builder().create_loop_end()


def _is_one_turn(bounds: Iterable[Any]) -> bool:
    """Whether a compiler knows that there is no second turn."""
    known = [getattr(one, "value", one) for one in bounds]
    return bool(known) and all(type(one) is int for one in known) and len(range(*known)) <= 1


def _forks(test: Any) -> Any:
    _builder().create_parting_of_ways(unknown=isinstance(test, tl.tensor))
    return test


def _joins() -> None:
    _builder().create_meeting_of_ways()


def _spins(test: Any) -> Any:
    if isinstance(test, tl.tensor):
        _builder().create_spin()
    return test


def _feeds(made: Any) -> None:
    _builder().create_feed(dots=made)


def _entering(_: Any, less: int, usual: int, own: int | None, *, feeds: bool, unrolled: bool) -> None:
    """`less`: by how much fewer turns than stages a load may come too early; `usual`: stages of a launch that names none."""
    observation = current()
    if observation is not None:
        turns = observation.programs.turns
        stages = own if own is not None else (turns.stages or usual) if feeds else 0
        turns.enter(stages - less, every=own is not None, unrolled=unrolled)


def _turning(_: Any) -> None:
    observation = current()
    if observation is not None:
        observation.programs.turns.turn()


def _leaving(_: Any) -> None:
    observation = current()
    if observation is not None:
        observation.note_race(observation.programs.turns.leave())


def _forking(_: Any, *, unknown: bool) -> None:
    observation = current()
    if observation is not None:
        observation.programs.turns.fork(unknown=unknown)


def _joining(_: Any) -> None:
    observation = current()
    if observation is not None:
        observation.programs.turns.join()


def _feeding(_: Any, *, dots: bool) -> None:
    observation = current()
    if observation is not None:
        observation.programs.turns.feed(dots=dots)


def _spinning(_: Any) -> None:
    observation = current()
    if observation is not None:
        observation.programs.turns.keep()
