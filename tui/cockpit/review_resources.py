"""Registers, spills, local memory and occupancy of an attempt, compared to the baseline or to its base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness import Evaluation, KernelResources
from sessions.state.ranking import lowest_occupancy
from sessions.state.state import AttemptState, InstanceState, SessionState
from tui import vocabulary
from tui.cockpit.attempts import base_of
from tui.cockpit.lines import Span
from tui.cockpit.review_claim import Fact


class Usage(NamedTuple):
    """Resources that all kernels of an attempt use on the first target; `None` for a count that the target does not have."""

    registers: int | None
    """The most of any kernel."""
    spills: int | None
    """Sum over the kernels: registers on AMD, bytes on NVIDIA."""
    local_bytes: int | None
    """The most of any kernel."""
    waves: float | None
    """The lowest occupancy."""


def resource_facts(state: SessionState, attempt: AttemptState, instance: InstanceState) -> list[Fact]:
    """Return the resources on the first target; differences are to the baseline, else to the base attempt."""
    evaluation = attempt.evaluation
    name = next(iter(evaluation.resources), None) if evaluation is not None else None
    if evaluation is None or name is None:
        return []
    baseline = state.baselines.get(instance.task)
    base = base_of(state, attempt)
    compared: tuple[tuple[str, Evaluation | None], ...] = (
        ("to the baseline", baseline),
        (f"to {base.attempt}" if base is not None else "", base.evaluation if base is not None else None),
    )
    words, before = next(
        (
            (words, _usage(earlier))
            for words, earlier in compared
            if earlier is not None and next(iter(earlier.resources), None) == name
        ),
        ("", None),
    )
    now = _usage(evaluation)
    amd = any(kernel.vgprs is not None for kernel in evaluation.resources[name])
    titles = ("vgpr", "spill", "LDS", "waves") if amd else ("regs", "spill", "shared", "warps")
    phrases = [
        Span(f"{title} {_number(value)}{_change(value, old)}", "bad" if title == "spill" and value else "")
        for title, value, old in zip(titles, now, before or (None,) * 4, strict=True)
    ]
    target = Span(f"({', '.join(filter(None, (name, words)))})", "dim")
    errors = [Span(f"does not compile for {failed}", "bad") for failed in evaluation.compile_errors]
    return [("resources", [*phrases, target, *errors])]


def _usage(evaluation: Evaluation) -> Usage:
    kernels = [kernel for kernel in next(iter(evaluation.resources.values()), ()) if not kernel.failure]
    return Usage(
        _most(kernels, lambda kernel: kernel.vgprs if kernel.vgprs is not None else kernel.registers),
        _spills(kernels),
        _most(kernels, lambda kernel: kernel.lds_bytes),
        lowest_occupancy(evaluation),
    )


def _most(kernels: Sequence[KernelResources], count: Callable[[KernelResources], int | None]) -> int | None:
    counts = [value for kernel in kernels if (value := count(kernel)) is not None]
    return max(counts, default=None)


def _spills(kernels: Sequence[KernelResources]) -> int | None:
    counts = [
        value
        for kernel in kernels
        for value in (kernel.vgpr_spills, kernel.sgpr_spills, kernel.spill_bytes)
        if value is not None
    ]
    return sum(counts) if counts else None


def _number(value: float | None) -> str:
    return vocabulary.UNKNOWN if value is None else f"{value:g}"


def _change(value: float | None, before: float | None) -> str:
    if value is None or before is None or value == before:
        return ""
    return f" ({value - before:+g})"
