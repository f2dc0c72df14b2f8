"""Reads an AMD GPU from its kernel driver's files under `/sys`, for machines without amdsmi."""

from __future__ import annotations

import re
import time
from pathlib import Path

from harness.node.drivers import PCI_DEVICES, read_number, read_text
from harness.wire.results.provenance import Provenance

from .reading import Occupant, Reading, SourceUnavailable

DRIVER = Path("/sys/module/amdgpu/version")
_LEVELS = re.compile(r"(\d+)\s*[Mm][Hh]z")
_LEVEL = re.compile(r"^\s*\S+:\s*(\d+)\s*[Mm][Hh]z\s*\*", re.MULTILINE)


class Sysfs:
    """One AMD GPU. `SourceUnavailable` if the driver shows nothing at that address."""

    name = "sysfs"

    def __init__(self, address: str, devices: Path = PCI_DEVICES) -> None:
        self._address = address
        self._folder = devices / address
        if not (self._folder / "gpu_busy_percent").exists():
            raise SourceUnavailable(f"the amdgpu driver shows no GPU at {address}")
        self._hwmon = next(iter(sorted(self._folder.glob("hwmon/hwmon*"))), self._folder / "hwmon")
        self._sensors = {
            label: file.name.removesuffix("_label")
            for file in sorted(self._hwmon.glob("temp*_label"))
            if (label := read_text(file))
        }

    def read(self) -> Reading:
        """Return one reading of the GPU; the driver reports one clock for the whole chip.

        A figure without a file is `None`. See `Source`.
        """
        busy_percent = _scaled(self._folder / "gpu_busy_percent", 1)
        return Reading(
            at_s=time.monotonic(),
            clock_mhz=self._clock(),
            busy_percent=busy_percent,
            idle=busy_percent == 0,
            hotspot_c=self._temperature("junction"),
            memory_c=self._temperature("mem"),
            power_w=self._power(),
            memory_used_bytes=read_number(self._folder / "mem_info_vram_used"),
            memory_total_bytes=read_number(self._folder / "mem_info_vram_total"),
        )

    def occupants(self) -> tuple[Occupant, ...] | None:
        """Return `None`: these files do not show processes."""
        return None

    def provenance(self) -> Provenance:
        """Return what identifies the GPU and its driver; empty or `None` what has no file. See `Source`."""
        modes = (read_text(self._folder / f"current_{kind}_partition") for kind in ("compute", "memory"))
        return Provenance(
            product=read_text(self._folder / "product_name"),
            partition="/".join(filter(None, modes)),
            address=self._address,
            driver=read_text(DRIVER),
            firmware=read_text(self._folder / "vbios_version"),
            max_clock_mhz=highest_level(read_text(self._folder / "pp_dpm_sclk")),
            power_cap_w=_scaled(self._hwmon / "power1_cap", 1e6),
        )

    def _clock(self) -> int | None:
        """The clock of `hwmon` (Hz), else the marked level of `pp_dpm_sclk`."""
        hertz = read_number(self._hwmon / "freq1_input")
        return hertz // 1_000_000 if hertz else marked_level(read_text(self._folder / "pp_dpm_sclk"))

    def _temperature(self, label: str) -> float | None:
        """The temperature of the sensor to which the driver gives this label (millidegrees)."""
        sensor = self._sensors.get(label)
        return None if sensor is None else _scaled(self._hwmon / f"{sensor}_input", 1000)

    def _power(self) -> float | None:
        """The current power, else the average (microwatts)."""
        current = _scaled(self._hwmon / "power1_input", 1e6)
        return _scaled(self._hwmon / "power1_average", 1e6) if current is None else current


def highest_level(levels: str) -> int | None:
    """Return the highest level of a `pp_dpm_*` file in MHz; `None` if it has none."""
    return max(map(int, _LEVELS.findall(levels)), default=None)


def marked_level(levels: str) -> int | None:
    """Return the level in use in MHz, which a `pp_dpm_*` file marks with a star (`1: 2100Mhz *`)."""
    level = _LEVEL.search(levels)
    return int(level.group(1)) if level else None


def _scaled(file: Path, divisor: float) -> float | None:
    value = read_number(file)
    return None if value is None else value / divisor
