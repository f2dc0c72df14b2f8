"""The text of a file after a kernel replaced the functions of a task; every other character of the file stays."""

from __future__ import annotations

import ast
import builtins
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import chain

from sessions.errors import NotApplicable
from suites.source.python_source import parse_python, source_rows

_LOOKUPS = {"globals", "locals", "vars", "getattr", "eval", "exec", "modules", "__import__", "import_module"}
"""Words of code that may find a definition by a text."""
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BY_HAND = "merge them by hand, `wavedeck export` writes the kernel"


def merge(
    original: str,
    kernel: str,
    entry_points: Sequence[str],
    *,
    is_used_elsewhere: Callable[[str], bool] = lambda _: True,
) -> str:
    """Return the original text with the kernel's definitions.

    A definition that the kernel changes is replaced at its place. A new one comes above the next changed one, an import
    behind the imports. Helpers that nothing names any more are removed, unless another file may use them, which
    `is_used_elsewhere` says. All other characters stay.

    Raises `NotApplicable` if the original lacks an entry point, or if what stays uses a name that the kernel changes.
    """
    before, after = FileModule(original, "the file"), FileModule(kernel)
    _check_entry_points(before, after, entry_points)
    old_dumps = {*before.dumps.values()}
    new = [node for node in after.body if not _is_import(node) and after.dumps[node] not in old_dumps]
    changed = {name for name in before.defined if after.defined.get(name) in new}
    bound = set().union(*map(_bound_names, after.body))
    replaced = [
        node
        for node in dict.fromkeys(before.defined.values())
        if (names := {*defined_names(node)}) & changed
        and _bound_names(node) <= bound
        and {*map(_condition, map(after.defined.get, names))} == {_condition(node)}
    ]
    if not replaced:
        raise NotApplicable(f"the kernel changes no definition of the file; {_BY_HAND}")
    changed -= {*entry_points}
    gone = [*replaced, *_orphans(before, after, replaced, new, changed, is_used_elsewhere)]
    staying = [node for node in before.body if node not in gone]
    _check_staying(before, after, staying, new, changed)
    imports = _missing_imports(before, after)
    above = _definitions_above(before, after, replaced, new)
    for place, text in _imports_above(before, imports, min(above)):
        above[place] = text + above.get(place, "")
    merged = FileModule(before.without(gone, above), "the merged file")
    fresh, added = [after.dumps[node] for node in new], FileModule("\n".join(imports)).dumps.values()
    if Counter(merged.dumps.values()) != Counter([*(before.dumps[node] for node in staying), *fresh, *added]):
        raise NotApplicable(f"the file or the kernel has several statements on one line; {_BY_HAND}")
    _check_order(merged, fresh)
    return "".join(merged.rows)


def _check_entry_points(before: FileModule, after: FileModule, names: Sequence[str]) -> None:
    for name in names:
        if _condition(before.defined.get(name)) != "":
            raise NotApplicable(
                f"the file defines no `{name}` at its top level; name another file with --file"
            )
        kept = _outline(after.defined.get(name))
        if lost := [part for part in _outline(before.defined[name]) if part not in kept]:
            raise NotApplicable(
                f"`{name}` of the kernel lacks the {lost[0]} of the file's; `wavedeck export` writes the kernel"
            )


def _missing_imports(before: FileModule, after: FileModule) -> list[str]:
    """Return the kernel's imports that the file lacks. Raises `NotApplicable` if the file has others of the same names."""
    running = [node for node in before.body if "TYPE_CHECKING" not in used_names(node)]
    present = {*chain.from_iterable(map(_bindings, running))}
    texts = []
    for node in after.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and (lacking := {*_bindings(node)} - present):
            if clashing := sorted(name for name, _ in lacking if name == "*" or name in dict(present)):
                raise NotApplicable(
                    f"`{clashing[0]}` is another import in the file and in the kernel; {_BY_HAND}"
                )
            names = [alias for alias in node.names if (alias.asname or alias.name) in dict(lacking)]
            is_whole, node.names = len(names) == len(node.names), names
            texts.append(after.text_of(node) if is_whole else ast.unparse(node))
    return texts


def _definitions_above(
    before: FileModule, after: FileModule, replaced: Sequence[ast.stmt], new: Sequence[ast.stmt]
) -> dict[int, str]:
    """Return the texts of new statements, by the number of the file's line that follows them.

    The comment above a replaced statement stays if the kernel has none there.
    """
    starts = {before.lines_of(node).start: node for node in replaced}
    place = max(starts)
    places: dict[int, list[ast.stmt]] = {}
    for node in reversed(new):
        names = {*defined_names(node)}
        own = [start for start, old in starts.items() if not names.isdisjoint(defined_names(old))]
        place = min([place, *own])
        places.setdefault(min(own, default=place), []).insert(0, node)
    above = {}
    for place, nodes in places.items():
        last = before.lines_of(starts[place]).stop - 2
        text = "\x0c" * before.lines[place - 1].startswith("\x0c")
        for node in nodes:
            if node is not nodes[0]:
                text += before.end * (3 if after.is_blank(after.lines_of(node).start - 1) else 1)
            old = [before.defined[name] for name in defined_names(node) if name in before.defined]
            comment = before.comment_of(old[0]) if old and not after.comment_of(node) else []
            text += before.end.join([*comment, *after.text_of(node).split("\n")])
        above[place] = text + before.rows[last][len(before.lines[last]) :]
    return above


def _imports_above(module: FileModule, imports: Sequence[str], above: int) -> Iterator[tuple[int, str]]:
    """Yield the texts of imports, the last one first, each with the number of the line that follows it; `above` a line."""
    present = [node for node in module.body if _is_import(node) and node.lineno < above]
    future = [text for text in imports if text.startswith("from __future__")]
    top = module.after_docstring
    if imports and not present and module.docstring is None:
        yield top, module.end * 2
    for text in (*(text for text in reversed(imports) if text not in future), *future):
        like = present
        if _is_standard(parse_python(text).body[0]):
            like = [node for node in present if _is_standard(node)] or present
        place = max((node.end_lineno or 0 for node in like), default=top - 1) + 1
        yield top if text in future else place, text.replace("\n", module.end) + module.end
    if (future or (imports and not present)) and module.docstring is not None:
        yield top, module.end


def _check_staying(
    before: FileModule,
    after: FileModule,
    staying: Sequence[ast.stmt],
    new: Sequence[ast.stmt],
    changed: Set[str],
) -> None:
    """Raise `NotApplicable` if a statement that stays uses or defines a name that the kernel changes."""
    names = {*chain.from_iterable(map(_bound_names, new))}
    anew = (names | after.imported) - before.defined.keys() - before.imported
    is_open = any(name == "*" for node in staying for name, _ in _bindings(node))
    changed = changed | (anew if is_open else anew & {*dir(builtins)})
    judged = {*after.dumps.values()}
    for node in staying:
        used = used_names(node)
        if before.dumps[node] in judged or _is_of_file(node):
            continue
        defined = set() if "overload" in used else _bound_names(node) & names
        if used & changed or defined:
            raise NotApplicable(
                f"line {node.lineno} of the file uses `{min(used & changed | defined)}`, which the kernel changes; {_BY_HAND}"
            )
    clash = sorted((before.imported & after.defined.keys()) | (after.imported & before.defined.keys()))
    if clash:
        raise NotApplicable(
            f"`{clash[0]}` is an import in one of the file and the kernel, and a definition in the other; {_BY_HAND}"
        )


def _check_order(merged: FileModule, new: Sequence[str]) -> None:
    """Raise `NotApplicable` if a new statement, given as its dump, needs a name above the definition of the name."""
    lines: dict[str, int] = {}
    for node in merged.body:
        lines = dict.fromkeys(_bound_names(node), node.lineno) | lines
    for node in merged.body:
        parts = getattr(node, "decorator_list", [node]) if merged.dumps[node] in new else []
        if late := [name for part in parts for name in used_names(part) if lines.get(name, 0) > node.lineno]:
            raise NotApplicable(f"the kernel needs `{late[0]}` above its place in the file; {_BY_HAND}")


def reached(kernel: str, entry_points: Sequence[str]) -> str:
    """Return the kernel without definitions that nothing reaches from the entry points, and without their imports.

    A statement that does more than define a name stays, and what it uses: it may register a function. `__all__` and a block
    for `__main__` are the file's own, so the kernel's are left out.
    """
    module = FileModule(kernel)
    listed = [node for node in module.body if _is_of_file(node)]
    unreached = [node for node in module.body if _only_defines(node) and node not in listed]
    roots = [node for node in module.body if node not in (*unreached, *listed) and not _is_import(node)]
    used = set(entry_points).union(*map(used_names, roots))
    while more := [node for node in unreached if not used.isdisjoint(defined_names(node))]:
        unreached = [node for node in unreached if node not in more]
        used |= set().union(*map(used_names, more))
    needless = set().union(*map(used_names, unreached)) - used
    imports = [node for node in module.body if _is_import(node) and _bound_names(node) <= needless]
    removed = [*unreached, *listed, *imports]
    text = module.without(removed)
    kept = [module.dumps[node] for node in module.body if node not in removed]
    # Several statements may be on one line.
    return text if kept == [*FileModule(text).dumps.values()] else kernel


def changed_definition(original: str, homes: Mapping[str, str]) -> str:
    """Return the first name that `original` defines and no text of a path defines in the same way; empty if there is none.

    Comments, layout and further definitions of the texts make no difference. Raises `NotApplicable` for a text that is no Python.
    """
    before, now = FileModule(original), [FileModule(text, path) for path, text in homes.items()]
    return next(
        (name for name in before.defined if not any(module.has_same(name, before) for module in now)), ""
    )


def uses(text: str, name: str) -> bool:
    """Return whether the code of a text uses a name that it imports, or an attribute of this name. Raises as `parse_python`."""
    nodes = [*ast.walk(parse_python(text))]
    local = {
        alias.asname or name
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name in (name, "*")
    }
    return any(getattr(node, "id", "") in local or getattr(node, "attr", "") == name for node in nodes)


class FileModule:
    """The statements at the top of a Python file."""

    def __init__(self, text: str, where: str = "the kernel") -> None:
        """Raises `NotApplicable` with `where`, the name of the text, if it is no Python."""
        self.rows = source_rows(text)
        self.lines = [row.rstrip("\r\n") for row in self.rows]
        ends = [row[len(line) :] for row, line in zip(self.rows, self.lines, strict=True)]
        self.end = Counter([end for end in ends if end] or ["\n"]).most_common(1)[0][0]
        """The line end of most lines."""
        try:
            body = parse_python(text, where).body
            dumps = {node: ast.dump(node) for node in body}
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            why = str(error) or "it nests too deeply"
            raise NotApplicable(
                f"{where} is no Python ({why}); merge by hand, or name another file"
            ) from error
        self.docstring = body[0] if body and ast.get_docstring(ast.Module(body, [])) is not None else None
        self.body = body[1:] if self.docstring is not None else body
        self.dumps = {node: dumps[node] for node in self.body}
        """Each statement as a text that has neither comments nor layout."""
        self.defined: dict[str, ast.stmt] = {}
        """The last statement that defines each name, without imports."""
        for statement in self.body:
            self.defined |= dict.fromkeys(defined_names(statement), statement)
        self.imported = {name for node in self.body if _is_import(node) for name in _bound_names(node)}
        """Names that these imports bind."""

    def has_same(self, name: str, module: FileModule) -> bool:
        """Return whether both define a name in the same way."""
        return name in self.defined and self.dumps[self.defined[name]] == module.dumps[module.defined[name]]

    def is_blank(self, number: int) -> bool:
        """Return whether a line of this number is there and empty. A form feed is a mark of the author."""
        return number > 0 and not self.lines[number - 1].strip(" \t")

    def lines_of(self, statement: ast.stmt) -> range:
        """Return the numbers of a statement's lines, with its decorators and the comment right above it."""
        first = _first_line(statement)
        while first > 1 and statement is not self.body[0] and self.lines[first - 2].startswith("#"):
            first -= 1
        return range(first, (statement.end_lineno or statement.lineno) + 1)

    def text_of(self, statement: ast.stmt) -> str:
        """Return the text of these lines; without comments if other statements are on them."""
        numbers = self.lines_of(statement)
        if any(node is not statement and numbers.start <= node.lineno < numbers.stop for node in self.body):
            return ast.unparse(statement)
        return "\n".join(self.lines[numbers.start - 1 : numbers.stop - 1])

    def comment_of(self, statement: ast.stmt) -> list[str]:
        """Return the lines of the comment right above a statement."""
        return self.lines[self.lines_of(statement).start - 1 : _first_line(statement) - 1]

    def without(self, statements: Sequence[ast.stmt], above: Mapping[int, str] | None = None) -> str:
        """Return the text without these statements, with further texts `above` the lines of these numbers.

        The empty lines above a statement go with it, unless a text takes its place.
        """
        rows, above = [*self.rows, ""], above or {}
        removed = {number for node in statements for number in self.lines_of(node)}
        for start in [self.lines_of(node).start for node in statements]:
            while start not in above and start - 1 not in removed and self.is_blank(start - 1):
                start -= 1
                removed.add(start)
        return "".join(
            above.get(number, "") + row * (number not in removed) for number, row in enumerate(rows, 1)
        )

    @property
    def after_docstring(self) -> int:
        """The number of the first line behind the docstring and the comments at the top."""
        if self.docstring is not None:
            return (self.docstring.end_lineno or 0) + 1
        return self.lines_of(self.body[0]).start if self.body else 1


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _condition(statement: ast.stmt | None) -> str | None:
    """Return the condition under which a statement defines its names; `None` without a statement."""
    return ast.dump(statement.test) if isinstance(statement, ast.If) else None if statement is None else ""


def _outline(definition: ast.stmt | None) -> list[str]:
    """Return the parameters and decorators of a function; empty if it is none."""
    if not isinstance(definition, ast.FunctionDef):
        return []
    arguments = definition.args
    parameters = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    decorators = [f"decorator `@{ast.unparse(node)}`" for node in definition.decorator_list]
    return [*(f"parameter `{parameter.arg}`" for parameter in parameters), *decorators]


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

    Decorators and calls of Triton, `functools` and `typing` do nothing else.
    """
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            effects: Sequence[ast.AST] = statement.decorator_list
        case _:
            effects = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return any(defined_names(statement)) and all(
        next(
            (node.id for node in ast.walk(getattr(effect, "func", effect)) if isinstance(node, ast.Name)), ""
        )
        in ("triton", "tl", "gluon", "functools", "typing", "overload")
        for effect in effects
    )


def defined_names(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement at the top of a file defines, also under a condition, but without imports."""
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.If(body=body, orelse=[]):
            yield from chain.from_iterable(map(defined_names, body))
        case _:
            pass


def _orphans(
    before: FileModule,
    after: FileModule,
    replaced: Sequence[ast.stmt],
    new: Sequence[ast.stmt],
    changed: Set[str],
    is_used_elsewhere: Callable[[str], bool],
) -> list[ast.stmt]:
    """Return the helpers of replaced statements that nothing else names, be it in a text or a comment.

    A helper is a Triton kernel, has a private name, or uses a name that the kernel changes.
    """
    orphans: list[ast.stmt] = []
    words = _words("\n".join([*before.lines, *map(after.text_of, new)]))
    while True:
        gone = [*replaced, *orphans]
        rest = words - Counter(chain.from_iterable(_words(before.text_of(node)).elements() for node in gone))
        used_by_gone = set().union(*map(used_names, gone))
        more = [
            statement
            for statement in before.body
            if statement not in gone
            and _only_defines(statement)
            and (names := set(defined_names(statement)))
            and names & used_by_gone
            and (
                any("jit" in ast.dump(decorator) for decorator in getattr(statement, "decorator_list", ()))
                or all(name.startswith("_") for name in names)
                or used_names(statement) & changed
            )
            and not names & (rest - _words(before.text_of(statement))).keys()
            and not any(map(is_used_elsewhere, names))
        ]
        if not more or not rest.keys().isdisjoint(_LOOKUPS):
            return orphans
        orphans += more


def _words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", unicodedata.normalize("NFKC", text)))


def used_names(statement: ast.AST) -> set[str]:
    """Return the names in a statement; with `globals()` and the like, also its texts."""
    nodes = [*ast.walk(statement)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    if not names.isdisjoint(_LOOKUPS):
        names |= {
            node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
    return names


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement that are in no function, class or comprehension of it, and these themselves."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        yield (node := waiting.pop())
        if not isinstance(
            node, (*_SCOPES, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        ):
            waiting += ast.iter_child_nodes(node)


def _bindings(statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the names that a statement imports, each with the full name of the object; `a.b` for `import a.b`."""
    for node in _own_nodes(statement):
        if isinstance(node, ast.Import | ast.ImportFrom):
            origin = f"{'.' * node.level}{node.module or ''}." if isinstance(node, ast.ImportFrom) else ""
            yield from ((alias.asname or alias.name, origin + alias.name) for alias in node.names)


def _bound_names(statement: ast.stmt) -> set[str]:
    """Return all names that a statement defines, also under a condition, and those that it imports."""
    nodes = [*_own_nodes(statement)]
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    scopes = {node.name for node in nodes if isinstance(node, _SCOPES)}
    return stored | scopes | {name.partition(".")[0] for name, _ in _bindings(statement)}


def _is_of_file(statement: ast.stmt) -> bool:
    """Return whether a statement is about the whole file: `__all__`, which only lists names, or a block for `__main__`."""
    if isinstance(statement, _SCOPES):
        return False
    is_block = isinstance(statement, ast.If) and "__name__" in used_names(statement.test)
    return is_block or "__all__" in used_names(statement)
