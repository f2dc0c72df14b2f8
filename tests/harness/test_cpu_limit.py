"""The judge's own recording does not count against a candidate's CPU seconds."""

from __future__ import annotations

import pytest

from harness.wire import limits
from harness.worker.oracle import guest_link

pytestmark = pytest.mark.judge


def test_a_limit_leaves_room_for_the_judges_own_work_and_names_the_candidates_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spent = [100.0]
    monkeypatch.setattr(guest_link.syscalls, "cpu_seconds", lambda _: spent[0])
    check = guest_link.cpu_limit(1, 30.0)
    spent[0] = 100 + 30 * (1 + limits.OVERHEAD)
    check()
    spent[0] += 0.1
    with pytest.raises(guest_link.GuestSlow) as caught:
        check()
    assert (caught.value.seconds, caught.value.cpu) == (30.0, True)
