"""The resources tab: registers, spills, local memory and waves of each compiled kernel."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Evaluation
from tui.cockpit import measures
from tui.cockpit.lines import EMPTY, Line, Span, clean, line, wrap
from tui.cockpit.measures import Binary
from tui.cockpit.pages.page import paragraph, table

LEGEND = (
    "limit: what keeps more waves (AMD, a SIMD) or warps (NVIDIA, an SM) from fitting; MFMA, MMA: matrix instructions; "
    "loads: width in bits:how many; @n: config n of an autotuned kernel; LDS and shared memory in bytes"
)


def resource_lines(evaluation: Evaluation, width: int) -> list[Line]:
    """Return what each kernel takes of each target, then how each was launched."""
    if not evaluation.resources and not evaluation.compile_errors:
        return [line("Nothing was compiled.", "dim")]
    lines: list[Line] = []
    for target in dict.fromkeys((*evaluation.resources, *evaluation.compile_errors)):
        kernels = evaluation.resources.get(target, ())
        binaries = measures.binaries(kernels)
        lines += [EMPTY] if lines else []
        lines.append((Span(target, "key"), Span(f"  {len(kernels)} launches compiled at GPU sizes", "dim")))
        message = evaluation.compile_errors.get(target, "")
        if message:
            lines += paragraph(f"does not compile: {message}", width, "bad")
        if binaries:
            columns = measures.resource_columns(amd=measures.is_amd(kernels))
            lines += table(columns, measures.resource_rows(target, binaries, width), width)
            lines += _launches(binaries, width)
        # The message may quote a note.
        notes = {note for kernel in kernels for note in kernel.notes if note not in message}
        lines += [row for note in sorted(notes) for row in paragraph(note, width, "warn")]
    return [*lines, EMPTY, *paragraph(LEGEND, width, "dim")]


def _launches(binaries: Sequence[Binary], width: int) -> list[Line]:
    """Configuration, cases and the rest of each binary, whole."""
    lines: list[Line] = [EMPTY, line("launched as", "head")]
    for binary in binaries:
        cases = wrap(clean(", ".join(binary.cases)), width - len(binary.name) - 4)
        lines.append((Span(f"  {binary.name}  "), Span(cases[0], "dim")))
        lines += [line(" " * (len(binary.name) + 4) + rest, "dim") for rest in cases[1:]]
        config = " ".join(f"{name}={value}" for name, value in binary.kernel.config.items())
        for text in (config, measures.launch_facts(binary)):
            lines += paragraph(text, width, "dim", indent=4)
    return lines
