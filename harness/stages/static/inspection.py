"""The static stage: what can be said of a candidate's text alone. Torch-free; nothing of the candidate runs.

Static signs are advice and runtime decides; refused here is only what has no honest use in a kernel module. The lists
are in `refusals.py`.
"""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from harness.wire import limits, signatures
from harness.wire.evaluation import ErrorReport, Verdict
from suites.task import EntryPoint, Task

from . import fallbacks, refusals

SLOW_IN_INTERPRETER = frozenset({"sort", "topk"})
"""`tl` functions that take the interpreter tens of milliseconds a program."""


class StaticReport(NamedTuple):
    """What the text says. `verdict` is `None` when the cascade may go on."""

    verdict: Verdict | None
    error: ErrorReport | None
    notes: tuple[str, ...]
    kernels: tuple[str, ...]
    slow: tuple[str, ...]
    """Calls that may be too slow for the interpreter, as `tl.sort`."""


def inspect_source(source: str, task: Task) -> StaticReport:
    """The static stage of the cascade."""
    if not _has_code(source):
        return _end(Verdict.NO_CODE, "no_code", "there is no code to judge")
    size = len(source.encode("utf-8", errors="surrogatepass"))
    if size > limits.SOURCE_BYTES:
        return _end(
            Verdict.CALL_ERROR, "too_large", f"{size} bytes of source; the limit is {limits.SOURCE_BYTES}"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # invalid escapes and the like are the candidate's, not ours to print
            tree = ast.parse(source, "kernel.py")
    except SyntaxError as error:
        return _end(
            Verdict.CALL_ERROR,
            "syntax",
            f"line {error.lineno}: {error.msg}",
            _syntax_trace(error),
            error.lineno,
        )
    except (ValueError, RecursionError, MemoryError) as error:
        return _end(Verdict.CALL_ERROR, "syntax", f"Python cannot parse this: {error}")
    module = Module(tree)
    for entry in task.entry_points:
        problem = module.problem_of(entry)
        if problem is not None:
            return StaticReport(Verdict.CALL_ERROR, problem, (), module.kernels, ())
    entries = {entry.name for entry in task.entry_points}
    refused = next(refusals.refusals(tree, module.own_names, entries), None)
    if refused is not None:
        verdict, kind = (
            (Verdict.UNSUPPORTED, "unsupported") if refused.unsupported else (Verdict.REJECTED, "refused")
        )
        error_report = ErrorReport(
            kind=kind, message=f"line {refused.line}: {refused.why}", line=refused.line
        )
        return StaticReport(verdict, error_report, (), module.kernels, ())
    fallback = next(fallbacks.fallbacks(tree, task), None)
    if fallback is not None:
        error_report = ErrorReport(kind="operator", message=fallback.message, line=fallback.line)
        return StaticReport(Verdict.REJECTED, error_report, (), module.kernels, ())
    if not module.kernels:
        message = "no function is decorated with @triton.jit; the work must be done by Triton kernels of this module"
        return _end(Verdict.REJECTED, "no_kernel", message)
    notes = (*module.notes(), *refusals.notes(tree))
    return StaticReport(None, None, notes, module.kernels, module.slow())


class Module:
    """A parsed candidate and the names that it binds."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._nodes = tuple(ast.walk(tree))
        self.kernels = tuple(
            node.name
            for node in self._nodes
            if isinstance(node, ast.FunctionDef) and any(_is_jit(one) for one in node.decorator_list)
        ) + tuple(_jit_called(self._nodes))
        self.own_names = frozenset(
            node.name for node in self._nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        ) | frozenset(
            node.id for node in self._nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )

    def problem_of(self, entry: EntryPoint) -> ErrorReport | None:
        """Why `entry` cannot be called as the task says; `None` when it can, or when only a run can tell."""
        bound = self._binding(entry.name)
        if bound is None:
            return ErrorReport(
                kind="missing_entry_point", message=f"`{entry.name}` is not defined; define {entry.signature}"
            )
        if not isinstance(bound, ast.FunctionDef) or bound.args.vararg or bound.args.kwarg:
            return None
        wrong = signatures.signature_error(entry.signature, signatures.definition_parameters(bound))
        if not wrong:
            return None
        message = f"`{entry.name}`: {wrong}; the signature is {entry.signature}"
        return ErrorReport(kind="signature", message=message, line=bound.lineno)

    def slow(self) -> tuple[str, ...]:
        """Calls that take the interpreter long."""
        called = (node.func for node in self._nodes if isinstance(node, ast.Call))
        names = {f"{one.value.id}.{one.attr}" for one in called
                 if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name)
                 and one.value.id in ("tl", "language") and one.attr in SLOW_IN_INTERPRETER}  # fmt: skip
        return tuple(sorted(names))

    def notes(self) -> Iterator[str]:
        """What is merely odd."""
        used = {
            node.id for node in self._nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }
        for kernel in self.kernels:
            if kernel not in used:
                yield f"kernel `{kernel}` is used nowhere"
        for node in self._nodes:
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None
                or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException"))
            ):
                yield f"line {node.lineno}: a broad except hides what fails"

    def _binding(self, name: str) -> ast.stmt | None:
        """The last top-level statement that binds `name`; a plain alias is followed to its definition."""
        seen: set[str] = set()
        while name not in seen:
            seen.add(name)
            bound = next((one for one in reversed(list(_top_level(self._tree))) if name in _bound(one)), None)
            if isinstance(bound, ast.Assign) and isinstance(bound.value, ast.Name):
                name = bound.value.id
                continue
            return bound
        return None


def _top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run on import, those in `if` and `try` included."""
    waiting = list(tree.body)
    while waiting:
        statement = waiting.pop(0)
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            inner = [*statement.body, *getattr(statement, "orelse", []), *getattr(statement, "finalbody", [])]
            for handler in getattr(statement, "handlers", []):
                inner += handler.body
            waiting[:0] = inner


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(one.asname or one.name).partition(".")[0] for one in statement.names}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _is_jit(decorator: ast.expr) -> bool:
    """Whether it is `triton.jit`, `jit` or a call of one of them."""
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    if isinstance(decorator, ast.Attribute):
        return decorator.attr == "jit"
    return isinstance(decorator, ast.Name) and decorator.id == "jit"


def _jit_called(nodes: tuple[ast.AST, ...]) -> Iterator[str]:
    """Functions made kernels by a plain call: `kernel = triton.jit(function)`."""
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.value.args:
            target = node.targets[0]
            if _is_jit(node.value.func) and isinstance(target, ast.Name):
                yield target.id


def _has_code(source: str) -> bool:
    """Whether anything but blank lines and comments is there; what cannot be read as tokens counts as code."""
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.ENCODING)
    try:
        return any(
            token.type not in silent for token in tokenize.generate_tokens(io.StringIO(source).readline)
        )
    except (tokenize.TokenError, SyntaxError, ValueError):
        return True


def _syntax_trace(error: SyntaxError) -> str:
    shown = f'  File "kernel.py", line {error.lineno}\n'
    if error.text:
        shown += f"    {error.text.strip()}\n"
    return f"{shown}{type(error).__name__}: {error.msg}\n"


def _end(verdict: Verdict, kind: str, message: str, trace: str = "", line: int | None = None) -> StaticReport:
    return StaticReport(verdict, ErrorReport(kind=kind, message=message, trace=trace, line=line), (), (), ())
