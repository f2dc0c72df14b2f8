"""Rows of data for training, out of the chains of a session: with the keys of KernelBench-X's corpus, or as conversations.

A row is a JSON object. A row of the corpus has two candidates of one instance: the code before and after, how each was judged,
and their difference. Codes are the candidates alone; the rows of KernelBench-X have the benchmark's test behind each code.
docs/studies.md lists these differences. An unknown value is `None`.
"""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise, takewhile
from typing import Any

from harness import Evaluation, Verdict
from sessions.events import Message, Role
from sessions.state.speed import are_comparable, baseline_names, speed_of
from sessions.state.state import AttemptState, Confirmation, InstanceState, SessionState
from sessions.store.attempt_commits import code_call

DIGITS = 4
"""Decimals of times, rates and speedups, as in the corpus."""
NOT_PYTHON = "N/A"
Row = dict[str, Any]


def conversations(
    state: SessionState, licences: Mapping[str, str], winners: Collection[tuple[str, str]]
) -> Iterator[Row]:
    """Yields the conversation of each attempt that a model's reply made and that has a verdict about it.

    `messages` have the form of chat trainers: the prompt, then the reply without reasoning. `winners` are the best right attempts
    at their tasks over all sessions that are written, as (session, attempt).
    """
    for instance in state.instances.values():
        for attempt in _usable(instance):
            call = code_call(attempt.calls)
            if call is None or not call.messages:
                continue
            speed, facts = attempt.speed, _session_facts(state, instance)
            yield {
                "messages": [*call.messages, Message("assistant", call.text)],
                **facts,
                "attempt": attempt.attempt,
                "model": call.model,
                "origin": str(attempt.origin),
                "verdict": str(attempt.verdict),
                "speedup": None if speed is None else _rounded(speed.value),
                "winner": (facts["session"], attempt.attempt) in winners,
                "task_license": _licence(instance, licences),
            }


def transitions(state: SessionState, licences: Mapping[str, str]) -> Iterator[Row]:
    """Yields a row for each two neighbouring attempts of an instance with different results: see `kind_of`.

    `licences` are SPDX names by suite.
    """
    for instance in state.instances.values():
        for before, after in pairwise(_usable(instance)):
            if before.source != after.source and (kind := kind_of(before, after)):
                yield _row(state, instance, before, after, kind, licences)


def pairs(state: SessionState, licences: Mapping[str, str]) -> Iterator[Row]:
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
) -> Row:
    """The fifteen keys of the corpus in its order, then licence and provenance."""
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
    return {
        "task_id": task_id,
        "transition": f"{rounds[0]}_to_{rounds[1]}",
        "from_round": rounds[0],
        "to_round": rounds[1],
        "kind": kind,
        "before": _judged(before),
        "after": _judged(after),
        "before_code_present": True,
        "after_code_present": True,
        "before_code": codes[0],
        "after_code": codes[1],
        "unified_diff": "".join(diff),
        "diff_stats": {
            "lines_a": len(lines[0]),
            "lines_b": len(lines[1]),
            "similarity_ratio": round(matcher.ratio(), 6),
            "opcodes_len": len(matcher.get_opcodes()),
        },
        "llm_fields": {
            "memory_after_round_from": _memory(before),
            "memory_after_next_round_from": _memory(after),
        },
        "notes": "regression" if kind.startswith("regression") else "",
        "task_license": _licence(instance, licences),
        "provenance": _provenance(state, instance, before, after),
    }


def _licence(instance: InstanceState, licences: Mapping[str, str]) -> str | None:
    return licences.get(instance.task.partition("/")[0])


def _round(attempt: AttemptState) -> str:
    """The corpus counts rounds from 0."""
    return f"round_{attempt.number - 1}"


def _judged(attempt: AttemptState) -> Row:
    """How a candidate was judged; times, bytes and operations are sums over the timed cases."""
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
    return {
        "call_ok": evaluation.call,
        "exe_ok": is_correct(evaluation),
        "perf_ok": bool(timed),
        "dtype": dtypes.pop() if len(dtypes) == 1 else "",
        "runtime_ms": _rounded(runtime_ms or None),
        "gbs": _rounded(moved / runtime_ms / 1e6 if runtime_ms and moved else None),
        "tflops": _rounded(flops / runtime_ms / 1e9 if runtime_ms and flops else None),
        "speedup": _rounded(baseline_ms / runtime_ms if runtime_ms else None),
        "maintainability": NOT_PYTHON if maintainability is None else round(maintainability, 2),
        "error": "\n".join(filter(None, (error.message, error.trace))) if error is not None else "",
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def _memory(attempt: AttemptState) -> Row:
    """The memory of an agent after a round, as far as Wavedeck has one."""
    evaluation = attempt.evaluation
    reflections = [call.text for call in attempt.calls if call.role is Role.REFLECTOR and call.finished]
    return {
        "temp_strategy": attempt.strategy or None,
        "perf_strategy": None,
        "reflection_texts": None,
        "reflection": reflections[-1] if reflections else None,
        "pass_call": evaluation is not None and evaluation.call,
        "pass_exe": evaluation is not None and is_correct(evaluation),
        "pass_perf": evaluation is not None and is_timed(evaluation),
        "memory_source_round": _round(attempt),
    }


def _session_facts(state: SessionState, instance: InstanceState) -> Row:
    started = state.started
    assert started is not None, "a session with attempts has started"
    return {
        "session": started.session,
        "task": instance.task,
        "method": started.method,
        "seed": started.seed,
        "versions": started.versions,
        "reference_shown": started.shows_reference(instance.task),
    }


def _provenance(
    state: SessionState, instance: InstanceState, before: AttemptState, after: AttemptState
) -> Row:
    evaluations = [attempt.evaluation for attempt in (before, after) if attempt.evaluation is not None]
    facts: Row = {"against": baseline_names(*evaluations)}
    for side, attempt, evaluation in zip(("before", "after"), (before, after), evaluations, strict=True):
        call = code_call(attempt.calls)
        facts |= {
            side: attempt.attempt,
            f"{side}_model": call.model if call is not None else "",
            f"{side}_origin": str(attempt.origin),
            f"{side}_hardware": evaluation.provenance,
        }
    return _session_facts(state, instance) | facts


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
