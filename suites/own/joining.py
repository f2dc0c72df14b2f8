"""Joins a function and the kernels that it launches from other modules of its package: a candidate is the text of one module."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from suites.errors import BadKernelFile
from suites.public.syntax.outline import definitions
from suites.source.package import Package, absolute_name
from suites.source.python_source import parse_python, source_lines

from .entry import Function, KernelFile, imported_names

_MOST_REEXPORTS = 8


class _Module(msgspec.Struct, frozen=True):
    """A module of the package, and its definitions that a candidate needs."""

    place: Package
    file: KernelFile
    names: list[str]


def join_kernels(file: KernelFile, entry: Function, package: Package) -> tuple[KernelFile, Package]:
    """Return the file with the kernels of other modules that an entry point launches, and the package with these modules.

    Functions of other modules that launch kernels come too, and so do the helpers that their modules define for them. All
    else stays an import, also kernels in Gluon. Raises `BadKernelFile` if one module cannot hold the definitions.
    """
    first = _Module(package, file, [entry.name])
    modules = {package.module: first}
    waiting = [(package.module, entry.name)]
    while waiting:
        module, name = waiting.pop()
        for local in modules[module].file.imported_by_host_code([name]):
            home = _home(modules[module], local)
            if home is None or not _has_launched(home):
                continue
            known_home = modules.setdefault(
                home.place.module, msgspec.structs.replace(home, names=list[str]())
            )
            if home.names[0] not in known_home.names:
                known_home.names.append(home.names[0])
                waiting.append((home.place.module, home.names[0]))
    further = [module for name, module in modules.items() if name != package.module]
    if not further:
        return file, package
    joined_names = {
        (module.place.module, name)
        for module in further
        for name in dict(definitions(list(module.file.parts(module.names)[1])))
    }
    moved: dict[str, str] = {}
    for user in modules.values():
        for local in user.file.imports:
            home = _home(user, local)
            if home is None or (home.place.module, home.names[0]) not in joined_names:
                continue
            if moved.setdefault(local, home.names[0]) != home.names[0]:
                raise _clash(local, file, user)
    kernels = tuple(module.place.module for module in further)
    text = _joined(file, package, further, moved)
    return KernelFile(file.path, text), msgspec.structs.replace(package, kernels=kernels)


def _has_launched(home: _Module) -> bool:
    """Return whether a definition is a Triton kernel, or launches one."""
    file, name = home.file, home.names[0]
    return not file.is_gluon(name) if file.is_kernel(name) else file.launches(name)


def _home(user: _Module, local: str) -> _Module | None:
    """Return the module of the package that defines an imported name; others may only import it from there."""
    place, file, name = user.place, user.file, local
    for _ in range(_MOST_REEXPORTS):
        if name not in file.imports:
            return None
        node, alias = file.imports[name]
        place = msgspec.structs.replace(place, module=absolute_name(node, place.parent))
        if not place.module or not place.file.is_file():
            return None
        file, name = _read(place.file, place.file.stat().st_mtime_ns), alias.name
        if file.defines(name):
            return _Module(place, file, [name])
    return None


@lru_cache(maxsize=64)
def _read(path: Path, _changed_ns: int) -> KernelFile:
    """Return a file as it is since its last change."""
    return KernelFile.read(path)


def _joined(file: KernelFile, package: Package, further: Sequence[_Module], moved: Mapping[str, str]) -> str:
    """Return the file's text with the definitions of other modules below its first imports.

    `moved` has the imported names of these definitions, by the names in their own modules.
    """
    body = parse_python(file.text).body
    defined = {name: ast.dump(node) for name, node in definitions(body)}
    imported = {
        name: line
        for statement in body
        for name, line in _import_lines(statement, package.parent)
        if name not in moved
    }
    imports: dict[str, None] = {}
    pieces: list[str] = []
    for module in reversed(further):
        statements, parts = module.file.parts(module.names)
        if module.place.reads_files("\n".join(parts.values())):
            raise BadKernelFile(
                f"{module.file.path} reads files beside itself for {module.names[0]}; move this into {file.path}"
            )
        for statement, text in parts.items():
            new = {name: ast.dump(node) for name, node in definitions([statement])}
            for name, dump in new.items():
                if name in imported or defined.get(name, dump) != dump:
                    raise _clash(name, file, module)
            if not new.keys() <= defined.keys():
                is_block = isinstance(statement, ast.If | ast.Try)
                pieces.append(_absolute(statement, module.place.parent) if is_block else text)
            defined |= new
        used = {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}
        for statement in statements:
            for name, line in _import_lines(statement, module.place.parent):
                if name.partition(".")[0] not in used or name in moved:
                    continue
                if name in defined or imported.get(name, line) != line:
                    raise _clash(name, file, module)
                if name not in imported:
                    imports[line] = None
                    imported[name] = line
    for local, name in moved.items():
        if local != name and local in defined:
            raise _clash(local, file, further[0])
    aliases = [f"{local} = {name}" for local, name in moved.items() if local != name]
    return _with_parts(file, body, [*imports], [*pieces, *filter(None, ["\n".join(aliases)])], moved)


def _with_parts(
    file: KernelFile,
    body: Sequence[ast.stmt],
    imports: Sequence[str],
    pieces: Sequence[str],
    moved: Collection[str],
) -> str:
    """Return the file's text without the imports of moved names, and with imports and definitions behind its first imports."""
    lines: list[str | None] = [*source_lines(file.text)]
    last = 0
    for place, statement in enumerate(body):
        is_docstring = not place and isinstance(statement, ast.Expr)
        if not (is_docstring or (imported_names(statement) and not dict(definitions([statement])))):
            break
        last = statement.end_lineno or 0
    for statement in body:
        if not isinstance(statement, ast.ImportFrom) or imported_names(statement).isdisjoint(moved):
            continue
        kept = [alias for alias in statement.names if (alias.asname or alias.name) not in moved]
        first, end = statement.lineno - 1, statement.end_lineno or 0
        lines[first:end] = [None] * (end - first)
        if kept:
            lines[first] = ast.unparse(ast.ImportFrom(statement.module, kept, statement.level))
    head, rest = lines[:last], lines[last:]
    joined = [line for line in head if line is not None] + [*imports]
    text = "\n\n\n".join(["\n".join(joined).strip("\n"), *pieces])
    return text + "\n\n\n" + "\n".join(line for line in rest if line is not None).strip("\n") + "\n"


def _import_lines(statement: ast.stmt, parent: str) -> Iterator[tuple[str, str]]:
    """Yield each name that an import binds, with a statement that binds it in any module; `a.b` for `import a.b`.

    For imports below `if` or `try` it is the whole statement.
    """
    match statement:
        case ast.Import(names=aliases):
            for alias in aliases:
                yield alias.asname or alias.name, ast.unparse(ast.Import([alias]))
        case ast.ImportFrom(names=aliases):
            for alias in aliases:
                line = ast.ImportFrom(absolute_name(statement, parent), [alias], 0)
                yield alias.asname or alias.name, ast.unparse(line)
        case ast.If() | ast.Try():
            text = _absolute(statement, parent)
            yield from ((name, text) for name in imported_names(statement))
        case _:
            pass


def _absolute(statement: ast.stmt, parent: str) -> str:
    """Return the text of a statement with absolute names of modules."""
    (copy,) = parse_python(ast.unparse(statement)).body
    for node in ast.walk(copy):
        if isinstance(node, ast.ImportFrom):
            node.module, node.level = absolute_name(node, parent), 0
    return ast.unparse(copy)


def _clash(name: str, file: KernelFile, module: _Module) -> BadKernelFile:
    return BadKernelFile(
        f"{name} is not the same in {file.path} and in {module.file.path}, and a candidate is one module: rename one of them"
    )
