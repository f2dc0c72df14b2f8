"""Samples one GPU between two marks: `python -m harness.node.telemetry.sampler_process ADDRESS KIND`, a request and a reply a line.

A process of its own, since amdsmi disturbs torch and a library that hangs must not take the judge along. It ends with its
standard input.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable

import msgspec

from harness.wire.latency import DeviceState, Window

from .amd import AmdSmi
from .company import Family, in_host_namespace, others
from .nvml import Nvml
from .reading import NotTold, Reading, Source
from .samples import REQUESTS, AskState, Begin, Begun, End, Ended, Point, Reply, Request, StateTold, Watched
from .sysfs import Sysfs
from .window_summary import summary

PERIOD_S = 0.015
COMPANY_S = 0.1
"""Between two looks at the device's processes, which may take longer than all else together."""
MOST_READINGS = 20_000
"""Of one window: five minutes. Later ones are not taken, and the window says so."""
SOURCES: dict[str, tuple[Callable[[str], Source], ...]] = {"cuda": (Nvml,), "hip": (AmdSmi, Sysfs)}


def find(address: str, kind: str) -> tuple[Source | None, str]:
    """The first library that tells of the device, and why those before it do not."""
    notes: list[str] = []
    for source in SOURCES.get(kind, ()):
        try:
            return source(address), "; ".join(notes)
        except NotTold as why:
            notes.append(str(why))
    return None, "; ".join(notes) or f"nothing tells of a device of kind {kind}"


class Sampling:
    """One device and, while there is one, the window over it."""

    def __init__(self, source: Source | None, note: str = "", *, host: bool | None = None) -> None:
        self._source = source
        self._note = note
        self._host = in_host_namespace() if host is None else host
        self._family = Family()
        self._readings: list[Reading] = []
        self._points: list[Point] = []
        self._company: int | None = None
        self._company_due = 0.0
        self.open = False
        """Whether a window has begun and samples are due."""

    def answer(self, request: Request) -> Reply:
        """Do what is asked."""
        match request:
            case AskState(own_pids):
                return StateTold(
                    state=self._state(own_pids),
                    source=self._source.name if self._source else "",
                    note=self._note,
                )
            case Begin(own_pids):
                self._family = Family(own_pids)
                self._readings, self._points = [], []
                self._company_due = 0.0
                self.open = self._source is not None
                self.sample()
                return Begun()
            case End():
                self.sample()
                self.open = False
                return Ended(self._watched())

    def sample(self) -> None:
        """One more reading of an open window."""
        if not self.open or self._source is None or len(self._readings) >= MOST_READINGS:
            return
        reading = self._source.read()
        if reading.at_s >= self._company_due:
            self._company = self._others(self._source, self._family, reading)
            self._company_due = time.monotonic() + COMPANY_S
        self._readings.append(reading)
        self._points.append(
            Point(reading.at_s, reading.clock_mhz, self._company, reading.idle, reading.energy_j)
        )

    def _others(self, source: Source, family: Family, reading: Reading) -> int | None:
        return others(source.occupants(), family, reading.memory_used_bytes, host=self._host)

    def _watched(self) -> Watched:
        if self._source is None:
            return Watched(Window(source="", seconds=0.0), note=self._note)
        note = self._note
        if len(self._readings) >= MOST_READINGS:
            note = "; ".join(
                filter(None, (note, f"only its first {MOST_READINGS * PERIOD_S:.0f} s were watched"))
            )
        window = summary(self._source.name, self._readings, self._points, ended_s=time.monotonic())
        return Watched(window, tuple(self._points), note)

    def _state(self, own_pids: tuple[int, ...] | None) -> DeviceState:
        if self._source is None:
            return DeviceState()
        reading = self._source.read()
        state = msgspec.structs.replace(self._source.state(), energy_j=reading.energy_j)
        if own_pids is None:
            return state
        company = self._others(self._source, Family(own_pids), reading)
        return msgspec.structs.replace(state, other_processes=company)


def serve(sampling: Sampling, asked: int, answers: int) -> None:
    """Answer on one descriptor what is asked on another, and sample in between, until that one ends."""
    waiting = b""
    due = time.monotonic()
    while True:
        timeout = max(due - time.monotonic(), 0.0) if sampling.open else None
        if not select.select([asked], [], [], timeout)[0]:
            sampling.sample()
            # From now, not from when it was due: a slow library gets no backlog.
            due = time.monotonic() + PERIOD_S
            continue
        received = os.read(asked, 1 << 16)
        if not received:
            return
        *lines, waiting = (waiting + received).split(b"\n")
        for line in lines:
            _write(answers, msgspec.json.encode(sampling.answer(REQUESTS.decode(line))) + b"\n")
        due = time.monotonic() + PERIOD_S


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def main(arguments: list[str]) -> None:
    """Serve on standard input and output; a library that prints reaches the log instead."""
    address, kind = arguments
    answers = os.dup(1)
    os.dup2(2, 1)
    source, note = find(address, kind)
    serve(Sampling(source, note), 0, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
