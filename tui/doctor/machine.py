"""Sections of doctor about the judge: machine, GPUs with their verification, torch, Triton and sandbox."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from harness import Device, HarnessError, HarnessReport, Layer, discover_devices, product_of
from harness.hardware.recognition import describe_device
from harness.node.leases import lease_folder
from harness.node.selection import not_granted, standings
from harness.node.telemetry.samples import StateReport
from harness.node.telemetry.watcher import ask_once
from harness.processes.gpus.capacity import own_cores, slots_of
from harness.sandbox.layers import COMPILING, GRAVE, WITHOUT
from harness.wire.limits import memory_words
from harness.wire.results.provenance import Provenance
from sessions.home import home_from
from sessions.verifications import newest_verification, standing_of
from tui.doctor.doctor_findings import DoctorFinding, State, note, ok, warning
from tui.facts.evaluation.provenance import provenance_words
from tui.facts.evaluation.times import state_words

GUEST_BYTES = 8 << 30
"""Limit of a guest's address space on `cpu`."""
CGROUP = Path("/sys/fs/cgroup")
AMD_NODE = Path("/dev/kfd")
VISIBLE = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


def machine() -> Iterator[DoctorFinding]:
    """Yield Python, cores and memory that this process may use."""
    yield ok("system", f"{platform.system()} {platform.release()}, Python {platform.python_version()}")
    cores = len(os.sched_getaffinity(0))
    quota = cpu_quota(CGROUP)
    limit = f", limited to {quota:g} by a control group" if quota is not None and quota < cores else ""
    yield ok("cores", f"{cores}{limit}", f"device cpu judges up to {cores} candidates at a time")
    yield memory(psutil.virtual_memory().total, memory_limit(CGROUP))


def memory(total: int, limit: int | None) -> DoctorFinding:
    """Return whether a judge and a guest fit into memory of so many bytes, of which a control group grants `limit`."""
    is_limited = limit is not None and limit < total
    usable = limit if limit is not None and is_limited else total
    limited = " (a control group's limit)" if is_limited else ""
    is_small = usable < GUEST_BYTES
    return DoctorFinding(
        "memory",
        State.WARNING if is_small else State.OK,
        f"{memory_words(usable)}{limited}, {memory_words(psutil.virtual_memory().available)} available on the machine",
        "too small for torch and several candidates at a time: run few instances" if is_small else "",
    )


def cpu_quota(group: Path) -> float | None:
    """Return the cores that a control group (version 2) grants; `None` without a limit."""
    try:
        granted, period = (group / "cpu.max").read_text(encoding="ascii").split()
        return None if granted == "max" else int(granted) / int(period)
    except (OSError, ValueError):
        return None


def memory_limit(group: Path) -> int | None:
    """Return the bytes that a control group (version 2) grants; `None` without a limit."""
    try:
        return int((group / "memory.max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def gpu(device: Device) -> DoctorFinding:
    """Return a GPU with its product and the peaks for efficiency."""
    name = f"{device.description}, {device.target}" if device.target else device.description
    product, why = product_of(device)
    if product is None:
        return ok(f"GPU {device.name}", f"{name}; unknown product", f"no efficiency is shown: {why}")
    peak = f"{product.memory_bytes_per_s / 1e12:.4g} TB/s, {product.matrix_flops['float16'] / 1e12:.4g} TFLOP/s of float16"
    return ok(f"GPU {device.name}", f"{name}; {product.name}, at most {peak}")


def gpus(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Yield the GPUs of the drivers, their users, and the choice of a run."""
    devices = [device for device in discover_devices() if device.kind != "cpu"]
    for device in devices:
        yield gpu(device)
        if device.address:
            answer = ask_once(device.address, device.kind)
            yield telemetry(device.name, answer)
            yield verification_finding(device, answer, environ)
        if not device.visibility:
            yield warning(f"GPU {device.name} is", "silent: its runtime does not answer", "it cannot judge")
    if devices:
        yield capacity(devices)
        yield from use(environ)
    else:
        yield note(
            "GPUs",
            "none found by a driver",
            "device cpu: kernels run in Triton's interpreter and are compiled for gfx942 (MI300X) or any of --targets; "
            "nothing is timed there",
        )
    if AMD_NODE.exists() and not os.access(AMD_NODE, os.R_OK | os.W_OK):
        yield warning(
            str(AMD_NODE),
            "exists, but you may not open it",
            "join the groups render and video, then log in again",
        )
    chosen = [f"{name}={environ[name]}" for name in VISIBLE if name in environ]
    if chosen:
        yield note("visible devices", ", ".join(chosen), "these variables limit the visible GPUs")


def capacity(devices: Sequence[Device]) -> DoctorFinding:
    """Return how many candidates each GPU judges at a time if a run uses all GPUs."""
    counts = {device.name: slots_of(device, gpus=len(devices), cores=own_cores()) for device in devices}
    shown = ", ".join(f"GPU {name}: {count}" for name, count in counts.items())
    return ok(
        "candidates",
        f"{shown} at a time",
        "by cores and memory, for tasks with cases up to 1 GiB; larger cases mean fewer",
    )


def telemetry(name: str, answer: StateReport) -> DoctorFinding:
    """Return the telemetry of a GPU and its source; without it, times have no clock, temperature or other processes."""
    subject = f"telemetry {name}"
    if not answer.source:
        follows = "times have no clock, power, temperature or other processes, and disturbed samples cannot be left out"
        return warning(subject, answer.note, follows)
    facts = ", ".join(filter(None, (provenance_words(answer.provenance), state_words(answer.state))))
    return ok(subject, f"{answer.source}: {facts}", answer.note)


def use(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Yield whether each GPU is idle, and the folder of the leases."""
    try:
        usages = standings(environ=environ)
        kept_out = not_granted(environ)
        folder = lease_folder(environ)
    except HarnessError as error:
        yield warning("leases", str(error), "GPUs cannot be used until this is fixed")
        return
    for usage in usages:
        unseen = f"not visible here: {usage.unseen}" if usage.unseen else ""
        state = State.NOTE if usage.busy else State.OK
        yield DoctorFinding(f"GPU {usage.device.name} is", state, usage.busy or "idle", unseen)
    for device in kept_out:
        yield note(f"GPU {device.name} is", "not granted to this job by Slurm", "never used")
    idle = [usage.device.name for usage in usages if not usage.busy]
    chosen = (
        f"--devices idle means {','.join(idle)}" if idle else "no GPU is idle; --devices all shares busy GPUs"
    )
    yield DoctorFinding("a run", State.OK if idle else State.NOTE, chosen)
    yield ok("leases", str(folder), "engines and users that share GPUs must use the same folder")


def judge(report: HarnessReport) -> Iterator[DoctorFinding]:
    """Yield whether this machine can judge candidates, and with which versions."""
    yield version("torch", report.torch)
    yield triton(report)
    if report.judges:
        yield ok("judging", f"a guest was started and answered; {report.fork_detail}")
    else:
        yield warning("judging", f"not possible here: {report.why_not}", "replay, review and report work")


def sandbox(report: HarnessReport) -> Iterator[DoctorFinding]:
    """Yield the sandbox, layer by layer, as applied to a guest just now."""
    if not report.sandbox:
        yield warning("layers", "not known: no guest could be started", "see the section about the judge")
    for layer in report.sandbox:
        yield sandboxed(layer)


def version(package: str, installed: str | None) -> DoctorFinding:
    """Return the installed version of a package."""
    if installed is None:
        return warning(package, "not installed", "`make setup`, or pip install 'wavedeck[judge]'")
    return ok(package, installed)


def triton(report: HarnessReport) -> DoctorFinding:
    """Return Triton's version, and whether it is tested: the internals of its interpreter change between versions."""
    if report.triton is None:
        return version("triton", None)
    tested = ", ".join(report.tested_triton)
    if report.triton.partition("+")[0] in report.tested_triton:
        return ok("triton", f"{report.triton}, a tested version")
    return note(
        "triton",
        f"{report.triton}; tested: {tested}",
        "counted bytes and verdicts on device cpu depend on Triton's internals: trust them less here",
    )


def sandboxed(layer: Layer) -> DoctorFinding:
    """Return the state of a sandbox layer, and the risk without it."""
    if layer.state == "active":
        return ok(layer.name, f"active{f': {layer.why}' if layer.why else ''}")
    why = f"{layer.state}: {layer.why}" if layer.why else layer.state
    name = layer.name.removeprefix(COMPILING)
    grave = layer.state == "failed" or name in GRAVE
    return DoctorFinding(layer.name, State.WARNING if grave else State.NOTE, why, WITHOUT.get(name, ""))


def verification_finding(device: Device, answer: StateReport, environ: Mapping[str, str]) -> DoctorFinding:
    """Return whether `doctor --verify-gpu` verified GPUs of this product and driver on this node."""
    provenance = describe_device(device, Provenance(), answer.provenance)
    home = home_from(environ)
    verification = newest_verification(home, host=socket.gethostname(), provenance=provenance)
    standing = standing_of(verification, device.kind)
    subject = f"judge on {device.name}"
    if verification is not None and verification.verified:
        return ok(subject, standing)
    return note(subject, standing, "run `wavedeck doctor --verify-gpu`: ten minutes, and one file to send")
