"""`--python`: the judge runs in the named interpreter, with its own Triton."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from sessions import Home
from suites import load_task
from tests.support.command_line import Shell, one_line
from tui.diagnostics import ExitCode


def test_wrong_python_is_wrong_usage_and_leaves_nothing(
    shell: Shell, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernel.py").touch()
    for command in ("eval kernel.py --task softmax", "task check softmax", "task new kernel.py", "recheck"):
        done = shell(*command.split(), "--python", "nosuch")
        assert done.code == ExitCode.USAGE
        assert "--python nosuch: no such program" in one_line(done)
    assert not home.root.exists() or not list(home.root.iterdir())


@pytest.mark.judge
@pytest.mark.soak
def test_verdict_and_versions_are_those_of_the_named_python(shell: Shell, home: Home, tmp_path: Path) -> None:
    import triton

    folder = tmp_path / "theirs"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    theirs = packages / "triton"
    shutil.copytree(Path(str(triton.__file__)).parent, theirs, copy_function=os.symlink)
    text = (theirs / "__init__.py").read_text().replace(triton.__version__, "3.7.99")
    (theirs / "__init__.py").unlink()
    (theirs / "__init__.py").write_text(text)
    (packages / "rest.pth").write_text(sysconfig.get_path("purelib"))

    kernel = load_task("softmax").folder / "baseline.py"
    done = shell(
        "eval", str(kernel), "--task", "softmax", "--python", str(folder / "bin" / "python"), "--json"
    )
    assert done.code == ExitCode.DONE, done.err
    assert json.loads(done.out)["provenance"]["triton"] == "3.7.99"
