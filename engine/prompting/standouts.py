"""Picks the figures of a correct kernel that are worth acting on, as few sentences.

Each sentence is about the case where it costs most. Cases that take no longer than their launch are left out of these
sentences, but not of the list of resources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness import Evaluation, KernelResources
from harness.wire.limits import memory_words
from harness.wire.results.evaluation import GridFit
from sessions.state.ranking import (
    WIDEST_BITS,
    chosen_cases,
    is_chosen,
    own_kernels,
)
from sessions.state.speed import speed_of

NARROW_BITS = 64
"""Loads with fewer bits per lane waste bandwidth."""
MOSTLY = 2
"""Loads are narrow if their instructions load more than this multiple of what the wide ones load."""
MUCH_IDLE = 0.25
"""Smallest idle share of a device's places, and of its units, that is reported."""
MUCH_COST = 0.1
"""Smallest share of the needed bytes of all long cases that a case has if its grid is reported."""
DEFAULTS = ("num_ctas: 1", "maxnreg: None", "pre_hook: None", "ir_override: None")
"""Parts of a config's text that say nothing."""
MOST = 6
"""Highest number of notes, findings or failed configs that are reported."""


def standouts(evaluation: Evaluation) -> list[str]:
    """Returns the sentences for a prompt."""
    return [
        *untimed_cases(evaluation),
        *spills(evaluation),
        *narrow_loads(evaluation),
        *idle_units(evaluation),
        *chosen_configs(evaluation),
        *failed_configs(evaluation)[:MOST],
        *no_matrix_instructions(evaluation),
        *[finding.text for finding in evaluation.findings][:MOST],
        *evaluation.notes[:MOST],
    ]


def untimed_cases(evaluation: Evaluation) -> list[str]:
    """Returns a sentence about the cases of a timed kernel that have no time; none if no case has a ratio."""
    speed = speed_of(evaluation)
    named = ", ".join(dict.fromkeys(evaluation.not_timed))
    return [f"Not timed, and counted as 1.00x: {named}."] if speed is not None and named else []


def spills(evaluation: Evaluation) -> Iterator[str]:
    """Yield one sentence per target about its first kernel that spills; configs that were not chosen do not count."""
    for target, kernels in evaluation.resources.items():
        for kernel in kernels:
            cases = chosen_cases(evaluation, kernel)
            if (kernel.vgpr_spills or kernel.spill_bytes) and cases:
                amount = (
                    f"{kernel.vgpr_spills} vector registers"
                    if kernel.vgpr_spills
                    else f"{kernel.spill_bytes} bytes"
                )
                where = f"in {', '.join(cases)} on {target}"
                yield f"`{kernel.kernel}` spills {amount} {where}: use a smaller tile or more warps."
                break


def narrow_loads(evaluation: Evaluation) -> list[str]:
    """Returns one sentence per kernel and width about the long cases in which it loads narrowly; about all if sizes are unknown.

    Of an autotuned kernel the chosen config counts; if no choice is known, every config must load narrowly.
    """
    long = {row.case for row in evaluation.full_sizes if row.is_long}
    widths: dict[tuple[str, str], list[str]] = {}
    for kernel in own_kernels(evaluation):
        for case in chosen_cases(evaluation, kernel):
            if case in long or not evaluation.full_sizes:
                widths.setdefault((kernel.kernel, case), []).append(narrow_width(kernel))
    cases: dict[tuple[str, str], list[str]] = {}
    for (name, case), of_configs in widths.items():
        if all(of_configs):
            cases.setdefault((name, of_configs[0]), []).append(case)
    return [
        f"`{name}` loads {width} per lane in {', '.join(named)} ({WIDEST_BITS} are possible): "
        "Triton does not see contiguous, aligned offsets there."
        for (name, width), named in cases.items()
    ]


def narrow_width(kernel: KernelResources) -> str:
    """Returns how a binary loads narrowly: `at most 32 bits`, or `mostly 16 bits` beside a few wide loads; else empty.

    A kernel that copies tiles by a descriptor loads widely.
    """
    loaded = {int(bits): int(bits) * count for bits, count in kernel.load_widths.items()}
    wide = sum(amount for bits, amount in loaded.items() if bits >= NARROW_BITS)
    narrow = {bits: amount for bits, amount in loaded.items() if bits < NARROW_BITS}
    if kernel.tile_loads or sum(narrow.values()) <= MOSTLY * wide:
        return ""
    return f"mostly {max(narrow, key=narrow.__getitem__)} bits" if wide else f"at most {max(narrow)} bits"


def idle_units(evaluation: Evaluation) -> list[str]:
    """Returns a sentence about the grid that leaves most of the device without work, if that costs much.

    Small grids count only in cases that take longer than their launch and make up much of the time.
    """
    costs = {row.case: row.needed_bytes for row in evaluation.full_sizes if row.is_long}
    total = sum(costs.values())
    wasteful = [
        (kernel, fit)
        for kernel in own_kernels(evaluation)
        for fit in kernel.fits
        if is_chosen(evaluation, kernel, fit.case) is not False
        and min(fit.idle, fit.idle_units / fit.compute_units if fit.rounds == 1 else 1.0) >= MUCH_IDLE
        and fit.case in costs
        and costs[fit.case] >= MUCH_COST * total
    ]
    if not wasteful:
        return []
    kernel, fit = max(wasteful, key=lambda pair: pair[1].idle * costs[pair[1].case])
    return [idle_words(kernel, fit)]


def idle_words(kernel: KernelResources, fit: GridFit) -> str:
    """Returns how a grid leaves units without work."""
    several = sum(grid.case == fit.case for grid in kernel.fits) > 1
    name = f"{'one launch of ' if several else ''}`{kernel.kernel}`"
    if fit.rounds == 1:
        return (
            f"In {fit.case} {name} has {fit.workgroups} workgroups for {fit.compute_units} units: "
            f"{fit.idle_units} of them have no work."
        )
    return (
        f"In {fit.case} the grid of {name} fills the device {fit.rounds} times, the last time "
        f"{1 - fit.tail_idle:.0%}: {fit.idle:.0%} of all places have no work."
    )


def chosen_configs(evaluation: Evaluation) -> list[str]:
    """Returns a sentence per autotuned kernel: the config that its autotuner chose in each case that was timed."""
    cases: dict[str, dict[str, list[str]]] = {}
    for latency in evaluation.latency:
        for kernel, config in latency.configs.items():
            cases.setdefault(kernel, {}).setdefault(_without_defaults(config), []).append(latency.case)
    return [
        f"The autotuner chose for `{kernel}`: "
        + "; ".join(f"{config} in {', '.join(dict.fromkeys(named))}" for config, named in chosen.items())
        for kernel, chosen in cases.items()
    ]


def _without_defaults(config: str) -> str:
    """A config as the judge reports it (`R: 2, num_warps: 8, num_ctas: 1, maxnreg: None`): `R=2 num_warps=8`."""
    pairs = [part.split(": ", 1) for part in config.split(", ") if part not in DEFAULTS]
    return " ".join("=".join(pair) for pair in pairs)


def failed_configs(evaluation: Evaluation) -> list[str]:
    """Returns a sentence per config of an autotuned kernel that has no usable binary."""
    return [
        f"{config_name(kernel)} of `{kernel.kernel}` on {target}: {kernel.failure}"
        for target, kernels in evaluation.resources.items()
        for kernel in kernels
        if kernel.failure
    ]


def config_name(kernel: KernelResources) -> str:
    """Returns the name of a config: `Config BLOCK=64 num_warps=4`."""
    return f"Config {_values(kernel.config)}"


def _values(config: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in config.items())


def no_matrix_instructions(evaluation: Evaluation) -> list[str]:
    """Returns a sentence for each target where `tl.dot` became no matrix instruction."""
    if not any(case.dot_flops for case in evaluation.traffic):
        return []
    return [
        f"`tl.dot` became no matrix instruction on {target}."
        for target, kernels in evaluation.resources.items()
        if kernels and not any(kernel.matrix_instructions for kernel in kernels)
    ]


def resource_lines(evaluation: Evaluation, most: int) -> Sequence[str]:
    """Returns one line per group of binaries with equal figures, of the first target; at most `most` lines.

    Of the configs of an autotuned kernel only the chosen one is listed, if it was compiled for the case.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    kernels = list(own_kernels(evaluation))
    with_choice = {
        (kernel.kernel, case)
        for kernel in kernels
        for case in kernel.cases
        if is_chosen(evaluation, kernel, case)
    }
    for kernel in kernels:
        for case in kernel.cases:
            is_unused = is_chosen(evaluation, kernel, case) is False
            if not (is_unused and (kernel.kernel, case) in with_choice):
                name = _name_among(kernels, kernel, ", not the chosen config" if is_unused else "")
                groups.setdefault((name, resource_words(kernel)), []).append(case)
    lines = [
        f"{name} in {', '.join(dict.fromkeys(cases))}: {words}" for (name, words), cases in groups.items()
    ]
    if len(lines) > most:
        lines = [*lines[:most], f"({len(lines) - most} more left out)"]
    return lines


def _name_among(kernels: Sequence[KernelResources], kernel: KernelResources, note: str) -> str:
    """A kernel's name, with the values that its autotuner chooses between and a note: `` `k` (BLOCK=64) ``."""
    if kernel.autotune_index is None:
        return f"`{kernel.kernel}`"
    values: dict[tuple[str, str], set[str]] = {}
    for binary in kernels:
        if binary.kernel == kernel.kernel and binary.autotune_index is not None:
            for name, value in binary.config.items():
                values.setdefault((binary.case, name), set()).add(value)
    tuned = {name for (_, name), tried in values.items() if len(tried) > 1}
    own = {name: value for name, value in kernel.config.items() if name in tuned}
    if note and not own:  # the only config that was compiled
        own = dict(kernel.config)
    return f"`{kernel.kernel}` ({_values(own)}{note})" if own else f"`{kernel.kernel}`"


def resource_legend(evaluation: Evaluation) -> str:
    """Returns the meaning of the figures in `resource_lines`; empty without binaries."""
    kernel = next(own_kernels(evaluation), None)
    if kernel is None:
        return ""
    waves = "warps per multiprocessor" if kernel.vgprs is None else "waves per SIMD"
    return (
        f"*occupancy*: {waves} that fit at once, and their limit; *loads*: load instructions for global memory "
        f"by bits per lane, at most {WIDEST_BITS}"
    )


def resource_words(kernel: KernelResources) -> str:
    """Returns the resources of one binary: `77 registers, 512 B of LDS, occupancy 6 (vgprs), loads of 128 bits`."""
    registers = kernel.vgprs if kernel.vgprs is not None else kernel.registers
    spilled = sum(count or 0 for count in (kernel.vgpr_spills, kernel.sgpr_spills, kernel.spill_bytes))
    limit = f" ({kernel.occupancy_limit})" if kernel.occupancy_limit else ""
    widths = ", ".join(f"{count} of {bits} bits" for bits, count in kernel.load_widths.items())
    local = "shared memory" if kernel.vgprs is None else "LDS"
    return ", ".join(
        filter(
            None,
            (
                "" if registers is None else f"{registers} registers",
                f"{spilled}{' bytes' if kernel.vgprs is None else ''} spilled" if spilled else "",
                f"{memory_words(kernel.lds_bytes)} of {local}" if (kernel.lds_bytes or 0) >= 1024 else "",
                "" if kernel.occupancy is None else f"occupancy {kernel.occupancy:g}{limit}",
                f"{kernel.matrix_instructions} matrix instructions" if kernel.matrix_instructions else "",
                f"copies of tiles by descriptor: {kernel.tile_loads}" if kernel.tile_loads else "",
                f"loads: {widths}" if widths else "",
            ),
        )
    )
