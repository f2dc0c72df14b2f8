"""Kernels in another module than their function: one text for the judge, and back into two files. No kernel runs."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

from sessions.applying.guarding import Guard, guarded
from sessions.applying.placing import HomeFile, merge_files
from sessions.applying.worktree import PersonRepository
from sessions.errors import NotApplicable
from suites import Package, find_package
from suites.errors import BadKernelFile
from suites.folder import read_task
from suites.own.entry import KernelFile
from suites.own.joining import join_kernels
from tests.support.sessions.story import commit_all, git
from tests.support.tasks.packaged_task import SPLIT_KERNEL, write_packaged_task

WRAPPER, KERNELS = "src/ops/split.py", "src/ops/_kernels/split.py"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_packaged_task(tmp_path)
    return tmp_path / "repo"


def joined(root: Path) -> tuple[str, Package]:
    file = KernelFile.read(root / WRAPPER)
    text, package = join_kernels(file, file.find_entry("scale_"), find_package(root / WRAPPER).package)
    return text.text, package


def homes(root: Path, package: Package) -> list[HomeFile]:
    return [
        HomeFile(WRAPPER, (root / WRAPPER).read_text(), package),
        HomeFile(KERNELS, (root / KERNELS).read_text(), Package(package.root, package.kernels[0])),
    ]


def test_launched_kernel_and_its_helpers_come_into_the_launching_module(root: Path) -> None:
    text, package = joined(root)
    assert package.kernels == ("ops._kernels.split",)
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert names == ["_place", "split_kernel", "scale_", "other"]
    assert package.imports(text) == {
        "ops._kernels": ("unused_kernel", "warps"),
        "ops.utils": ("cfg", "scaled"),
    }
    assert "LANES = tl.constexpr(1)" in text
    own = KernelFile(root / WRAPPER, SPLIT_KERNEL + "\n\ndef scale_(x, y):\n    split_kernel[(1,)](x, y)\n")
    assert join_kernels(own, own.find_entry(), package)[0] is own


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        (WRAPPER, "import triton\n", "import triton\nLANES = 2\n", "LANES is not the same in"),
        (WRAPPER, "import cfg", "import cfg, SCALE as scaled", "scaled is not the same in"),
        (KERNELS, "constexpr(1)", "constexpr(len(__file__))", "reads files beside itself for split_kernel"),
    ],
)
def test_definitions_that_one_module_cannot_hold_are_refused(
    root: Path, file: str, old: str, new: str, says: str
) -> None:
    path = root / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(BadKernelFile, match=says):
        joined(root)


def test_each_definition_goes_back_into_its_file(root: Path) -> None:
    text, package = joined(root)
    files = homes(root, package)
    assert merge_files(files, text, ["scale_"]) == {}
    faster = text.replace("scaled(x, y), mask", "scaled(x, y) + LANES - 1, mask")
    (changed,) = merge_files(files, faster, ["scale_"]).items()
    expected = SPLIT_KERNEL.replace("scaled(x, y), mask", "scaled(x, y) + LANES - 1, mask")
    assert (changed[0], ast.dump(ast.parse(changed[1]))) == (KERNELS, ast.dump(ast.parse(expected)))
    helped = text.replace(
        "@triton.jit\ndef split_kernel",
        "@triton.jit\ndef _both(x):\n    return x\n\n\n@triton.jit\ndef split_kernel",
    )
    helped = helped.replace("x = tl.load(x_ptr", "x = _both(tl.load(x_ptr").replace(
        "other=0.0)\n    y =", "other=0.0))\n    y ="
    )
    helped = helped.replace('["BLOCK"]', '["BLOCK"] * FACTOR').replace(
        "def scale_", "FACTOR = 1\n\n\ndef scale_"
    )
    both = merge_files(files, helped, ["scale_"])
    assert [*both] == [WRAPPER, KERNELS]
    assert "FACTOR = 1" in both[WRAPPER]
    assert "from ._kernels import split_kernel, unused_kernel, warps" in both[WRAPPER]
    assert "def split_kernel" not in both[WRAPPER]
    assert "def _both" in both[KERNELS]
    assert "def unused_kernel" in both[KERNELS]
    renamed = merge_files(files, text.replace("split_kernel", "new_kernel"), ["scale_"])
    assert [*renamed] == [WRAPPER]
    assert "from ops._kernels.split import _place" in renamed[WRAPPER]
    assert "from ops.utils import scaled" in renamed[WRAPPER]
    for new_text in both.values():
        ast.parse(new_text)


def test_kernel_under_another_name_and_helper_of_its_module_are_the_same_definitions(root: Path) -> None:
    wrapper = root / WRAPPER
    text = wrapper.read_text().replace("import split_kernel,", "import split_kernel as kernel, _place as at,")
    wrapper.write_text(
        text.replace("    split_kernel[", "    kernel[").replace("._kernels import", "._kernels.split import")
    )
    text, package = joined(root)
    assert "at = _place" in text
    assert package.imports(text)["ops._kernels.split"] == ("unused_kernel", "warps")
    files = homes(root, package)
    assert merge_files(files, text, ["scale_"]) == {}
    changed = merge_files(
        files, text.replace("x, y), mask", "x, y) + 0.0, mask").replace("warps()", "8"), ["scale_"]
    )
    assert [*changed] == [WRAPPER, KERNELS]
    assert "split_kernel as kernel" in changed[WRAPPER]
    assert "kernel = split_kernel" not in changed[WRAPPER]


def test_guard_is_in_the_launching_file_and_the_original_kernel_stays(root: Path) -> None:
    wrapper = root / WRAPPER
    wrapper.write_text(
        wrapper.read_text()
        .replace("import split_kernel,", "import split_kernel as kernel,")
        .replace(" split_kernel[", " kernel[")
    )
    text, package = joined(root)
    files = homes(root, package)
    faster = text.replace("x, y), mask", "x, y) + 0.0, mask").replace("warps()", "8")
    guard = Guard("x", "x.shape[0] == 1000", "gfx942")
    (changed,) = merge_files(files, guarded(files, faster, "scale_", guard), ["scale_"]).items()
    assert changed[0] == WRAPPER
    module = ast.parse(changed[1])
    functions = {node.name: ast.unparse(node) for node in module.body if isinstance(node, ast.FunctionDef)}
    assert [*functions] == [
        "split_kernel_tuned",
        "scale__tuned",
        "scale__original",
        "_scale__target",
        "scale_",
        "other",
    ]
    assert "kernel_tuned = split_kernel_tuned" in changed[1]
    assert "kernel_tuned[" in functions["scale__tuned"]
    assert " kernel[" in functions["scale__original"]
    assert "num_warps=warps()" in functions["scale__original"]
    assert "from ops._kernels.split import _place" in changed[1]
    compile(module, WRAPPER, "exec")


def test_kernel_in_gluon_stays_an_import(root: Path) -> None:
    kernels = root / KERNELS
    text = kernels.read_text().replace("@triton.jit\ndef split", "@gluon.jit\ndef split")
    kernels.write_text(text)
    assert joined(root)[1].kernels == ()


def test_a_definition_that_cannot_be_placed_is_refused(root: Path) -> None:
    text, package = joined(root)
    files = homes(root, package)
    faster = text.replace("scaled(x, y), mask", "scaled(y, x), mask")
    with pytest.raises(NotApplicable, match=r"`split_kernel` of .* changes, and ops/more.py uses it too"):
        merge_files(files, faster, ["scale_"], users=lambda _: ["ops/more.py"])
    shared = text.replace("* LANES", "* other(1)")
    with pytest.raises(NotApplicable, match=f"`_place` of {KERNELS} uses `other` of {WRAPPER}"):
        merge_files(files, shared, ["scale_"])
    helper = text.replace("* LANES", "")
    with pytest.raises(NotApplicable, match="uses `_place`, which the kernel changes"):
        merge_files(files, helper, ["scale_"])
    with pytest.raises(NotApplicable, match="defines no name"):
        merge_files(files, f"{faster}\nprint()\n", ["scale_"])


def test_branch_has_both_files_and_a_third_use_of_the_kernel_is_refused(root: Path) -> None:
    text, package = joined(root)
    task = msgspec.structs.replace(read_task(root.parent / "tasks" / "scale", suite="mine"), package=package)
    commit_all(root)
    repository = PersonRepository(root)
    files = repository.find_files(task, text)
    assert [home.path for home in files] == [WRAPPER, KERNELS]
    faster = text.replace("num_warps=warps()", "num_warps=8").replace("* LANES", "* LANES + 0")
    with pytest.raises(NotApplicable, match="uses `_place`, which the kernel changes"):
        repository.merged(files, faster, task)
    faster = text.replace("num_warps=warps()", "num_warps=8").replace("x, y), mask", "x, y) + 0.0, mask")
    texts = repository.merged(files, faster, task)
    assert [*texts] == [WRAPPER, KERNELS]
    commit = repository.apply(texts, branch="fast", folder=root.parent / "tree", message="m")
    assert (
        git(root, "show", "--stat=200", "--format=", commit).splitlines()[-1].startswith(" 2 files changed")
    )
    (root / "bench.py").write_text("from ops._kernels import split_kernel\n\nsplit_kernel[(1,)]()\n")
    git(root, "add", "bench.py")
    git(root, "commit", "-q", "-m", "second")
    with pytest.raises(NotApplicable, match=r"`split_kernel` of .* changes, and bench.py uses it too"):
        PersonRepository(root).merged(files, faster, task)
    (root / KERNELS).write_text(SPLIT_KERNEL + "# edited\n")
    with pytest.raises(NotApplicable, match="has changes that are not committed"):
        repository.find_files(task, text)
