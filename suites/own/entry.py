"""Finds the function of a file that launches a Triton kernel, and the PyTorch function beside it that says what is right."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from pathlib import Path

from suites.errors import BadKernelFile, nearest
from suites.public.syntax.outline import Definition, definitions
from suites.source.python_source import parse_literal, parse_python, source_lines

from .annotations import annotated_tensor, names_of_jaxtyping
from .shapes import TensorShape

_REFERENCE = re.compile(r"(^|_)(ref|reference|torch|pytorch|naive|eager|native|golden)(_|$)")
_NUMBERS = ("bool", "int", "float", "str")
_NO_ENTRY = re.compile(r"^(_|test|bench|main|run_|check|get_inputs$)")


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a file, with the parameters that are judged."""

    name: str
    parameters: tuple[str, ...]
    defaults: dict[str, str]
    """Defaults that are plain values, as text."""
    by_name: tuple[str, ...] = ()
    """The last parameters, which can only be passed by name."""
    left_out: tuple[str, ...] = ()
    """Parameters that keep their defaults, as text: the first one with a default that is no plain value, and those behind."""

    numbers: tuple[str, ...] = ()
    """Parameters with an annotation that is no tensor, such as `float`."""

    annotated: dict[str, TensorShape] = field(default_factory=dict)
    """Tensors by parameter, without a default, as far as annotations say dtype and dimensions."""

    @property
    def sure(self) -> dict[str, TensorShape]:
        """Tensors of which everything is known."""
        return {name: tensor for name, tensor in self.annotated.items() if not tensor.needs_range}

    @property
    def example(self) -> str:
        """Inputs in the form of `--shapes`, with invented sizes and dtypes, for the parameters without a default."""
        wanted = [name for name in self.parameters if name not in self.defaults and name not in self.sure]
        return ", ".join(map(self.example_of, wanted))

    def example_of(self, parameter: str) -> str:
        """Return an input in the form of `--shapes`, with invented sizes, dtype and range where they are not known."""
        if parameter in self.numbers:
            return f"{parameter}=1"
        if (tensor := self.annotated.get(parameter)) is not None:
            dims = "x".join(map(str, tensor.shape))
            return f"{parameter}={dims}:{tensor.dtype}{':0..100' * tensor.needs_range}"
        return f"{parameter}=8192x4096:fp16"

    @property
    def signature(self) -> str:
        """The signature without annotations."""
        words = [
            f"{name}={self.defaults[name]}" if name in self.defaults else name for name in self.parameters
        ]
        if self.by_name:
            words.insert(len(words) - len(self.by_name), "*")
        return f"{self.name}({', '.join(words)})"


class KernelFile:
    """The text of one Python file."""

    def __init__(self, path: Path, text: str) -> None:
        """Raises `BadKernelFile` if the text is no Python."""
        self.path = path
        self.text = text
        try:
            self._tree = parse_python(text, str(path))
        except (SyntaxError, ValueError) as error:
            line = f" line {error.lineno}" if isinstance(error, SyntaxError) else ""
            why = error.msg if isinstance(error, SyntaxError) else error
            raise BadKernelFile(f"{path}{line} is no Python: {why}") from error
        self._definitions: dict[str, Definition] = dict(definitions(self._tree.body))
        self._used = {
            name: _names_in(node) & self._definitions.keys() for name, node in self._definitions.items()
        }
        self.functions = {
            name: node
            for name, node in self._definitions.items()
            if isinstance(node, ast.FunctionDef) and not self.is_kernel(name)
        }
        """Functions at the top of the file, without kernels."""

    @classmethod
    def named(cls, where: str) -> tuple[KernelFile, str]:
        """Return the file in FILE or FILE.py:FUNCTION and the function's name, empty without one. Raises as `read`."""
        path, _, function = where.partition(".py:")
        return cls.read(Path(f"{path}.py" if function else where)), function

    @classmethod
    def read(cls, path: Path) -> KernelFile:
        """Return a file's text. Raises `BadKernelFile` if it cannot be read or is no Python."""
        if not path.is_file():
            raise BadKernelFile(f"there is no file {path}; give the path of one Python module")
        try:
            return cls(path, path.read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise BadKernelFile(f"{path} cannot be read ({error.strerror}); fix its permissions") from error
        except UnicodeDecodeError as error:
            raise BadKernelFile(f"{path} is not UTF-8 text, so it is not Python") from error

    @property
    def path_in_repository(self) -> str:
        """Path from the root of the git repository that holds the file; empty without one."""
        path = self.path.resolve()
        root = next((folder for folder in path.parents if (folder / ".git").exists()), None)
        return path.relative_to(root).as_posix() if root is not None else ""

    def is_kernel(self, name: str) -> bool:
        """Return whether a name is a function with a `jit` decorator, or the result of `jit(...)`."""
        node = self._definitions.get(name)
        if isinstance(node, ast.FunctionDef):
            return any(_is_jit(decorator) for decorator in node.decorator_list)
        return isinstance(node, ast.Assign) and any(map(_is_jit, ast.walk(node.value)))

    def is_gluon(self, name: str) -> bool:
        """Return whether a name is a kernel in Gluon, which Triton's interpreter cannot run."""
        node = self._definitions.get(name)
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        return any(
            getattr(part, "id", "") == "gluon" for decorator in decorators for part in ast.walk(decorator)
        )

    def _closure(self, name: str) -> set[str]:
        """Return the names of this file that a definition uses, directly or through others; with itself."""
        reached, waiting = {name}, [name]
        while waiting:
            used = self._used[waiting.pop()] - reached
            waiting.extend(used)
            reached |= used
        return reached

    @cached_property
    def _launching(self) -> set[str]:
        """Return the functions and classes that launch a kernel in their own code, of this file or an imported one."""
        imported = {name for statement in ast.walk(self._tree) for name in bound_names(statement)}
        names = set()
        for name, node in self._definitions.items():
            bases = [
                call.func.value
                for call in ast.walk(node)
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Subscript)
            ]
            has_kernel = any(map(self.is_kernel, self._closure(name)))
            if any(has_kernel or (isinstance(base, ast.Name) and base.id in imported) for base in bases):
                names.add(name)
        return names

    def launches(self, name: str) -> bool:
        """Return whether a function launches a kernel, itself or through others."""
        return not self._closure(name).isdisjoint(self._launching)

    @cached_property
    def imports(self) -> dict[str, tuple[ast.ImportFrom, ast.alias]]:
        """Names that `from ... import` binds at the top of the file."""
        return {
            alias.asname or alias.name: (node, alias)
            for node in self._tree.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def imported_by_host_code(self, names: Collection[str]) -> list[str]:
        """Return the names of `imports` that functions use outside of kernels, from these functions on."""
        reached = {used for name in names for used in self._closure(name) if not self.is_kernel(used)}
        used = {word for name in reached for word in _names_in(self._definitions[name])}
        return [name for name in self.imports if name in used]

    def defines(self, name: str) -> bool:
        """Return whether the file defines a name at its top."""
        return name in self._definitions

    def has_function(self, name: str) -> bool:
        """Return whether the file has a function of this name, also inside of others."""
        return any(isinstance(node, ast.FunctionDef) and node.name == name for node in ast.walk(self._tree))

    @property
    def has_inputs(self) -> bool:
        """The file has a function `get_inputs()`."""
        return "get_inputs" in self.functions and not self.functions["get_inputs"].args.args

    def function(self, name: str) -> Function:
        """Return a function by name. Raises `BadKernelFile` if there is none, or if a parameter has no name for callers."""
        node = self.functions.get(name)
        if node is None:
            kind = "a kernel; name the function that launches it" if self.is_kernel(name) else ""
            raise BadKernelFile(
                f"{self.path} has no function {name!r} at its top{nearest(name, self.functions)}"
                if not kind
                else f"{self.path}: {name} is {kind}"
            )
        arguments = node.args
        if arguments.posonlyargs:
            raise BadKernelFile(
                f"{self.path}: {name} has `/` among its parameters; write a function without it that calls it"
            )
        defaults: list[ast.expr | None] = [None] * (len(arguments.args) - len(arguments.defaults))
        by_position = dict(
            zip((item.arg for item in arguments.args), [*defaults, *arguments.defaults], strict=True)
        )
        by_name = dict(zip((item.arg for item in arguments.kwonlyargs), arguments.kw_defaults, strict=True))
        judged = dict(takewhile(lambda item: _is_plain(item[1]), by_position.items()))
        named = {parameter: default for parameter, default in by_name.items() if _is_plain(default)}
        texts = {
            parameter: ast.unparse(default)
            for parameter, default in {**by_position, **by_name}.items()
            if default is not None
        }
        kept = (*judged, *named)
        jaxtyping = names_of_jaxtyping(self._tree)
        tensors = {
            item.arg: annotated_tensor(item.annotation, jaxtyping)
            for item in (*arguments.args, *arguments.kwonlyargs)
            if item.arg in kept and item.arg not in texts
        }
        return Function(
            name,
            kept,
            {parameter: text for parameter, text in texts.items() if parameter in kept},
            tuple(named),
            tuple(f"{parameter}={text}" for parameter, text in texts.items() if parameter not in kept),
            tuple(
                item.arg
                for item in (*arguments.args, *arguments.kwonlyargs)
                if isinstance(item.annotation, ast.Name) and item.annotation.id in _NUMBERS
            ),
            {name: tensor for name, tensor in tensors.items() if tensor is not None},
        )

    def find_entry(self, name: str = "") -> Function:
        """Return the function that launches a kernel; `name` chooses. Raises `BadKernelFile` if there is not exactly one."""
        if name:
            return self.function(name)
        launching = [
            function
            for function in self.functions
            if self.launches(function) and _takes_inputs(self, function)
        ]
        names = [function for function in launching if not _NO_ENTRY.search(function)] or launching
        called = {
            callee for caller in names for callee in self._closure(caller) - {caller} if callee in names
        }
        outermost = [function for function in names if function not in called] or names
        if not outermost:
            raise BadKernelFile(
                f"{self.path} has no function that launches a Triton kernel; name one as {self.path}:FUNCTION"
            )
        if len(outermost) > 1:
            raise BadKernelFile(
                f"{self.path} has {len(outermost)} functions that launch kernels: {', '.join(outermost)}; "
                f"name one as {self.path}:{outermost[0]}"
            )
        return self.function(outermost[0])

    def find_reference(self, entry: Function) -> Function | None:
        """Return the PyTorch function with fitting parameters and a name such as `softmax_ref`; `None` if there is none.

        Raises `BadKernelFile` if there are several.
        """
        references = [
            name
            for name in self.functions
            if _REFERENCE.search(name) and not self.launches(name) and self._fits(name, entry)
        ]
        own = [name for name in references if entry.name in name] or references
        if len(own) > 1:
            raise BadKernelFile(
                f"{self.path} has {len(own)} references for {entry.name}: {', '.join(own)}; name one with --reference {own[0]}"
            )
        return self.function(own[0]) if own else None

    def _fits(self, name: str, entry: Function) -> bool:
        try:
            called_with(self.function(name), entry)
        except BadKernelFile:
            return False
        return True

    def extract(self, name: str) -> tuple[list[str], str]:
        """Return the imports that a function needs, and its text with all that it uses of this file."""
        imports, pieces = self.parts((name,))
        plain = [node for node in imports if isinstance(node, ast.Import | ast.ImportFrom)]
        return list(map(ast.unparse, plain)), "\n\n\n".join(pieces.values())

    def parts(self, names: Collection[str]) -> tuple[list[ast.stmt], dict[ast.stmt, str]]:
        """Return the imports that some definitions need, and the text of each definition that they use in this file.

        A definition below `if` or `try` comes with this whole statement.
        """
        reached = set().union(*map(self._closure, names))
        lines = source_lines(self.text)
        pieces = {}
        for statement in self._tree.body:
            if not reached.isdisjoint(dict(definitions([statement]))):
                decorators = getattr(statement, "decorator_list", [])
                first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
                pieces[statement] = "\n".join(lines[first - 1 : statement.end_lineno])
        used = {word for statement in pieces for word in _names_in(statement)}
        imports = [
            node
            for node in self._tree.body
            if node not in pieces and not imported_names(node).isdisjoint(used)
        ]
        return imports, pieces


def called_with(reference: Function, entry: Function) -> tuple[str, ...]:
    """Return the entry point's parameters with which a reference is called, in the order of the reference's parameters.

    Raises `BadKernelFile` if the signatures do not fit.
    """
    if set(reference.parameters) <= set(entry.parameters):
        return reference.parameters
    if len(reference.parameters) == len(entry.parameters):
        return entry.parameters
    raise BadKernelFile(
        f"the reference {reference.signature} does not take the parameters of {entry.signature}; give another one"
    )


def names_in_expression(text: str, entry: Function) -> tuple[str, ...]:
    """Return the parameters of the entry point that an expression reads, besides `torch`, `F` and Python's own names.

    Raises `BadKernelFile` if it is no expression or reads other names.
    """
    try:
        parts = list(ast.walk(parse_python(f"({text})")))
    except (SyntaxError, ValueError) as error:
        raise BadKernelFile(f"the reference {text!r} is no Python expression") from error
    used = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}
    bound = {part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    bound |= {part.arg for part in parts if isinstance(part, ast.arg)}
    if unknown := sorted(used - bound - {*entry.parameters, "torch", "F", *dir(builtins)}):
        raise BadKernelFile(
            f"the reference {text} reads {unknown[0]}; it may read torch, F and the parameters of {entry.signature}"
        )
    return tuple(name for name in entry.parameters if name in used)


def _names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _is_jit(node: ast.AST) -> bool:
    function = node.func if isinstance(node, ast.Call) else node
    return getattr(function, "attr", getattr(function, "id", "")) == "jit"


def _is_plain(default: ast.expr | None) -> bool:
    """Return whether a default is a plain value; true without a default."""
    if default is None:
        return True
    try:
        return isinstance(parse_literal(ast.unparse(default)), bool | int | float | str | None)
    except (ValueError, TypeError, SyntaxError):
        return False


def _takes_inputs(file: KernelFile, name: str) -> bool:
    arguments = file.functions[name].args
    return bool(arguments.args or arguments.kwonlyargs or arguments.vararg)


def bound_names(statement: ast.AST) -> set[str]:
    """Return the names that an import binds; empty for other statements."""
    if not isinstance(statement, ast.Import | ast.ImportFrom):
        return set()
    return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}


def imported_names(statement: ast.stmt) -> set[str]:
    """Return the names that an import binds, also below `if` and `try`; empty for other statements."""
    if not isinstance(statement, ast.Import | ast.ImportFrom | ast.If | ast.Try):
        return set()
    return {name for node in ast.walk(statement) for name in bound_names(node)}
