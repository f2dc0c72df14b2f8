"""Reads kernel traces of whole programs: torch's profiler (JSON), rocprofv3 (rocpd) and nsys (SQLite). Says who made a kernel."""

from __future__ import annotations

import gzip
import re
import sqlite3
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from .launches import ProfileFailed

_QUERIES = (
    "SELECT name, '', COUNT(*), SUM(duration) FROM kernels GROUP BY name",
    """SELECT s.value, '', COUNT(*), SUM(k."end" - k.start) FROM CUPTI_ACTIVITY_KIND_KERNEL k
    JOIN StringIds s ON s.id = k.demangledName GROUP BY s.value""",
)
"""Kernel, operator, launches, nanoseconds: of rocprofv3's databases, and of those that nsys exports."""
_KINDS = {
    "RCCL/NCCL": r"nccl|rccl",
    "hipBLASLt": r"Cijk_|rocblas",
    "cuBLAS": r"cublas|nvjet|gemmk1|gemv2|gemmSN|splitKreduce|^(?:sm\d+|ampere|volta|turing)_\w*gemm|^cutlass_\d+",
    "CK": r"\bck(?:_tile)?::|_ZN2ck|_ZN7ck_tile",
    "assembly": r"^(?:aiter::\w+|_ZN5aiter\d+\w+E)$",
    "Triton": r"^(?!_Z|__|cudnn)[A-Za-z_]\w*$",
}
"""Patterns of names, the first one counts. The assembly of aiter has names without parameters, and a kernel of Triton has the
name of its Python function. Tensile's names are the same in hipBLASLt and rocBLAS."""


class TracedKernel(msgspec.Struct, frozen=True):
    """All launches of a kernel in a trace."""

    name: str
    operator: str
    """The torch operator that launches it, as `torch.ops.aten.mm`; empty if unknown."""
    launches: int
    us: float
    share: float
    """Share of the GPU time of all kernels."""

    @property
    def kind(self) -> str:
        """Who made the kernel, by its name: a key of `_KINDS`, or `other`."""
        return next((kind for kind, pattern in _KINDS.items() if re.search(pattern, self.name)), "other")

    @property
    def most(self) -> float:
        """Speedup of all GPU time if the kernel took none (Amdahl)."""
        return 1 / (1 - self.share) if self.share < 1 else float("inf")


class _Arguments(msgspec.Struct, frozen=True, rename={"external_id": "External id"}):
    external_id: int | str | None = None


class _Event(msgspec.Struct):
    name: str = ""
    cat: str = ""
    dur: float = 0.0
    args: _Arguments = _Arguments()


class _Profile(msgspec.Struct):
    traceEvents: list[_Event] = []  # noqa: N815 -- torch's name


def read_kernel_trace(path: Path) -> list[TracedKernel]:
    """Return the kernels of a trace, or of all traces in a folder, the longest time first. Raises `ProfileFailed`."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    launches: Counter[str] = Counter()
    times: Counter[str] = Counter()
    operators: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, operator, count, ns in (row for file in files for row in _rows(file)):
        name = name.removesuffix(".kd")
        launches[name] += count
        times[name] += ns
        operators[name][operator] += ns
    whole = times.total()
    if not whole:
        raise ProfileFailed(
            f"{path} holds no kernels; take a trace of torch's profiler, a database of rocprofv3, or one that nsys exported"
        )
    return [
        TracedKernel(name, operators[name].most_common(1)[0][0], launches[name], ns / 1e3, ns / whole)
        for name, ns in times.most_common()
    ]


def _rows(file: Path) -> Iterable[tuple[str, str, int, int]]:
    """Return kernels, operators, launches and nanoseconds of a file; none if it is no trace."""
    try:
        with file.open("rb") as opened:
            start = opened.read(16)
        if start.startswith(b"SQLite"):
            return _database_rows(file)
        if start[:2] == b"\x1f\x8b" or start.lstrip().startswith(b"{"):
            return list(_profile_rows(file))
    except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
        raise ProfileFailed(f"{file} cannot be read: {error}") from error
    return ()


def _database_rows(file: Path) -> list[tuple[str, str, int, int]]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        for query in _QUERIES:
            try:
                return database.execute(query).fetchall()
            except sqlite3.Error:
                continue
    return []


def _profile_rows(file: Path) -> Iterator[tuple[str, str, int, int]]:
    data = file.read_bytes()
    text = gzip.decompress(data) if data[:1] == b"\x1f" else data
    events = msgspec.json.decode(text, type=_Profile).traceEvents
    callers: dict[int | str | None, str] = {
        event.args.external_id: f"torch.ops.{event.name.replace('::', '.')}"
        for event in events
        if event.cat == "cpu_op" and "::" in event.name
    } | {None: ""}
    for event in events:
        if event.cat == "kernel":
            yield event.name, callers.get(event.args.external_id, ""), 1, round(event.dur * 1e3)
