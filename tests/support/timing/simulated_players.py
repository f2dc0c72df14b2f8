"""Simulated players, for GPUs that tests do not have: each fails in one way that was seen on AMD (docs/timing.md)."""

from __future__ import annotations

import random
from enum import StrEnum

import msgspec

from harness.wire.messages.clock import SIDES
from harness.wire.messages.requests import WorkerAnswer, WorkerRequest
from harness.wire.messages.timer import Done, Fetch, Rung, TakeSample
from harness.wire.results.latency import TimingMethod

from .fake_timers import Behaviour, Dies, FakeSeat, played


class Fault(StrEnum):
    """How a player fails."""

    ABORT_AT_CAPTURE = "abort at capture"
    ABORT_AT_REPLAY = "abort at replay"
    ABORT_AT_HUNDREDTH_REPLAY = "abort at the hundredth replay"
    ZERO_TIMES = "zero times"
    NEGATIVE_TIMES = "negative times"
    NAN_TIMES = "times that are no numbers"
    CORRUPT_ONE_IN_FIVE = "one replay in five corrupted"
    CORRUPT_ALL = "all replays corrupted"
    CHANGE_INPUTS = "replays that change inputs"


_TIMES = {Fault.ZERO_TIMES: 0.0, Fault.NEGATIVE_TIMES: -0.001, Fault.NAN_TIMES: float("nan")}


class SimulatedPlayers:
    """All players of a bench. They fail with series of the `failing` methods, and play single calls right."""

    def __init__(self, fault: Fault | None, *failing: TimingMethod, seed: int = 0) -> None:
        self._fault = fault
        self._failing = failing
        self._random = random.Random(seed)
        self._methods: dict[FakeSeat, TimingMethod] = {}
        """The method of the series on each seat."""
        self._corrupted: set[FakeSeat] = set()
        self._replays = 0
        self.captures: list[Rung] = []

    @property
    def behaviours(self) -> dict[str, Behaviour]:
        """For `Bench.behaviours`."""
        return {played(side): self._answer for side in SIDES}

    def _answer(self, seat: FakeSeat, request: WorkerRequest) -> WorkerAnswer | None:
        match request:
            case Rung():
                self.captures.append(request)
                self._methods[seat] = request.method
                if self._fault is Fault.ABORT_AT_CAPTURE and request.method in self._failing:
                    raise Dies
            case TakeSample(replays=True) if self._methods[seat] in self._failing:
                return self._replay(seat, request)
            case TakeSample():
                self._corrupted.discard(seat)
            case Fetch() if seat in self._corrupted:
                returned = seat.returned(request)
                zeros = msgspec.structs.replace(
                    returned.outputs[0], data=bytes(len(returned.outputs[0].data))
                )
                return msgspec.structs.replace(returned, outputs=(zeros,))
        return None

    def _replay(self, seat: FakeSeat, request: TakeSample) -> WorkerAnswer | None:
        self._replays += request.count
        if self._fault is Fault.ABORT_AT_REPLAY:
            raise Dies
        if self._fault is Fault.ABORT_AT_HUNDREDTH_REPLAY and self._replays >= 100:
            raise Dies
        if self._fault is Fault.CHANGE_INPUTS:
            start = next(iter(seat.arguments.values())).offset_bytes
            seat.input_sets = [arena[:start] + bytes(4) + arena[start + 4 :] for arena in seat.input_sets]
        if self._fault in _TIMES:
            return Done(samples_ms=(_TIMES[self._fault],) * request.count)
        share = {Fault.CORRUPT_ONE_IN_FIVE: 0.2, Fault.CORRUPT_ALL: 1.0}.get(self._fault or Fault.ZERO_TIMES)
        if share is not None:
            (self._corrupted.add if self._random.random() < share else self._corrupted.discard)(seat)
        return None
