"""Takes the kernel out of a script of tritonparse, as a module of its own."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from suites.public.syntax.outline import Outline
from suites.source.python_source import parse_python

_EMBEDDED = re.compile(r"^imported_kernel_function = (\w+)$", re.MULTILINE)
_IMPORTED = re.compile(r"^from (\w+) import (\w+) as imported_kernel_function$", re.MULTILINE)
_FOLDER = re.compile(r"^p = r?[\"'](.*)[\"']$", re.MULTILINE)
_LOADED = re.compile(r"spec_from_file_location\([\"']kernel_mod[\"'], r?[\"'](.*)[\"']\)")
_LOADED_NAME = re.compile(r"^imported_kernel_function = getattr\(_mod, [\"'](\w+)[\"']\)", re.MULTILINE)


def kernel_module(script: str) -> tuple[str, str]:
    """Return the kernel's name, and the text of a module with the kernel, the definitions that it uses, and their imports.

    The script holds the kernel (`--kernel-import copy`), or imports the file that launched the kernel. Autotuning is left
    out, because the launch has the values of one configuration. Raises `ValueError` if the script has no kernel, `OSError` if the
    kernel's file is gone.
    """
    if "_IR_OVERRIDE_FILE" in script:
        raise ValueError("the kernel is a stub for intermediate code; use --kernel-import copy")
    name, text = _source(script)
    outline = Outline(text)
    if not outline.is_kernel(name):
        raise ValueError(f"it does not define the kernel {name}")
    needed = outline.closure(name)
    pieces = [piece.strip() for part, piece in outline.pieces.items() if part in needed and part != name]
    body = "\n\n\n".join([*pieces, _only_jit(outline.pieces[name])])
    return name, "\n".join([*_imports(text, body), "\n", body]) + "\n"


def _source(script: str) -> tuple[str, str]:
    """Return the name of the kernel that a script of tritonparse launches, and the text with its definition.

    Raises `ValueError` if the script imports no kernel, `FileNotFoundError` if the kernel's file is gone.
    """
    if (imported := _IMPORTED.search(script)) and (folder := _FOLDER.search(script)):
        path, name = Path(folder[1]) / f"{imported[1]}.py", imported[2]
    elif (loaded := _LOADED.search(script)) and (named := _LOADED_NAME.search(script)):
        path, name = Path(loaded[1]), named[1]
    elif embedded := _EMBEDDED.search(script):
        return embedded[1], script
    else:
        raise ValueError("it imports no kernel")
    if not path.is_file():
        raise FileNotFoundError(f"the kernel's file {path} is missing; use --kernel-import copy")
    return name, path.read_text(encoding="utf-8")


def _imports(text: str, body: str) -> list[str]:
    """Return the imports of a module that define a word of `body`."""
    words = set(re.findall(r"\w+", body))
    lines = []
    for statement in parse_python(text).body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        if any((alias.asname or alias.name.partition(".")[0]) in words for alias in statement.names):
            lines.append(ast.unparse(statement))
    return list(dict.fromkeys(lines))


def _only_jit(piece: str) -> str:
    """Return a kernel's definition without decorators other than `jit`, such as `autotune` and `heuristics`."""
    definition = parse_python(piece).body[0]
    assert isinstance(definition, ast.FunctionDef)
    decorators = [ast.unparse(decorator) for decorator in definition.decorator_list]
    kept = [f"@{text}" for text in decorators if "jit" in text.partition("(")[0].split(".")]
    return "\n".join([*kept, *piece.split("\n")[definition.lineno - 1 :]]).strip()
