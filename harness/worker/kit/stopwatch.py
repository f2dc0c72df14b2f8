"""Times calls with GPU events, caches cold or hot. The host runs far enough ahead that its own time does not count."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import torch

from harness.wire.messages.timer import LEAD, MOST_LEAD_MS

_DEVICE = torch.device("cuda", 0)
_SLEEP: Callable[[int], None] = torch.cuda._sleep
_EVENT: Any = torch.cuda.Event
_SYNCHRONIZE: Callable[[], None] = torch.cuda.synchronize
# Bound before foreign code is imported, so that its patches have no effect here.

CALIBRATION_CYCLES = 2_000_000
LEAD_MS = 0.02
"""Added to every lead (see `LEAD`)."""
BUSY, BUSY_MS, BUSY_TRIES = 4.0, 2.0, 3
"""The device is busy for this multiple of the host's time and this time, in so many tries, to see whether a call waits."""
LONGEST_HOST_MS = 100.0


@functools.cache
def _reset_persisting() -> Callable[[], int] | None:
    """The driver's call that makes all lines of the L2 cache normal again. AMD's has none."""
    if torch.version.hip:
        return None
    reset: Callable[[], int] | None = getattr(
        ctypes.CDLL("libcuda.so.1"), "cuCtxResetPersistingL2Cache", None
    )
    return reset


def release_persisting_lines() -> None:
    """Wait for the device, then make lines normal that a kernel asked the L2 cache to keep: the flush leaves them there."""
    reset = _reset_persisting()
    if reset is not None:
        _SYNCHRONIZE()
        reset()


_buffers: WeakValueDictionary[int, torch.Tensor] = WeakValueDictionary()
"""The flushed memory by its size, which all stopwatches of a process share."""


def _flush_buffer(flush_bytes: int) -> torch.Tensor:
    """Return a buffer of this size to overwrite the caches with; one buffer serves all stopwatches of a process."""
    buffer = _buffers.get(flush_bytes)
    if buffer is None:
        buffer = torch.zeros(max(flush_bytes // 4, 1), dtype=torch.int32, device=_DEVICE)
        _buffers[flush_bytes] = buffer
    return buffer


class Stopwatch:
    """Times calls on the GPU that this process sees."""

    def __init__(self, flush_bytes: int) -> None:
        self._buffer = _flush_buffer(flush_bytes)
        self._sum = torch.zeros((), dtype=torch.int64, device=_DEVICE)
        self._cycles_per_ms = self._calibrated()
        self._lead_cycles = 0
        self._events: list[tuple[Any, Any]] = []
        """Pairs of events, which all samples use again."""
        self.releases_lines = False
        """Call `release_persisting_lines` before each sample."""

    @property
    def flush_bytes(self) -> int:
        """Bytes that are read before each cold sample."""
        return self._buffer.numel() * 4

    def leads_by(self, host_ms: float) -> None:
        """Set how long the device spins before a sample, from the host's time to launch one call."""
        lead = min(LEAD * host_ms + LEAD_MS, MOST_LEAD_MS)
        self._lead_cycles = int(lead * self._cycles_per_ms)

    def around(self, *, cold: bool) -> None:
        """Prepare a sample: empty the caches by reads, which leave nothing to write back, then let the device spin."""
        if cold:
            torch.sum(self._buffer, dim=0, out=self._sum)
        _SLEEP(self._lead_cycles)

    def sample(
        self,
        call: Callable[[int], object],
        count: int,
        *,
        cold: bool,
        ready: Callable[[], object] | None = None,
    ) -> tuple[float, ...]:
        """Milliseconds of `call(0)`, `call(1)`, ...

        between two events each. `ready` runs before each call's caches are emptied.
        """
        while len(self._events) < count:
            self._events.append((_EVENT(enable_timing=True), _EVENT(enable_timing=True)))
        pairs = self._events[:count]
        for number, (start, end) in enumerate(pairs):
            if self.releases_lines:
                release_persisting_lines()
            if ready is not None:
                ready()
            self.around(cold=cold)
            start.record()
            call(number)
            end.record()
        _SYNCHRONIZE()
        return tuple(float(start.elapsed_time(end)) for start, end in pairs)

    def host_waits(self, call: Callable[[], object], host_ms: float) -> bool | None:
        """Return whether the host waits for the device in `call`; `None` if the host needs longer than `LONGEST_HOST_MS`.

        The device is kept busy for longer than the host needs. A call that returns before the device is idle did not wait.
        There are several tries, because other processes may hold up the host.
        """
        if host_ms > LONGEST_HOST_MS:
            return None
        cycles = int((BUSY_MS + BUSY * host_ms) * self._cycles_per_ms)
        for _ in range(BUSY_TRIES):
            _SYNCHRONIZE()
            idle = _EVENT()
            _SLEEP(cycles)
            idle.record()
            call()
            if not idle.query():
                _SYNCHRONIZE()
                return False
        return True

    def _calibrated(self) -> float:
        """Cycles of the spinning kernel per millisecond."""
        start, end = _EVENT(enable_timing=True), _EVENT(enable_timing=True)
        _SLEEP(CALIBRATION_CYCLES)
        start.record()
        _SLEEP(CALIBRATION_CYCLES)
        end.record()
        _SYNCHRONIZE()
        return CALIBRATION_CYCLES / max(float(start.elapsed_time(end)), 1e-3)


def launch_empty(number: int = 0) -> None:
    """Launch a kernel that does nothing: one that spins for no cycles, which torch has compiled already."""
    del number
    _SLEEP(0)


def host_ms(call: Callable[[int], object], calls: int = 5) -> float:
    """Shortest time of several that the host needs to launch one call, in milliseconds."""
    times_s = []
    for number in range(calls):
        _SYNCHRONIZE()
        began = time.perf_counter()
        call(number)
        times_s.append(time.perf_counter() - began)
    _SYNCHRONIZE()
    return min(times_s) * 1e3
