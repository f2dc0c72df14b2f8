"""`--send-only`: which texts the provider of a model gets. Nothing runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.errors import BadKernelFile
from suites.own.draft import Draft
from suites.own.entry import KernelFile
from suites.own.evidence import CallSeen, FirstCallSeen, OutputSeen
from suites.own.joining import join_kernels
from suites.own.shapes import parse_shapes
from suites.own.sizes import design
from suites.own.texts import instruction
from suites.source.package import find_package
from tests.support.tasks.packaged_task import write_packaged_task
from tests.tui.commands.run.test_own_kernels import KERNEL, REFERENCE, RETURNS
from tui.actions.own_kernels import assumptions, find_reference, only_sent


def test_a_reference_that_is_left_out_is_in_no_text_for_models(tmp_path: Path) -> None:
    (tmp_path / "scale.py").write_text(KERNEL + RETURNS)
    (tmp_path / "truth.py").write_text(REFERENCE)
    file = KernelFile.read(tmp_path / "scale.py")
    entry = file.find_entry()
    whole = find_reference(file, entry, f"{tmp_path / 'truth.py'}:scale_rows_ref")
    call = CallSeen((OutputSeen("float16", (4, 4)),))
    designed = design(parse_shapes(["x=4x4:fp16, weight=4:fp16"]), entry.parameters)

    def texts(*allowed: str) -> tuple[str, str]:
        reference = only_sent([tmp_path / name for name in allowed], file, None, whole) if allowed else whole
        seen = {0: FirstCallSeen(kernel=call, reference=call)}
        draft = Draft(file, entry, reference, designed, designed.sizes, seen, {}, None)
        return dict(assumptions(draft, sends=True))["sent to models"], instruction(draft)

    for allowed in ((), ("scale.py", "truth.py")):
        sent, text = texts(*allowed)
        assert sent == "scale.py (whole), scale_rows_ref in truth.py"
        assert "return x * weight" in text
    sent, text = texts("scale.py")
    assert sent == "scale.py (whole)"
    assert "return x * weight" not in text
    assert "truth.py" not in text
    with pytest.raises(BadKernelFile, match=r"leaves out .*scale.py, but models must read the kernel"):
        texts("truth.py")
    with pytest.raises(BadKernelFile, match=r"--send-only .*other.py: this text is never sent"):
        texts("scale.py", "other.py")


def test_the_file_of_a_joined_kernel_must_be_allowed(tmp_path: Path) -> None:
    root = Path(write_packaged_task(tmp_path).package.root)
    file = KernelFile.read(root / "ops" / "split.py")
    entry = file.find_entry("scale_")
    joined, package = join_kernels(file, entry, find_package(file.path).package)
    reference = find_reference(joined, entry, "torch:add")
    with pytest.raises(BadKernelFile, match=r"leaves out .*_kernels/split.py"):
        only_sent([file.path], joined, package, reference)
    only_sent([file.path, root / "ops/_kernels/split.py"], joined, package, reference)
