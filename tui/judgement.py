"""What the judge said of a candidate, in plain text."""

from __future__ import annotations

from collections.abc import Iterator

from harness import Evaluation, KernelResources, Mismatch

from .certainty import (
    BASES,
    against_words,
    facts_of,
    left,
    margin_words,
    measured,
    speedup_words,
    worst_first,
)
from .measured import timing
from .plain import UNKNOWN, Column, count, indented, size, table, wrapped

MARKS = {True: "ok", False: "FAILED", None: UNKNOWN}


def headline(evaluation: Evaluation, *, baseline: str = "") -> str:
    """The verdict on one line: with the reason where it is not `correct`, else with what is known of speed and margins."""
    if evaluation.error is not None:
        line = f"{evaluation.verdict}: {evaluation.error.message}"
        return line if evaluation.error.line is None else f"{line} (kernel.py line {evaluation.error.line})"
    margins = f"; {known}" if (known := margin_words(evaluation)) else ""
    if not (speed := speedup_words(evaluation)):
        return f"{evaluation.verdict}{margins}"
    return f"{evaluation.verdict}, {speed}{against_words(evaluation, baseline)}{margins}"


def page(evaluation: Evaluation, *, baseline: str = "") -> str:
    """The whole evaluation, section by section; sections that say nothing here are left out."""
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
    parts = [mismatch(error.mismatch)] if error.mismatch else []
    if error.trace:
        parts.append(error.trace.rstrip())
    return _block(f"error ({error.kind})", "\n".join(parts) or error.message)


def mismatch(found: Mismatch) -> str:
    """Where and by how much an output is wrong, one fact a line."""
    index = ", ".join(map(str, found.index))
    lines = [
        f"case {found.case}, output {found.output}",
        f"shape: {found.shape} {found.dtype}, expected {found.expected_shape} {found.expected_dtype}",
        f"first wrong element [{index}]: expected {found.expected}, got {found.got}",
        f"wrong elements: {found.wrong_share:.2%}",
    ]
    if found.max_abs is not None:
        relative = UNKNOWN if found.max_rel is None else f"{found.max_rel:.3g}"
        lines.append(f"largest error: absolute {found.max_abs:.3g}, relative {relative}")
    if found.nan_got or found.nan_expected or found.inf_got or found.inf_expected:
        lines.append(
            f"NaN: {found.nan_got}, expected {found.nan_expected}; Inf: {found.inf_got}, expected {found.inf_expected}"
        )
    lines += [f"{name}: {value:.6g}" for name, value in found.metrics.items()]
    return "\n".join(lines)


def _margins(evaluation: Evaluation) -> str:
    if not evaluation.margins:
        return ""
    rows = [(each.case, each.output, left(each.used), measured(each)) for each in worst_first(evaluation)]
    columns = [
        Column("case", keep=True),
        Column("output", keep=True),
        Column("left", right=True),
        Column("by"),
    ]
    return "margins left to the tolerances, worst first\n" + table(columns, rows, indent=2)


def _resources(evaluation: Evaluation) -> str:
    blocks = [_target(target, kernels) for target, kernels in evaluation.resources.items()]
    blocks += [
        f"{target} did not compile\n{indented(error)}" for target, error in evaluation.compile_errors.items()
    ]
    return "\n\n".join(blocks)


def _target(target: str, kernels: tuple[KernelResources, ...]) -> str:
    amd = any(each.vgprs is not None for each in kernels)
    names = dict.fromkeys(each.kernel for each in kernels)
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
        Column("a die", right=True, if_known=True),
        Column("flags", if_known=True),
    ]
    rows = [_kernel(each, amd=amd) for each in kernels]
    title = f"{target}, compiled at GPU sizes"
    if len(names) == 1:
        title = f"{target}, {next(iter(names))} compiled at GPU sizes"
        columns = [columns[0], *columns[2:]]
        rows = [(row[0], *row[2:]) for row in rows]
    return title + "\n" + table(columns, rows, indent=2)


def _kernel(each: KernelResources, *, amd: bool) -> tuple[str, ...]:
    spilled = [spills for spills in (each.vgpr_spills, each.sgpr_spills) if spills is not None]
    spills = (count(sum(spilled)) if spilled else UNKNOWN) if amd else size(each.spill_bytes)
    widths = sorted(((int(bits), times) for bits, times in each.load_widths.items()), reverse=True)
    return (
        each.case,
        each.kernel,
        UNKNOWN if each.autotune_index is None else str(each.autotune_index),
        count(each.vgprs if amd else each.registers),
        spills,
        size(each.lds_bytes),
        UNKNOWN if each.occupancy is None else f"{each.occupancy:g}",
        each.occupancy_limit or UNKNOWN,
        count(each.matrix_instructions),
        " ".join(f"{times}x{bits}b" for bits, times in widths) or UNKNOWN,
        *_fit(each),
        " ".join(each.flags) or UNKNOWN,
    )


def _fit(each: KernelResources) -> tuple[str, str, str]:
    """Rounds, idle share of the last one and workgroups a die, of the first case."""
    if not each.fits:
        return UNKNOWN, UNKNOWN, UNKNOWN
    fit = each.fits[0]
    a_die = str(fit.die_most) if fit.die_most == fit.die_least else f"{fit.die_least}-{fit.die_most}"
    return str(fit.rounds), f"{fit.tail_idle:.0%}", a_die if fit.dies > 1 else UNKNOWN


def _traffic(evaluation: Evaluation) -> str:
    if not evaluation.traffic:
        return ""
    rows = []
    for each in evaluation.traffic:
        requested = each.requested_read_bytes + each.requested_write_bytes
        rows.append(
            (
                each.case,
                size(requested),
                size(each.unique_read_bytes + each.unique_write_bytes),
                size(each.minimal_bytes),
                f"{requested / each.minimal_bytes:.2f}" if each.minimal_bytes else UNKNOWN,
                count(each.dot_flops),
                count(each.launches),
                count(each.programs),
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
    for each in evaluation.sampled:
        requested = each.requested_read_bytes + each.requested_write_bytes
        rows.append(
            (
                each.case,
                size(requested),
                size(each.die_bytes),
                size(each.unique_high_bytes),
                size(each.minimal_bytes),
                f"{requested / each.minimal_bytes:.2f}" if each.minimal_bytes else UNKNOWN,
                f"{count(each.sampled)} of {count(each.programs)}",
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
            each.target,
            each.case,
            " ".join(f"{name}={value}" for name, value in each.sizes.items()),
            f"{each.low_us:,.4g}",
            UNKNOWN if each.shared_us is None else f"{each.shared_us:,.4g}",
            f"{each.high_us:,.4g}",
            each.bound_low if each.bound_low == each.bound_high else f"{each.bound_low} to {each.bound_high}",
        )
        for each in evaluation.estimate
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
    # The sizes stand in the table.
    basis = dict.fromkeys(each.basis.partition("; at ")[0] for each in evaluation.estimate)
    lines = ["estimate (roofline between two bounds, not a measurement)", table(columns, rows, indent=2)]
    lines += [wrapped(indented(each)) for each in basis]
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
