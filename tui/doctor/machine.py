"""Doctor's sections about what judges: the machine, its GPUs, torch, Triton and the sandbox."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness import Device, HarnessError, HarnessReport, Layer, discover_devices, product_of
from harness.node.leases import lease_folder
from harness.node.selection import not_granted, standings
from harness.node.telemetry import StateReport, ask_once
from harness.sandbox.layers import COMPILING, GRAVE, WITHOUT
from tui.measured import state_words
from tui.plain import size

from .findings import Finding, State

GUEST_BYTES = 8 << 30
"""Address space that a guest may have on `cpu`."""
MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
AMD_NODE = Path("/dev/kfd")
VISIBLE = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


def machine() -> Iterator[Finding]:
    """Python, cores and memory, as this process may use them."""
    yield Finding(
        "system", State.OK, f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    )
    cores = len(os.sched_getaffinity(0))
    quota = cpu_quota(CGROUP)
    held = f", held to {quota:g} by a control group" if quota is not None and quota < cores else ""
    yield Finding(
        "cores", State.OK, f"{cores}{held}", f"{cores} candidates are judged at a time on device cpu"
    )
    yield memory(meminfo(MEMINFO), memory_limit(CGROUP))


def memory(facts: Mapping[str, int], limit: int | None) -> Finding:
    """Whether there is room for a judge and a guest; `facts` and `limit` are bytes."""
    total, available = facts.get("MemTotal"), facts.get("MemAvailable")
    if total is None:
        return Finding("memory", State.NOTE, "the kernel does not tell")
    held = limit is not None and limit < total
    usable = limit if limit is not None and held else total
    limited = " (a control group's limit)" if held else ""
    few = usable < GUEST_BYTES
    return Finding(
        "memory",
        State.WARNING if few else State.OK,
        f"{size(usable)}{limited}, {size(available)} available on the machine",
        "little for torch and candidates side by side: run few instances" if few else "",
    )


def meminfo(file: Path) -> dict[str, int]:
    """Figures of `/proc/meminfo` in bytes (proc(5): they stand in KiB); empty where there is none."""
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    parts = (line.split() for line in lines)
    return {part[0].rstrip(":"): int(part[1]) * 1024 for part in parts if len(part) == 3 and part[2] == "kB"}


def cpu_quota(group: Path) -> float | None:
    """Cores that a control group (version 2) grants; `None` without a limit."""
    try:
        granted, period = (group / "cpu.max").read_text(encoding="ascii").split()
        return None if granted == "max" else int(granted) / int(period)
    except (OSError, ValueError):
        return None


def memory_limit(group: Path) -> int | None:
    """Bytes that a control group (version 2) grants; `None` without a limit."""
    try:
        return int((group / "memory.max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def gpu(device: Device) -> Finding:
    """One GPU: what it is, and whose peaks its times will be held against."""
    told = f"{device.description}, {device.target}" if device.target else device.description
    product, why = product_of(device)
    if product is None:
        return Finding(
            f"GPU {device.name}", State.OK, f"{told}; unknown product", f"no efficiency is shown: {why}"
        )
    peak = f"{product.memory_bytes_per_s / 1e12:.4g} TB/s, {product.matrix_flops['float16'] / 1e12:.4g} TFLOP/s of float16"
    return Finding(f"GPU {device.name}", State.OK, f"{told}; {product.name}, at most {peak}")


def gpus(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Which GPUs the drivers show, who is on them, and what follows for a run."""
    found = [device for device in discover_devices() if device.kind != "cpu"]
    for device in found:
        yield gpu(device)
        if device.address:
            yield telemetry(device.name, ask_once(device.address, device.kind))
        if not device.visibility:
            yield Finding(
                f"GPU {device.name} is",
                State.WARNING,
                "silent: its runtime does not answer",
                "it judges nothing",
            )
    if found:
        yield from use(environ)
    else:
        yield Finding(
            "GPUs",
            State.NOTE,
            "none that a driver shows",
            "device cpu: kernels run in Triton's interpreter and are compiled for gfx942 (MI300X) or any of --targets; "
            "speed is an estimate between two bounds, never a measurement",
        )
    if AMD_NODE.exists() and not os.access(AMD_NODE, os.R_OK | os.W_OK):
        yield Finding(
            str(AMD_NODE),
            State.WARNING,
            "there, and not yours to open",
            "join the groups render and video, then log in again",
        )
    chosen = [f"{name}={environ[name]}" for name in VISIBLE if name in environ]
    if chosen:
        yield Finding(
            "visible devices",
            State.NOTE,
            ", ".join(chosen),
            "the GPUs that a process may see are limited by these",
        )


def telemetry(name: str, told: StateReport) -> Finding:
    """What a GPU tells of itself, and by what; without it times stand without clock, heat and company."""
    subject = f"telemetry {name}"
    if not told.source:
        follows = "times are given without clock, power, heat and other processes, and no sample can be left out for them"
        return Finding(subject, State.WARNING, told.note, follows)
    return Finding(subject, State.OK, f"{told.source}: {state_words(told.state)}", told.note)


def use(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Whether each GPU is idle and why not, and where the leases are kept."""
    try:
        found = standings(environ=environ)
        kept_out = not_granted(environ)
        folder = lease_folder(environ)
    except HarnessError as error:
        yield Finding("leases", State.WARNING, str(error), "no GPU can be judged on before that")
        return
    for one in found:
        unseen = f"not visible here: {one.unseen}" if one.unseen else ""
        state = State.NOTE if one.busy else State.OK
        yield Finding(f"GPU {one.device.name} is", state, one.busy or "idle", unseen)
    for device in kept_out:
        yield Finding(f"GPU {device.name} is", State.NOTE, "not one that Slurm gave this job", "never used")
    idle = [one.device.name for one in found if not one.busy]
    chosen = f"--devices idle means {','.join(idle)}" if idle else "no GPU is idle; --devices all shares them"
    yield Finding("a run", State.OK if idle else State.NOTE, chosen)
    yield Finding(
        "leases", State.OK, str(folder), "engines and users who are to share GPUs need the same folder"
    )


def judge(report: HarnessReport) -> Iterator[Finding]:
    """Whether candidates can be judged here, and with which versions."""
    yield version("torch", report.torch)
    yield triton(report)
    if report.judges:
        yield Finding("judging", State.OK, f"a guest was started and answered; {report.fork_detail}")
    else:
        yield Finding(
            "judging", State.WARNING, f"not possible here: {report.why_not}", "replay, review and report work"
        )


def sandbox(report: HarnessReport) -> Iterator[Finding]:
    """What keeps a candidate in, layer by layer, as it was applied to a guest just now."""
    if not report.sandbox:
        yield Finding("layers", State.WARNING, "not known: no guest could be started", "see the judge above")
    for layer in report.sandbox:
        yield sandboxed(layer)


def version(package: str, found: str | None) -> Finding:
    """Which version of a package is installed."""
    if found is None:
        return Finding(
            package, State.WARNING, "not installed", "`make setup`, or pip install 'wavedeck[judge]'"
        )
    return Finding(package, State.OK, found)


def triton(report: HarnessReport) -> Finding:
    """Triton's version, and whether it is one that was tested: its interpreter's internals move."""
    found = version("triton", report.triton)
    tested = ", ".join(report.tested_triton)
    if report.triton is None:
        return found
    if report.triton.partition("+")[0] in report.tested_triton:
        return Finding("triton", State.OK, f"{report.triton}, a version that was tested")
    return Finding(
        "triton",
        State.NOTE,
        f"{report.triton}; tested: {tested}",
        "counted bytes and verdicts on device cpu rest on Triton's internals: trust them less here",
    )


def sandboxed(layer: Layer) -> Finding:
    """One layer between a candidate and this machine, and what it means for a person when it is not there."""
    if layer.state == "active":
        return Finding(layer.name, State.OK, f"active{f': {layer.why}' if layer.why else ''}")
    why = f"{layer.state}: {layer.why}" if layer.why else layer.state
    name = layer.name.removeprefix(COMPILING)
    grave = layer.state == "failed" or name in GRAVE
    return Finding(layer.name, State.WARNING if grave else State.NOTE, why, WITHOUT.get(name, ""))
