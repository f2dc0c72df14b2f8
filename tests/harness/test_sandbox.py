"""Protects the sandbox of a guest: a candidate tries a forbidden action, and its exception shows the refusal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import pytest_asyncio

from harness import DevicePool, Verdict, probe
from suites import load_task
from tests.support.candidates import adding
from tests.support.judging import judge
from tests.support.nurseries import one_nursery

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]
OS = "system = [torch][0].os; "


async def error_of(pool: DevicePool, statement: str) -> str:
    evaluation = await judge(pool, adding(before=statement), cases=1)
    assert evaluation.verdict is Verdict.CALL_ERROR, evaluation.error
    return evaluation.error.message


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def layers(pool: DevicePool) -> dict[str, str]:
    """State of each sandbox layer, by name."""
    evaluation = await judge(pool, adding(result="None"), cases=1)
    return {layer.name: layer.state for layer in evaluation.sandbox}


@pytest.mark.parametrize("file", ["problem.py", "baseline.py", "task.toml"])
async def test_guest_cannot_read_task_files(pool: DevicePool, layers: dict[str, str], file: str) -> None:
    if layers["read-allow-list"] != "active":
        pytest.skip("this kernel has no Landlock")
    path = load_task("vector_add").folder / file
    assert "PermissionError" in await error_of(pool, f"{OS}system.open({str(path)!r}, 0)")


async def test_guest_cannot_read_foreign_files_or_processes(
    pool: DevicePool, layers: dict[str, str], tmp_path: Path
) -> None:
    if layers["read-allow-list"] != "active":
        pytest.skip("this kernel has no Landlock")
    secret = tmp_path / "secret"
    secret.write_text("key")
    assert "PermissionError" in await error_of(pool, f"{OS}system.open({str(secret)!r}, 0)")
    assert "PermissionError" in await error_of(pool, f"{OS}system.listdir('/proc/{os.getpid()}')")


async def test_guest_cannot_write_outside_scratch_folder(
    pool: DevicePool, layers: dict[str, str], tmp_path: Path
) -> None:
    if layers["read-allow-list"] != "active":
        pytest.skip("this kernel has no Landlock")
    target = tmp_path / "planted"
    assert "PermissionError" in await error_of(pool, f"{OS}system.open({str(target)!r}, system.O_CREAT | 1)")
    assert not target.exists()


async def test_guest_cannot_start_a_program(pool: DevicePool, layers: dict[str, str]) -> None:
    if layers["read-allow-list"] != "active":
        pytest.skip("this kernel has no Landlock")
    assert "PermissionError" in await error_of(pool, f"{OS}system.execv('/bin/sh', ['sh', '-c', 'true'])")


async def test_guest_cannot_signal_the_engine(pool: DevicePool, layers: dict[str, str]) -> None:
    if layers["signal-scope"] != "active":
        pytest.skip("this kernel scopes no signals")
    assert "PermissionError" in await error_of(pool, f"{OS}system.kill({os.getpid()}, 0)")


async def test_guest_has_no_network(pool: DevicePool, layers: dict[str, str]) -> None:
    if layers["network"] != "active":
        pytest.skip("this machine forbids network namespaces")
    connect = "socket = [triton][0].runtime.build.subprocess.selectors.sys.modules['socket']"
    call = "socket.create_connection(('127.0.0.1', 9), timeout=2)"
    message = await error_of(pool, f"{connect}; {call}")
    assert "unreachable" in message or "PermissionError" in message


async def test_guest_environment_has_no_keys(pool: DevicePool) -> None:
    message = await error_of(pool, f"{OS}raise RuntimeError(sorted(system.environ))")
    for name in ("KEY", "TOKEN", "SECRET", "WAVEDECK"):
        assert name not in message


async def test_scratch_folder_is_working_folder_and_is_removed(pool: DevicePool) -> None:
    message = await error_of(pool, f"{OS}raise RuntimeError(system.getcwd())")
    folder = Path(message.rpartition(" ")[2])
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
