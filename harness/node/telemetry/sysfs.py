"""An AMD GPU by what its kernel driver shows under `/sys`, where no library is."""

from __future__ import annotations

import re
import time
from pathlib import Path

from harness.wire.latency import DeviceState

from .reading import NotTold, Occupant, Reading

DEVICES = Path("/sys/bus/pci/devices")
DRIVER = Path("/sys/module/amdgpu/version")
_LEVEL = re.compile(r"^\s*\S+:\s*(\d+)\s*[Mm][Hh]z\s*\*", re.MULTILINE)


class Sysfs:
    """One AMD GPU. `NotTold` where the driver shows nothing at that address."""

    name = "sysfs"

    def __init__(self, address: str, devices: Path = DEVICES) -> None:
        self._address = address
        self._folder = devices / address
        if not (self._folder / "gpu_busy_percent").exists():
            raise NotTold(f"the amdgpu driver shows no GPU at {address}")
        self._hwmon = next(iter(sorted(self._folder.glob("hwmon/hwmon*"))), self._folder / "hwmon")
        self._labels = {
            text: file.name.removesuffix("_label")
            for file in sorted(self._hwmon.glob("temp*_label"))
            if (text := _text(file))
        }

    def read(self) -> Reading:
        """Everything that can be read quickly. The driver's own clock is one for the chip."""
        return Reading(
            at_s=time.monotonic(),
            clock_mhz=self._clock(),
            idle=_number(self._folder / "gpu_busy_percent") == 0,
            hotspot_c=self._temperature("junction"),
            memory_c=self._temperature("mem"),
            power_w=self._power(),
            memory_used_bytes=_number(self._folder / "mem_info_vram_used"),
        )

    def occupants(self) -> tuple[Occupant, ...] | None:
        """The driver does not show them here."""
        return None

    def state(self) -> DeviceState:
        """What the device is, and how it is."""
        modes = (_text(self._folder / f"current_{kind}_partition") for kind in ("compute", "memory"))
        busy = _number(self._folder / "gpu_busy_percent")
        cap = _number(self._hwmon / "power1_cap")
        return DeviceState(
            product=_text(self._folder / "product_name"),
            address=self._address,
            driver=_text(DRIVER),
            partition="/".join(mode for mode in modes if mode),
            power_cap_w=None if cap is None else cap / 1e6,
            busy_percent=None if busy is None else float(busy),
            memory_used_bytes=_number(self._folder / "mem_info_vram_used"),
            memory_total_bytes=_number(self._folder / "mem_info_vram_total"),
            clock_mhz=self._clock(),
            hotspot_c=self._temperature("junction"),
            power_w=self._power(),
        )

    def _clock(self) -> int | None:
        """Hz where `hwmon` tells, else the level that `pp_dpm_sclk` marks with a star."""
        hertz = _number(self._hwmon / "freq1_input")
        return hertz // 1_000_000 if hertz else starred(_text(self._folder / "pp_dpm_sclk"))

    def _temperature(self, label: str) -> float | None:
        """Millidegrees, by the name that the driver gives the sensor."""
        sensor = self._labels.get(label)
        found = None if sensor is None else _number(self._hwmon / f"{sensor}_input")
        return None if found is None else found / 1000

    def _power(self) -> float | None:
        """Microwatts, drawn now or on average."""
        for name in ("power1_input", "power1_average"):
            found = _number(self._hwmon / name)
            if found is not None:
                return found / 1e6
        return None


def starred(levels: str) -> int | None:
    """The level in use of a `pp_dpm_*` file (`1: 2100Mhz *`), MHz."""
    found = _LEVEL.search(levels)
    return int(found.group(1)) if found else None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""  # this driver, or this kind of chip, does not show it


def _number(file: Path) -> int | None:
    text = _text(file)
    return int(text) if text.lstrip("-").isdecimal() else None
