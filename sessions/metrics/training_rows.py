"""Rows of data for training, out of the chains of a session, with the keys of KernelBench-X's corpus.

Each row has two candidates of one instance: the code before and after, how each was judged, and their difference. Codes are the
candidates alone; the rows of KernelBench-X have the benchmark's test behind each code.
"""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Iterator, Mapping
from itertools import pairwise, takewhile

import msgspec

from harness import Evaluation, Verdict
from harness.wire.results.provenance import Provenance
from sessions.events import Role
from sessions.state.speed import are_comparable, baseline_names, speed_of
from sessions.state.state import AttemptState, Confirmation, InstanceState, SessionState
from sessions.store.attempt_commits import code_call

DIGITS = 4
"""Decimals of times, rates and speedups, as in the corpus."""
NOT_PYTHON = "N/A"


class JudgedRound(msgspec.Struct, frozen=True, kw_only=True):
    """How a candidate was judged, in the words of KernelBench-X. `None`: not measured."""

    call_ok: bool
    exe_ok: bool
    perf_ok: bool
    """True if a case was timed."""
    dtype: str
    """Torch name of the dtype; empty if nothing was timed, or if the cases have several."""
    runtime_ms: float | None
    """Sum over the timed cases."""
    gbs: float | None
    """Bytes by the cost model over the same time, in GB/s."""
    tflops: float | None
    speedup: float | None
    """Sum of the baseline's times over the sum of the candidate's."""
    maintainability: float | str
    """Maintainability index of the candidate alone, 0 to 100; `N/A` if it is no Python."""
    error: str


class DiffStats(msgspec.Struct, frozen=True):
    """Size of a difference; the ratio is difflib's, over lines."""

    lines_a: int
    lines_b: int
    similarity_ratio: float
    opcodes_len: int


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of an agent after a round; `None` for a text that does not exist."""

    temp_strategy: str | None
    """The strategy in the model's words."""
    perf_strategy: str | None = None
    reflection_texts: list[str] | None = None
    reflection: str | None
    pass_call: bool
    pass_exe: bool
    pass_perf: bool
    memory_source_round: str


class Memories(msgspec.Struct, frozen=True):
    """The memory after both rounds."""

    memory_after_round_from: Memory
    memory_after_next_round_from: Memory


class RowOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The source of a row: session, attempts, models, hardware and software."""

    session: str
    task: str
    before: str
    """Attempts: `softmax#2/6`."""
    after: str
    method: str
    before_model: str
    """The model that wrote the code; empty if no model did."""
    after_model: str
    before_origin: str
    after_origin: str
    """`fresh`, `repair`, `optimize`, `tune`, or `human` and `fork` for a kernel that a person gave."""
    seed: int
    against: str
    """Timing baseline of the speedups; empty without times."""
    before_hardware: Provenance | None
    after_hardware: Provenance | None
    versions: Mapping[str, str]
    """Versions of the software that ran the session."""


class TrainingRow(msgspec.Struct, frozen=True, kw_only=True):
    """The fifteen keys of the corpus in its order, then licence and provenance."""

    task_id: str
    transition: str
    from_round: str
    to_round: str
    kind: str
    before: JudgedRound
    after: JudgedRound
    before_code_present: bool = True
    after_code_present: bool = True
    before_code: str
    after_code: str
    unified_diff: str
    diff_stats: DiffStats
    llm_fields: Memories
    notes: str
    task_license: str | None
    """SPDX name of the licence of the task's suite; `None` if it is not known."""
    provenance: RowOrigin


def transitions(state: SessionState, licences: Mapping[str, str]) -> Iterator[TrainingRow]:
    """Yields a row for each two neighbouring attempts of an instance with different results: see `kind_of`.

    `licences` are SPDX names by suite.
    """
    for instance in state.instances.values():
        for before, after in pairwise(_usable(instance)):
            if before.source != after.source and (kind := kind_of(before, after)):
                yield _row(state, instance, before, after, kind, licences)


def pairs(state: SessionState, licences: Mapping[str, str]) -> Iterator[TrainingRow]:
    """Yields error-correction pairs and optimization pairs.

    A failed attempt is paired with the next right attempt of its instance; a right attempt with each faster one that was
    derived from it. Right: correct, and refused neither by a person nor by the exam.
    """
    for instance in state.instances.values():
        usable = _usable(instance)
        by_name = {attempt.attempt: attempt for attempt in usable}
        for place, after in enumerate(usable):
            if not is_right(after):
                continue
            since_right = takewhile(lambda before: not is_right(before), reversed(usable[:place]))
            for before in reversed([*since_right]):
                if before.verdict is not Verdict.CORRECT:
                    yield _row(state, instance, before, after, kind_of(before, after), licences)
            base = by_name.get(after.base or "")
            if base is not None and is_right(base) and is_faster(after, base):
                yield _row(state, instance, base, after, kind_of(base, after), licences)


def is_right(attempt: AttemptState) -> bool:
    """True if it is correct, and neither a person nor the exam refused it."""
    refused = attempt.rejected or attempt.confirmation is Confirmation.NOT_CONFIRMED
    return attempt.verdict is Verdict.CORRECT and not refused


def is_faster(after: AttemptState, before: AttemptState) -> bool:
    """True if the whole 95 % interval of its speedup is above that of the other: same cases, baseline, hardware, software."""
    if after.evaluation is None or before.evaluation is None:
        return False
    speed, earlier = speed_of(after.evaluation), speed_of(before.evaluation)
    if speed is None or earlier is None or speed.interval is None or earlier.interval is None:
        return False
    same_baseline = baseline_names(after.evaluation) == baseline_names(before.evaluation)
    alike = speed.all_cases == earlier.all_cases and same_baseline
    return (
        alike
        and are_comparable(after.evaluation, before.evaluation)
        and speed.interval[0] > earlier.interval[1]
    )


def kind_of(before: AttemptState, after: AttemptState) -> str:
    """Returns the kinds of KernelBench-X that a change has, joined by commas; empty if the result is the same.

    These rules give the kind of each row of its corpus, but for `speedup_increase`: there any higher figure counts, here only a
    faster one (`is_faster`).
    """
    first, second = before.evaluation, after.evaluation
    if first is None or second is None:
        return ""
    kinds = {
        "exe_fail_to_pass": is_correct(second) and not is_correct(first),
        "call_fail_to_pass": second.call and not first.call,
        "perf_ok_newly": is_timed(second) and not is_timed(first),
        "speedup_increase": is_faster(after, before),
        "regression_exe": is_correct(first) and not is_correct(second),
        "regression_perf": is_timed(first) and not is_timed(second),
    }
    return ",".join(kind for kind, holds in kinds.items() if holds)


def is_correct(evaluation: Evaluation) -> bool:
    """True if its verdict is correct."""
    return evaluation.verdict is Verdict.CORRECT


def is_timed(evaluation: Evaluation) -> bool:
    """True if it is correct and a case was timed."""
    return is_correct(evaluation) and bool(evaluation.latency)


def _usable(instance: InstanceState) -> list[AttemptState]:
    """The attempts with code and a verdict about it."""
    return [
        attempt
        for attempt in instance.attempts
        if attempt.source and attempt.evaluation is not None and attempt.evaluation.verdict.counted
    ]


def _row(
    state: SessionState,
    instance: InstanceState,
    before: AttemptState,
    after: AttemptState,
    kind: str,
    licences: Mapping[str, str],
) -> TrainingRow:
    task_id = f"{instance.task}.py"
    codes = before.source or "", after.source or ""
    lines = [code.splitlines() for code in codes]
    matcher = difflib.SequenceMatcher(a=lines[0], b=lines[1])
    diff = difflib.unified_diff(
        codes[0].splitlines(keepends=True),
        codes[1].splitlines(keepends=True),
        f"{task_id}::before",
        f"{task_id}::after",
    )
    rounds = _round(before), _round(after)
    return TrainingRow(
        task_id=task_id,
        transition=f"{rounds[0]}_to_{rounds[1]}",
        from_round=rounds[0],
        to_round=rounds[1],
        kind=kind,
        before=_judged(before),
        after=_judged(after),
        before_code=codes[0],
        after_code=codes[1],
        unified_diff="".join(diff),
        diff_stats=DiffStats(
            len(lines[0]), len(lines[1]), round(matcher.ratio(), 6), len(matcher.get_opcodes())
        ),
        llm_fields=Memories(_memory(before), _memory(after)),
        notes="regression" if kind.startswith("regression") else "",
        task_license=licences.get(instance.task.partition("/")[0]),
        provenance=_provenance(state, instance, before, after),
    )


def _round(attempt: AttemptState) -> str:
    """The corpus counts rounds from 0."""
    return f"round_{attempt.number - 1}"


def _judged(attempt: AttemptState) -> JudgedRound:
    evaluation = attempt.evaluation
    assert evaluation is not None, "only judged attempts are usable"
    timed = evaluation.latency if is_timed(evaluation) else ()
    runtime_ms = math.fsum(latency.candidate_ms for latency in timed)
    baseline_ms = math.fsum(latency.baseline_ms for latency in timed)
    work = [latency.efficiency for latency in timed if latency.efficiency is not None]
    whole = len(work) == len(timed)
    dtypes = {case.dtype for case in work} if whole else set()
    moved = sum(case.bytes for case in work) if whole and all(case.bytes for case in work) else 0
    flops = sum(case.flops for case in work) if whole else 0
    maintainability, error = maintainability_of(attempt.source or ""), evaluation.error
    return JudgedRound(
        call_ok=evaluation.call,
        exe_ok=is_correct(evaluation),
        perf_ok=bool(timed),
        dtype=dtypes.pop() if len(dtypes) == 1 else "",
        runtime_ms=_rounded(runtime_ms or None),
        gbs=_rounded(moved / runtime_ms / 1e6 if runtime_ms and moved else None),
        tflops=_rounded(flops / runtime_ms / 1e9 if runtime_ms and flops else None),
        speedup=_rounded(baseline_ms / runtime_ms if runtime_ms else None),
        maintainability=NOT_PYTHON if maintainability is None else round(maintainability, 2),
        error="\n".join(filter(None, (error.message, error.trace))) if error is not None else "",
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def _memory(attempt: AttemptState) -> Memory:
    evaluation = attempt.evaluation
    reflections = [call.text for call in attempt.calls if call.role is Role.REFLECTOR and call.finished]
    return Memory(
        temp_strategy=attempt.strategy or None,
        reflection=reflections[-1] if reflections else None,
        pass_call=evaluation is not None and evaluation.call,
        pass_exe=evaluation is not None and is_correct(evaluation),
        pass_perf=evaluation is not None and is_timed(evaluation),
        memory_source_round=_round(attempt),
    )


def _provenance(
    state: SessionState, instance: InstanceState, before: AttemptState, after: AttemptState
) -> RowOrigin:
    started = state.started
    assert started is not None, "a session with attempts has started"
    evaluations = [attempt.evaluation for attempt in (before, after) if attempt.evaluation is not None]
    calls = code_call(before.calls), code_call(after.calls)
    models = [call.model if call is not None else "" for call in calls]
    return RowOrigin(
        session=started.session,
        task=instance.task,
        before=before.attempt,
        after=after.attempt,
        method=started.method,
        before_model=models[0],
        after_model=models[1],
        before_origin=str(before.origin),
        after_origin=str(after.origin),
        seed=started.seed,
        against=baseline_names(*evaluations),
        before_hardware=evaluations[0].provenance,
        after_hardware=evaluations[1].provenance,
        versions=started.versions,
    )


def maintainability_of(source: str) -> float | None:
    """Returns the maintainability index of the candidate alone, 0 to 100; higher is better. `None` if it is no Python.

    Comments raise it (radon, `multi=True`), as in KernelBench-X, which measures the candidate together with the benchmark's
    test. About 10 ms.
    """
    # radon takes 40 ms to import, and few commands need it.
    from radon.metrics import mi_visit

    try:
        with warnings.catch_warnings():
            # Invalid escapes in a candidate's strings.
            warnings.simplefilter("ignore")
            return float(mi_visit(source, multi=True))
    except (SyntaxError, ValueError, RecursionError):
        return None
