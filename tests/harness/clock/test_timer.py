"""Protects a timer's answers, on host memory: changed inputs, threads that outlive a call, and shared outputs."""

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
from harness.wire.messages.guest import Ask
from harness.wire.messages.timer import LEAST_IN_BLOCK, BringBack, Done, Fetch, Renew, TakeSample
from harness.worker.kit import gpu
from harness.worker.kit.arena import Arena
from harness.worker.oracle import integrity
from harness.worker.timer.input_copies import InputCopies
from harness.worker.timer.timer import Seat
from tests.support.timing.host_memory import host_memory

__all__ = ["host_memory"]


@pytest.fixture
def timer(tmp_path: Path, host_memory: None) -> Seat:
    """A timer that uses host memory."""
    return Seat(tmp_path, Device("0", "cuda", "sm_90"))


def calling(timer: Seat, call: Callable[[int], object]) -> Seat:
    """Let the timer make this call of no inputs; each sample takes 1 ms."""
    timer._stopwatch, timer._inputs, timer._run = FakeStopwatch(), InputCopies({}, 512, 1), call  # type: ignore[assignment, method-assign]
    return timer


@pytest.mark.parametrize("changed", [False, True])
def test_input_copy_is_returned_as_calls_left_it(timer: Seat, *, changed: bool) -> None:
    arena = Arena({"x": torch.arange(1000.0), "rows": torch.arange(7), "n": 7})
    try:
        copy = torch.frombuffer(bytearray(os.pread(arena.descriptor, arena.size_bytes, 0)), dtype=torch.uint8)
        arena.blank()
        assert arena.changed() == ("x", "rows")
        timer._inputs = InputCopies(arena.arguments, arena.size_bytes, 2)
        timer._inputs.fill(copy, first=1, step=2)
        if changed:
            timer._inputs.memory[1][arena.arguments["x"].offset_bytes + 3999] += 1
        answer = timer.answer(BringBack(copy=1, handle=b""), (os.dup(arena.descriptor),))
        assert answer == Done()
        assert arena.changed() == (("x",) if changed else ())
        assert arena.broken_guards() == ()
    finally:
        arena.close()


class FakeStopwatch:
    """Calls without measuring; every sample takes 1 ms."""

    def sample(
        self, call: Callable[[int], object], count: int, *, cold: bool, ready: Callable[[], object] | None
    ) -> tuple[float, ...]:
        del cold, ready
        for number in range(count):
            call(number)
        return (1.0,) * count


@pytest.mark.parametrize("stays", [True, False])
def test_thread_that_outlives_its_call_is_reported(timer: Seat, *, stays: bool) -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    earlier_threads = gpu.running_threads()
    try:
        calling(timer, lambda _: thread.start()).answer(TakeSample(count=1, cold=True), ())
        if not stays:
            over.set()
            thread.join()
        farewell = timer.answer(Ask.FAREWELL, ())
    finally:
        over.set()
        thread.join()
    assert farewell.threads == earlier_threads + 1
    finding = integrity.of_farewell(farewell)
    assert finding.kind == "left_behind"


def test_candidate_without_leftovers_has_no_extra_threads(timer: Seat) -> None:
    earlier_threads = gpu.running_threads()
    farewell = timer.answer(Ask.FAREWELL, ())
    assert farewell.threads == earlier_threads


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (lambda _number, _reused: torch.ones(8), ""),
        (lambda number, reused: reused[number % 2], "the output of another call"),
        (lambda number, reused: reused[0][number : number + 4], "the output of another call"),
    ],
    ids=["new", "two in turn", "overlapping"],
)
def test_output_in_memory_of_earlier_call_is_reported(
    timer: Seat, returned: Callable[[int, Any], torch.Tensor], words: str
) -> None:
    reused = torch.zeros(8), torch.zeros(8)
    numbers = itertools.count()
    calling(timer, lambda _: returned(next(numbers), reused)).answer(Renew(handle=b""), ())
    timer.answer(TakeSample(count=LEAST_IN_BLOCK, cold=True), ())
    fetched = timer.answer(Fetch(calls=(LEAST_IN_BLOCK - 1,), parts=((0, 4),)), ())
    assert fetched.outputs[0].aliases == words
