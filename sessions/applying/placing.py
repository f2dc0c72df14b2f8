"""Puts each definition of a kernel back into the file that it came from, if the kernel's text holds those of several files."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from sessions.errors import NotApplicable
from suites.source.package import Package, absolute_name
from suites.source.python_source import decode_python, source_lines

from .merging import FileModule, defined_names, merge, reached, used_names


class HomeFile(msgspec.Struct, frozen=True):
    """A file that definitions of a kernel came from."""

    path: str
    text: str
    package: Package | None = None
    """Its module; needed only beside other files."""
    encoding: str = "utf-8"

    def encoded(self, text: str) -> bytes:
        """Return a new text of the file as bytes. Raises `NotApplicable` if the file's encoding lacks a character."""
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise NotApplicable(
                f"{self.path} is in {self.encoding}, which has no {text[error.start]!r} of the kernel; change the kernel or the file"
            ) from error


def read_home(path: str, data: bytes, package: Package | None = None) -> HomeFile:
    """Return a file of these bytes. Raises `NotApplicable` if they are no text of the encoding that the file names."""
    try:
        text, encoding = decode_python(data)
    except (SyntaxError, LookupError, ValueError) as error:
        raise NotApplicable(
            f"{path} cannot be read as Python: {error}; correct its encoding or its coding line"
        ) from error
    return HomeFile(path, text, package, encoding)


def merge_files(
    homes: Sequence[HomeFile],
    kernel: str,
    entry_points: Sequence[str],
    *,
    is_used_elsewhere: Callable[[str], bool] = lambda _: True,
    users: Callable[[str], Sequence[str]] = lambda _: (),
) -> dict[str, str]:
    """Return the texts that change, by path; the first file has the entry points.

    `is_used_elsewhere` is that of `merge`; `users` gives further files with code that uses a name.
    Definitions that nothing reaches from the entry points are left out.
    A new definition goes into the file with the definitions that use it, else into the first file. Raises `NotApplicable` as
    `merge`, and if a definition cannot be placed, or changes a kernel that further files use.
    """

    def is_named_beside(path: str, name: str) -> bool:
        texts = (home.text for home in homes if home.path != path)
        return is_used_elsewhere(name) or any(re.search(rf"\b{name}\b", text) for text in texts)

    first, *further = homes
    kernel = reached(kernel, entry_points)
    if further:
        kernel = without_aliases(kernel, homes)
    after = FileModule(kernel)
    modules = {home.path: FileModule(home.text, home.path) for home in homes}
    if further:
        _check_blocks(after, modules.values())
    owners = _owners(after, modules)
    texts: dict[str, str] = {}
    for home in homes:
        before = modules[home.path]
        own = [name for name, path in owners.items() if path == home.path]
        changed = [name for name in own if not before.has_same(name, after)]
        for name in changed:
            if name in before.defined and name not in entry_points and (files := users(name)):
                raise NotApplicable(
                    f"`{name}` of {home.path} changes, and {files[0]} uses it too, which was not judged; merge them by hand"
                )
        if changed:
            texts[home.path] = merge(
                home.text,
                _part(after, home, own, owners, homes) if further else kernel,
                entry_points if home is first else (),
                is_used_elsewhere=partial(is_named_beside, home.path),
            )
    return {home.path: texts[home.path] for home in homes if texts.get(home.path, home.text) != home.text}


def without_aliases(text: str, homes: Sequence[HomeFile]) -> str:
    """Return a text without assignments `local = name` for what a file imports as `from MODULE import name as local`."""
    imported = {
        (alias.asname, alias.name)
        for home in homes
        for statement in FileModule(home.text, home.path).body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    lines = source_lines(text)
    for statement in FileModule(text).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=local)], value=ast.Name(id=name)) if (
                local,
                name,
            ) in imported:
                lines[statement.lineno - 1] = ""
            case _:
                pass
    return "\n".join([*lines, ""])


def _check_blocks(after: FileModule, modules: Iterable[FileModule]) -> None:
    """Raise `NotApplicable` if a statement of the kernel that defines no name is in no file."""
    dumps = {dump for module in modules for dump in module.dumps.values()}
    for statement in after.body:
        is_import = isinstance(statement, ast.Import | ast.ImportFrom)
        if not is_import and not [*defined_names(statement)] and after.dumps[statement] not in dumps:
            raise NotApplicable(
                f"line {statement.lineno} of the kernel defines no name, so its file is not known; merge them by hand"
            )


def _owners(after: FileModule, modules: Mapping[str, FileModule]) -> dict[str, str]:
    """Return the file of each name that the kernel defines."""
    first, *further = modules
    owners = {
        name: path
        for name in after.defined
        if (path := next((path for path, module in modules.items() if name in module.defined), ""))
    }
    waiting = [name for name, path in owners.items() if path in further]
    while waiting:
        user = waiting.pop()
        for name in used_names(after.defined[user]) & after.defined.keys():
            if owners.get(name, owners[user]) != owners[user] and name not in modules[owners[user]].defined:
                if owners[name] == first or not any(name in module.defined for module in modules.values()):
                    raise NotApplicable(
                        f"`{user}` of {owners[user]} uses `{name}` of {owners[name]}; merge them by hand"
                    )
            elif name not in owners:
                owners[name] = owners[user]
                waiting.append(name)
    return {name: owners.get(name, first) for name in after.defined}


def _part(
    after: FileModule,
    home: HomeFile,
    own: Sequence[str],
    owners: Mapping[str, str],
    homes: Sequence[HomeFile],
) -> str:
    """Return the kernel's definitions of one file, with the imports that they need and the file lacks."""
    statements = [statement for statement in after.body if not set(defined_names(statement)).isdisjoint(own)]
    used = {name for statement in statements for name in used_names(statement)}
    imports = dict(_imports(FileModule(home.text).body, home.package))
    lines = []
    for name, line in _imports(after.body, homes[0].package):
        if name.partition(".")[0] in used and imports.get(name) != line:
            if name in imports:
                raise NotApplicable(
                    f"`{name}` is another import in {home.path} and in the kernel; merge them by hand"
                )
            lines.append(line)
    here = FileModule(home.text).defined.keys() | imports.keys()
    for name in sorted(used & owners.keys() - here):
        if owners[name] != home.path:
            package = next(origin.package for origin in homes if origin.path == owners[name])
            lines.append(f"from {package.module if package is not None else ''} import {name}")
    return "\n".join([*lines, "\n\n", "\n\n\n".join(map(after.text_of, statements)), ""])


def _imports(body: Sequence[ast.stmt], package: Package | None) -> list[tuple[str, str]]:
    """Return each imported name with a statement that binds it in any module; `a.b` for `import a.b`."""
    parent = package.parent if package is not None else ""
    bindings = []
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            for alias in statement.names:
                line: ast.stmt = ast.Import([alias])
                if isinstance(statement, ast.ImportFrom):
                    line = ast.ImportFrom(absolute_name(statement, parent), [alias], 0)
                bindings.append((alias.asname or alias.name, ast.unparse(line)))
    return bindings
