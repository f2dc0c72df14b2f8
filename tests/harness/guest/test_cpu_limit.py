"""Protects the CPU limit of a guest: the judge's recording overhead does not count for the candidate."""

from __future__ import annotations

import pytest

from harness.wire import limits
from harness.worker.oracle import lines

pytestmark = pytest.mark.judge


def test_cpu_limit_allows_overhead_of_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = [100.0]
    monkeypatch.setattr(lines.syscalls, "cpu_seconds", lambda _: spent[0])
    check = lines.cpu_limit(1, 30.0)
    spent[0] = 100 + 30 * (1 + limits.OVERHEAD)
    check()
    spent[0] += 0.1
    with pytest.raises(lines.GuestSlow) as caught:
        check()
    assert (caught.value.seconds, caught.value.cpu) == (30.0, True)
