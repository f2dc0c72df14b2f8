"""Frame rate: it follows the speed at which the terminal reads."""

from __future__ import annotations

from tui.cockpit.terminal.terminal import SLOWEST_S, Governor


def test_queued_writes_slow_down_frames_until_the_queue_is_empty() -> None:
    governor = Governor(0.25)
    now = 0.0
    governor.drew(now, queued=20)
    governor.drew(governor.period_s, queued=20)
    assert governor.period_s == SLOWEST_S
    for _ in range(60):
        now += governor.period_s
        governor.drew(now, queued=0)
    assert governor.period_s == 0.25


def test_no_frame_is_due_before_its_time() -> None:
    governor = Governor(0.25)
    assert governor.due(10.0)
    governor.drew(10.0, queued=0)
    assert not governor.due(10.2)
    assert governor.due(10.25)


def test_wanted_frame_rate_applies_unless_writes_are_queued() -> None:
    governor = Governor(0.25)
    governor.want(0.125)
    assert governor.period_s == 0.125
    governor.drew(0.0, queued=20)
    governor.want(0.25)
    assert governor.period_s == 0.5
