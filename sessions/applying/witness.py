"""Proof that a benchmark ran a kernel: the binaries that its processes loaded, the launches, the share of the GPU's time."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from suites.captures.program import STARTUP

_ENVIRONMENT = "_WAVEDECK_WITNESS"
"""The same name as in the hook `wavedeck_kernel_witness`, which lives outside of our packages."""


class Load(msgspec.Struct, frozen=True, array_like=True):
    """A binary that went to the device."""

    kernel: str
    file: str
    """The file of the kernel's function, as its code names it."""
    binary: str
    """Triton's cache key: a hash of the kernel's text, its constants, its options and the compiler."""


class ProcessReport(msgspec.Struct, frozen=True):
    """The loaded binaries and traced kernels of one process."""

    loads: tuple[Load, ...] = ()
    kernels: Mapping[str, tuple[int, float]] = {}
    """Launches, and microseconds on the GPU, by kernel, in the traced windows."""
    traced_s: float = 0.0
    problem: str = ""
    """Why nothing was loaded or traced."""


_REPORT = msgspec.json.Decoder(ProcessReport)


@contextmanager
def witnessed(
    imports: Path | None, overlay: str, *, is_traced: bool
) -> Iterator[tuple[dict[str, str], list[ProcessReport]]]:
    """Yield variables with which all Python processes of a program report, and a list that has their reports at the end.

    `imports` comes first on `PYTHONPATH`; `overlay` is a file of `wavedeck apply --overlay` that they run, or empty. Processes
    that still have these variables at the end are killed: a program may have left them in another session.
    """
    reports: list[ProcessReport] = []
    with TemporaryDirectory(prefix="wavedeck-witness-", ignore_cleanup_errors=True) as folder:
        path = os.pathsep.join(map(str, filter(None, (STARTUP, imports, os.environ.get("PYTHONPATH")))))
        value = "\n".join((folder, overlay, "1" if is_traced else ""))
        try:
            # Without the last variable, CUPTI is set up anew in each window, which graphs do not bear.
            yield {"PYTHONPATH": path, _ENVIRONMENT: value, "TEARDOWN_CUPTI": "0"}, reports
        finally:
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    if f"{_ENVIRONMENT}={folder}\n".encode() in (process / "environ").read_bytes():
                        os.kill(int(process.name), signal.SIGKILL)
        reports += [_REPORT.decode(file.read_bytes()) for file in Path(folder).glob("*.json")]


class WatchedKernel(NamedTuple):
    """The kernel that a benchmark must run."""

    names: frozenset[str]
    """Names of the functions that the change reaches; empty for any kernel, if a configuration changes."""
    files: frozenset[str] = frozenset()
    """Files that the new code is loaded from; empty if the change is in no Python file."""
    speedup: float = math.inf
    """Speedup of the kernel alone; infinite if it is not known."""


class KernelProof(NamedTuple):
    """Facts about the new kernel in a benchmark."""

    rows: Sequence[tuple[str, str]]
    """Names and words: the binary, its launches, its share of the GPU's time, what Amdahl allows."""
    refusal: str = ""
    """Why the benchmark did not run the new kernel; empty if it did, or if that is not known."""
    most: float = math.inf
    """The gain of the whole if the kernel took no time."""


NO_PROOF = KernelProof(())


def prove(
    kernel: WatchedKernel, before: Sequence[list[ProcessReport]], after: Sequence[list[ProcessReport]]
) -> KernelProof:
    """Return the proof from the reports of the runs with the old and with the new code; the first of each was traced.

    The whole gains at most 1 / (1 - p + p / speedup), where p is the old kernel's share of the time (Amdahl, AFIPS 1967). The
    share of the GPU's time is an upper bound of p: the GPU may be idle in between.
    """
    files = {*map(os.path.realpath, kernel.files)}
    reports = [report for run in after for report in run]
    old = {load.binary for run in before for report in run for load in report.loads}
    watched = kernel.names or {load.kernel for report in reports for load in report.loads}
    own = [[load for report in run for load in report.loads if load.kernel in watched] for run in after]
    loads = [[load for load in run if not files or os.path.realpath(load.file) in files] for run in own]
    new = [{load.binary: load.kernel for load in run if load.binary not in old} for run in loads]
    binaries = {binary: name for run in new for binary, name in run.items()}
    if not binaries:
        unknown = next((report.problem for report in reports if report.problem and not report.loads), "")
        if not reports:
            unknown = (
                "no Python of the command reported: not `python -I` or `-E`, nor with another PYTHONPATH"
            )
        elif any(loads) and files:
            unknown = "its binaries are those from before: only code around the kernel changed"
        if unknown:
            return KernelProof([("binary", f"not known: {unknown}")])
        if copy := next((load for run in own for load in run), None):
            why = f"comes from another copy, {copy.file}" if files else "has the binaries from before"
            return _refused([], "binary", f"never loaded: {copy.kernel} {why}")
        return _refused([], "binary", "never loaded: no process of the command loaded a kernel of its name")
    names = {*binaries.values()}
    keys = ", ".join(binary[:12] for binary in [*binaries][:3])
    runs = f"loaded in {sum(map(bool, new))} of {len(after)} runs after the change"
    rows = [("binary", f"{len(binaries)} new of {', '.join(sorted(names))} ({keys}), {runs}")]
    traced_s = max((report.traced_s for report in after[0]), default=0.0)
    if not any(report.kernels for report in after[0]):
        killed = "its process was killed" if not traced_s else "the trace saw no kernel at all"
        problem = next((report.problem for report in after[0] if report.problem), killed)
        return KernelProof([*rows, ("launches", f"not counted: {problem}")])
    launches, share = _count(after[0], names)
    stays = {load.binary for report in reports for load in report.loads}
    neighbours = {load.kernel for report in reports for load in report.loads} - watched
    # Neighbours in a changed file have new binaries, too, because Triton's key contains their line.
    went = {load.kernel for report in before[0] for load in report.loads if load.binary not in stays}
    _, share_before = _count(before[0], went - neighbours)
    if not launches:
        return _refused(rows, "launches", f"never launched: {traced_s:.0f} s of a trace of the GPU have none")
    rows.append(("launches", f"{launches:,} in {traced_s:.0f} s of a trace"))
    rows.append(("GPU time", f"{share_before:.1%} before, {share:.1%} after"))
    if not share_before:
        return KernelProof(rows)
    allowed, most = (
        1 / rest if (rest := 1 - share_before + share_before / speedup) else math.inf
        for speedup in (kernel.speedup, math.inf)
    )
    alone = (
        "" if allowed == most else f"at most {allowed:.3f}x for {kernel.speedup:.2f}x of the kernel alone; "
    )
    return KernelProof([*rows, ("Amdahl", f"{alone}{most:.3f}x if the kernel took no time")], most=most)


def _refused(rows: list[tuple[str, str]], name: str, words: str) -> KernelProof:
    return KernelProof([*rows, (name, words)], words)


def _count(reports: Iterable[ProcessReport], names: Iterable[str]) -> tuple[int, float]:
    """Return the launches of kernels with these names, and their share of the time of all kernels."""
    rows = [(name, *row) for report in reports for name, row in report.kernels.items()]
    own = [(count, us) for name, count, us in rows if name.removesuffix(".kd") in names]
    whole = sum(us for _, _, us in rows)
    return sum(count for count, _ in own), sum(us for _, us in own) / whole if whole else 0.0
