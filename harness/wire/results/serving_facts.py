"""The facts that decide whether a kernel can be served, in words, computed from an evaluation. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .evaluation import Evaluation, Verdict
from .served_calls import REPEATS, ServedCall

NOT_MEASURED = "not measured"


class ServingFact(NamedTuple):
    """One fact over the timed cases."""

    name: str
    value: str
    is_obstacle: bool = False
    """True if it keeps a kernel out of some servers."""


def serving_facts(evaluation: Evaluation) -> tuple[ServingFact, ...]:
    """Return the facts of a correct candidate, or of a refused candidate that was timed; else empty."""
    calls = evaluation.serving
    if not calls and evaluation.verdict is not Verdict.CORRECT:
        return ()
    timed = (_graph(calls), _waits(calls), _host(calls), _bits(calls)) if calls else (_unknown(evaluation),)
    return (*timed, *_batch(evaluation), *_specializations(evaluation))


def _unknown(evaluation: Evaluation) -> ServingFact:
    why = "no GPU timed the kernel" if evaluation.device == "cpu" else "the kernel was not timed"
    return ServingFact("graph, host, same bits", f"{NOT_MEASURED}: {why}")


def _graph(calls: Sequence[ServedCall]) -> ServingFact:
    """Say whether a graph can hold the calls: an obstacle if one call does not fit, unknown if one was not tried."""
    name = "captured in a graph"
    if failed := [call for call in calls if call.no_graph]:
        value = f"no, {_in_cases(failed, calls)}: {failed[0].no_graph}"
        return ServingFact(name, value, is_obstacle=True)
    if unknown := [call for call in calls if call.no_graph is None]:
        why = "too little memory, or graphs that are not trusted (AMD)"
        return ServingFact(name, f"{NOT_MEASURED}, {_in_cases(unknown, calls)}: {why}")
    return ServingFact(name, f"yes, {_in_cases(calls, calls)}")


def _waits(calls: Sequence[ServedCall]) -> ServingFact:
    """Say whether the host waits for the device in a call: an obstacle if it does in one case."""
    name = "host waits for the device"
    if waiting := [call for call in calls if call.host_waits]:
        return ServingFact(name, f"yes, {_in_cases(waiting, calls)}", is_obstacle=True)
    if unknown := [call for call in calls if call.host_waits is None]:
        return ServingFact(name, f"{NOT_MEASURED}, {_in_cases(unknown, calls)}: the host needs too long")
    return ServingFact(name, f"no, {_in_cases(calls, calls)}")


def _host(calls: Sequence[ServedCall]) -> ServingFact:
    least, most = (choose(calls, key=lambda call: call.host_us) for choose in (min, max))
    value = f"{most.host_us:.3g} us"
    if least is not most:
        value = f"{least.host_us:.3g} us ({least.case}) to {value} ({most.case})"
    return ServingFact("host time a call", value)


def _bits(calls: Sequence[ServedCall]) -> ServingFact:
    """Say whether equal inputs give equal bits: an obstacle if they do not in one case."""
    name = "same bits"
    if different := [call for call in calls if call.same_bits is False]:
        value = f"no, {_in_cases(different, calls)}: {REPEATS} calls on equal inputs differ"
        return ServingFact(name, value, is_obstacle=True)
    if unknown := [call for call in calls if call.same_bits is None]:
        return ServingFact(name, f"{NOT_MEASURED}, {_in_cases(unknown, calls)}: too little memory")
    return ServingFact(name, f"yes, {REPEATS} calls on equal inputs, {_in_cases(calls, calls)}")


def _batch(evaluation: Evaluation) -> tuple[ServingFact, ...]:
    """Empty if the evaluation ended before, and without a GPU."""
    batches, name = evaluation.batch_rows, "same bits in any batch"
    if not batches:
        return ()
    if batches[0].same_bits is None:
        return (ServingFact(name, f"{NOT_MEASURED}: {batches[0].why_not}"),)
    different = [batch for batch in batches if not batch.same_bits]
    compared = "; ".join(batch.words for batch in different or batches)
    config = ", with the first config" if _tuning(evaluation) else ""
    value = f"{'no' if different else 'yes'}, {compared}{config}"
    return (ServingFact(name, value, is_obstacle=bool(different)),)


def _specializations(evaluation: Evaluation) -> tuple[ServingFact, ...]:
    """The binaries of the first target, which is that of the device if it is a GPU; empty if nothing was compiled."""
    target, kernels = next(iter(evaluation.resources.items()), ("", ()))
    compiled = [kernel for kernel in kernels if not kernel.failure]
    if not compiled:
        return ()
    seconds = [kernel.compile_seconds for kernel in compiled if kernel.compile_seconds is not None]
    cases = "the cases of the exam" if evaluation.exam else "all cases"
    parts = (
        f"{len(compiled)} over {cases}, for {target}",
        f"{sum(seconds):.2g} s to compile one after another" if seconds else "",
        _tuning(evaluation),
    )
    return (ServingFact("specializations", ", ".join(filter(None, parts))),)


def _tuning(evaluation: Evaluation) -> str:
    """Return how many configs a server times in the first call of each key, by kernel; empty if it times none."""
    configs: dict[str, int] = {}
    for row in (row for rows in evaluation.resources.values() for row in rows):
        if row.autotune_index is not None:
            configs[row.kernel] = max(configs.get(row.kernel, 0), row.autotune_index + 1)
    kernels = ", ".join(f"{count} of {kernel}" for kernel, count in configs.items())
    return f"configs to time in the first call of each key: {kernels}" if kernels else ""


def _in_cases(some: Sequence[ServedCall], calls: Sequence[ServedCall]) -> str:
    """Return `in all 5 cases`, or `in 2 of 5 cases (fp32, fp16)`."""
    if len(some) == len(calls):
        return f"in all {len(calls)} cases" if len(calls) > 1 else f"in case {calls[0].case}"
    return f"in {len(some)} of {len(calls)} cases ({', '.join(call.case for call in some)})"
