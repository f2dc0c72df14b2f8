"""The text of a file after a kernel replaced the functions of a task; everything else of the file stays."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import chain

from sessions.errors import NotApplicable
from suites.source.python_source import parse_python, source_lines


def merge(
    original: str,
    kernel: str,
    entry_points: Sequence[str],
    *,
    places: Sequence[str] = (),
    is_used_elsewhere: Callable[[str], bool] = lambda _: True,
) -> str:
    """Return the original text with the kernel's definitions.

    Definitions that the kernel has too are removed. All statements of the kernel take the place of the first entry point, or
    of the first of `places`, which the original defines too. Its further imports follow the original's imports. Docstring,
    comments at the top and other functions stay. Helpers that nothing uses any more are removed too, unless another file may
    use them, which `is_used_elsewhere` says.

    Raises `NotApplicable` if the original lacks an entry point, or if what stays uses a helper that the kernel changes.
    """
    before, after = Module(original), Module(kernel)
    missing = [name for name in entry_points if name not in before.defined]
    if missing:
        raise NotApplicable(
            f"the file defines no `{missing[0]}` at its top level; name another file with --file"
        )
    for name in entry_points:
        kept = _parameters(after, name)
        if lost := [parameter for parameter in _parameters(before, name) if parameter not in kept]:
            raise NotApplicable(
                f"`{name}` of the kernel lacks the parameter `{lost[0]}` of the file's; `wavedeck export` writes the kernel"
            )
    replaced = [
        statement
        for statement in before.body
        if (names := set(defined_names(statement))) and names <= after.defined.keys()
    ]
    changed = _changed_names(before, after) - set(entry_points)
    replaced += _orphans(before, after, replaced, changed, is_used_elsewhere)
    staying = [statement for statement in before.body if statement not in replaced]
    _check_uses(before, after, staying, changed)
    place = min(before.lines_of(before.defined[name]).start for name in (*entry_points, *places))
    removed = {number for statement in replaced for number in before.lines_of(statement)}
    imports = [line for line in after.imports if line not in before.imports]
    future = [line for line in imports if line.startswith("from __future__")]
    inserted = {before.after_docstring: ["", *future] if before.docstring is not None and future else future}
    standard = [line for line in imports if line not in future and _is_standard(parse_python(line).body[0])]
    place_of_standard, gap = before.after_standard_imports
    inserted.setdefault(place_of_standard, []).extend([*standard, *gap] if standard else [])
    inserted.setdefault(before.after_imports, []).extend(
        line for line in imports if line not in future and line not in standard
    )
    lines: list[str] = []
    is_gap = False
    for number, line in enumerate([*before.lines, ""], start=1):
        lines += inserted.get(number, [])
        if number == place:
            gap = [""] * (1 if lines[-2:-1] != [""] and lines[-1:] == [""] else 2)
            while lines and not lines[-1]:
                lines.pop()
            lines += [*gap, *after.definition_lines, "", ""]
        if number in removed:
            is_gap = True
            continue
        is_gap = is_gap and not line
        if not (is_gap and lines[-1:] in ([], [""])):
            lines.append(line)
    text = "\n".join(lines).strip("\n") + "\n"
    merged = Module(text)
    if not {name for statement in staying for name in defined_names(statement)} <= merged.defined.keys():
        raise NotApplicable("the file has several statements on one line; merge file and kernel by hand")
    return text.replace("\n", "\r\n") if "\r\n" in original else text


def reached(kernel: str, entry_points: Sequence[str]) -> str:
    """Return the kernel without definitions that nothing reaches from the entry points, and without their imports.

    A statement that does more than define a name stays, and what it uses: it may register a function.
    """
    module = Module(kernel)
    unreached = [statement for statement in module.body if _only_defines(statement)]
    used = set(entry_points).union(
        *(
            used_names(statement)
            for statement in module.body
            if statement not in unreached and not _is_import(statement)
        )
    )
    while more := [statement for statement in unreached if not used.isdisjoint(defined_names(statement))]:
        unreached = [statement for statement in unreached if statement not in more]
        used |= set().union(*map(used_names, more))
    needless = set().union(*map(used_names, unreached)) - used
    imports = [
        statement
        for statement in module.body
        if _is_import(statement) and (names := set(_imported(statement))) and names <= needless
    ]
    removed = [*unreached, *imports]
    text = module.without(removed)
    kept = [ast.dump(statement) for statement in module.body if statement not in removed]
    # Several statements may be on one line.
    return text if kept == [ast.dump(statement) for statement in Module(text).body] else kernel


def changed_definition(original: str, *texts: str) -> str:
    """Return the first name that `original` defines and none of the texts defines in the same way; empty if there is none.

    Comments, layout and further definitions of the texts make no difference. Raises `SyntaxError`.
    """
    before, now = Module(original), list(map(Module, texts))
    return next(
        (name for name in before.defined if not any(module.has_same(name, before) for module in now)), ""
    )


def uses(text: str, name: str) -> bool:
    """Return whether the code of a text has a name, or an attribute of this name. Raises as `parse_python`."""
    return any(
        name in (getattr(node, "id", ""), getattr(node, "attr", "")) for node in ast.walk(parse_python(text))
    )


class Module:
    """The statements at the top of a Python file."""

    def __init__(self, text: str) -> None:
        self.lines = source_lines(text)
        body = parse_python(text).body
        self.docstring = body[0] if body and ast.get_docstring(ast.Module(body, [])) is not None else None
        self.body = body[1:] if self.docstring is not None else body
        self.defined: dict[str, ast.stmt] = {}
        """The last statement that defines each name, without imports."""
        for statement in self.body:
            self.defined |= dict.fromkeys(defined_names(statement), statement)
        self.imports = [self.text_of(statement) for statement in self.body if _is_import(statement)]
        self.imported = set(chain.from_iterable(map(_imported, self.body)))
        """Names that these imports bind."""

    def has_same(self, name: str, module: Module) -> bool:
        """Return whether both define a name in the same way."""
        return name in self.defined and ast.dump(self.defined[name]) == ast.dump(module.defined[name])

    def lines_of(self, statement: ast.stmt) -> range:
        """Return the numbers of a statement's lines, with its decorators and the comment right above it."""
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        while statement is not self.body[0] and self.lines[first - 2].startswith("#"):
            first -= 1
        return range(first, (statement.end_lineno or statement.lineno) + 1)

    def text_of(self, statement: ast.stmt) -> str:
        """Return the text of these lines."""
        numbers = self.lines_of(statement)
        return "\n".join(self.lines[numbers.start - 1 : numbers.stop - 1])

    def without(self, statements: Sequence[ast.stmt]) -> str:
        """Return the whole text without these statements, and without the empty lines above them."""
        lines = list(self.lines)
        for statement in reversed([statement for statement in self.body if statement in statements]):
            numbers = self.lines_of(statement)
            first = numbers.start - 1
            while first and not lines[first - 1]:
                first -= 1
            del lines[first : numbers.stop - 1]
        return "\n".join([*lines, ""])

    @property
    def definition_lines(self) -> list[str]:
        """The lines without docstring and imports."""
        rest = [statement for statement in self.body if not _is_import(statement)]
        numbers = range(self.lines_of(rest[0]).start, self.lines_of(rest[-1]).stop) if rest else range(0)
        imported = {
            number for statement in self.body if _is_import(statement) for number in self.lines_of(statement)
        }
        return [self.lines[number - 1] for number in numbers if number not in imported]

    @property
    def after_docstring(self) -> int:
        """The number of the first line behind the docstring and the comments at the top."""
        if self.docstring is not None:
            return (self.docstring.end_lineno or 0) + 1
        return self.lines_of(self.body[0]).start if self.body else 1

    @property
    def after_imports(self) -> int:
        """The number of the first line behind the imports at the top."""
        ends = [statement.end_lineno or 0 for statement in self.body if _is_import(statement)]
        return max(ends) + 1 if ends else self.after_docstring

    @property
    def after_standard_imports(self) -> tuple[int, list[str]]:
        """The number of the line where an import of the standard library belongs, and the lines after it.

        If the file has such imports below others, this is the end of all imports.
        """
        imports = [
            statement
            for statement in self.body
            if _is_import(statement) and getattr(statement, "module", "") != "__future__"
        ]
        standard = [statement for statement in imports if _is_standard(statement)]
        if not imports or imports[: len(standard)] != standard:
            return self.after_imports, []
        if standard:
            return (standard[-1].end_lineno or 0) + 1, []
        return self.lines_of(imports[0]).start, [""]


def _parameters(module: Module, name: str) -> list[str]:
    """Return the parameters of a function; empty if the module does not define it as a function."""
    definition = module.defined.get(name)
    if not isinstance(definition, ast.FunctionDef):
        return []
    arguments = definition.args
    return [item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _is_import(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _is_standard(statement: ast.stmt) -> bool:
    """Return whether a statement imports modules of the standard library."""
    match statement:
        case ast.Import(names=names):
            modules = [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), level=0):
            modules = [module]
        case _:
            return False
    return all(module.partition(".")[0] in sys.stdlib_module_names for module in modules)


def _only_defines(statement: ast.stmt) -> bool:
    """Return whether a statement defines a name and does nothing else, as far as its text says.

    Decorators and calls of Triton and of `functools` do nothing else.
    """
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            effects: Sequence[ast.AST] = statement.decorator_list
        case _:
            effects = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return any(defined_names(statement)) and all(
        ast.unparse(effect).partition(".")[0] in ("triton", "tl", "gluon", "functools") for effect in effects
    )


def defined_names(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement at the top of a file defines, without imports."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case _:
            pass


def _orphans(
    before: Module,
    after: Module,
    replaced: Sequence[ast.stmt],
    changed: Set[str],
    is_used_elsewhere: Callable[[str], bool],
) -> list[ast.stmt]:
    """Return the helpers of replaced statements that nothing else uses.

    A helper is a Triton kernel, has a private name, or uses a name that the kernel changes.
    """
    orphans: list[ast.stmt] = []
    while True:
        gone = [*replaced, *orphans]
        used_by_gone = set().union(*map(used_names, gone))
        more = [
            statement
            for statement in before.body
            if statement not in gone
            and (names := set(defined_names(statement)))
            and names & used_by_gone
            and (
                any("jit" in ast.dump(decorator) for decorator in getattr(statement, "decorator_list", ()))
                or all(name.startswith("_") for name in names)
                or used_names(statement) & changed
            )
            and not any(
                names & used_names(other_statement)
                for other_statement in (*before.body, *after.body)
                if other_statement not in gone and other_statement is not statement
            )
            and not any(map(is_used_elsewhere, names))
        ]
        if not more:
            return orphans
        orphans += more


def _changed_names(before: Module, after: Module) -> set[str]:
    """Return the names that both define, in different ways."""
    return {name for name in before.defined.keys() & after.defined.keys() if not before.has_same(name, after)}


def used_names(statement: ast.stmt) -> set[str]:
    """Return the names in a statement."""
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _check_uses(before: Module, after: Module, staying: Sequence[ast.stmt], changed: Set[str]) -> None:
    """Raise `NotApplicable` if a statement that stays uses a name that the kernel changes."""
    for statement in staying:
        used = used_names(statement) & changed
        if used:
            raise NotApplicable(
                f"line {statement.lineno} of the file uses `{min(used)}`, which the kernel changes; "
                "merge them by hand, `wavedeck export` writes the kernel"
            )
    clash = sorted((before.imported & after.defined.keys()) | (after.imported & before.defined.keys()))
    if clash:
        raise NotApplicable(
            f"`{clash[0]}` is an import in one of the file and the kernel, and a definition in the other; merge them by hand"
        )


def _imported(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        for alias in statement.names:
            yield (alias.asname or alias.name).partition(".")[0]
