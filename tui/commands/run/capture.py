"""`wavedeck capture`: run a person's own program and record the calls of one function; show a capture."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from sessions.state.figure_words import us_words
from suites.captures.capture import LOOKUPS, CallSignature, Capture, read_capture
from suites.captures.program import OpenCapture
from suites.captures.signature_texts import signature_text
from suites.errors import BadCapture
from tui.diagnostics import Complaint, ExitCode, say, write_error
from tui.facts.tables import Column, Field, Number
from tui.facts.vocabulary import counted, grouped, percent
from tui.print.lookup_pages import lookups_page
from tui.print.plain import emit, listing


@click.command(name="capture")
@click.argument("words", nargs=-1, metavar="[[PKG.MOD:FN] -- CMD...]", type=click.UNPROCESSED)
@click.option(
    "-o", "--out", metavar="FILE", type=click.Path(path_type=Path), help="Where to write the capture."
)
@click.option(
    "--show", "shown", metavar="FILE", type=click.Path(path_type=Path), help="Print the table of a capture."
)
@click.option("--lookups", is_flag=True, help="Record look-ups of tuned configurations, not calls.")
@click.option(
    "--server",
    "trace",
    metavar="TRACE",
    type=click.Path(path_type=Path),
    help="Print the kernels of a trace (a file or a folder) by GPU time. With CMD, record it into the new folder TRACE. "
    "For look-ups: the trace with their share of GPU time.",
)
def capture_command(
    words: tuple[str, ...], *, out: Path | None, shown: Path | None, lookups: bool, trace: Path | None
) -> int:
    """Record the calls of PKG.MOD:FN, or of an operator torch.ops.X.Y, in all Python processes of CMD.

    CMD is your benchmark, test or server: `wavedeck capture vllm.ops:rms_norm -o calls -- python bench.py`. Recorded are
    shapes, strides, dtypes, numbers, aliasing, ranges of indices, and how often and how long each distinct call ran. The exit
    code is that of CMD; 1 if CMD succeeds without a call.

    --server shows which kernels take the GPU's time, who made each, and what a faster one can give. --lookups shows which tuned
    configurations of vLLM, SGLang and aiter a server did not find, and how to tune them.
    """
    if trace is not None and shown is None and not lookups:
        if out is not None:
            raise Complaint("--server records no calls; leave out -o")
        return server_kernels(words, trace)
    shares = shares_of(trace) if trace is not None else {}
    if shown is not None:
        if words or out is not None:
            raise Complaint("--show prints a capture and records nothing; leave out the rest")
        emit(page(read_capture(shown), shares))
        return ExitCode.DONE
    target, command = (LOOKUPS, words) if lookups else (words[0] if words else "", words[1:])
    if not command or out is None:
        raise Complaint("usage: wavedeck capture PKG.MOD:FN|--lookups -o FILE -- CMD, or with --show FILE")
    recording = OpenCapture(target, out)
    started = time.time()
    try:
        code, said = run_program(command, recording)
    except OSError as error:
        recording.parts.rmdir()
        raise Complaint(f"{command[0]} cannot be started: {error.strerror}") from error
    try:
        capture = recording.finish(command, code, started)
    except BadCapture as error:
        if str(error) != said:
            say(str(error))
        return code
    write_error(page(capture, shares) + "\n")
    say(f"{out}: {summary(capture)}")
    return code


def shares_of(trace: Path) -> dict[str, float]:
    """Return shares of GPU time by kernel in lower case without underscores. Raises `Complaint`."""
    from tui.print.server_kernels import kernels_of

    return {kernel.name.lower().replace("_", ""): kernel.share for kernel in kernels_of(trace)}


def server_kernels(command: Sequence[str], trace: Path) -> int:
    """Record a trace of the command, if there is one, and print the kernels of the trace; return the command's exit code."""
    # Its readers take longer to import than all of this module.
    from tui.print.server_kernels import kernels_page, record_trace

    code = run_program(record_trace(command, trace))[0] if command else 0
    emit(kernels_page(trace))
    return code


def run_program(command: Sequence[str], recording: OpenCapture | None = None) -> tuple[int, str]:
    """Run a program in the foreground; return its exit code, as a shell does for a program that a signal ended.

    Prints and returns why the function of a recording cannot be recorded, at once, so that a person can stop a long program.
    """
    said = ""
    program = subprocess.Popen(command, env=recording.environment(os.environ) if recording else None)
    with signals_for(program):
        while (code := wait_for(program)) is None:
            if recording and not said and recording.problem:
                said = recording.problem
                say(said)
    return code if code >= 0 else 128 - code, said


def wait_for(program: subprocess.Popen[bytes]) -> int | None:
    """Return the exit code of a program; `None` if it still runs after a second."""
    with suppress(subprocess.TimeoutExpired):
        return program.wait(1.0)
    return None


@contextmanager
def signals_for(program: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leave signals to the program, so that its calls are still collected when it has ended.

    A terminal sends Ctrl-C to both; other signals are passed on.
    """
    handlers = {signal.SIGINT: lambda *_: None, signal.SIGTERM: lambda number, _: program.send_signal(number)}
    earlier = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def page(capture: Capture, shares: Mapping[str, float]) -> str:
    """Return the table of a capture, and remarks about what it cannot say."""
    if capture.kind == "lookups":
        return lookups_page(capture, shares)
    return "\n\n".join(
        filter(None, (listing(fields(capture), capture.signatures), "\n".join(remarks(capture))))
    )


def fields(capture: Capture) -> tuple[Field[CallSignature], ...]:
    """Return the columns of the table."""
    whole = capture.weight_us

    def share(signature: CallSignature) -> str:
        return percent(signature.weight_us / whole if whole and signature.weight_us is not None else None)

    return (
        Field(Number("calls"), calls),
        Field(Number("share of time"), share),
        Field(Number("mean us"), lambda row: "" if row.mean_us is None else us_words(row.mean_us / 1e3)),
        Field(Column("signature", least=30), signature_text),
        Field(Column("aliases", if_known=True, least=14), aliases),
    )


def calls(signature: CallSignature) -> str:
    """Return how often a signature was called."""
    return grouped(signature.calls) if signature.is_frequency_known else "unknown"


def aliases(signature: CallSignature) -> str:
    """Return the arguments that are one tensor, or that share storage: `x is out; k, v share storage`."""
    words = [" is ".join(group) for group in signature.same]
    return "; ".join([*words, *(f"{', '.join(group)} share storage" for group in signature.shared)])


def remarks(capture: Capture) -> list[str]:
    """Return what the table cannot say, a line each."""
    signatures = capture.signatures
    untimed = sum(signature.mean_us is None and signature.is_frequency_known for signature in signatures)
    in_graphs = sum(not signature.is_frequency_known for signature in signatures)
    lines = {
        f"{counted(untimed, 'signature')} without a time: each process called it once, which is the warm-up": untimed,
        f"frequency unknown: {counted(in_graphs, 'signature')} captured in a CUDA graph, whose runs nobody counts": in_graphs,
        f"frequency unknown: a compiler traced {capture.target}; "
        "calls of the compiled form are not in the table": capture.compiled,
        f"{counted(capture.others, 'call')} of further signatures not in the table": capture.others,
        f"{counted(capture.missed, 'call')} not recorded in whole: {capture.error}": capture.missed,
    }
    return [line for line, number in lines.items() if number]


def summary(capture: Capture) -> str:
    """Return `3 signatures, 120 calls in 2 processes`."""
    number = sum(process.calls for process in capture.processes)
    processes = len(capture.processes)
    return (
        f"{counted(len(capture.signatures), 'signature')}, {counted(number, 'call')} in "
        f"{processes} process{'es' if processes > 1 else ''}"
    )
