"""`wavedeck capture --server`: the kernels of a server by GPU time, from a kernel trace."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from harness.profiling.kernel_traces import TracedKernel, read_kernel_trace
from harness.profiling.launches import ProfileFailed
from sessions.state.figure_words import ratio_words, us_words
from tui.diagnostics import Complaint, ExitCode
from tui.facts.tables import Column, Field, Number
from tui.facts.vocabulary import grouped, percent
from tui.print.plain import listing

MOST_ROWS = 40
MOST_NAME = 120
_PROFILERS = {
    "rocprofv3": ("--kernel-trace", "--output-format", "rocpd", "--output-directory", "{folder}", "--"),
    "nsys": (
        "profile",
        "--trace=cuda",
        "--cuda-graph-trace=node",
        "--export=sqlite",
        "--output={folder}/trace",
    ),
}
"""Their options before the command. nsys otherwise reports a graph as one row."""
_FIELDS: tuple[Field[TracedKernel], ...] = (
    Field(Number("share", keep=True), lambda kernel: percent(kernel.share)),
    Field(Number("at most", keep=True), lambda kernel: ratio_words(kernel.most)),
    Field(Number("launches", drop=1), lambda kernel: grouped(kernel.launches)),
    Field(Number("mean us"), lambda kernel: us_words(kernel.us / kernel.launches / 1e3)),
    Field(Column("made by", keep=True), lambda kernel: kernel.kind),
    Field(Column("kernel", least=30), lambda kernel: kernel.name[:MOST_NAME]),
    Field(Column("--against", if_known=True, keep=True), lambda kernel: kernel.operator),
)


def kernels_of(trace: Path) -> list[TracedKernel]:
    """Return the kernels of a trace. Raises `Complaint` if it holds none."""
    try:
        return read_kernel_trace(trace)
    except ProfileFailed as error:
        raise Complaint(str(error)) from error


def kernels_page(trace: Path) -> str:
    """Return the table of a trace. Raises `Complaint` if it holds no kernels."""
    kernels = kernels_of(trace)
    rest = kernels[MOST_ROWS:]
    share = percent(sum(kernel.share for kernel in rest))
    further = f"\n{len(rest)} further kernels, {share} of the GPU time" if rest else ""
    return (
        f"{listing(_FIELDS, kernels[:MOST_ROWS])}\n{further}\n"
        "at most: the speedup of all GPU time if the kernel took none; time without a kernel is not in it"
    )


def record_trace(command: Sequence[str], folder: Path) -> list[str]:
    """Return the command line that runs a command under a profiler and writes a trace into a new folder.

    Raises `Complaint` if there is no profiler, or if the folder exists. Unverified on AMD.
    """
    name = next((name for name in _PROFILERS if shutil.which(name)), None)
    if name is None:
        raise Complaint(
            "neither rocprofv3 nor nsys is in PATH; record a trace with torch's profiler, and give its file to --server",
            code=ExitCode.FAILED,
        )
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise Complaint(f"{folder} cannot be made: {error.strerror}; name a new folder") from error
    return [name, *(option.format(folder=folder) for option in _PROFILERS[name]), *command]
