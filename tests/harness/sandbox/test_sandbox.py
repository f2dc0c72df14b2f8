"""Protects the sandbox of a guest: a candidate tries each forbidden action, and prints the outcome."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from harness import DevicePool, probe
from harness.linux.process_environment import DROPPED
from suites import load_task
from tests.support.judge.candidates import adding
from tests.support.judge.judging import judge
from tests.support.judge.nurseries import one_nursery

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]
TASK_FILES = ("problem.py", "baseline.py", "task.toml")


class Guest(NamedTuple):
    """One guest after its attempts."""

    layers: dict[str, str]
    """State of each sandbox layer, by name."""
    outcomes: dict[str, Any]
    """The error of each forbidden action, or `allowed`; the names in the environment, and the working folder."""
    planted: Path
    """The file that it tried to make."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guest(pool: DevicePool, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    folder = tmp_path_factory.mktemp("foreign")
    secret, planted = folder / "secret", folder / "planted"
    secret.write_text("key")
    files = {name: load_task("vector_add").folder / name for name in TASK_FILES} | {"foreign file": secret}
    actions = {name: f"system.open({str(path)!r}, 0)" for name, path in files.items()} | {
        "write": f"system.open({str(planted)!r}, system.O_CREAT | 1)",
        "process": f"system.listdir('/proc/{os.getpid()}')",
        "signal": f"system.kill({os.getpid()}, 0)",
        "network": "socket.create_connection(('127.0.0.1', 9), timeout=2)",
        "program": "system.execv('/bin/sh', ['sh', '-c', 'true'])",
    }
    attempts = ", ".join(f"({name!r}, lambda: {action})" for name, action in actions.items())
    before = f"""system = [torch][0].os
    socket = [triton][0].runtime.build.subprocess.selectors.sys.modules['socket']
    outcomes = [('environment', sorted(system.environ)), ('folder', system.getcwd())]
    for name, act in [{attempts}]:
        try: outcomes.append((name, (act(), 'allowed')[1]))
        except OSError as error: outcomes.append((name, repr(error)))
    print(outcomes)"""
    evaluation = await judge(pool, adding(before=before), cases=1)
    lines = [line for line in evaluation.printed.splitlines() if line.startswith("[('environment'")]
    assert lines, (evaluation.error, evaluation.printed)
    layers = {layer.name: layer.state for layer in evaluation.sandbox}
    return Guest(layers, dict(ast.literal_eval(lines[0])), planted)


@pytest.mark.parametrize(
    ("action", "layer"),
    [
        *((name, "read-allow-list") for name in (*TASK_FILES, "foreign file", "write", "process", "program")),
        ("signal", "signal-scope"),
        ("network", "network"),
    ],
)
async def test_guest_is_refused(guest: Guest, action: str, layer: str) -> None:
    if guest.layers[layer] != "active":
        pytest.skip(f"this machine has no {layer}")
    outcome = guest.outcomes[action]
    assert "PermissionError" in outcome or (action == "network" and "unreachable" in outcome)
    assert action != "write" or not guest.planted.exists()


async def test_guest_environment_has_no_keys(guest: Guest) -> None:
    # Another test of this process may have set a variable that is named there.
    names = {name for name in guest.outcomes["environment"] if name != DROPPED}
    for word in ("KEY", "TOKEN", "SECRET", "WAVEDECK"):
        assert word not in str(names)


async def test_scratch_folder_is_working_folder_and_is_removed(guest: Guest) -> None:
    folder = Path(guest.outcomes["folder"])
    assert folder.name.startswith("wavedeck-guest-")
    assert not os.path.exists(folder)  # noqa: PTH110, ASYNC240 -- a quick look at the end


async def test_probe_reports_sandbox_layers() -> None:
    with one_nursery():
        report = await probe()
    assert report.judges
    assert report.forks is True
    assert report.torch is not None
    assert {layer.state for layer in report.sandbox} <= {"active", "absent", "failed"}
    assert all(layer.why for layer in report.sandbox if layer.state != "active")
    assert report.devices[0].name == "cpu"
