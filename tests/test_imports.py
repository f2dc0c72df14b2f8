"""Imports stay light: each test imports a module in a new interpreter and lists the loaded modules.

A static import graph cannot separate lazy imports from eager imports.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.programs import python

ROOT = Path(__file__).parent.parent
ROOMS = ("suites", "harness", "sessions", "engine", "tui")
SDKS = ("anthropic", "openai")
TORCH = ("torch", "triton")
REPORTS = ("pandas", "matplotlib", "scipy")


def loaded_by(code: str) -> set[str]:
    """Names of all modules that are loaded after `code` ran."""
    return set(python(f"{code}\nimport sys\nprint('\\0', *sys.modules)").rpartition("\0")[2].split())


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("suites", ("harness", "sessions", "engine", "tui", *TORCH)),
        ("harness", ("sessions", "engine", "tui", *TORCH, "numpy", "git")),
        ("sessions", ("engine", "tui", *TORCH, "git", "textual")),
        ("engine.plan.plan", ("tui", *TORCH, *SDKS, "git")),
        ("engine.process.process", ("tui", *TORCH, *SDKS, "httpx2", "pydantic", "textual")),
        (
            "tui.cli",
            (
                "rich",
                "textual",
                "git",
                "msgspec",
                "engine.models",
                "harness",
                "sessions",
                "suites",
                *TORCH,
                *SDKS,
            ),
        ),
        ("tui.commands.run.run", ("textual", *TORCH, *SDKS)),
        (
            "tui.commands.run.task",
            (
                *("textual", "git", "engine.errors", "engine.methods", "engine.models", "engine.plan.plan"),
                *("engine.plan.request", "sessions.events", "harness.node", *TORCH, *SDKS),
            ),
        ),
        ("tui.commands.serve.mcp", ("mcp", "textual", *TORCH, *SDKS)),
        ("tui.cockpit.app", (*TORCH, *SDKS, "git", "numpy", "httpx", "mcp", *REPORTS)),
        ("tui.cockpit.running", ("tui.facts.report.tables", "tui.print.report")),
        (
            "tui.commands.look.report",
            (*TORCH, *SDKS, "textual", "jinja2", "engine.judge", "engine.methods", *REPORTS),
        ),
    ],
)
def test_import_loads_no_heavy_module(module: str, unwanted: tuple[str, ...]) -> None:
    assert loaded_by(f"import {module}").isdisjoint(unwanted)


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_load_only_click(flag: str) -> None:
    loaded = loaded_by(f"from tui.cli import main; main(['{flag}'])")
    assert "click" in loaded
    assert loaded.isdisjoint(("rich", "textual", "git", "msgspec", *TORCH, *SDKS))


READERS = ("sessions/store/repository.py", "suites/captures/startup/sitecustomize.py")
"""Files that may use the environment at import: one tames a library, one starts in programs of other people."""


def test_no_project_module_reads_the_environment_at_import() -> None:
    files = [file for room in ROOMS for file in (ROOT / room).rglob("*.py") if "worker" not in file.parts]
    texts = {file.relative_to(ROOT).as_posix(): file.read_text() for file in files}
    readers = {
        name
        for name, text in texts.items()
        if re.search("environ|getenv", text) and reads_environment(ast.parse(text))
    }
    assert readers == {*READERS}


def reads_environment(node: ast.AST) -> bool:
    """True if a statement that runs at import uses `os.environ` or `os.getenv`; bodies of functions run later."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            return any(map(reads_environment, [*node.args.defaults, *filter(None, node.args.kw_defaults)]))
        case ast.Attribute(value=ast.Name(id="os"), attr="environ" | "environb" | "getenv"):
            return True
        case _:
            return any(map(reads_environment, ast.iter_child_nodes(node)))
