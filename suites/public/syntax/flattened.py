"""Joins definitions of a package into one module, because a reference must not import the package that it is part of."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from suites.public.syntax.outline import Outline
from suites.source.python_source import parse_python

_IMPORT = re.compile(
    r"^(?:from[ ]+[.\w]+[ ]+import[ ]+(?:\([^)]*\)|[^(\n]+)|import[ ]+[^\n]+)$", re.MULTILINE
)
_COMPOUND = re.compile(r"^(?:if|try)\b|^\w+(?:, *\w+)+ *=(?!=)", re.MULTILINE)
_TEXT = re.compile(r"(\"{3}|'{3}).*?\1|#[^\n]*|\"[^\"\n]*\"|'[^'\n]*'", re.DOTALL)
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_READS_FILES = re.compile(r"\b__file__\b|\bopen\(")
_PROVIDED = frozenset({*sys.stdlib_module_names, "torch", "triton", "numpy"})


class NotFlat(Exception):
    """Raised for definitions that one module cannot hold. The message is the end of a sentence that begins with `it`."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A name that an import at the top of a module binds."""

    module: str
    name: str
    """Empty if the name means the module."""
    statement: ast.stmt
    optional: bool
    """True if the import is below `try` or `if`."""


class Module:
    """A module of the package."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.outline = Outline(path.read_text(encoding="utf-8"))
        self._is_package = path.name == "__init__.py"
        self._words: dict[str, frozenset[str]] = {}

    @cached_property
    def imports(self) -> dict[str, Imported]:
        """Imports at the top level, by the name that they bind."""
        if self._has_compounds:
            return dict(self._imports(self._body))
        lines = "\n".join(match[0] for match in _IMPORT.finditer(self.outline.text))
        return dict(self._imports(parse_python(lines).body))

    @cached_property
    def _has_compounds(self) -> bool:
        return _COMPOUND.search(self.outline.text) is not None

    @cached_property
    def _body(self) -> list[ast.stmt]:
        return parse_python(self.outline.text).body

    def _imports(
        self, body: Sequence[ast.stmt], outer: ast.stmt | None = None
    ) -> Iterator[tuple[str, Imported]]:
        """Yield each name that an import binds, with what it imports. Imports inside `try` and `if` are optional.

        `outer` is the statement at the top of the module that an import is in.
        """
        for statement in body:
            if isinstance(statement, ast.ImportFrom):
                module = self._absolute(statement)
                for alias in statement.names:
                    yield (
                        alias.asname or alias.name,
                        Imported(module, alias.name, outer or statement, outer is not None),
                    )
            elif isinstance(statement, ast.Import):
                for alias in statement.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    yield name, Imported(alias.name, "", outer or statement, outer is not None)
            elif isinstance(statement, ast.Try):
                yield from self._imports(statement.body, outer or statement)
            elif isinstance(statement, ast.If):
                yield from self._imports([*statement.body, *statement.orelse], outer or statement)

    def _absolute(self, statement: ast.ImportFrom) -> str:
        if not statement.level:
            return statement.module or ""
        parts = self.name.split(".")
        parts = parts[: len(parts) - statement.level + self._is_package]
        return ".".join([*parts, *([statement.module] if statement.module else [])])

    @cached_property
    def compounds(self) -> dict[str, ast.stmt]:
        """Statements at the top level that bind several names: below `if` or `try`, or in a tuple."""
        return {
            name: statement
            for statement in (self._body if self._has_compounds else ())
            if isinstance(statement, ast.If | ast.Try)
            or (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple))
            for name in _bound(statement)
        }

    def words(self, name: str) -> frozenset[str]:
        """Return the words of a definition, without texts, comments and attributes."""
        if name not in self._words:
            self._words[name] = frozenset(_WORD.findall(_TEXT.sub("", self.outline.pieces[name])))
        return self._words[name]


@dataclass
class PlainPackage:
    """The modules of a package that are plain Python, below `root`."""

    root: Path
    prefixes: tuple[str, ...]
    """Modules outside these packages are not part of it."""
    _modules: dict[str, Module | None] = field(default_factory=dict)

    def module(self, name: str) -> Module | None:
        """Return a module of the package; `None` if there is none of this name."""
        if not name.startswith(self.prefixes):
            return None
        if name not in self._modules:
            base = self.root / name.replace(".", "/")
            path = next(
                (file for file in (base.with_suffix(".py"), base / "__init__.py") if file.is_file()), None
            )
            self._modules[name] = None if path is None else Module(name, path)
        return self._modules[name]

    def flatten(self, wanted: Sequence[tuple[str, str]], text: str) -> str:
        """Return one module with the `wanted` names, pairs of module and name, and all that they use.

        If a name is a module, the result has the attributes of it that `text` names. Raises `NotFlat`, `OSError`, or as
        `parse_python`.
        """
        flat = _Flat(self)
        for module, name in wanted:
            full_name = f"{module}.{name}"
            if self.module(full_name) is not None:
                flat.add_namespace(full_name, name, text)
            else:
                flat.add(module, name, name)
        return "\n".join(["\n".join(flat.imports), "", "", "\n\n\n".join(flat.pieces.values()), ""])


class _Flat:
    """One module, to which definitions are added."""

    def __init__(self, package: PlainPackage) -> None:
        self._package = package
        self._origins: dict[str, tuple[str, str]] = {}
        self.imports: dict[str, None] = {}
        self.pieces: dict[str, str] = {}
        """Definitions by name; what a definition uses at import comes before it."""

    def add(self, module_name: str, name: str, local: str) -> None:
        """Add a name of a module, and all that its definition uses, under the name `local`. A name that is there already stays.

        Raises `NotFlat` if the package has no such definition, if it reads files of the package, or if `local` means something
        else.
        """
        module = self._package.module(module_name)
        if module is None:
            raise NotFlat(f"needs {module_name}")
        if name not in module.outline.pieces:
            if name in module.imports:
                self._add_imported(module, name, local)
            elif name in module.compounds and name == local:
                self._add_compound(module, module.compounds[name])
            else:
                raise NotFlat(f"needs {name} of {module_name}, which is no plain definition")
            return
        piece = module.outline.pieces[name].strip()
        if not self._is_new(local, module_name, piece):
            return
        if _READS_FILES.search(piece):
            raise NotFlat(f"reads files of the package ({name} of {module_name})")
        self._add_words(module, module.words(name) - {name})
        self.pieces[local] = piece if local == name else f"{piece}\n\n\n{local} = {name}"

    def _add_words(self, module: Module, words: Iterable[str]) -> None:
        """Add the names of a module that are among the words of one of its definitions."""
        for word in sorted(words):
            if word in module.outline.pieces or word in module.imports or word in module.compounds:
                self.add(module.name, word, word)

    def _add_compound(self, module: Module, statement: ast.stmt) -> None:
        """Add a statement that binds several names at once, unless all are there.

        Raises `NotFlat` for two definitions of a name.
        """
        names = _bound(statement)
        text = ast.unparse(statement)
        are_new = [self._is_new(name, module.name, text) for name in names]
        if all(are_new):
            self._add_words(module, set(_read(statement)) - set(names))
            self.pieces[min(names)] = text

    def _add_imported(self, module: Module, name: str, local: str) -> None:
        """Add what a module imports under this name: a definition of the package, a whole module of it, or the import itself.

        Raises `NotFlat` for an import from elsewhere that is neither provided nor optional.
        """
        imported = module.imports[name]
        full_name = f"{imported.module}.{imported.name}".removesuffix(".")
        if self._package.module(full_name) is not None:
            self.add_namespace(full_name, local, module.outline.text)
            return
        if self._package.module(imported.module) is not None:
            self.add(imported.module, imported.name, local)
            return
        if imported.module.partition(".")[0] in _PROVIDED or imported.optional:
            self.imports[ast.unparse(imported.statement)] = None
            return
        raise NotFlat(f"needs {imported.module}")

    def add_namespace(self, target: str, local: str, text: str) -> None:
        """Add the module `target` as a value, with the attributes that a text names."""
        if self._is_new(local, target, ""):
            self.imports["import types"] = None
            self.pieces[local] = f"{local} = types.SimpleNamespace()"
        for name in sorted(set(re.findall(rf"\b{local}\.(\w+)", text))):
            attribute = f"{local}.{name}"
            if attribute not in self.pieces:
                self.add(target, name, name)
                self.pieces[attribute] = f"{attribute} = {name}"

    def _is_new(self, local: str, module: str, text: str) -> bool:
        """Note the origin of a name; return whether it is new. Raises `NotFlat` if another definition has the name."""
        is_new = local not in self._origins
        origin, origin_text = self._origins.setdefault(local, (module, text))
        if origin_text != text or (not text and origin != module):
            raise NotFlat(f"needs two definitions of {local}: in {origin} and {module}")
        return is_new


def _bound(statement: ast.stmt) -> list[str]:
    """Return the names that a statement binds, without imports and without names inside functions and classes."""
    names: list[str] = []
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        pending.extend(ast.iter_child_nodes(node))
    return list(dict.fromkeys(names))


def _read(tree: ast.AST) -> Iterator[str]:
    return (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
