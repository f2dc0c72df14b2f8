"""Takes the profile of a source: draws inputs, runs the tool under the exclusive lease, reads its files."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.hardware.product import Product
from harness.hardware.recognition import product_of
from harness.linux import worker_start
from harness.linux.foreign_files import read_regular, remove
from harness.processes.pool import DevicePool
from harness.processes.slot import Slot
from harness.sandbox.sandbox import guest_environment
from harness.stages.judged_task import resolve_task
from harness.stages.timing.efficiency import flush_bytes
from harness.wire import limits
from harness.wire.channels.channel import ENCODER, BadFrame, decode_message
from harness.wire.device import VISIBILITY_VARIABLES, Device
from harness.wire.messages.profiled import (
    DRAW,
    ENDED,
    PROFILE_ENDED,
    REQUEST,
    DrawInputs,
    ProfileEnded,
    ProfileRequest,
)
from harness.wire.results.evaluation import StageEvent
from harness.wire.results.kernel_counts import KernelProfile, Profile, ProfiledLaunch, Roofline
from suites.costs import task_cost
from suites.dtypes import on_target
from suites.task import Case, Task

from .launches import ProfileFailed, list_launches, merge_launches, own_launches
from .tools import NCU, PROTON, Tool, explain_failure, find_tool, refusal

LIMIT_S = 240.0
"""For all passes of a tool, in which the GPU is held alone. Each pass compiles, tunes and warms up first."""
_DRAW_S = 120.0
_END_S = 10.0
"""For a warden to end its process tree."""
DRAWING, PROFILED = "harness.worker.oracle.drawn_inputs", "harness.worker.profiled.profiled"
_WARDED = "harness.worker.server.warden"
_ENDED_BYTES, _PRINTED_BYTES, _MOST_WORDS = 1 << 16, 1 << 20, 300
_MOST_RAW_BYTES = 4 << 20
"""A larger file of a tool, as gzip, is not kept."""
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
    on_stage: Callable[[StageEvent], None] = lambda _: None,
    configs: Mapping[str, str] | None = None,
) -> Profile:
    """Return the profile of one steady call of a source in one case on a GPU.

    `configs` of autotuned kernels, as the judge timed them. `on_stage` is called when the
    GPU is reached. `keep` gets the tool's files as gzip by SHA-256. Without a tool that can read counters, Proton gives times
    alone, and the notes say why. Raises `ProfileFailed` if there is no profile.
    """
    if task.script is not None:
        raise ProfileFailed(f"{task.id} cannot be profiled: its cases are calls of a script of the benchmark")
    async with pool.slot(on=device) as slot:
        on_stage(StageEvent("profile", slot.device.name))
        resolved = resolve_task(task, slot.device.target or "", on_gpu=True)
        chosen = _case(resolved, case)
        folder = Path(tempfile.mkdtemp(prefix="wavedeck-profile-"))
        try:
            run = _Run(pool, slot, folder)
            async with pool.leases.using(slot):
                await run.draw(resolved, chosen, seed)
            async with pool.leases.timing(slot):
                return await run.profile(source, resolved, chosen, dict(configs or {}), keep)
        finally:
            await asyncio.to_thread(remove, folder)


def roofline(task: Task, case: Case, product: Product) -> Roofline:
    """Return the least work of a case at `gpu` sizes, by the task's cost model, and its time at a product's peaks.

    The time for compute is `None` if the product has no peak for the dtype. Raises `BadTask` if the cost model fails.
    """
    cost = task_cost(task, case.gpu, case.dtype)
    dtype = on_target(cost.dot_dtype or case.dtype, product.target)
    peak = product.peak(dtype, matrix=cost.dot_dtype is not None)
    return Roofline(
        bytes=cost.moved_bytes,
        flops=cost.flops,
        memory_us=cost.moved_bytes / product.memory_bytes_per_s * 1e6,
        compute_us=cost.flops / peak * 1e6 if peak else None,
    )


class _Taken(NamedTuple):
    """Counts by kernel, times by launch, the open layers of the sandbox, and the tool's files."""

    kernels: tuple[KernelProfile, ...]
    launches: tuple[ProfiledLaunch, ...]
    opened: tuple[str, ...]
    files: list[Path]


class _Run:
    """One slot's profile, with its folder."""

    def __init__(self, pool: DevicePool, slot: Slot, folder: Path) -> None:
        self._python = pool.python
        self._triton = pool.software.triton
        self._device = slot.device
        self._folder = folder
        self._environment = one_gpu_environment(pool.python.environment, slot.device)

    async def draw(self, task: Task, case: Case, seed: int) -> None:
        """Draw the inputs into the folder, in a process without foreign code.

        Raises `ProfileFailed` if the task's code fails or takes too long.
        """
        request = DrawInputs(task, case.name, seed, self._device)
        (self._folder / DRAW).write_bytes(ENCODER.encode(request))
        try:
            status, printed = await self._run(self._worker(DRAWING), self._scratch("drawing"), _DRAW_S)
        except TimeoutError:
            raise ProfileFailed(
                f"the inputs of case {case.name} were not drawn within {_DRAW_S:.0f} s"
            ) from None
        if status:
            last = printed.strip().rpartition("\n")[2][:_MOST_WORDS]
            raise ProfileFailed(f"the inputs of case {case.name} could not be drawn: {last}")

    async def profile(
        self, source: str, task: Task, case: Case, configs: dict[str, str], keep: Keep
    ) -> Profile:
        """Profile calls of a case with the vendor's tool, and keep its raw files through `keep` if they are small.

        If the tool fails, Proton measures times without counters, and a note says why. Raises `ProfileFailed` if both fail.
        """
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
            profile = await self._under(tool, request)
        except ProfileFailed as why:
            tool, notes = Tool(PROTON, self._triton), (f"times alone, by Proton: {why}",)
            try:
                profile = await self._under(tool, request)
            except ProfileFailed as error:
                raise ProfileFailed(f"{why}; without counters: {error}") from error
        raw = await asyncio.to_thread(_keep_small, profile.files, keep)
        return Profile(
            tool=f"{tool.name} {tool.version}".strip(),
            how=tool.how,
            case=case.name,
            device=self._device.name,
            product=product.name if product is not None else self._device.description,
            kernels=tuple(_with_memory_share(kernel, product) for kernel in profile.kernels),
            launches=profile.launches,
            roofline=roofline(task, case, product) if product is not None else None,
            notes=notes,
            opened=profile.opened,
            raw=raw,
        )

    async def _under(self, tool: Tool, request: ProfileRequest) -> _Taken:
        """Run the profiled process under a tool, once for each of its passes; return what the tool counted.

        Raises `ProfileFailed` if the tool refuses, the candidate's call fails, time is over, or nothing was counted.
        """
        flushed = 0 if tool.empties_caches else request.flush_bytes
        request = msgspec.structs.replace(request, tool=tool.name, folders=tool.folders, flush_bytes=flushed)
        (self._folder / REQUEST).write_bytes(ENCODER.encode(request))
        end_by = time.monotonic() + LIMIT_S
        files, ended, printed = list[Path](), ProfileEnded(), ""
        for number in range(tool.passes):
            # A folder for each pass: its program starts outside the sandbox, and must find nothing of the pass before.
            scratch = self._scratch(f"{tool.name}{number}")
            command = tool.command(number, scratch, self._worker(PROFILED, str(scratch)))
            try:
                status, printed = await self._run(command, scratch, end_by - time.monotonic())
            except TimeoutError:
                raise ProfileFailed(f"{tool.name} did not end within {LIMIT_S:.0f} s") from None
            written = {file: read_regular(file, limits.FILE_BYTES) for file in tool.files(scratch)}
            if tool.name == NCU:
                printed += "".join((data or b"").decode(errors="replace") for data in written.values())
            answer = _ended(scratch)
            if answer is None or status:
                printed += f"\nerror: the profiled process ended with status {status}"
                raise ProfileFailed(refusal(tool, printed))
            if answer.problem:
                raise ProfileFailed(explain_failure(tool, answer.problem))
            if not any(written.values()):
                raise ProfileFailed(refusal(tool, f"{printed}\nerror: it wrote no file"))
            files += [file for file, data in written.items() if data]
            ended = answer
        try:
            launches = own_launches(await asyncio.to_thread(tool.read, files))
            kernels = merge_launches(launches)
        except ProfileFailed as error:
            raise ProfileFailed(refusal(tool, f"{printed}\nerror: {error}")) from error
        if not kernels:
            raise ProfileFailed(refusal(tool, f"{printed}\nerror: the call launched no kernel"))
        return _Taken(kernels, list_launches(launches), ended.opened, files)

    def _scratch(self, name: str) -> Path:
        scratch = self._folder / name
        scratch.mkdir()
        return scratch

    def _worker(self, module: str, *arguments: str) -> list[str]:
        return worker_start.command(module, str(self._folder), *arguments, python=self._python.path)

    async def _run(self, command: Sequence[str], scratch: Path, limit_s: float) -> tuple[int, str]:
        """Run a command under a warden, which ends all that it started; returns status and text. Raises `TimeoutError`."""
        warded = worker_start.command(_WARDED, str(scratch), *command, python=self._python.path)
        output = self._folder / "printed"
        with output.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *warded,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd=scratch,
                env=self._environment | guest_environment(scratch),
                start_new_session=True,
            )
        try:
            async with asyncio.timeout(limit_s):
                status = await process.wait()
        finally:
            await _end(process)
        with output.open("rb") as file:
            return status, file.read(_PRINTED_BYTES).decode(errors="replace")


async def _end(warden: asyncio.subprocess.Process) -> None:
    """End a warden, and with it its process tree."""
    if warden.returncode is not None:
        return
    warden.terminate()
    try:
        async with asyncio.timeout(_END_S):
            await warden.wait()
    except TimeoutError:
        warden.kill()
        await warden.wait()


def _ended(scratch: Path) -> ProfileEnded | None:
    """Read the last file of a profiled process; foreign code may have written it."""
    data = read_regular(scratch / ENDED, _ENDED_BYTES)
    try:
        return None if data is None else decode_message(PROFILE_ENDED, data)
    except BadFrame:
        return None


def _keep_small(files: Sequence[Path], keep: Keep) -> dict[str, str]:
    """Keep the tool's files that are not too large as gzip; returns their digests by name."""
    packed = {file.name: gzip.compress(file.read_bytes(), mtime=0) for file in files}
    kept = {name: data for name, data in packed.items() if len(data) <= _MOST_RAW_BYTES}
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in kept.items()}
    keep({digests[name]: data for name, data in kept.items()})
    return digests


def _case(task: Task, name: str) -> Case:
    cases = {case.name: case for case in task.open_cases}
    if name not in cases:
        raise ProfileFailed(f"{task.id} has no open case {name!r} on a GPU; it has {', '.join(cases)}")
    return cases[name]


def one_gpu_environment(shared: Mapping[str, str], device: Device) -> dict[str, str]:
    """Return the judge's variables, with one GPU visible."""
    lists = {name for names in VISIBILITY_VARIABLES.values() for name in names}
    variable, _, value = device.visibility.partition("=")
    kept = {name: text for name, text in shared.items() if name not in lists}
    return kept | ({variable: value} if variable else {}) | {"LC_ALL": "C"}


def _with_memory_share(kernel: KernelProfile, product: Product | None) -> KernelProfile:
    """Fill in the share of the memory's peak from bytes and time, where the tool has no counter for it."""
    moved = (kernel.read_bytes or 0.0) + (kernel.written_bytes or 0.0)
    if kernel.memory is not None or product is None or not kernel.us or not moved:
        return kernel
    return msgspec.structs.replace(kernel, memory=moved / (kernel.us / 1e6) / product.memory_bytes_per_s)
