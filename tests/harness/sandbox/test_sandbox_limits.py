"""Protects the limits of a worker: compile time, processes, scratch folder, environment and system calls."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness.linux.process_environment import dropped_names, unexpected_names, worker_environment
from harness.sandbox import seccomp
from harness.stages.compilation import _StepLimit
from harness.wire import limits
from harness.worker.server import warden
from tests.support.programs import python


async def test_each_compiled_config_extends_time_up_to_a_limit() -> None:
    limit = _StepLimit(step_s=0.8, whole_s=1.2)
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def compile_slowly() -> None:
        async with limit.enforced():
            while True:
                await asyncio.sleep(0.1)
                limit.begin_step()

    with pytest.raises(TimeoutError):
        await compile_slowly()
    assert loop.time() - began > 1.1
    assert limit.explain().startswith("not compiled within 1.2 s, in which ")


async def test_stuck_compiler_is_reported() -> None:
    limit = _StepLimit(step_s=0.2, whole_s=60)

    async def hang() -> None:
        async with limit.enforced():
            limit.begin_step()
            await asyncio.sleep(30)

    with pytest.raises(TimeoutError):
        await hang()
    assert limit.explain().startswith("after 1 configs, nothing was compiled within 0.2 s")


def test_excess_processes_bytes_and_files_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert warden.excess((1, 2), tmp_path) == ""
    assert warden.excess((1,) * (limits.PROCESSES + 1), None) == f"more than {limits.PROCESSES} processes"
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(bytes(1 << 20))
    (tmp_path / "link").symlink_to("/")
    assert warden.excess((), tmp_path) == ""
    monkeypatch.setattr(limits, "SCRATCH_BYTES", 1 << 19)
    assert "in its folder" in warden.excess((), tmp_path)
    monkeypatch.setattr(limits, "SCRATCH_FILES", 2)
    assert warden.excess((), tmp_path) == "more than 2 files in its folder"


def test_environment_reports_dropped_switches_but_not_keys() -> None:
    source = {
        "PATH": "/bin", "ROCM_PATH": "/opt/rocm", "HSA_XNACK": "1", "ANTHROPIC_API_KEY": "sk-1",
        "HSA_OVERRIDE_GFX_VERSION": "11.0.0", "AMD_SERIALIZE_KERNEL": "3", "CUDA_LAUNCH_BLOCKING": "1",
        "HIP_LAUNCH_BLOCKING": "1", "TRITON_ALWAYS_COMPILE": "1", "TRITON_INTERPRET": "1", "LD_PRELOAD": "/tmp/mine.so",
    }  # fmt: skip
    environment = worker_environment(interpret=False, source=source)
    assert {name: environment[name] for name in ("PATH", "ROCM_PATH", "HSA_XNACK")} == {
        "PATH": "/bin", "ROCM_PATH": "/opt/rocm", "HSA_XNACK": "1",
    }  # fmt: skip
    assert dropped_names(environment) == (
        "AMD_SERIALIZE_KERNEL", "CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "HSA_OVERRIDE_GFX_VERSION",
        "LD_PRELOAD", "TRITON_ALWAYS_COMPILE", "TRITON_INTERPRET",
    )  # fmt: skip
    assert not {"ANTHROPIC_API_KEY", "AMD_SERIALIZE_KERNEL", "TRITON_INTERPRET"} & set(environment)
    assert worker_environment(interpret=True, source={})["TRITON_INTERPRET"] == "1"
    assert "sk-1" not in str(environment)
    assert "ANTHROPIC" not in str(environment)
    assert unexpected_names(environment) == ()
    assert unexpected_names({**environment, "SECRET": ""}) == ("SECRET",)


CALLS = """
import ctypes, errno, json, os, sys
from harness.sandbox import seccomp
from harness.linux import syscalls
syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
seccomp.install(seccomp.guest_filter(run_programs=False, gpu=False, own_signals=True))
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
wrong = []
for name in [*seccomp._BOTH, *seccomp._X86_ONLY, "clone3", "memfd_create", "fork", "execve"]:
    number = seccomp._number(name)
    if number is not None and (libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6) != -1
                               or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS)):
        wrong.append(name)
import threading
worker = threading.Thread(target=wrong.append, args=("",))
worker.start(); worker.join()
os.kill(os.getpid(), 0)
for act in (lambda: os.kill(os.getppid(), 0), os.fork, lambda: syscalls.keep_undumpable(),
            lambda: os.sched_setaffinity(os.getppid(), {0}), lambda: os.setpriority(0, os.getppid(), 5)):
    try:
        act()
        wrong.append("allowed")
    except PermissionError:
        pass
print(json.dumps(wrong))
"""


def test_listed_system_calls_are_refused_and_threads_allowed() -> None:
    if seccomp._number("seccomp") is None:
        pytest.skip("no table of system calls for this machine")
    assert python(CALLS).strip() == '[""]'
