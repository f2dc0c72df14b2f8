"""The package of an own kernel: its root is found from the file, whatever the layout."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from suites import BadTask
from suites.folder import read_task
from suites.source.package import Package, PackageView, find_package, own_variables
from tests.suites.folders import TASK, write_folder


def write(root: Path, files: dict[str, str]) -> Path:
    """Write the files and return the last one."""
    file = root
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("files", "root", "module", "reason"),
    [
        (
            {
                "src/ops/__init__.py": "",
                "src/ops/utils.py": "",
                "src/ops/softmax.py": "from .utils import cfg",
            },
            "src",
            "ops.softmax",
            "outermost",
        ),
        (
            {"lib/ops/utils.py": "", "lib/ops/softmax.py": "from ops.utils import cfg"},
            "lib",
            "ops.softmax",
            "`ops.utils`",
        ),
        ({"lib/ops/nn/softmax.py": "from ..utils import cfg"}, "lib", "ops.nn.softmax", "relative imports"),
        ({"pyproject.toml": "", "src/ops/softmax.py": "import triton"}, "src", "ops.softmax", "`src`"),
        (
            {"kernels/utils.py": "", "kernels/softmax.py": "from utils import cfg"},
            "kernels",
            "softmax",
            "`utils` from beside it",
        ),
        (
            {"a/ops/__init__.py": "", "a/ops/softmax/__init__.py": "from .cfg import x"},
            "a",
            "ops.softmax",
            "outermost",
        ),
    ],
    ids=["regular", "namespace", "relative", "src-layout", "beside", "package-file"],
)
def test_root_is_found(tmp_path: Path, files: dict[str, str], root: str, module: str, reason: str) -> None:
    file = write(tmp_path / "repo-1", files)
    result = find_package(file)
    assert result.package == Package(str(tmp_path / "repo-1" / root), module)
    assert reason in result.reason
    assert result.package.file == file


def test_namespace_package_is_found_through_pythonpath_and_an_editable_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "repo-1", {"code/ops/softmax.py": "import triton"})
    assert find_package(file).package.module == "softmax"
    finder = ModuleType("__editable___ops_finder")
    vars(finder)["MAPPING"] = {"ops": str(file.parent)}
    with monkeypatch.context() as context:
        context.setitem(sys.modules, finder.__name__, finder)
        assert find_package(file) == (
            Package(str(tmp_path / "repo-1/code"), "ops.softmax"),
            "an editable install",
        )
    monkeypatch.setenv("PYTHONPATH", f"/nowhere:{Path.home()}:{tmp_path}:{tmp_path / 'repo-1/code'}")
    result = find_package(file)
    assert result == (Package(str(tmp_path / "repo-1/code"), "ops.softmax"), "PYTHONPATH")
    assert result.package.view(tmp_path).import_folders == (str(tmp_path / "repo-1/code"), str(tmp_path))


def test_imports_are_those_from_the_root(tmp_path: Path) -> None:
    source = "import torch\nfrom . import utils, missing\nfrom .utils import cfg\nimport ops.softmax\nfrom ops import VERSION"
    file = write(tmp_path, {"ops/__init__.py": "", "ops/utils.py": "", "ops/softmax.py": source})
    package = find_package(file).package
    assert package.imports(source) == {"ops.utils": ("cfg",), "ops": ("missing", "VERSION")}
    assert package.is_needed(source)
    assert package.is_needed("open(__file__)")
    assert not package.is_needed("import torch, ops.softmax")


def test_view_leaves_out_hidden_files_and_the_task(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    write(root, {".env": "KEY=1", "tasks/softmax/problem.py": "", "other.py": "", "ops/softmax.py": ""})
    view = Package(str(root), "ops.softmax").view(root / "tasks/softmax")
    assert {entry.name for entry in view.readable()} == {"other.py", "ops"}
    gone = PackageView(view.package, (*view.import_folders, str(tmp_path / "gone")), view.task_folder)
    assert gone.readable() == view.readable()


def test_folder_called_triton_above_a_file_is_no_package_of_its_imports(tmp_path: Path) -> None:
    file = write(tmp_path, {"aiter/ops/triton/kernels/scale.py": "import triton\n"})
    assert not find_package(file).package.is_needed(file.read_text())


def test_variables_of_a_package_are_those_that_begin_with_its_name_and_no_keys() -> None:
    shell = {
        "GEMS_VENDOR": "nvidia",
        "FLAGGEMS_CACHE_DIR": "/c",
        "GEMS_TOKEN": "s",
        "GEMS_HUB_PAT": "s",
        "TRITON_DEBUG": "1",
        "HOME": "/",
    }
    package = Package("/src", "flag_gems.ops.softmax")
    assert own_variables(package, shell) == ("FLAGGEMS_CACHE_DIR=/c", "GEMS_VENDOR=nvidia")


@pytest.mark.parametrize(
    ("package", "problem"),
    [
        ('root = "../.."', "missing required field `module`"),
        ('root = "../..", modul = "ops.softmax"', "did you mean 'module'?"),
        ('root = "../../nowhere", module = "ops.softmax"', "is no folder"),
        ('root = "../..", module = "ops.relu"', "has no module ops.relu"),
        ('root = "../..", module = "suites.softmax"', "give it another name"),
        ('root = "../..", module = "tasks.softmax"', "move the suite out of the package"),
        ('root = "/", module = "ops.softmax"', "is too large"),
        (
            'root = "../..", module = "ops.softmax", environment = ["TRITON_INTERPRET=0"]',
            "only the package reads",
        ),
    ],
)
def test_wrong_package_of_a_task_is_refused(tmp_path: Path, package: str, problem: str) -> None:
    write(tmp_path, {f"repo/{name}/softmax.py": "" for name in ("ops", "suites", "tasks")})
    folder = write_folder(tmp_path / "repo" / "tasks", task=f"package = {{ {package} }}\n{TASK}")
    with pytest.raises(BadTask) as refused:
        read_task(folder, suite="mine")
    assert problem in str(refused.value)
