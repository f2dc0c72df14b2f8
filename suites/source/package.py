"""
The Python package that an own kernel lives in: found from the kernel's file, and named by `[package]` in a `task.toml`.

    found = find_package(Path("repo/src/ops/softmax.py"))
    found.package             Package(root="/home/me/repo/src", module="ops.softmax")
    found.reason              "the file imports `ops.utils`"
    found.package.imports(source)    {"ops.utils": ("cfg",)}: what a source imports from the root
    found.package.is_needed(source)  False if the file works without its package: then a task needs no `[package]`

A task that is written for the file gets `[package]` with these two keys, `root` and `module`. No code of the package runs here.
"""

from __future__ import annotations

import ast
import keyword
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

import msgspec

from suites.privacy import holds_key
from suites.source.python_source import parse_python

_ROOMS = ("tui", "engine", "sessions", "harness", "suites")
_TAKEN = frozenset({*sys.stdlib_module_names, *_ROOMS, "torch", "triton", "numpy"})
"""Names that are loaded in a worker before a package is imported."""
_OURS = frozenset(Path(__file__).resolve().parents[2] / room for room in _ROOMS)
"""Folders of this project, which hold the answers of built-in tasks."""
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*=")
_NOT_OF_PACKAGES = ("TRITON_", "TORCH", "PYTHON", "PYTORCH_", "LD_", "CUDA_", "HIP_", "WAVEDECK_")
"""Variables that change what the judge compiles and runs."""
_RELATIVE = re.compile(r"from\s*\.+\s*((?!import\b)[\w.]+)?")
_DATA_WORDS = ("__file__", "importlib.resources", "get_data")


class Package(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The package of a task's entry point: a candidate replaces the module `module` of it."""

    root: str
    """Folder that Python imports the package from; in a `task.toml` it may be relative to the task's folder."""
    module: str
    """Dotted name of the module, such as `ops.softmax`."""
    environment: tuple[str, ...] = ()
    """Variables that candidates see besides the judge's own, as `NAME=VALUE`."""
    kernels: tuple[str, ...] = ()
    """Modules of the root that define kernels which `module` launches: the text of a candidate has these definitions too."""

    @property
    def file(self) -> Path:
        """The module's file; the file may be missing."""
        base = Path(self.root, *self.module.split("."))
        inside = base / "__init__.py"
        return inside if inside.is_file() else base.with_name(f"{base.name}.py")

    @property
    def variables(self) -> dict[str, str]:
        """The values of `environment` by name."""
        return dict(variable.split("=", 1) for variable in self.environment)

    @property
    def parent(self) -> str:
        """Name of the package that relative imports of the module begin at; empty for a module of no package."""
        return self.module if self.file.name == "__init__.py" else self.module.rpartition(".")[0]

    def view(self, task_folder: Path) -> PackageView:
        """Return the folders of the package and of PYTHONPATH that the workers of a task see now."""
        on_path = [folder for folder in _python_path() if folder.is_dir() and not _is_shared(folder)]
        folders = [Path(self.root), *(on_path if Path(self.root) in on_path else ())]
        return PackageView(self, tuple(map(str, dict.fromkeys(folders))), str(task_folder))

    def file_of(self, module: str) -> Path | None:
        """The file of a module or package under the root; the folder itself for a package without `__init__.py`."""
        base = Path(self.root, *module.split("."))
        files = (base / "__init__.py", base.with_name(f"{base.name}.py"))
        return next((file for file in files if file.is_file()), base if base.is_dir() else None)

    def imports(self, source: str) -> dict[str, tuple[str, ...]]:
        """Modules of the root that a source imports, with the names that it takes from them. Raises as `parse_python`."""
        imported: dict[str, tuple[str, ...]] = {}
        for module, names in _imported(parse_python(source), self.parent):
            inside = [name for name in names if self.file_of(f"{module}.{name}") is not None]
            for name in inside:
                imported.setdefault(f"{module}.{name}", ())
            rest = tuple(name for name in names if name not in inside)
            if self.file_of(module) is not None and (rest or not names):
                imported[module] = tuple(dict.fromkeys((*imported.get(module, ()), *rest)))
        return {module: names for module, names in imported.items() if module != self.module}

    def with_absolute_imports(self, source: str) -> str:
        """Return a source of the module that can be run elsewhere too. Raises as `parse_python`."""
        lines = source.splitlines(keepends=True)
        for node in ast.walk(parse_python(source)):
            if isinstance(node, ast.ImportFrom) and node.level:
                words = f"from {absolute_name(node, self.parent)} "
                lines[node.lineno - 1] = _RELATIVE.sub(words, lines[node.lineno - 1], count=1)
        return "".join(lines)

    def tops(self, source: str) -> set[str]:
        """Names of the packages and modules in the root that a source imports from."""
        return {module.partition(".")[0] for module in self.imports(source)} - _TAKEN

    def is_needed(self, source: str) -> bool:
        """True if the source imports from the root, or looks for files beside itself."""
        return self.reads_files(source) or bool(self.imports(source))

    def reads_files(self, source: str) -> bool:
        """True if the source looks for files beside itself."""
        return any(word in source for word in _DATA_WORDS)

    def problem(self, task_folder: Path) -> str:
        """Return why a task in this folder cannot use the package, with the remedy; empty if it can."""
        root, top = Path(self.root), self.module.partition(".")[0]
        if not all(map(_is_name, self.module.split("."))):
            return f"the module {self.module!r} is no dotted name of a module"
        if not root.is_dir():
            return f"the root {self.root} is no folder"
        if _is_shared(root):
            return f"the root {self.root} is too large to show to candidates; move the package to a folder of its own"
        if not self.file.is_file():
            return f"the root {self.root} has no module {self.module}"
        for module in self.kernels:
            if (file := self.file_of(module)) is None or not file.is_file():
                return f"the root {self.root} has no module {module}"
        for variable in self.environment:
            if not _VARIABLE.match(variable) or variable.startswith(_NOT_OF_PACKAGES):
                return f"{variable!r} is no NAME=VALUE of a variable that only the package reads"
        if top in _TAKEN:
            return (
                f"the package is called `{top}`, as a module that the judge has loaded; give it another name"
            )
        if task_folder.is_relative_to(root / top):
            return f"the package `{top}` contains the task's folder; move the suite out of the package"
        return ""


def own_variables(package: Package, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables of a package as `NAME=VALUE`: `FLAG_` and `GEMS_` begin those of `flag_gems`. Keys stay out."""
    top = package.module.partition(".")[0].upper()
    starts = tuple(f"{word}_" for word in (top, top.replace("_", ""), *top.split("_")) if word)
    return tuple(
        f"{name}={value}"
        for name, value in sorted(environment.items())
        if name.startswith(starts) and not name.startswith(_NOT_OF_PACKAGES) and not holds_key(name, value)
    )


class PackageView(msgspec.Struct, frozen=True):
    """A package as the workers of a task see it."""

    package: Package
    import_folders: tuple[str, ...]
    """The root, then the other folders of PYTHONPATH if the root is one of them."""
    task_folder: str

    def readable(self) -> list[Path]:
        """Return the paths that a candidate may read: entries of the import folders, but for hidden ones and that of the task.

        A folder that is gone, or that this user may not open, has no entries: the sandbox must hold without it.
        """
        entries: list[Path] = []
        for folder in self.import_folders:
            with suppress(OSError):
                entries += map(Path, os.scandir(folder))
        return [
            entry
            for entry in entries
            if not entry.name.startswith(".") and entry.resolve() not in _OURS
            if not Path(self.task_folder).is_relative_to(entry.resolve())
        ]


class FoundPackage(NamedTuple):
    """A package, and how its root was found."""

    package: Package
    reason: str


def find_package(file: Path) -> FoundPackage:
    """
    Return the package that a module's file belongs to. For a file in no package the root is its folder.

    In this order: what the file itself imports by an absolute name, from its package or from beside it; PYTHONPATH and editable
    installs; a folder `src` beside `pyproject.toml`; the folder above the outermost `__init__.py`, or above the level of a
    relative import.
    Raises `OSError`, or as `parse_python` if the file is no Python.
    """
    file = file.resolve()
    tree = parse_python(file.read_text(encoding="utf-8"), str(file))
    lowest = file.parent
    while (lowest / "__init__.py").is_file():
        lowest = lowest.parent
    reason = "its folder" if lowest == file.parent else "the folder above the outermost `__init__.py`"
    level = max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)
    if level and len(file.parents[level].parts) < len(lowest.parts):
        lowest, reason = file.parents[level], "the level of its relative imports"
    roots = [lowest]
    while _is_name(roots[-1].name) and roots[-1].parent not in (Path.home(), Path(file.anchor)):
        roots.append(roots[-1].parent)
    absolute = [module for module, _ in _imported(tree, "")]
    for root in roots:
        top = file.relative_to(root).parts[0]
        own = (module for module in absolute if module.partition(".")[0] == top and top not in _TAKEN)
        if module := next((module for module in own if Package(str(root), top).file_of(module)), ""):
            return _found(file, root, f"the file imports `{module}`")
    beside = Package(str(file.parent), file.stem)
    for module in absolute if not level else ():
        top = module.partition(".")[0]
        if top not in _TAKEN and beside.file_of(module) and PathFinder.find_spec(top) is None:
            return _found(file, file.parent, f"the file imports `{module}` from beside it")
    for folders, why in ((_python_path(), "PYTHONPATH"), (_installed(), "an editable install")):
        for root in roots:
            if root in folders:
                return _found(file, root, why)
    for root in roots:
        if root.name == "src" and any((root.parent / name).is_file() for name in _PROJECT_FILES):
            return _found(file, root, "the folder `src` of its project")
    return _found(file, lowest, reason)


def _found(file: Path, root: Path, reason: str) -> FoundPackage:
    parts = file.relative_to(root).with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
    return FoundPackage(Package(str(root), module), reason)


def _imported(tree: ast.Module, parent: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Absolute names of imported modules, with the names that are taken from them; relative imports begin at `parent`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = absolute_name(node, parent)
            if module:
                yield module, tuple(alias.name for alias in node.names)


def absolute_name(node: ast.ImportFrom, parent: str) -> str:
    """The module that `from ... import` names, as a module in the package `parent` means it; empty if it names none."""
    if not node.level:
        return node.module or ""
    parts = parent.split(".") if parent else []
    if node.level > len(parts):
        return ""
    return ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])


def _python_path() -> list[Path]:
    """The folders of PYTHONPATH."""
    return [Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


def _installed() -> list[Path]:
    """Return the folders that packages are imported from without being copied to `site-packages`.

    Those are the folders of editable installs and the entries of `sys.path`, except the working folder.
    """
    finders = [module for name, module in list(sys.modules.items()) if name.startswith("__editable__")]
    mapped = [item for finder in finders for item in getattr(finder, "MAPPING", {}).items()]
    folders = [Path(folder).parents[name.count(".")] for name, folder in mapped]
    on_path = [Path(entry) for entry in sys.path if entry and Path(entry).resolve() != Path.cwd()]
    return [folder.resolve() for folder in (*folders, *on_path)]


def _is_shared(folder: Path) -> bool:
    """True for a folder that holds much besides a package: the home, the folder of temporary files, `/`."""
    return folder in (Path.home(), Path(tempfile.gettempdir()), Path(folder.anchor))


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)
