"""An evaluation as plain text: one line, or a page with a section for each kind of result."""

from __future__ import annotations

from collections.abc import Iterator

from harness import Evaluation, KernelResources, Mismatch
from sessions.state.findings import finding_words
from sessions.state.speed import speed_of

from .certainty import (
    BASES,
    against_words,
    facts_of,
    margin_words,
    measured,
    used_share,
    worst_first,
)
from .measured import timing
from .plain import indented, table, wrapped
from .tables import Column
from .vocabulary import UNKNOWN, grouped, size

MARKS = {True: "ok", False: "FAILED", None: UNKNOWN}


def headline(evaluation: Evaluation, *, baseline: str = "") -> str:
    """Return the verdict on one line: with speed and margins if it is `correct`, else with the reason."""
    verdict = f"{evaluation.verdict}{only_words(evaluation)}"
    if evaluation.error is not None:
        line = f"{verdict}: {evaluation.error.first_line}"
        return line if evaluation.error.line is None else f"{line} (kernel.py line {evaluation.error.line})"
    margins = f"; {words}" if (words := margin_words(evaluation)) else ""
    finding = f", {words}" if (words := finding_words(evaluation.findings)) else ""
    if (speed := speed_of(evaluation)) is None:
        return f"{verdict}{finding}{margins}"
    return f"{verdict}{finding}, {speed.words}{against_words(evaluation, baseline)}{margins}"


def only_words(evaluation: Evaluation) -> str:
    """Return ` in case fp32 only, no verdict about the task` if a person chose cases; empty if all cases ran."""
    cases = evaluation.only_cases
    if not cases:
        return ""
    return f" in case{'s' if len(cases) > 1 else ''} {', '.join(cases)} only, no verdict about the task"


def page(evaluation: Evaluation, *, baseline: str = "") -> str:
    """Return the whole evaluation, section by section; empty sections are left out."""
    return "\n\n".join(section for section in _sections(evaluation, baseline) if section)


def _sections(evaluation: Evaluation, baseline: str) -> Iterator[str]:
    yield f"{evaluation.task} on {evaluation.device}: {headline(evaluation, baseline=baseline)}"
    yield table(
        [Column("stage", keep=True), Column("", keep=True), Column("seconds", right=True), Column("")],
        [
            (
                stage.name,
                MARKS[stage.ok],
                UNKNOWN if stage.ok is None else f"{stage.seconds:.2f}",
                stage.detail,
            )
            for stage in evaluation.stages
        ],
    )
    yield _error(evaluation)
    yield _margins(evaluation)
    yield timing(evaluation, baseline)
    yield _resources(evaluation)
    yield _traffic(evaluation)
    yield _sampled(evaluation)
    yield _estimate(evaluation)
    yield _block("printed by the candidate", evaluation.printed)
    yield _block("findings", "\n".join(finding.text for finding in evaluation.findings))
    yield _block("notes", "\n".join(evaluation.notes))
    for basis, title in BASES:
        facts = "\n".join(f"{fact.name}: {fact.value}" for fact in facts_of(evaluation, basis))
        yield wrapped(_block(title, facts))
    yield _footer(evaluation)


def _block(title: str, text: str) -> str:
    return f"{title}\n{indented(text.rstrip())}" if text.strip() else ""


def _error(evaluation: Evaluation) -> str:
    error = evaluation.error
    if error is None:
        return ""
    further = error.message.partition("\n")[2]
    parts = [mismatch(error.mismatch), error.cases] if error.mismatch else [further]
    if error.trace:
        parts.append(error.trace.rstrip())
    return _block(f"error ({error.kind})", "\n".join(filter(None, parts)) or error.message)


def mismatch(error: Mismatch) -> str:
    """Return place and size of an output's error, one fact per line."""
    index = ", ".join(map(str, error.index))
    lines = [
        f"case {error.case}, output {error.output}",
        f"shape: {error.shape} {error.dtype}, expected {error.expected_shape} {error.expected_dtype}",
        f"first wrong element [{index}]: expected {error.expected}, got {error.got}",
        f"wrong elements: {error.wrong_share:.2%}",
    ]
    if error.max_abs is not None:
        relative = UNKNOWN if error.max_rel is None else f"{error.max_rel:.3g}"
        lines.append(f"largest error: absolute {error.max_abs:.3g}, relative {relative}")
    if error.nan_got or error.nan_expected or error.inf_got or error.inf_expected:
        lines.append(
            f"NaN: {error.nan_got}, expected {error.nan_expected}; Inf: {error.inf_got}, expected {error.inf_expected}"
        )
    lines += [f"{name}: {value:.6g}" for name, value in error.metrics.items()]
    return "\n".join([*lines, *error.pattern])


def _margins(evaluation: Evaluation) -> str:
    if not evaluation.margins:
        return ""
    rows = [
        (margin.case, margin.output, used_share(margin.used), measured(margin))
        for margin in worst_first(evaluation)
    ]
    columns = [
        Column("case", keep=True),
        Column("output", keep=True),
        Column("used", right=True),
        Column("by"),
    ]
    return "tolerance used, worst first\n" + table(columns, rows, indent=2)


def _resources(evaluation: Evaluation) -> str:
    blocks = [_target(target, kernels) for target, kernels in evaluation.resources.items()]
    blocks += [
        f"{target} did not compile\n{indented(error)}" for target, error in evaluation.compile_errors.items()
    ]
    return "\n\n".join(blocks)


def _target(target: str, kernels: tuple[KernelResources, ...]) -> str:
    amd = any(kernel.vgprs is not None for kernel in kernels)
    names = dict.fromkeys(kernel.kernel for kernel in kernels)
    columns = [
        Column("case", keep=True),
        Column("kernel"),
        Column("config", right=True, if_known=True),
        Column("VGPRs" if amd else "registers", right=True),
        Column("spills", right=True),
        Column("LDS" if amd else "shared", right=True),
        Column("waves" if amd else "warps", right=True),
        Column("limit", keep=True),
        Column("MFMA" if amd else "MMA", right=True),
        Column("loads"),
        Column("rounds", right=True, if_known=True),
        Column("tail idle", right=True, if_known=True),
        Column("per die", right=True, if_known=True),
        Column("flags", if_known=True),
    ]
    rows = [_kernel_row(kernel, amd=amd) for kernel in kernels]
    title = f"{target}, compiled at GPU sizes"
    if len(names) == 1:
        title = f"{target}, {next(iter(names))} compiled at GPU sizes"
        columns = [columns[0], *columns[2:]]
        rows = [(row[0], *row[2:]) for row in rows]
    return title + "\n" + table(columns, rows, indent=2)


def _kernel_row(kernel: KernelResources, *, amd: bool) -> tuple[str, ...]:
    spilled = [spills for spills in (kernel.vgpr_spills, kernel.sgpr_spills) if spills is not None]
    spills = (grouped(sum(spilled)) if spilled else UNKNOWN) if amd else size(kernel.spill_bytes)
    widths = sorted(((int(bits), times) for bits, times in kernel.load_widths.items()), reverse=True)
    return (
        kernel.case,
        kernel.kernel,
        UNKNOWN if kernel.autotune_index is None else str(kernel.autotune_index),
        grouped(kernel.vgprs if amd else kernel.registers),
        spills,
        size(kernel.lds_bytes),
        UNKNOWN if kernel.occupancy is None else f"{kernel.occupancy:g}",
        kernel.occupancy_limit or UNKNOWN,
        grouped(kernel.matrix_instructions),
        " ".join(f"{times}x{bits}b" for bits, times in widths) or UNKNOWN,
        *_fit(kernel),
        " ".join(kernel.flags) or UNKNOWN,
    )


def _fit(kernel: KernelResources) -> tuple[str, str, str]:
    """Return rounds, idle share of the last round and workgroups per die, for the first case."""
    if not kernel.fits:
        return UNKNOWN, UNKNOWN, UNKNOWN
    fit = kernel.fits[0]
    per_die = str(fit.die_most) if fit.die_most == fit.die_least else f"{fit.die_least}-{fit.die_most}"
    return str(fit.rounds), f"{fit.tail_idle:.0%}", per_die if fit.dies > 1 else UNKNOWN


def _traffic(evaluation: Evaluation) -> str:
    if not evaluation.traffic:
        return ""
    rows = []
    for traffic in evaluation.traffic:
        requested = traffic.requested_read_bytes + traffic.requested_write_bytes
        rows.append(
            (
                traffic.case,
                size(requested),
                size(traffic.unique_read_bytes + traffic.unique_write_bytes),
                size(traffic.minimal_bytes),
                f"{requested / traffic.minimal_bytes:.2f}" if traffic.minimal_bytes else UNKNOWN,
                grouped(traffic.dot_flops),
                grouped(traffic.launches),
                grouped(traffic.programs),
            )
        )
    columns = [
        Column("case", keep=True),
        Column("requested", right=True),
        Column("unique", right=True),
        Column("minimal", right=True),
        Column("req/min", right=True),
        Column("dot FLOPs", right=True),
        Column("launches", right=True, drop=1),
        Column("programs", right=True, drop=2),
    ]
    return "bytes moved, counted at CPU sizes\n" + table(columns, rows, indent=2)


def _sampled(evaluation: Evaluation) -> str:
    lines = [f"{case} not sampled at GPU sizes: {why}" for case, why in evaluation.not_sampled.items()]
    rows = []
    for sample in evaluation.sampled:
        requested = sample.requested_read_bytes + sample.requested_write_bytes
        rows.append(
            (
                sample.case,
                size(requested),
                size(sample.die_bytes),
                size(sample.unique_high_bytes),
                size(sample.minimal_bytes),
                f"{requested / sample.minimal_bytes:.2f}" if sample.minimal_bytes else UNKNOWN,
                f"{grouped(sample.sampled)} of {grouped(sample.programs)}",
            )
        )
    columns = [
        Column("case", keep=True),
        Column("requested", right=True),
        Column("on dies at most", right=True),
        Column("unique at most", right=True),
        Column("minimal", right=True),
        Column("req/min", right=True),
        Column("programs sampled", right=True, drop=1),
    ]
    if rows:
        lines.insert(
            0, "bytes at GPU sizes, an estimate from a sample of programs\n" + table(columns, rows, indent=2)
        )
    return wrapped("\n".join(lines)) if not rows else "\n".join(lines)


def _estimate(evaluation: Evaluation) -> str:
    if not evaluation.estimate:
        return ""
    rows = [
        (
            estimate.target,
            estimate.case,
            " ".join(f"{name}={value}" for name, value in estimate.sizes.items()),
            f"{estimate.low_us:,.4g}",
            UNKNOWN if estimate.shared_us is None else f"{estimate.shared_us:,.4g}",
            f"{estimate.high_us:,.4g}",
            estimate.bound_low
            if estimate.bound_low == estimate.bound_high
            else f"{estimate.bound_low} to {estimate.bound_high}",
        )
        for estimate in evaluation.estimate
    ]
    columns = [
        Column("target", keep=True),
        Column("case", keep=True),
        Column("sizes"),
        Column("at best us", right=True),
        Column("shared on dies us", right=True, if_known=True),
        Column("uncached us", right=True),
        Column("bound"),
    ]
    # The table already shows the sizes.
    sources = dict.fromkeys(estimate.basis.partition("; at ")[0] for estimate in evaluation.estimate)
    lines = ["estimate (roofline between two bounds, not a measurement)", table(columns, rows, indent=2)]
    lines += [wrapped(indented(source)) for source in sources]
    return "\n".join(lines)


def _footer(evaluation: Evaluation) -> str:
    by_state: dict[str, list[str]] = {}
    for layer in evaluation.sandbox:
        why = f" ({layer.why})" if layer.why and layer.state != "active" else ""
        by_state.setdefault(layer.state, []).append(layer.name + why)
    lines = [f"sandbox {state}: {', '.join(layers)}" for state, layers in by_state.items()]
    if evaluation.versions:
        lines.append(
            "versions: " + ", ".join(f"{name} {version}" for name, version in evaluation.versions.items())
        )
    return wrapped("\n".join(lines))
