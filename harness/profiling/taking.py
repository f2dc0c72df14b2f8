"""Takes the profile of a source: draws inputs, runs the tool under the exclusive lease, reads its files."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import os
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from harness.hardware.product import Product
from harness.hardware.recognition import product_of
from harness.linux import worker_start
from harness.processes.pool import DevicePool
from harness.processes.slot import Slot
from harness.sandbox.sandbox import guest_environment
from harness.stages.judged_task import resolve_task
from harness.stages.timing.efficiency import flush_bytes
from harness.wire.channel import BadFrame
from harness.wire.device import VISIBILITY_VARIABLES, Device
from harness.wire.encoding import ENCODER, decode_message
from harness.wire.kernel_profile import TOO_LARGE_BYTES, KernelProfile, Profile, Roofline
from harness.wire.profile_messages import (
    DRAW,
    ENDED,
    PROFILE_ENDED,
    REQUEST,
    DrawInputs,
    ProfileEnded,
    ProfileRequest,
)
from suites.costs import task_cost
from suites.dtypes import on_target
from suites.task import Case, Task

from .launches import ProfileFailed, merge_launches
from .tools import PROTON, Tool, find_tool, refusal

LIMIT_S = 240.0
"""For one run of the profiled process: it compiles, tunes and warms up first."""
_DRAW_S = 120.0
DRAWING, PROFILED = "harness.worker.oracle.drawn_inputs", "harness.worker.profiled.profiled"
_ENDED_BYTES, _PRINTED_BYTES = 1 << 16, 1 << 20
Keep = Callable[[Mapping[str, bytes]], None]


async def take_profile(
    pool: DevicePool,
    source: str,
    task: Task,
    *,
    case: str,
    device: str,
    seed: int,
    keep: Keep,
    configs: Mapping[str, str] | None = None,
) -> Profile:
    """Return the profile of one steady call of a source in one case on a GPU.

    `case`: the first open case if empty. `configs` of autotuned kernels, as the judge timed them. `keep` gets the tool's files
    as gzip by SHA-256. Without a tool that can read counters, Proton gives times alone, and the notes say why. Raises
    `ProfileFailed` if there is no profile.
    """
    if task.script is not None:
        raise ProfileFailed(f"{task.id} cannot be profiled: its cases are calls of a script of the benchmark")
    async with pool.slot(on=device) as slot:
        resolved = resolve_task(task, slot.device.target or "", on_gpu=True)
        chosen = _case(resolved, case)
        with tempfile.TemporaryDirectory(prefix="wavedeck-profile-", ignore_cleanup_errors=True) as name:
            run = _Run(pool, slot, Path(name))
            async with pool.leases.using(slot):
                await run.draw(resolved, chosen, seed)
            async with pool.leases.timing(slot):
                return await run.profile(source, resolved, chosen, dict(configs or {}), keep)


def roofline(task: Task, case: Case, product: Product) -> Roofline:
    """Return the least work of a case on a product, by the task's cost model. Raises `BadTask`."""
    cost = task_cost(task, case.gpu, case.dtype)
    dtype = on_target(cost.dot_dtype or case.dtype, product.target)
    peak = product.matrix_peak(dtype) if cost.dot_dtype is not None else product.vector_peak(dtype)
    return Roofline(
        bytes=cost.moved_bytes,
        flops=cost.flops,
        memory_us=cost.moved_bytes / product.memory_bytes_per_s * 1e6,
        compute_us=cost.flops / peak * 1e6 if peak else None,
    )


class _Run:
    """One slot's profile, with its folder."""

    def __init__(self, pool: DevicePool, slot: Slot, folder: Path) -> None:
        self._python = pool.python
        self._triton = pool.software.triton
        self._device = slot.device
        self._folder = folder
        self._environment = _environment(pool.python.environment, slot.device, folder)

    async def draw(self, task: Task, case: Case, seed: int) -> None:
        """Draw the inputs into the folder, in a process without foreign code."""
        request = DrawInputs(task, case.name, seed, self._device)
        (self._folder / DRAW).write_bytes(ENCODER.encode(request))
        status, printed = await self._run(self._worker(DRAWING), _DRAW_S)
        if status:
            last = printed.strip().rpartition("\n")[2][:300]
            raise ProfileFailed(f"the inputs of case {case.name} could not be drawn: {last}")

    async def profile(
        self, source: str, task: Task, case: Case, configs: dict[str, str], keep: Keep
    ) -> Profile:
        """Run the tool that reads counters, or Proton, and read what it wrote."""
        product = product_of(self._device).product
        path = self._environment.get("PATH", os.defpath)
        request = ProfileRequest(
            source=source,
            entry_point=task.entry_points[0].name,
            device=self._device,
            tool=PROTON,
            folders=(),
            flush_bytes=flush_bytes(product),
            configs=configs,
            package=task.package.view(task.folder) if task.package is not None else None,
        )
        notes: tuple[str, ...] = ()
        try:
            tool = await asyncio.to_thread(find_tool, self._device.kind, path)
            kernels, ended = await self._under(tool, request)
        except ProfileFailed as why:
            tool, notes = Tool(PROTON, self._triton), (f"times alone, by Proton: {why}",)
            try:
                kernels, ended = await self._under(tool, request)
            except ProfileFailed as error:
                raise ProfileFailed(f"{why}; without counters: {error}") from error
        packed = {file.name: gzip.compress(file.read_bytes(), mtime=0) for file in tool.files(self._folder)}
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in packed.items()}
        kept = {name: data for name, data in packed.items() if len(data) <= TOO_LARGE_BYTES}
        await asyncio.to_thread(keep, {digests[name]: data for name, data in kept.items()})
        return Profile(
            tool=f"{tool.name} {tool.version}".strip(),
            how=tool.how,
            case=case.name,
            device=self._device.name,
            product=product.name if product is not None else self._device.description,
            kernels=tuple(_with_memory_share(kernel, product) for kernel in kernels),
            roofline=roofline(task, case, product) if product is not None else None,
            notes=notes,
            opened=ended.opened,
            raw={name: digests[name] for name in kept},
        )

    async def _under(
        self, tool: Tool, request: ProfileRequest
    ) -> tuple[tuple[KernelProfile, ...], ProfileEnded]:
        """Run the tool; returns the kernels that it counted, and how the process ended."""
        request = msgspec.structs.replace(request, tool=tool.name, folders=tool.folders)
        if tool.empties_caches:
            request = msgspec.structs.replace(request, flush_bytes=0)
        (self._folder / REQUEST).write_bytes(ENCODER.encode(request))
        ended, printed = ProfileEnded(), ""
        for command in tool.commands(self._folder, self._worker(PROFILED)):
            (self._folder / ENDED).unlink(missing_ok=True)
            status, printed = await self._run(command, LIMIT_S)
            printed += tool.log(self._folder)
            answer = self._ended()
            if answer is None or status:
                ended_words = f"{printed}\nerror: the profiled process ended with status {status}"
                raise ProfileFailed(refusal(tool, ended_words))
            if answer.problem:
                raise ProfileFailed(f"the source fails under {tool.name}: {answer.problem}")
            ended = answer
        try:
            kernels = merge_launches(tool.read(self._folder))
        except ProfileFailed as error:
            raise ProfileFailed(refusal(tool, f"{printed}\nerror: {error}")) from error
        if not kernels:
            raise ProfileFailed(refusal(tool, f"{printed}\nerror: the call launched no kernel"))
        return kernels, ended

    def _worker(self, module: str) -> list[str]:
        return worker_start.command(module, str(self._folder), python=self._python.path)

    def _ended(self) -> ProfileEnded | None:
        """Read the last file of the process; foreign code may have written it."""
        try:
            with (self._folder / ENDED).open("rb") as file:
                return decode_message(PROFILE_ENDED, file.read(_ENDED_BYTES))
        except (OSError, BadFrame):
            return None

    async def _run(self, command: Sequence[str], limit_s: float) -> tuple[int, str]:
        """Run a command to its end, and end what it left in its process group; returns status and printed text."""
        output = self._folder / "printed"
        with output.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd=self._folder,
                env=self._environment,
                start_new_session=True,
            )
        try:
            async with asyncio.timeout(limit_s):
                status = await process.wait()
        except TimeoutError:
            raise ProfileFailed(f"the profiled process did not end within {limit_s:.0f} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        with output.open("rb") as file:
            return status, file.read(_PRINTED_BYTES).decode(errors="replace")


def _case(task: Task, name: str) -> Case:
    cases = {case.name: case for case in task.open_cases}
    if name and name not in cases:
        raise ProfileFailed(f"{task.id} has no open case {name!r} on a GPU; it has {', '.join(cases)}")
    return cases[name or next(iter(cases))]


def _environment(shared: Mapping[str, str], device: Device, folder: Path) -> dict[str, str]:
    """The judge's variables, with one GPU visible and every folder in `folder`."""
    lists = {name for names in VISIBILITY_VARIABLES.values() for name in names}
    variable, _, value = device.visibility.partition("=")
    kept = {name: text for name, text in shared.items() if name not in lists}
    return kept | guest_environment(folder) | ({variable: value} if variable else {}) | {"LC_ALL": "C"}


def _with_memory_share(kernel: KernelProfile, product: Product | None) -> KernelProfile:
    """Fill in the share of the memory's peak from bytes and time, where the tool has no counter for it."""
    moved = (kernel.read_bytes or 0.0) + (kernel.written_bytes or 0.0)
    if kernel.memory is not None or product is None or not kernel.us or not moved:
        return kernel
    return msgspec.structs.replace(kernel, memory=moved / (kernel.us / 1e6) / product.memory_bytes_per_s)
