"""Which devices a run is on: what `--devices` names, within what the caller's variables and Slurm leave it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import msgspec

from harness.hardware.targets import DEFAULT_TARGET, target
from harness.wire.device import Device, Target
from harness.wire.errors import UnknownDevice

from .discovery import CPU, choose_devices, discover_devices, reachable_addresses
from .leases import holders
from .loads import Load, LoadProbe, read_loads

IDLE, ALL = "idle", "all"
SLURM = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS")
"""Innermost first: a step has some of its job's."""
BUSY_PERCENT = 5.0
USED_BYTES = 1 << 30
"""Less than this the drivers themselves take (an idle MI300X shows some 300 MB)."""


class Standing(msgspec.Struct, frozen=True):
    """One GPU that this process may use."""

    device: Device
    busy: str
    """Why it is not idle, in words; empty when it is, as far as can be told."""
    unseen: str = ""


def select_devices(
    asked: Sequence[str], *, probe: LoadProbe = read_loads, environ: Mapping[str, str] | None = None
) -> tuple[Device, ...]:
    """The devices that `idle`, `all` or names mean here; `cpu` where the first two find no GPU that answers.

    `UnknownDevice` when a name is none of this machine or of this Slurm job, or when there are GPUs and none is idle.
    """
    names = tuple(dict.fromkeys(asked))
    if names not in ((IDLE,), (ALL,)):
        mixed = [name for name in names if name in (IDLE, ALL)]
        if mixed:
            raise UnknownDevice(
                f"{mixed[0]} stands for several devices; give it alone, or names as 0,1 or cpu"
            )
        _check_slurm(choose_devices(names), environ)
        return choose_devices(names)
    if names == (ALL,):
        return choose_devices([device.name for device in _granted(environ)]) if _granted(environ) else (CPU,)
    found = standings(probe=probe, environ=environ)
    idle = [one.device.name for one in found if not one.busy]
    if idle:
        return choose_devices(idle)
    if not found:
        return (CPU,)
    why = "; ".join(f"GPU {one.device.name}: {one.busy}" for one in found)
    raise UnknownDevice(f"no GPU is idle ({why}); --devices all or 0,1 shares them, --devices cpu needs none")


def targets_for(devices: Sequence[Device], asked: Sequence[str] = ()) -> tuple[Target, ...]:
    """What is compiled for on these devices: the targets asked for, else the devices' own, on `cpu` the usual one; each once, in order.

    `UnknownTarget` when there is none of that name.
    """
    own = [device.target for device in devices if device.target is not None]
    return tuple(target(name) for name in dict.fromkeys(asked or own or (DEFAULT_TARGET,)))


def standings(
    *, probe: LoadProbe = read_loads, environ: Mapping[str, str] | None = None
) -> tuple[Standing, ...]:
    """Each GPU that answers and that this process may use, and whether somebody else is on it."""
    gpus = _granted(environ)
    loads = probe(gpus)
    return tuple(_standing(gpu, loads.get(gpu.name, Load())) for gpu in gpus)


def not_granted(environ: Mapping[str, str] | None = None) -> tuple[Device, ...]:
    """GPUs that this process sees and Slurm did not give it."""
    granted = _granted(environ)
    return tuple(gpu for gpu in _answering() if gpu not in granted)


def _standing(gpu: Device, load: Load) -> Standing:
    reasons = [str(one) for one in holders(gpu)]
    if load.processes:
        reasons.append(f"{load.processes} other process{'es' if load.processes > 1 else ''} on it")
    if load.busy_percent is not None and load.busy_percent >= BUSY_PERCENT:
        reasons.append(f"{load.busy_percent:.0f} % busy")
    if load.memory_used_bytes is not None and load.memory_used_bytes >= USED_BYTES:
        reasons.append(f"{load.memory_used_bytes / (1 << 30):.1f} GiB of its memory in use")
    unseen = [
        word
        for word, value in (
            ("load", load.busy_percent),
            ("memory", load.memory_used_bytes),
            ("other processes", load.processes),
        )
        if value is None
    ]
    return Standing(gpu, ", ".join(reasons), ", ".join(unseen))


def _answering() -> tuple[Device, ...]:
    return tuple(one for one in discover_devices() if one.kind != "cpu" and one.visibility)


def _granted(environ: Mapping[str, str] | None) -> tuple[Device, ...]:
    """The GPUs that this process sees, without those that Slurm did not give its job.

    Slurm's lists number the node's GPUs by PCI address. Where a control group shows the job its own GPUs alone there are no
    others to leave out, and the numbers mean nothing.
    """
    environ = os.environ if environ is None else environ
    gpus = _answering()
    variable = next((name for name in SLURM if environ.get(name)), None)
    if variable is None:
        return gpus
    given = _numbers(variable, environ[variable])
    node = sorted(reachable_addresses())
    if len(node) <= len(given):
        return gpus
    if max(given) >= len(node):
        raise UnknownDevice(
            f"{variable}={environ[variable]} names more GPUs than the {len(node)} that this node shows; "
            "name the devices by --devices in a job whose GPUs are visible, or use cpu"
        )
    ours = {node[number] for number in given}
    return tuple(gpu for gpu in gpus if gpu.address in ours)


def _numbers(variable: str, value: str) -> tuple[int, ...]:
    """Of a list as `0,2-3`."""
    numbers: list[int] = []
    for part in value.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise UnknownDevice(
                f"{variable}={value} is no list of GPU numbers, so it cannot be told which are this job's; use cpu"
            )
        numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


def _check_slurm(chosen: Sequence[Device], environ: Mapping[str, str] | None) -> None:
    if all(device.kind == "cpu" for device in chosen):
        return
    granted = _granted(environ)
    for device in chosen:
        if device.kind != "cpu" and device not in granted:
            theirs = ", ".join(one.name for one in granted) or "none"
            raise UnknownDevice(f"Slurm did not give GPU {device.name} to this job; its GPUs here: {theirs}")
