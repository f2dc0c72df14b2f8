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


def test_progress_without_a_terminal_has_a_line_for_each_step(
    setup: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = setup.Progress()
    progress.step("environment")
    progress.step("packages")
    installed = setup.Installing([sys.executable, "-c", "print('Collecting numpy')"], progress)
    assert installed.succeeds()
    progress.end()
    assert capsys.readouterr().out.splitlines() == [
        "setup: step 1 of 3, environment, 0:00",
        "setup: step 2 of 3, packages, 0:00",
    ]


def test_failed_installer_ends_with_its_own_words(
    setup: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = [sys.executable, "-c", "raise SystemExit('no such index')"]
    progress = setup.Progress()
    with pytest.raises(SystemExit, match="pip could not run"):
        setup.Installing(failing, progress).expect_success()
    progress.end()
    assert "no such index" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "is_used"),
    [
        ("", True),
        ("global.timeout='60'\n:env:.no-color='1'\n", True),
        ("global.constraint='/etc/constraints.txt'\n", False),
        ("user.index-url='https://mirror.example/simple'\n", False),
        (":env:.cert='/etc/ca.crt'\n", False),
    ],
)
def test_uv_installs_unless_pip_has_settings_that_uv_does_not_read(
    setup: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, *, is_used: bool
) -> None:
    (tmp_path / "bin").mkdir()
    uv, python = tmp_path / "uv", tmp_path / "bin/python"
    uv.write_text("#!/bin/sh\n")
    python.write_text(f"#!/bin/sh\ncat <<END\n{settings}END\n")
    for program in (uv, python):
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert setup.usable_uv(tmp_path) == (str(uv) if is_used else "")
    assert setup.uv_installs(tmp_path, [], setup.Progress()) is is_used
    uv.write_text("#!/bin/sh\nexit 1\n")
    assert setup.usable_uv(tmp_path) == "", "it does not run"
