"""Frames come as fast as the terminal takes them."""

from __future__ import annotations

from tui.cockpit.governor import SLOWEST_S, Governor


def test_writes_that_pile_up_slow_it_down_and_it_recovers() -> None:
    governor = Governor(0.25)
    now = 0.0
    governor.drew(now, queued=20)
    governor.drew(governor.period_s, queued=20)
    assert governor.period_s == SLOWEST_S
    for _ in range(60):
        now += governor.period_s
        governor.drew(now, queued=0)
    assert governor.period_s == 0.25


def test_nothing_is_due_before_its_time() -> None:
    governor = Governor(0.25)
    assert governor.due(10.0)
    governor.drew(10.0, queued=0)
    assert not governor.due(10.2)
    assert governor.due(10.25)


def test_a_screen_that_wants_more_frames_gets_them_unless_held_back() -> None:
    governor = Governor(0.25)
    governor.want(0.125)
    assert governor.period_s == 0.125
    governor.drew(0.0, queued=20)
    governor.want(0.25)
    assert governor.period_s == 0.5
