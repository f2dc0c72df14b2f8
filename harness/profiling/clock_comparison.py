"""Compares the clocks of a GPU: events, graphs and, on AMD, rocprofv3. Each trial is a process, because a graph can end it.

Device time leaves out the gaps between kernels. So two clocks agree if their times lie on a line with slope 1; its constant is
shown.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.linux.worker_start import command
from harness.processes.pool import DevicePool
from harness.processes.starting.judge_python import JudgePython
from harness.wire.device import Device

from .launches import ProfileFailed
from .rocpd import read_durations
from .taking import one_gpu_environment
from .tools import ROCPROF, find_tool

LENGTHS_US = (5, 10, 20, 50, 100)
NODES = (1, 4, 16, 64, 256)
"""Sizes of graphs, in the order in which they are tried; larger ones are not needed."""
SLOPE_WITHIN = 0.02
PROCESSES = 20
TRIAL_S = 60.0
_TRIAL = "harness.worker.kit.clock_trial"
_SPIN = "spin_kernel"
"""Part of the name of torch's kernel that spins."""


class ClockTrial(msgspec.Struct, frozen=True, kw_only=True):
    """Times of kernels of five lengths by each clock, in microseconds; empty if a clock gave none."""

    events_us: tuple[float, ...] = ()
    graph_us: tuple[float, ...] = ()
    """The times of the largest graph that worked."""
    profiler_us: tuple[float, ...] = ()
    processes_us: tuple[float, ...] = ()
    """One kernel in several processes."""
    nodes: int = 0
    """The largest size of a graph that worked."""
    notes: tuple[str, ...] = ()
    """Why a graph or the profiler gave no times."""

    @property
    def graph_nodes(self) -> int:
        """The largest graph with times to trust: their slope over the profiler's times decides, else over those of events."""
        return self.nodes if agrees(self.profiler_us or self.events_us, self.graph_us) else 0


def line(measured_by: Sequence[float], compared: Sequence[float]) -> tuple[float, float] | None:
    """Return slope and constant (us) of the compared times over the others; `None` without times of both."""
    if not measured_by or len(measured_by) != len(compared):
        return None
    fitted = statistics.linear_regression(measured_by, compared)
    return fitted.slope, fitted.intercept


def agrees(measured_by: Sequence[float], compared: Sequence[float]) -> bool:
    """Whether the slope is near 1."""
    fitted = line(measured_by, compared)
    return fitted is not None and abs(fitted[0] - 1) <= SLOPE_WITHIN


class _Trials:
    """Runs trials on one GPU, each in a process of its own."""

    def __init__(self, python: JudgePython, device: Device) -> None:
        self._python = python
        self._environment = one_gpu_environment(python.environment, device)

    async def run(
        self, how: str, numbers: Sequence[int], under: Sequence[str] = ()
    ) -> dict[str, list[float]]:
        """Return what a trial measured; `under` is the command of a profiler. Raises `ProfileFailed`."""
        process = await asyncio.create_subprocess_exec(
            *under, *command(_TRIAL, how, *map(str, numbers), python=self._python.path), env=self._environment,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            async with asyncio.timeout(TRIAL_S):
                printed, complaint = await process.communicate()
        except TimeoutError:
            raise ProfileFailed(f"no times within {TRIAL_S:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        try:
            # A profiler prints lines of its own.
            return msgspec.json.decode(printed[printed.rindex(b"{") :], type=dict[str, list[float]])
        except (ValueError, msgspec.DecodeError):
            words = complaint.decode(errors="replace").strip().rpartition("\n")[2]
            raise ProfileFailed(words or f"it ended with status {process.returncode}") from None


async def compare_clocks(pool: DevicePool, device: Device) -> ClockTrial:
    """Try the clocks of a GPU, which is held alone. Raises `ProfileFailed` if not even events give times."""
    async with pool.slot(on=device.name) as slot, pool.leases.timing(slot):
        trials = _Trials(pool.python, device)
        first = await trials.run("events", LENGTHS_US)
        cycles = [round(count) for count in first["cycles"]]
        notes: list[str] = []
        graph_us, nodes = await _largest_graph(trials, cycles, notes)
        profiler_us: tuple[float, ...] = ()
        if device.kind == "hip":
            try:
                profiler_us = await _profile(trials, cycles)
            except ProfileFailed as error:
                notes.append(str(error))
        processes = [await trials.run("process", ()) for _ in range(PROCESSES)]
    return ClockTrial(
        events_us=tuple(first["us"]), graph_us=graph_us, profiler_us=profiler_us, nodes=nodes,
        processes_us=tuple(process["us"][0] for process in processes), notes=tuple(notes),
    )  # fmt: skip


async def _largest_graph(
    trials: _Trials, cycles: Sequence[int], notes: list[str]
) -> tuple[tuple[float, ...], int]:
    """Return the times in the largest graph that replays without errors, and its number of nodes.

    Graphs grow until one fails; the reason is appended to `notes`. If the first fails, there are no times and 0 nodes.
    """
    times: tuple[float, ...] = ()
    largest = 0
    for nodes in NODES:
        try:
            trial = await trials.run("graph", (nodes, *cycles))
        except ProfileFailed as error:
            notes.append(f"graph of {nodes} nodes: {error}")
            break
        if trial["lost"][0] or min(trial["us"]) <= 0:
            notes.append(
                f"graph of {nodes} nodes: {trial['lost'][0]:.0f} of 100 replays wrong, times {trial['us']}"
            )
            break
        times, largest = tuple(trial["us"]), nodes
    return times, largest


async def _profile(trials: _Trials, cycles: Sequence[int]) -> tuple[float, ...]:
    """Return the median time of each length by rocprofv3. Unverified on AMD."""
    tool = find_tool("hip", os.environ.get("PATH", ""))
    folder = Path(tempfile.mkdtemp(prefix="wavedeck-clocks-"))
    options = ["--kernel-trace", "--output-format", "rocpd", "--output-directory", str(folder)]
    try:
        await trials.run("profiled", cycles, (tool.program, *options, "--"))
        files = await asyncio.to_thread(lambda: sorted(folder.rglob("*.db")))
        if not files:
            raise ProfileFailed(f"{ROCPROF} {tool.version} wrote no database")
        return by_length(read_durations(files[0], _SPIN), len(cycles))
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def by_length(durations_us: Sequence[float], lengths: int) -> tuple[float, ...]:
    """Return the median of each length: the launches of one length follow each other, after launches of the calibration."""
    count = len(durations_us) // lengths
    samples = min(count, 21)
    last = durations_us[len(durations_us) - samples * lengths :]
    if not samples:
        raise ProfileFailed(f"{ROCPROF} shows {len(durations_us)} of the kernels that were launched")
    return tuple(statistics.median(last[at : at + samples]) for at in range(0, len(last), samples))
