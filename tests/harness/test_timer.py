"""A timer's answers that need no GPU."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.wire.device import Device
from harness.wire.guest_messages import Farewell, LeftBehind, Returned
from harness.wire.timer_messages import LEAST_IN_BLOCK, BringBack, Done, Fetch, Renew, Sample
from harness.worker.kit import gpu
from harness.worker.kit.arena import Arena
from harness.worker.oracle import call_checks
from harness.worker.timer.timer import Timer


@pytest.fixture
def timer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Timer:
    """On memory of the host's."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    return Timer(tmp_path, Device("0", "cuda", "sm_90"))


@pytest.mark.parametrize("spoilt", [False, True])
def test_a_copy_of_the_inputs_comes_back_as_calls_left_it(timer: Timer, *, spoilt: bool) -> None:
    arena = Arena({"x": torch.arange(1000.0), "rows": torch.arange(7), "n": 7})
    try:
        laid = torch.frombuffer(bytearray(os.pread(arena.descriptor, arena.size_bytes, 0)), dtype=torch.uint8)
        arena.blank()
        assert arena.changed() == ("x", "rows")
        timer._memory = [torch.zeros_like(laid), laid]
        if spoilt:
            laid[arena.arguments[0].offset_bytes + 3999] += 1
        answer = timer.answer(BringBack(nonce="1", copy=1, handle=b""), (os.dup(arena.descriptor),))
        assert answer == Done(nonce="1")
        assert arena.changed() == (("x",) if spoilt else ())
        assert arena.broken_guards() == ()
    finally:
        arena.close()


class Watch:
    """A stopwatch without a GPU."""

    def sample(
        self, call: Callable[[int], object], count: int, *, cold: bool, ready: Callable[[], object] | None
    ) -> tuple[float, ...]:
        del cold, ready
        for number in range(count):
            call(number)
        return (1.0,) * count


@pytest.mark.parametrize("stays", [True, False])
def test_a_thread_that_outlives_its_call_is_told_of_though_it_ends_before_the_timer(
    timer: Timer, monkeypatch: pytest.MonkeyPatch, *, stays: bool
) -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    others = gpu.running_threads()
    monkeypatch.setattr(timer, "_stopwatch", Watch())
    monkeypatch.setattr(timer, "_sets", [{}])
    monkeypatch.setattr(timer, "_run", lambda _: thread.start())
    try:
        timer.answer(Sample(nonce="1", count=1, cold=True), ())
        if not stays:
            over.set()
            thread.join()
        left = timer.answer(Farewell(nonce="2"), ())
    finally:
        over.set()
        thread.join()
    assert isinstance(left, LeftBehind)
    assert left.threads == others + 1
    finding = call_checks.of_farewell(left)
    assert finding is not None
    assert finding.kind == "left_behind"


def test_a_candidate_that_leaves_nothing_running_is_let_go(timer: Timer) -> None:
    others = gpu.running_threads()
    left = timer.answer(Farewell(nonce="1"), ())
    assert isinstance(left, LeftBehind)
    assert left.threads == others


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda _number, _kept: torch.ones(8), ""),
        (lambda number, kept: kept[number % 2], "the output of another call"),
        (lambda number, kept: kept[0][number : number + 4], "the output of another call"),
    ],
    ids=["new", "two by turns", "overlapping"],
)
def test_outputs_of_calls_that_lie_in_one_place_are_told_of(
    timer: Timer, monkeypatch: pytest.MonkeyPatch, returned: Callable[[int, Any], torch.Tensor], words: str
) -> None:
    kept = torch.zeros(8), torch.zeros(8)
    numbers = itertools.count()
    monkeypatch.setattr(timer, "_stopwatch", Watch())
    monkeypatch.setattr(timer, "_sets", [{}])
    monkeypatch.setattr(timer, "_memory", [torch.zeros(1)])
    monkeypatch.setattr(timer, "_run", lambda _: returned(next(numbers), kept))
    timer.answer(Renew(nonce="1", handle=b""), ())
    timer.answer(Sample(nonce="2", count=LEAST_IN_BLOCK, cold=True), ())
    fetched = timer.answer(Fetch(nonce="3", back=LEAST_IN_BLOCK - 1, parts=((0, 4),)), ())
    assert isinstance(fetched, Returned)
    assert fetched.outputs[0].aliases == words
