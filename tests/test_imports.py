"""Imports stay light: each test imports a module in a new interpreter and lists the loaded modules.

A static import graph cannot separate lazy imports from eager imports.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.programs import python

ROOT = Path(__file__).parent.parent
SDKS = ("anthropic", "openai")
TORCH = ("torch", "triton")


def loaded_by(code: str) -> set[str]:
    """Names of all modules that are loaded after `code` ran."""
    return set(python(f"{code}\nimport sys\nprint('\\0', *sys.modules)").rpartition("\0")[2].split())


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("suites", ("harness", "sessions", "engine", "tui", *TORCH)),
        ("harness", ("sessions", "engine", "tui", *TORCH, "numpy", "git")),
        ("sessions", ("engine", "tui", *TORCH, "git", "textual")),
        ("sessions.catalog", ("engine", "tui", *TORCH)),
        ("engine.models", ("tui", *TORCH, *SDKS, "git")),
        ("engine.plan.plan", ("tui", *TORCH, *SDKS, "git")),
        ("engine.process.process", ("tui", *TORCH, *SDKS, "httpx2", "pydantic", "textual")),
        ("engine.process.launch", ("tui", *TORCH, *SDKS, "textual")),
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
        ("tui.config", ("textual", "git", *TORCH, *SDKS)),
        ("tui.commands.run.run", ("textual", *TORCH, *SDKS)),
        (
            "tui.commands.keep.task",
            ("textual", "git", "engine", "sessions.events", "harness.node", *TORCH, *SDKS),
        ),
        ("tui.commands.watch.cockpit", (*TORCH, *SDKS, "git")),
        ("tui.cockpit.app", (*TORCH, *SDKS, "git", "numpy", "httpx")),
    ],
)
def test_import_loads_no_heavy_module(module: str, unwanted: tuple[str, ...]) -> None:
    assert loaded_by(f"import {module}").isdisjoint(unwanted)


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_load_only_click(flag: str) -> None:
    loaded = loaded_by(f"from tui.cli import main; main(['{flag}'])")
    assert "click" in loaded
    assert loaded.isdisjoint(("rich", "textual", "git", "msgspec", *TORCH, *SDKS))


TAMING = ("engine.models.clients.sdk", "sessions.store.repository")
"""Modules that may read the environment at import: they prevent side effects of a library."""


def test_no_project_module_reads_the_environment_at_import() -> None:
    code = """
import collections.abc, importlib, os, pkgutil, sys
reads = []
class Listening(type(os.environ)):
    def __getitem__(self, key):
        frame = sys._getframe(1)
        while frame.f_code.co_filename in (os.__file__, collections.abc.__file__, "<frozen os>", "<frozen _collections_abc>"):
            frame = frame.f_back
        name = frame.f_globals["__name__"]
        if name.partition(".")[0] in ROOMS and name not in TAMING:
            reads.append((name, key))
        return super().__getitem__(key)
os.environ.__class__ = Listening
ROOMS = ("suites", "harness", "sessions", "engine", "tui")
for room in ROOMS:
    for module in pkgutil.walk_packages([room], room + "."):
        if not any(part in module.name for part in (".worker", "__main__", ".starter")):
            importlib.import_module(module.name)
assert not reads, reads
"""
    assert "tui.commands.run.run" in loaded_by(f"TAMING = {TAMING}\n{code}")
