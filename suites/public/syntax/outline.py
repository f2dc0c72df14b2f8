"""Top-level definitions of a module's text, the names that its code uses, and its entry points with their signatures.

A listing reads hundreds of files, so a definition is parsed only if it is needed: a module is first cut into pieces at lines
that begin a definition in column 0. If a piece cannot be parsed, the whole module is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from suites.public.task import EntryKind, PublicEntryPoint
from suites.source.python_source import parse_python

_BEGIN = re.compile(
    r"^(?:(?:async[ ]+)?def[ ]+(?P<function>\w+)|class[ ]+(?P<class>\w+)|(?P<value>\w+)[ ]*(?::[^=\n]+)?=(?!=)|[^\s#)\]}])",
    re.MULTILINE,
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_TEXT = re.compile(r"\"\"\".*?\"\"\"|'''.*?'''", re.DOTALL)
"""A pattern that begins with a literal is found five times as fast as one with a group."""
_AT_MARGIN = re.compile(r"^\w", re.MULTILINE)
_KERNEL = re.compile(r"^@(?:\w+\.)*jit\b", re.MULTILINE)

Assignment = ast.Assign | ast.AnnAssign
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | Assignment


class Outline:
    """Top-level definitions of one module."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._closures: dict[str, frozenset[str]] = {}

    @cached_property
    def pieces(self) -> dict[str, str]:
        """Source text by defined name, with decorators; the last definition of a name wins."""
        pieces: dict[str, str] = {}
        begins = [begin for begin in _BEGIN.finditer(self.text) if not self._is_in_text(begin.start())]
        decorators: int | None = None
        for place, begin in enumerate(begins):
            if self.text[begin.start()] == "@":
                decorators = begin.start() if decorators is None else decorators
                continue
            end = begins[place + 1].start() if place + 1 < len(begins) else len(self.text)
            name = begin["function"] or begin["class"] or begin["value"]
            if name is not None:
                pieces[name] = self.text[begin.start() if decorators is None else decorators : end]
            decorators = None
        return pieces

    def _is_in_text(self, place: int) -> bool:
        """Return whether a place is inside a text of several lines, such as a docstring."""
        return any(begin < place < end for begin, end in self._texts)

    @cached_property
    def _texts(self) -> list[tuple[int, int]]:
        """Places of texts with lines in column 0, which could be taken for definitions."""
        return [text.span() for text in _TEXT.finditer(self.text) if _AT_MARGIN.search(text[0])]

    @cached_property
    def _parsed(self) -> dict[str, Definition]:
        """Definitions by name from the whole module, also below a top-level `if` or `try`."""
        return dict(definitions(parse_python(self.text).body))

    def defines(self, name: str) -> bool:
        """Return whether the module defines a name in column 0."""
        return name in self.pieces

    def definition(self, name: str) -> Definition | None:
        """Return the definition of a name; `None` if the module does not define it.

        Raises as `parse_python` if neither the piece nor the module can be parsed.
        """
        if name in self.pieces:
            try:
                body = parse_python(self.pieces[name]).body
            except (SyntaxError, ValueError):
                return self._parsed.get(name)
            if body and isinstance(body[0], Definition):
                return body[0]
        return self._parsed.get(name)

    def is_kernel(self, name: str) -> bool:
        """Return whether a name is a function with a `jit` decorator."""
        return _KERNEL.search(self.pieces.get(name, "")) is not None

    def closure(self, name: str) -> frozenset[str]:
        """Return the names of this module that a definition uses, directly or through others; with itself.

        Words are compared, also words in comments: the result may be too large.
        """
        if name in self._closures:
            return self._closures[name]
        reached = {name}
        waiting = [name]
        while waiting:
            used = self.pieces.keys() & _WORD.findall(self.pieces.get(waiting.pop(), ""))
            waiting.extend(used - reached)
            reached |= used
        self._closures[name] = frozenset(reached)
        return self._closures[name]


def definitions(body: list[ast.stmt]) -> Iterator[tuple[str, Definition]]:
    """Yield names and definitions of a module, also below a top-level `if` or `try`."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name, statement
        elif isinstance(statement, Assignment):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from ((target.id, statement) for target in targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.If):
            yield from definitions([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Try):
            yield from definitions([*statement.body, *statement.orelse, *statement.finalbody])


def entry_point(outline: Outline, name: str) -> PublicEntryPoint:
    """Return the entry point `name` of a module, with its signature; a value if it is neither a function nor a class.

    The signature is empty if the text does not show one.
    """
    definition = outline.definition(name)
    if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        kind = EntryKind.KERNEL if outline.is_kernel(name) else EntryKind.FUNCTION
        return PublicEntryPoint(name, kind, f"{name}({ast.unparse(definition.args)})")
    if isinstance(definition, ast.ClassDef):
        return PublicEntryPoint(name, EntryKind.CLASS, _class_signature(definition, name))
    value = definition.value if definition is not None else None
    if isinstance(value, ast.Attribute) and value.attr == "apply" and isinstance(value.value, ast.Name):
        of = outline.definition(value.value.id)
        if isinstance(of, ast.ClassDef):
            return PublicEntryPoint(
                name, EntryKind.VALUE, _class_signature(of, name).replace(f"{name}.apply", name)
            )
    return PublicEntryPoint(name, EntryKind.VALUE)


def _class_signature(definition: ast.ClassDef, name: str) -> str:
    """Return the signature of a class as an entry point: `NAME.apply(...)` of an autograd function, else its constructor's.

    Empty for a class without a constructor.
    """
    methods = {method.name: method for method in definition.body if isinstance(method, ast.FunctionDef)}
    forward = methods.get("forward")
    first = [argument.arg for argument in forward.args.args[:1]] if forward else []
    if forward is not None and first == ["ctx"]:
        return f"{name}.apply({_without_first(forward)})"
    return f"{name}({_without_first(methods['__init__'])})" if "__init__" in methods else ""


def _without_first(method: ast.FunctionDef) -> str:
    """Return the text of a method's parameters without `self`."""
    arguments = method.args
    plain = ast.arguments(
        posonlyargs=arguments.posonlyargs,
        args=arguments.args[1:],
        vararg=arguments.vararg,
        kwonlyargs=arguments.kwonlyargs,
        kw_defaults=arguments.kw_defaults,
        kwarg=arguments.kwarg,
        defaults=arguments.defaults,
    )
    return ast.unparse(plain)
