"""Reads an NVIDIA GPU by `nvidia-ml-py`, found by its PCI address."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from harness.wire.results.provenance import Provenance

from .reading import Occupant, Reading, SourceUnavailable, whole

REASONS = (
    ("application clocks", 0x02),
    ("power cap", 0x04),
    ("hardware slowdown", 0x08),
    ("sync boost", 0x10),
    ("heat", 0x20),
    ("hardware heat", 0x40),
    ("power brake", 0x80),
    ("display clocks", 0x100),
)
"""Bits of `nvmlDeviceGetCurrentClocksEventReasons` (source: NVML API reference, nvmlClocksEventReasons)."""
IDLE = 0x01


class Nvml:
    """One NVIDIA GPU. `SourceUnavailable` if library or driver are missing, or do not know the address."""

    name = "nvml"

    def __init__(self, address: str, library: ModuleType | None = None) -> None:
        if library is None:
            try:
                library = importlib.import_module("pynvml")
            except ImportError:
                raise SourceUnavailable(
                    "nvidia-ml-py is not installed: pip install 'wavedeck[nvidia]' for clocks, power and heat"
                ) from None
        self._nvml: Any = library
        self._address = address
        try:
            self._nvml.nvmlInit()
            self._handle = self._nvml.nvmlDeviceGetHandleByPciBusId(address.encode())
        except self._nvml.NVMLError as error:
            raise SourceUnavailable(f"NVML cannot read the GPU at {address}: {error}") from None

    def read(self) -> Reading:
        """Return one reading of the GPU. A figure that the driver does not give stays `None`. See `Source`."""
        nvml = self._nvml
        reading = Reading(at_s=time.monotonic())
        reading.clock_mhz = self._ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM)
        bits = self._reason_bits()
        if bits is not None:
            reading.idle = bool(bits & IDLE)
            reading.reasons = tuple(name for name, bit in REASONS if bits & bit)
        reading.hotspot_c = self._ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU)
        reading.memory_c = self._memory_temperature()
        reading.power_w = _thousandth(self._ask(nvml.nvmlDeviceGetPowerUsage))
        rates = self._ask(nvml.nvmlDeviceGetUtilizationRates)
        reading.busy_percent = None if rates is None else float(rates.gpu)
        reading.memory_used_bytes, reading.memory_total_bytes = self._memory()
        return reading

    def provenance(self) -> Provenance:
        """Return what identifies the GPU and its driver; empty or `None` what the driver does not give. See `Source`."""
        nvml = self._nvml
        return Provenance(
            product=_text(self._ask(nvml.nvmlDeviceGetName)),
            partition="MIG" if (self._ask(nvml.nvmlDeviceGetMigMode) or [0])[0] else "",
            address=self._address,
            driver=_text(self._ask(nvml.nvmlSystemGetDriverVersion, of_device=False)),
            firmware=_text(self._ask(nvml.nvmlDeviceGetVbiosVersion)),
            max_clock_mhz=self._ask(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_SM),
            power_cap_w=_thousandth(self._ask(nvml.nvmlDeviceGetEnforcedPowerLimit)),
        )

    def occupants(self) -> tuple[Occupant, ...] | None:
        """Return the processes with a compute context on the device; `None` if unknown."""
        processes = self._ask(self._nvml.nvmlDeviceGetComputeRunningProcesses)
        if processes is None:
            return None
        return tuple(Occupant(int(process.pid), whole(process.usedGpuMemory)) for process in processes)

    def _reason_bits(self) -> int | None:
        """Drivers and libraries before 535 have this call by its former name."""
        function = getattr(self._nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
        bits = self._ask(function) if function is not None else None
        if bits is None:
            bits = self._ask(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons)
        return whole(bits)

    def _memory(self) -> tuple[int | None, int | None]:
        """Used and total bytes; used bytes without the driver's own, if the driver separates them."""
        nvml = self._nvml
        second = getattr(nvml, "nvmlMemory_v2", None)
        memory = self._ask(nvml.nvmlDeviceGetMemoryInfo, second) if second is not None else None
        if memory is None:
            memory = self._ask(nvml.nvmlDeviceGetMemoryInfo)
        return (None, None) if memory is None else (int(memory.used), int(memory.total))

    def _memory_temperature(self) -> float | None:
        nvml = self._nvml
        fields = self._ask(nvml.nvmlDeviceGetFieldValues, [nvml.NVML_FI_DEV_MEMORY_TEMP])
        if not fields or fields[0].nvmlReturn != nvml.NVML_SUCCESS or not fields[0].value.uiVal:
            return None
        return float(fields[0].value.uiVal)

    def _ask(self, function: Callable[..., Any], *arguments: object, of_device: bool = True) -> Any:
        """The function's answer; `None` if this device or driver does not support it."""
        try:
            return function(*((self._handle, *arguments) if of_device else arguments))
        except self._nvml.NVMLError:
            return None


def _thousandth(value: object) -> float | None:
    """Milliwatts as watts."""
    count = whole(value)
    return None if count is None else count / 1000


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
