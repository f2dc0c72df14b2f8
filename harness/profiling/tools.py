"""The profilers: which one fits a GPU, how it is started, and why it cannot count."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from harness.wire.errors import is_out_of_memory
from harness.wire.results.kernel_counts import KernelProfile

from .hatchet import read_hatchet
from .launches import ProfileFailed
from .ncu_report import METRICS, read_ncu
from .rocpd import PASSES, read_rocpd

NCU, ROCPROF, PROTON = "ncu", "rocprofv3", "proton"
_PLACES = {
    NCU: ("usr/local/cuda*/bin/ncu", "opt/nvidia/nsight-compute/*/ncu"),
    ROCPROF: ("opt/rocm*/bin/rocprofv3",),
}
_CSV, _HATCHET, _DATABASE = "ncu.csv", "profile.hatchet", "pass*.db"
_OF_KIND = {"cuda": NCU, "hip": ROCPROF}
_INSTALL = {
    NCU: "install NVIDIA Nsight Compute, and put `ncu` into PATH",
    ROCPROF: "install rocprofiler-sdk of ROCm 7 or newer, and put `rocprofv3` into PATH",
}
_NSIGHT = "/opt/nvidia"
"""`ncu` in the folder of CUDA is often a script that starts the one below this folder."""
_OLDEST_NCU = (2022, 3)
"""The first that knows Hopper."""
_VERSION_S = 30.0
_PERMISSION = {
    "ERR_NVGPUCTRPERM": "this user may not read the GPU's counters (ERR_NVGPUCTRPERM); run as root or with CAP_SYS_ADMIN, or have "
    "the administrator load the module nvidia with NVreg_RestrictProfilingToAdminUsers=0",
    "perf_event_paranoid": "this user may not read counters; have the administrator run: sysctl kernel.perf_event_paranoid=1",
    "invalid choice: 'rocpd'": "it is too old to write rocpd; update to ROCm 7 or newer",
    "unrecognised option": "it is too old for an option that is needed; update it",
    "unrecognized arguments": "it is too old for an option that is needed; update it",
}
"""The remedy for each sign that a tool prints if it cannot count."""


class Tool(NamedTuple):
    """A profiler of this machine."""

    name: str
    version: str
    program: str = ""
    """Empty for Proton, which runs inside the profiled process."""

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders that it reads while it counts."""
        file = Path(self.program).resolve()
        return (str(file.parent), str(file.parent.parent), _NSIGHT) if self.program else ()

    @property
    def empties_caches(self) -> bool:
        """True if it empties the caches itself, before each launch."""
        return self.name == NCU

    @property
    def how(self) -> str:
        """State of caches and clocks while it counts, in words."""
        before = "each launch" if self.empties_caches else "the call"
        return f"caches emptied before {before}, clocks as they are"

    @property
    def passes(self) -> int:
        """How often it runs the program."""
        return len(PASSES) if self.name == ROCPROF else 1

    def files(self, scratch: Path) -> list[Path]:
        """Return the files of one pass. Only the tool itself can write ncu's; foreign code can write the others."""
        if self.name == NCU:
            return [scratch.parent / _CSV]
        return sorted(scratch.glob(_DATABASE if self.name == ROCPROF else _HATCHET))

    def read(self, files: Sequence[Path]) -> list[KernelProfile]:
        """Return the launches of the files of all passes. Raises `ProfileFailed`."""
        try:
            if self.name == NCU:
                return read_ncu(files[0].read_text(encoding="utf-8", errors="replace"))
            return read_rocpd(files) if self.name == ROCPROF else read_hatchet(files[0])
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise ProfileFailed(f"its file has an unknown form ({error!r})") from error

    def command(self, number: int, scratch: Path, target: Sequence[str]) -> list[str]:
        """Return the command line of one pass, which runs `target` under the tool."""
        if self.name == NCU:
            options = [
                "--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "function", "--metrics", ",".join(METRICS),
                "--profile-from-start", "off", "--clock-control", "none", "--cache-control", "all",
                "--target-processes", "application-only", "--log-file", str(scratch.parent / _CSV),
            ]  # fmt: skip
            return [self.program, *options, *target]
        if self.name == ROCPROF:
            options = [
                "--kernel-trace", "--output-format", "rocpd", "--output-directory", str(scratch), "--output-file", f"pass{number}",
            ]  # fmt: skip
            return [self.program, *options, "--pmc", *PASSES[number], "--", *target]
        return list(target)


def find_tool(kind: str, path: str) -> Tool:
    """Return the tool that reads counters of GPUs of this kind (`cuda`, `hip`). Raises `ProfileFailed` without a usable one."""
    name = _OF_KIND[kind]
    in_path = shutil.which(name, path=path)
    usual = sorted(str(file) for place in _PLACES[name] for file in Path("/").glob(place))
    programs = [in_path] if in_path else usual[-1:]
    if not programs:
        raise ProfileFailed(f"{name} is not installed; {_INSTALL[name]}")
    program = programs[0]
    try:
        printed = subprocess.run(
            [program, "--version"], capture_output=True, text=True, errors="replace", check=False,
            stdin=subprocess.DEVNULL, timeout=_VERSION_S,
        ).stdout  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProfileFailed(f"{program} does not start ({error}); {_INSTALL[name]}") from error
    version = re.search(r"version:?\s*(\d+(?:\.\d+)*)", printed, re.IGNORECASE)
    words = version[1] if version is not None else "of an unknown version"
    if name == NCU and version is not None and tuple(map(int, words.split(".")[:2])) < _OLDEST_NCU:
        oldest = ".".join(map(str, _OLDEST_NCU))
        raise ProfileFailed(f"{program} {words} is older than {oldest}; {_INSTALL[name]}")
    return Tool(name, words, program)


def refusal(tool: Tool, printed: str) -> str:
    """Return in one line why the tool could not count, and what to do."""
    for sign, remedy in _PERMISSION.items():
        if sign in printed:
            return f"{tool.name} {tool.version}: {remedy}"
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()] or lines[-1:] or ["it printed nothing"]
    return f"{tool.name} {tool.version} counted nothing: {errors[0].removeprefix('==ERROR== ').removeprefix('error: ')[:300]}"


def explain_failure(tool: Tool, problem: str) -> str:
    """Return in one line why a source did not run to its end under the tool; a full GPU may be no fault of the source."""
    if is_out_of_memory(problem):
        return f"the GPU's memory was full under {tool.name}; idle judges and other sessions hold a part of it, so end them and ask again"
    return f"the source fails under {tool.name}: {problem[:300]}"
