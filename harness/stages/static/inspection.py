"""The static stage: checks a candidate's text. Nothing of the candidate runs.

Static signs are advice and runtime decides. The static stage rejects only known ways around the judge. What may be
honest and cannot be watched is unsupported. The lists are in `refusals.py`.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harness.wire import limits
from harness.wire.calls import signatures
from harness.wire.results.evaluation import ErrorReport
from suites.source.python_source import parse_python
from suites.task import EntryPoint, Task

from .fallbacks import find_fallbacks
from .reachability import statements_in
from .refusals import find_oddities, find_refusals

MOST_LINES = 8
"""Problems of one kind that are listed."""
SLOW_IN_INTERPRETER = frozenset({"sort", "topk"})
"""`tl` functions that take the interpreter tens of milliseconds a program."""


class StaticReport(NamedTuple):
    """The static stage's result; `error` is `None` if the cascade goes on."""

    error: ErrorReport | None
    notes: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()
    """Calls that may be too slow for the interpreter, as `tl.sort`."""


def inspect_source(source: str, task: Task) -> StaticReport:
    """Run the static stage on a candidate's text: return the first error that rules it out, or its kernels and notes.

    Nothing of the candidate runs, and nothing is raised.
    """
    if not _has_code(source):
        return _end("no_code", "there is no code to judge")
    size = len(source.encode("utf-8", errors="surrogatepass"))
    if size > limits.SOURCE_BYTES:
        message = f"{size} bytes of source; the limit is {limits.SOURCE_BYTES}"
        return _end("too_large", message)
    try:
        tree = parse_python(source, "kernel.py")
    except SyntaxError as error:
        message = f"line {error.lineno}: {error.msg}"
        return _end("syntax", message, error.lineno, _syntax_trace(error))
    except (ValueError, RecursionError, MemoryError) as error:
        return _end("syntax", f"Python cannot parse this: {error}")
    module = CandidateModule(tree)
    problem = module.problem_of(task.entry_points, signature=task.script is None)
    if problem is not None:
        return StaticReport(problem)
    entry_names = {entry.name for entry in task.entry_points}
    refusals = sorted(
        find_refusals(tree, module.own_names, entry_names, task.package),
        key=lambda refusal: (refusal.unsupported, refusal.line),
    )
    if refusals:
        kind = "unsupported" if refusals[0].unsupported else "refused"
        return _end(
            kind, _lines(f"line {refusal.line}: {refusal.why}" for refusal in refusals), refusals[0].line
        )
    fallbacks = sorted(find_fallbacks(tree, task), key=lambda fallback: fallback.line)
    if fallbacks:
        return _end("operator", _lines(fallback.message for fallback in fallbacks), fallbacks[0].line)
    if not module.kernels:
        message = "no function is decorated with @triton.jit; the work must be done by Triton kernels of this module"
        return _end("no_kernel", message)
    notes = tuple(find_oddities(tree, module.kernels))
    return StaticReport(None, notes, module.kernels, module.slow_calls())


def _lines(messages: Iterable[str]) -> str:
    """Return messages as lines, each once; of very many only the first."""
    lines = list(dict.fromkeys(messages))
    more = len(lines) - MOST_LINES
    return "\n".join(lines if more <= 0 else [*lines[:MOST_LINES], f"and {more} more"])


class CandidateModule:
    """A parsed candidate: its kernels and the names that it binds."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._nodes = tuple(ast.walk(tree))
        decorated = (
            node.name
            for node in self._nodes
            if isinstance(node, ast.FunctionDef) and any(map(_is_jit, node.decorator_list))
        )
        self.kernels = (*decorated, *_kernels_by_call(self._nodes))
        self.own_names = frozenset(
            node.name for node in self._nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        ) | frozenset(
            node.id for node in self._nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )

    def problem_of(self, entries: Sequence[EntryPoint], *, signature: bool) -> ErrorReport | None:
        """Why an entry point cannot be called as the task (and its `signature`) says; `None` if it can or only a run shows it."""
        bindings = {entry: self._binding_of(entry.name) for entry in entries}
        missing = [entry for entry, binding in bindings.items() if binding is None]
        if missing:
            names = ", ".join(f"`{entry.name}`" for entry in missing)
            signatures_of_missing = ", ".join(entry.signature for entry in missing)
            verb = "are" if len(missing) > 1 else "is"
            message = f"{names} {verb} not defined; define {signatures_of_missing}"
            return ErrorReport(kind="missing_entry_point", message=message)
        wrong_lines: dict[str, int] = {}
        for entry, binding in bindings.items() if signature else ():
            if not isinstance(binding, ast.FunctionDef) or binding.args.vararg or binding.args.kwarg:
                continue
            wrong = signatures.signature_error(entry.signature, signatures.definition_parameters(binding))
            if wrong:
                message = f"`{entry.name}`: {wrong}; the signature is {entry.signature}"
                wrong_lines[message] = binding.lineno
        if wrong_lines:
            return ErrorReport(
                kind="signature", message=_lines(wrong_lines), line=next(iter(wrong_lines.values()))
            )
        return None

    def slow_calls(self) -> tuple[str, ...]:
        """Calls that take the interpreter long, as `tl.sort`."""
        names = set()
        for node in self._nodes:
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="tl" | "language" as module), attr=name)):
                    if name in SLOW_IN_INTERPRETER:
                        names.add(f"{module}.{name}")
                case _:
                    pass
        return tuple(sorted(names))

    def _binding_of(self, name: str) -> ast.stmt | None:
        """The last top-level statement that binds `name`; a plain alias is followed to its definition."""
        seen: set[str] = set()
        while name not in seen:
            seen.add(name)
            bindings = [node for node in statements_in(self._tree) if name in _bound_names(node)]
            binding = bindings[-1] if bindings else None
            if not (isinstance(binding, ast.Assign) and isinstance(binding.value, ast.Name)):
                return binding
            name = binding.value.id
        return None


def _bound_names(statement: ast.stmt) -> set[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _is_jit(decorator: ast.expr) -> bool:
    """True for `triton.jit`, `jit` and calls of them."""
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    if isinstance(decorator, ast.Attribute):
        return decorator.attr == "jit"
    return isinstance(decorator, ast.Name) and decorator.id == "jit"


def _kernels_by_call(nodes: tuple[ast.AST, ...]) -> Iterator[str]:
    """Functions made kernels by a plain call: `kernel = triton.jit(function)`."""
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name), *_], value=ast.Call(func=function, args=[_, *_])):
                if _is_jit(function):
                    yield name
            case _:
                pass


def _has_code(source: str) -> bool:
    """True if the text has more than blank lines and comments; text that has no tokens of Python counts as code."""
    silent = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.ENCODING)
    try:
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        return any(token.type not in silent for token in tokens)
    except (tokenize.TokenError, SyntaxError, ValueError):
        return True


def _syntax_trace(error: SyntaxError) -> str:
    text = f"    {error.text.strip()}\n" if error.text else ""
    return f'  File "kernel.py", line {error.lineno}\n{text}{type(error).__name__}: {error.msg}\n'


def _end(kind: str, message: str, line: int | None = None, trace: str = "") -> StaticReport:
    return StaticReport(ErrorReport(kind=kind, message=message, trace=trace, line=line))
