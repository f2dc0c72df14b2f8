"""Protects own kernels that live in a package: imports, files beside the module, outputs in arguments; and what is refused there.

The repository is private: each test writes it into a folder of its own.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness import DevicePool, Evaluation, Verdict
from harness.worker.kit.in_place import with_changed_inputs
from suites import Package, Task, find_package
from suites.own.entry import KernelFile
from suites.own.joining import join_kernels
from tests.support.draws import drawn
from tests.support.judge.judging import judge_task
from tests.support.tasks.packaged_task import KERNEL, write_packaged_task

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return write_packaged_task(tmp_path)


def told(evaluation: Evaluation) -> str:
    return evaluation.error.message if evaluation.error is not None else ""


async def test_original_is_correct(pool: DevicePool, task: Task) -> None:
    assert task.package == find_package(Path(task.package.root) / "ops" / "scale.py").package
    evaluation = await judge_task(pool, KERNEL, task)
    assert told(evaluation) == ""
    assert evaluation.verdict is Verdict.CORRECT
    assert max(margin.used for margin in evaluation.margins) > 0, "the oracle answers in float64"
    assert any(task.package.root in layer.why for layer in evaluation.sandbox)


async def test_namespace_package_and_modules_beside_a_script_are_found(
    pool: DevicePool, task: Task, tmp_path: Path
) -> None:
    (tmp_path / "repo/src/ops/__init__.py").unlink()
    evaluation = await judge_task(pool, KERNEL, task)
    assert (told(evaluation), evaluation.verdict) == ("", Verdict.CORRECT)
    script = KERNEL.replace("from ops.utils", "from utils").replace("from .utils", "from utils")
    script = script.replace('files("ops")', 'files("configs")').replace('.joinpath("configs")', "")
    script = script.replace('__package__ == "ops"', 'not __package__ and __name__ == "scale"')
    (tmp_path / "repo/src/ops/scale.py").write_text(script)
    package = find_package(tmp_path / "repo/src/ops/scale.py").package
    assert package == Package(str(tmp_path / "repo/src/ops"), "scale")
    evaluation = await judge_task(pool, script, msgspec.structs.replace(task, package=package))
    assert (told(evaluation), evaluation.verdict) == ("", Verdict.CORRECT)


async def test_module_that_reads_a_variable_and_makes_a_lock_is_imported(
    pool: DevicePool, task: Task
) -> None:
    utils = task.package.file.with_name("utils.py")
    utils.write_text(
        "import multiprocessing, os\nLOCK = multiprocessing.Lock()\nassert os.environ['OPS_KIND'] == 'a=b'\n"
        + utils.read_text()
    )
    package = msgspec.structs.replace(task.package, environment=("OPS_KIND=a=b",))
    evaluation = await judge_task(pool, KERNEL, msgspec.structs.replace(task, package=package))
    assert (told(evaluation), evaluation.verdict) == ("", Verdict.CORRECT)


START = "    block = cfg"
CHANGES = {
    "wrong": ("scaled(x, y), mask", "scaled(y, x), mask", Verdict.WRONG, "output `x` is wrong"),
    "sibling": (
        START,
        "    from .sibling import scale_ as original\n    return original(x, y)\n    block = cfg",
        Verdict.REJECTED,
        "the kernel `_scale_kernel` of ops.sibling was launched",
    ),
    "sibling at gpu sizes": (
        START,
        "    if x.numel() > 100000:\n        from ops.launching import run\n        return run(x, y)\n    block = cfg",
        Verdict.REJECTED,
        "at its gpu sizes: the kernel `_scale_kernel` of ops.sibling was launched",
    ),
    "torch of the package": (
        START,
        "    from .reference import scale_ as reference\n    reference(x, y)\n    x, y = x.clone(), y.clone()\n    block = cfg",
        Verdict.REJECTED,
        "operators `mul_` (line 31), `add_` (line 31) compute outside",
    ),
    "kernel of a sibling": (
        "    _scale_kernel[",
        "    from ops.sibling import _scale_kernel\n    _scale_kernel[",
        Verdict.REJECTED,
        "`_scale_kernel` is a kernel of ops.sibling",
    ),
    "read outside": (
        START,
        "    (Path(__file__).parents[2] / 'secret.txt').read_text()\n    block = cfg",
        Verdict.REJECTED,
        "secret.txt': a candidate may only read files, and only those of its package in",
    ),
    "write": (
        START,
        "    open(Path(__file__).parent / 'utils.py', 'w')\n    block = cfg",
        Verdict.REJECTED,
        "utils.py': a candidate may only read files",
    ),
    "above": ("from .utils", "from ...utils", Verdict.REJECTED, "the import begins above its package"),
    "itself": ("from ops.utils", "from ops.scale", Verdict.REJECTED, "the candidate imports itself"),
}


@pytest.mark.parametrize("change", drawn([*CHANGES], 1))
async def test_wrong_change_delegation_and_foreign_files_are_refused(
    pool: DevicePool, task: Task, change: str
) -> None:
    old, new, verdict, says = CHANGES[change]
    assert KERNEL.count(old) == 1
    evaluation = await judge_task(pool, KERNEL.replace(old, new), task)
    assert says in told(evaluation)
    assert evaluation.verdict is verdict


async def test_kernel_of_another_module_is_judged_as_part_of_the_text_and_its_original_is_refused(
    pool: DevicePool, task: Task
) -> None:
    file = KernelFile.read(task.package.file.with_name("split.py"))
    joined, package = join_kernels(
        file, file.find_entry("scale_"), msgspec.structs.replace(task.package, module="ops.split")
    )
    split = msgspec.structs.replace(task, package=package)
    evaluation = await judge_task(pool, joined.text, split)
    assert (told(evaluation), evaluation.verdict) == ("", Verdict.CORRECT)
    original = "    from ._kernels.split import split_kernel\n    split_kernel["
    evaluation = await judge_task(pool, joined.text.replace("    split_kernel[", original), split)
    assert "the kernel `split_kernel` of ops._kernels.split was launched" in told(evaluation)
    assert evaluation.verdict is Verdict.REJECTED


async def test_task_without_package_sees_no_package(pool: DevicePool, task: Task) -> None:
    alone = msgspec.structs.replace(task, package=None)
    evaluation = await judge_task(pool, KERNEL, alone)
    assert (evaluation.verdict, "the candidate is one module" in told(evaluation)) == (Verdict.REJECTED, True)
    plain = (
        KERNEL.replace("from .utils import cfg, scaled", "").partition("with open")[0]
        + "@triton.jit\ndef k(): pass\n\n\ndef scale_(x, y): pass"
    )
    evaluation = await judge_task(pool, plain, alone)
    assert "No module named 'ops'" in told(evaluation)


async def test_pythonpath_is_visible_where_the_package_is_found_through_it(
    pool: DevicePool, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "sizes.py").write_text("WARPS = 4")
    source = KERNEL.replace("import torch\n", "import sizes\nimport torch\n")
    assert "No module named 'sizes'" in told(await judge_task(pool, source, task))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'repo' / 'src'}:{tmp_path / 'more'}")
    assert (await judge_task(pool, source, task)).verdict is Verdict.CORRECT


async def test_returned_values_are_the_outputs_that_are_no_inputs() -> None:
    arguments = {"x": 1, "y": 2}
    assert with_changed_inputs(None, ("x",), arguments) == 1
    assert with_changed_inputs(None, ("y", "x"), arguments) == (2, 1)
    assert with_changed_inputs(7, ("x", "", "y"), arguments) == (1, 7, 2)
    assert with_changed_inputs(arguments["x"], ("x", "y"), arguments) == (1, 2), (
        "one of the changed inputs is returned"
    )
    assert with_changed_inputs(7, ("x", "z"), arguments) == 7, "another call has the input z"
    assert with_changed_inputs((5, 6), ("x", "y"), arguments) == (5, 6)
    assert with_changed_inputs(7, ("x", "y"), arguments) == 7
    assert with_changed_inputs(None, (), arguments) is None
