"""Set-up next to a vendor's torch: the script detects this torch, pins its version and never shadows it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SETUP = Path(__file__).parent.parent / ".ci/setup.py"
SITE = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


@pytest.fixture
def setup() -> ModuleType:
    spec = importlib.util.spec_from_file_location("wavedeck_setup", SETUP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def distribution(site: Path, name: str, module: str, source: str, version: str, requires: str = "") -> None:
    """Write an installed distribution as pip does: the module and its metadata."""
    (site / module).mkdir()
    (site / module / "__init__.py").write_text(source)
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}")
    (info / "RECORD").write_text(f"{module}/__init__.py,,\n")


@pytest.fixture
def vendor(tmp_path: Path) -> Path:
    """Python of a vendor's environment with a ROCm torch and triton under its ROCm name."""
    home = tmp_path / "vendor"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    torch = "class version:\n    hip = '6.4'\n    cuda = None\n"
    site = home / SITE
    distribution(
        site,
        "torch",
        "torch",
        torch,
        "2.9.0+rocm6.4",
        "Requires-Dist: jinja2\nRequires-Dist: opt-einsum; extra == 'x'\n",
    )
    distribution(site, "pytorch-triton-rocm", "triton", "", "3.5.0")
    distribution(site, "Jinja2", "jinja2", "", "3.1.5")
    return home / "bin/python"


def inspect(setup: ModuleType, python: Path) -> dict[str, object]:
    done = subprocess.run([str(python), "-c", setup.INSPECT], capture_output=True, text=True, check=True)
    facts: dict[str, object] = json.loads(done.stdout)
    return facts


def test_inspect_finds_the_vendors_torch_and_its_dependencies(setup: ModuleType, vendor: Path) -> None:
    facts = inspect(setup, vendor)

    assert facts["backend"] == "rocm"
    assert facts["closure"] == {"torch": "2.9.0+rocm6.4", "pytorch-triton-rocm": "3.5.0", "jinja2": "3.1.5"}


@pytest.mark.soak
def test_environment_imports_the_vendors_torch_and_pins_it_and_another_torch_is_an_error(
    setup: ModuleType, vendor: Path, tmp_path: Path
) -> None:
    venv = tmp_path / "venv"
    setup.make_environment(venv, inspect(setup, vendor))
    setup.check_not_shadowed(venv)
    assert "pytorch-triton-rocm==3.5.0\n" in (venv / setup.CONSTRAINTS).read_text()

    distribution(venv / SITE, "torch", "torch", "", "2.13.0")
    with pytest.raises(SystemExit, match="shadowed"):
        setup.check_not_shadowed(venv)


def test_reuse_of_the_vendors_build_requires_no_torch_or_triton_from_pip(setup: ModuleType) -> None:
    requirements = setup.judge_requirements(with_torch=False)

    assert requirements
    assert not [name for name in requirements if name.startswith(("torch", "triton"))]
