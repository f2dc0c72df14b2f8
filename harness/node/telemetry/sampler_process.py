"""Samples one GPU: `python -m harness.node.telemetry.sampler_process ADDRESS KIND`, one request and one reply per line.

It is a process of its own because amdsmi disturbs torch, and because a library that hangs must not stop the judge. It ends
with its standard input.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable

import msgspec

from harness.wire.results.latency import DeviceReading, Window
from harness.wire.results.provenance import Provenance

from .amd import AmdSmi
from .nvml import Nvml
from .other_processes import Family, count_others, in_host_namespace
from .reading import Reading, Source, SourceUnavailable
from .samples import (
    REQUESTS,
    AskState,
    BeginSampling,
    Begun,
    DevicePoint,
    EndSampling,
    Reply,
    Request,
    StateReport,
    Watched,
)
from .sysfs import Sysfs
from .window_summary import summarize_window

PERIOD_S = 0.015
PROCESS_PERIOD_S = 0.1
"""Time between two looks at the device's processes, which may take longer than all other readings together."""
MOST_READINGS = 20_000
"""Readings of one window (five minutes). Later ones are not taken, and the window's note says so."""
SOURCES: dict[str, tuple[Callable[[str], Source], ...]] = {"cuda": (Nvml,), "hip": (AmdSmi, Sysfs)}


def find_source(address: str, kind: str) -> tuple[Source | None, str]:
    """Return the first source that reads the device, and why the sources before it do not."""
    notes: list[str] = []
    for source in SOURCES.get(kind, ()):
        try:
            return source(address), "; ".join(notes)
        except SourceUnavailable as error:
            notes.append(str(error))
    return None, "; ".join(notes) or f"no source reads a device of kind {kind}"


_STATE = tuple(name for name in DeviceReading.__struct_fields__ if name != "other_processes")
"""Fields of a state that a reading has too."""


class Sampling:
    """One device and its current window."""

    def __init__(self, source: Source | None, note: str = "", *, host: bool | None = None) -> None:
        self._source = source
        self._note = note
        self._host = in_host_namespace() if host is None else host
        self._family = Family()
        self._readings: list[Reading] = []
        self._points: list[DevicePoint] = []
        self._others: int | None = None
        self._others_due = 0.0
        self._provenance = Provenance() if source is None else source.provenance()
        self.open = False
        """Whether a window has begun and samples are due."""

    def answer(self, request: Request) -> Reply:
        """Return the device's state, begin a window of samples, or end the window and return it.

        A new window drops an open one.
        """
        match request:
            case AskState(own_pids):
                name = self._source.name if self._source else ""
                return StateReport(self._state(own_pids), name, self._note, self._provenance)
            case BeginSampling(own_pids):
                self._family = Family(own_pids)
                self._readings, self._points = [], []
                self._others_due = 0.0
                self.open = self._source is not None
                self.sample()
                return Begun()
            case EndSampling():
                self.sample()
                self.open = False
                return self._watched()

    def sample(self) -> None:
        """Take one more reading of an open window."""
        if not self.open or self._source is None or len(self._readings) >= MOST_READINGS:
            return
        reading = self._source.read()
        if reading.at_s >= self._others_due:
            self._others = self._count_others(self._source, self._family, reading)
            self._others_due = time.monotonic() + PROCESS_PERIOD_S
        self._readings.append(reading)
        self._points.append(DevicePoint(reading.at_s, reading.clock_mhz, self._others, reading.idle))

    def _count_others(self, source: Source, family: Family, reading: Reading) -> int | None:
        return count_others(source.occupants(), family, reading.memory_used_bytes, host=self._host)

    def _watched(self) -> Watched:
        if self._source is None:
            return Watched(Window(source="", seconds=0.0), note=self._note)
        is_full = len(self._readings) >= MOST_READINGS
        full_note = f"only its first {MOST_READINGS * PERIOD_S:.0f} s were watched" if is_full else ""
        window = summarize_window(self._source.name, self._readings, self._points, ended_s=time.monotonic())
        return Watched(window, tuple(self._points), "; ".join(filter(None, (self._note, full_note))))

    def _state(self, own_pids: tuple[int, ...] | None) -> DeviceReading:
        if self._source is None:
            return DeviceReading()
        reading = self._source.read()
        others = None
        if own_pids is not None:
            others = self._count_others(self._source, Family(own_pids), reading)
        values = {name: getattr(reading, name) for name in _STATE}
        return DeviceReading(**values, other_processes=others)


def serve(sampling: Sampling, requests: int, replies: int) -> None:
    """Answer requests between two descriptors, and sample in between, until the requests end."""
    incomplete = b""
    due = time.monotonic()
    while True:
        timeout = max(due - time.monotonic(), 0.0) if sampling.open else None
        if not select.select([requests], [], [], timeout)[0]:
            sampling.sample()
            due = time.monotonic() + PERIOD_S  # from now on, so that a slow library gets no backlog
            continue
        received = os.read(requests, 1 << 16)
        if not received:
            return
        *lines, incomplete = (incomplete + received).split(b"\n")
        for line in lines:
            _write(replies, msgspec.json.encode(sampling.answer(REQUESTS.decode(line))) + b"\n")
        due = time.monotonic() + PERIOD_S


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def main(arguments: list[str]) -> None:
    """Serve on standard input and output. Text that a library prints goes to standard error."""
    address, kind = arguments
    replies = os.dup(1)
    os.dup2(2, 1)
    serve(Sampling(*find_source(address, kind)), 0, replies)


if __name__ == "__main__":
    main(sys.argv[1:])
