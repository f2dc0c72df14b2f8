"""Protects the limit of host code at `gpu` sizes: the compiler's time is not the host code's."""

from __future__ import annotations

import time

import pytest

from harness.worker.compiler.capture import CompiledLaunch, compile_kernel
from harness.worker.compiler.host_code import HostTime, HostTooSlow

pytestmark = pytest.mark.judge


def use_cpu(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_time_of_the_compiler_does_not_count() -> None:
    launch = CompiledLaunch("kernel", 1)
    with HostTime(use_cpu.__code__.co_filename, 0.1):
        compile_kernel(lambda: use_cpu(0.3), launch)
    with pytest.raises(HostTooSlow), HostTime(use_cpu.__code__.co_filename, 0.1):
        use_cpu(60)
