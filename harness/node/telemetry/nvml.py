"""An NVIDIA GPU by `nvidia-ml-py`, found by its address on the PCI bus."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from harness.wire.latency import DeviceState

from .reading import NotTold, Occupant, Reading, whole

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
    """One NVIDIA GPU. `NotTold` where library or driver are not here, or the address is unknown to them."""

    name = "nvml"

    def __init__(self, address: str, library: ModuleType | None = None) -> None:
        if library is None:
            try:
                library = importlib.import_module("pynvml")
            except ImportError:
                raise NotTold(
                    "nvidia-ml-py is not installed: pip install 'wavedeck[nvidia]' for clocks, power and heat"
                ) from None
        self._nvml: Any = library
        self._address = address
        try:
            self._nvml.nvmlInit()
            self._handle = self._nvml.nvmlDeviceGetHandleByPciBusId(address.encode())
        except self._nvml.NVMLError as error:
            raise NotTold(f"NVML does not tell of the GPU at {address}: {error}") from None

    def read(self) -> Reading:
        """Everything that can be read quickly."""
        nvml = self._nvml
        reading = Reading(at_s=time.monotonic())
        reading.clock_mhz = self._ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM)
        bits = self._reasons()
        if bits is not None:
            reading.idle = bool(bits & IDLE)
            reading.reasons = tuple(name for name, bit in REASONS if bits & bit)
        reading.hotspot_c = self._ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU)
        reading.memory_c = self._memory_temperature()
        reading.power_w = _thousandth(self._ask(nvml.nvmlDeviceGetPowerUsage))
        reading.energy_j = _thousandth(self._ask(nvml.nvmlDeviceGetTotalEnergyConsumption))
        reading.memory_used_bytes = self._memory()[0]
        return reading

    def state(self) -> DeviceState:
        """What the device is, and how it is."""
        nvml = self._nvml
        used, total = self._memory()
        rates = self._ask(nvml.nvmlDeviceGetUtilizationRates)
        return DeviceState(
            product=_text(self._ask(nvml.nvmlDeviceGetName)),
            address=self._address,
            driver=_text(self._ask(nvml.nvmlSystemGetDriverVersion, bare=True)),
            partition="MIG" if (self._ask(nvml.nvmlDeviceGetMigMode) or [0])[0] else "",
            power_cap_w=_thousandth(self._ask(nvml.nvmlDeviceGetEnforcedPowerLimit)),
            busy_percent=None if rates is None else float(rates.gpu),
            memory_used_bytes=used,
            memory_total_bytes=total,
            clock_mhz=self._ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM),
            hotspot_c=self._ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU),
            power_w=_thousandth(self._ask(nvml.nvmlDeviceGetPowerUsage)),
        )

    def _reasons(self) -> int | None:
        """Drivers and libraries before 535 know the call by its former name."""
        asked = getattr(self._nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
        found = self._ask(asked) if asked is not None else None
        if found is None:
            found = self._ask(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons)
        return whole(found)

    def _memory(self) -> tuple[int | None, int | None]:
        """Bytes used, without what the driver keeps for itself where it says so, and of the whole device."""
        nvml = self._nvml
        second = getattr(nvml, "nvmlMemory_v2", None)
        found = self._ask(nvml.nvmlDeviceGetMemoryInfo, second) if second is not None else None
        if found is None:
            found = self._ask(nvml.nvmlDeviceGetMemoryInfo)
        return (None, None) if found is None else (int(found.used), int(found.total))

    def _memory_temperature(self) -> float | None:
        nvml = self._nvml
        found = self._ask(nvml.nvmlDeviceGetFieldValues, [nvml.NVML_FI_DEV_MEMORY_TEMP])
        if not found or found[0].nvmlReturn != nvml.NVML_SUCCESS or not found[0].value.uiVal:
            return None
        return float(found[0].value.uiVal)

    def occupants(self) -> tuple[Occupant, ...] | None:
        """Processes with a compute context on the device."""
        found = self._ask(self._nvml.nvmlDeviceGetComputeRunningProcesses)
        if found is None:
            return None
        return tuple(Occupant(int(each.pid), whole(each.usedGpuMemory)) for each in found)

    def _ask(self, asked: Callable[..., Any], *arguments: object, bare: bool = False) -> Any:
        """What a call answers; `None` where this device or driver does not support it."""
        try:
            return asked(*(arguments if bare else (self._handle, *arguments)))
        except self._nvml.NVMLError:
            return None


def _thousandth(value: object) -> float | None:
    """Of milliwatts and millijoules."""
    found = whole(value)
    return None if found is None else found / 1000


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
