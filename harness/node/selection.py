"""The devices of a run: those that `--devices` names, among the GPUs that the caller's variables and Slurm allow."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence

import msgspec

from harness.hardware.targets import DEFAULT_TARGET, target
from harness.wire.device import Device, Target
from harness.wire.errors import NoIdleDevice, UnknownDevice
from harness.wire.limits import memory_words
from harness.wire.results.latency import DeviceReading

from .discovery import CPU, choose_devices, discover_devices, reachable_addresses
from .leases import holders
from .loads import LoadProbe, read_loads

IDLE, ALL = "idle", "all"
SLURM = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS")
"""Innermost first: a step has some of its job's GPUs."""
BUSY_PERCENT = 5.0
USED_BYTES = 1 << 30
"""Drivers alone use less (an idle MI300X shows about 300 MB)."""


POLL_S = 2.0
REMIND_POLLS = 15


class UsableGpu(msgspec.Struct, frozen=True):
    """One GPU that this process may use."""

    device: Device
    busy: str
    """Why it is not idle; empty if nothing shows that it is in use."""
    unseen: str = ""
    """Values that no driver reports."""


def select_devices(
    asked: Sequence[str], *, probe: LoadProbe = read_loads, environ: Mapping[str, str] | None = None
) -> tuple[Device, ...]:
    """Return the devices that `idle`, `all` or names mean here; `cpu` if `idle` or `all` find no GPU that answers.

    `UnknownDevice` if a name is not of this machine or of this Slurm job; `NoIdleDevice` if there are GPUs but none is idle.
    """
    names = tuple(dict.fromkeys(asked))
    if names and names[0].partition(":")[0] == "ray":
        raise UnknownDevice(
            "only sessions of `wavedeck run` and `wavedeck study` are judged on a cluster; everything else, such as recording "
            "a public task, needs devices of this machine, for example --devices 0 or cpu"
        )
    if names not in ((IDLE,), (ALL,)):
        mixed = [name for name in names if name in (IDLE, ALL)]
        if mixed:
            raise UnknownDevice(
                f"{mixed[0]} stands for several devices; give it alone, or names as 0,1 or cpu"
            )
        _check_slurm(choose_devices(names), environ)
        return choose_devices(names)
    granted = _granted(environ)
    if not granted:
        return (CPU,)
    if names == (ALL,):
        return choose_devices([gpu.name for gpu in granted])
    gpus = standings(probe=probe, environ=environ)
    idle = [gpu.device.name for gpu in gpus if not gpu.busy]
    if idle:
        return choose_devices(idle)
    why = "; ".join(f"GPU {gpu.device.name}: {gpu.busy}" for gpu in gpus)
    raise NoIdleDevice(why)


async def wait_for_devices(
    asked: Sequence[str],
    *,
    on_wait: Callable[[str], None],
    probe: LoadProbe = read_loads,
    poll_s: float = POLL_S,
) -> tuple[Device, ...]:
    """Like `select_devices`, but waits while no GPU is idle; `on_wait` gets who uses them, at first and every 30 s."""
    polls = 0
    while True:
        try:
            return await asyncio.to_thread(select_devices, asked, probe=probe)
        except NoIdleDevice as error:
            if polls % REMIND_POLLS == 0:
                on_wait(error.busy)
        polls += 1
        await asyncio.sleep(poll_s)


def targets_for(devices: Sequence[Device], asked: Sequence[str] = ()) -> tuple[Target, ...]:
    """Return the targets to compile for, each once: the requested ones (or `UnknownTarget`), the devices' own, or the default."""
    own = [device.target for device in devices if device.target is not None]
    return tuple(target(name) for name in dict.fromkeys(asked or own or (DEFAULT_TARGET,)))


def standings(
    *, probe: LoadProbe = read_loads, environ: Mapping[str, str] | None = None
) -> tuple[UsableGpu, ...]:
    """Return each GPU that answers and that this process may use, and whether others use it."""
    gpus = _granted(environ)
    loads = probe(gpus)
    return tuple(_standing(gpu, loads.get(gpu.name, DeviceReading())) for gpu in gpus)


def not_granted(environ: Mapping[str, str] | None = None) -> tuple[Device, ...]:
    """Return the GPUs that this process sees but that Slurm did not give to its job."""
    granted = _granted(environ)
    return tuple(gpu for gpu in _answering() if gpu not in granted)


def _standing(gpu: Device, load: DeviceReading) -> UsableGpu:
    """Return why a GPU is in use, if it is, and which of the reasons could not be looked up."""
    reasons = [str(holder) for holder in holders(gpu)]
    if load.other_processes:
        reasons.append(
            f"{load.other_processes} other process{'es' if load.other_processes > 1 else ''} on it"
        )
    if load.busy_percent is not None and load.busy_percent >= BUSY_PERCENT:
        reasons.append(f"{load.busy_percent:.0f} % busy")
    if load.memory_used_bytes is not None and load.memory_used_bytes >= USED_BYTES:
        reasons.append(f"{memory_words(load.memory_used_bytes)} of its memory in use")
    unseen = [
        word
        for word, value in (
            ("load", load.busy_percent),
            ("memory", load.memory_used_bytes),
            ("other processes", load.other_processes),
        )
        if value is None
    ]
    return UsableGpu(gpu, ", ".join(reasons), ", ".join(unseen))


def _answering() -> tuple[Device, ...]:
    return tuple(device for device in discover_devices() if device.kind != "cpu" and device.visibility)


def _granted(environ: Mapping[str, str] | None) -> tuple[Device, ...]:
    """The GPUs that this process sees, without those that Slurm did not give to its job.

    Slurm's lists number the node's GPUs by PCI address. If a control group hides all other GPUs from the job, the numbers mean
    nothing, and every GPU that it sees is its own.
    """
    environ = os.environ if environ is None else environ
    gpus = _answering()
    variable = next((name for name in SLURM if environ.get(name)), None)
    if variable is None:
        return gpus
    numbers = _parse_numbers(variable, environ[variable])
    node = sorted(reachable_addresses())
    if len(node) <= len(numbers):
        return gpus
    if max(numbers) >= len(node):
        raise UnknownDevice(
            f"{variable}={environ[variable]} names more GPUs than the {len(node)} that this node shows; "
            "name the devices by --devices in a job whose GPUs are visible, or use cpu"
        )
    ours = {node[number] for number in numbers}
    return tuple(gpu for gpu in gpus if gpu.address in ours)


def _parse_numbers(variable: str, value: str) -> tuple[int, ...]:
    """The numbers in a list such as `0,2-3`."""
    numbers: list[int] = []
    for part in value.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise UnknownDevice(
                f"{variable}={value} is no list of GPU numbers, so this job's GPUs are unknown; use cpu"
            )
        numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


def _check_slurm(chosen: Sequence[Device], environ: Mapping[str, str] | None) -> None:
    """Raise `UnknownDevice` for a chosen GPU that Slurm did not give to this job."""
    gpus = [device for device in chosen if device.kind != "cpu"]
    granted = _granted(environ) if gpus else ()
    for device in gpus:
        if device not in granted:
            theirs = ", ".join(gpu.name for gpu in granted) or "none"
            raise UnknownDevice(f"Slurm did not give GPU {device.name} to this job; its GPUs here: {theirs}")
