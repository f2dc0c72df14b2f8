"""Protects the words for a launch that the compiler refuses."""

from __future__ import annotations

from types import ModuleType

import pytest

from harness.wire.device import Target
from harness.worker.compiler.capture import CompiledLaunch
from harness.worker.compiler.failure_wording import FailureWording

pytestmark = pytest.mark.judge


def test_assertion_and_pass_of_the_compiler_stand_beside_its_line() -> None:
    module = ModuleType("candidate")
    module.__file__ = "/scratch/candidate.py"
    log = (
        "python: /lib/Threads.cpp:341: virtual void runOnOperation(): Assertion `result.hasOneUse()' failed.\n"
        "/scratch/candidate.py:8:0: error: Failures have been detected while processing an MLIR pass pipeline\n"
        "/scratch/candidate.py:8:0: note: Pipeline failed while executing [`TritonGPUThreads` on 'builtin.module' operation]\n"
    )
    launch = CompiledLaunch("k", 8, failure=RuntimeError("PassManager::run failed"), log=log)
    assert FailureWording(module, Target("sm_90", "cuda", 32)).failure(launch) == (
        "Failures have been detected while processing an MLIR pass pipeline; "
        "in Triton's compiler: assertion result.hasOneUse(), TritonGPUThreads"
    )
