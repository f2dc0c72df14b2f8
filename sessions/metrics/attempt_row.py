"""One row of plain data for each judged attempt. Metrics, studies, reports and data files are made of rows.

A row has no text of a model and no trace: thousands of rows fit into memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Annotated

import msgspec

from harness import Verdict
from harness.wire.results.provenance import compared_values
from sessions.events import GIVEN, Origin
from sessions.names import split_attempt
from sessions.settings import SessionDescription
from sessions.state.judged import JudgedFacts
from sessions.state.speed import Speed, baseline_names
from sessions.state.state import AttemptState, Confirmation, SessionState
from sessions.state.winners import place

UNCOMPARED = frozenset(
    {
        "seed",
        "series",
        "cells",
        "label",
        "model_label",
        "title",
        "first_chain",
        "devices",
        "targets",
        "review",
        "python",
        "cluster",
    }
)
"""Settings that may differ between sessions of one configuration."""


def _about(sentence: str) -> msgspec.Meta:
    """The sentence about a column of the attempts, which `wavedeck report --columns` prints."""
    return msgspec.Meta(description=sentence)


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """A judged attempt. `None` and empty text mean unknown; an unknown value is never 0 or 1."""

    session: Annotated[str, _about("Name of the session.")]
    series: Annotated[str, _about("Study and cell that the session belongs to; empty if none.")] = ""
    configuration: Annotated[
        str, _about("Digest of the settings; equal for sessions that differ in seed only.")
    ] = ""
    method: Annotated[str, _about("Method without its options.")]
    without: Annotated[tuple[str, ...], _about("Modules of the method that were off.")] = ()
    reference_shown: Annotated[
        bool, _about("True if prompts showed the reference that the benchmark hides.")
    ] = False
    model: Annotated[str, _about("Model, or one model for each role.")]
    seed: Annotated[int, _about("Seed of the session.")]
    task: Annotated[str, _about("Full name of the task, `suite/task`.")]
    instance: Annotated[int, _about("Instance within the task: 1, 2, ...")]
    number: Annotated[int, _about("Iteration within the instance: 1, 2, ...")]
    attempt: Annotated[str, _about("Name of the attempt: `softmax#2/7`.")]
    origin: Annotated[str, _about("How the candidate was made, for example `fresh` or `repair`.")]
    independent: Annotated[bool, _about("False if a person added the instance or gave the kernel.")]
    verdict: Annotated[Verdict, _about("Verdict of the judge.")]
    rejected: Annotated[bool, _about("True if a person rejected it: it is never the best.")] = False
    weak_oracle: Annotated[str, _about("Why the oracle of the task is weak, as the judge found it.")] = ""
    place: Annotated[
        tuple[float, ...], _about("Sort key among the attempts at one task; greater is better.")
    ] = ()
    error: Annotated[str, _about("Class of the error; empty if correct.")] = ""
    stage: Annotated[str, _about("Stage of the judge that failed; empty if none did.")] = ""
    call: Annotated[bool, _about("True if it imports and runs on the first case.")]
    device: Annotated[str, _about("Device of the times, else of the verdict.")] = ""
    provenance: Annotated[
        tuple[str, ...], _about("Hardware and software that share a mean (`compared_values`).")
    ] = ()
    against: Annotated[str, _about("Names of the timing baselines.")] = ""
    confirmation: Annotated[Confirmation, _about("Result of the exam.")]
    speed: Annotated[Speed | None, _about("Speed as the exam timed it, else as found.")] = None
    found: Annotated[float | None, _about("Speedup by the timing of the verdict, before any exam.")] = None
    confirmed: Annotated[float | None, _about("Speedup by the timing of the exam.")] = None
    geak: Annotated[float | None, _about("Mean over cases of the ratios of median latencies (GEAK).")] = None
    sum_ratio: Annotated[
        float | None, _about("Sum of the medians of the baseline over that of the candidate (TritonBench).")
    ] = None
    bandwidth: Annotated[
        float | None, _about("IOU: highest share of the peak bandwidth of any case, 0 to 1.")
    ] = None
    compute: Annotated[
        float | None, _about("MFU: highest share of the peak of the matrix units, 0 to 1.")
    ] = None
    input_tokens: Annotated[int | None, _about("Tokens of the prompts; 0 if no model was asked.")] = None
    output_tokens: Annotated[int | None, _about("Tokens of the replies; 0 if no model was asked.")] = None
    cost_usd: Annotated[float | None, _about("US dollars, by the prices of the session.")] = None
    device_s: Annotated[float, _about("Seconds in which the judge held devices for it.")] = 0.0
    wall_s: Annotated[float | None, _about("Seconds from its start to its verdict.")] = None
    source_sha256: Annotated[str, _about("SHA-256 of the kernel; empty without a kernel.")] = ""
    label: Annotated[str, _about("How the plan of a study calls the method; empty: it names none.")] = ""
    model_label: Annotated[str, _about("How the plan of a study calls the model; empty: it names none.")] = ""

    @property
    def headline(self) -> float | None:
        """`Speed.value`; `None` if it was not timed."""
        return self.speed.value if self.speed is not None else None

    @property
    def counted(self) -> bool:
        """True if the verdict is about the candidate: not unsupported, cancelled or a failure of Wavedeck."""
        return self.verdict.counted

    @property
    def correct(self) -> bool:
        """True if the verdict is correct."""
        return self.verdict is Verdict.CORRECT

    @property
    def given(self) -> bool:
        """True if a person gave the kernel: no accuracy of a model counts it."""
        return self.origin in GIVEN

    @property
    def suite(self) -> str:
        """Name of the task's suite."""
        return self.task.rpartition("/")[0]


def attempt_rows(state: SessionState) -> Iterator[AttemptRow]:
    """Yields a row for each judged attempt, by instance in order of appearance, then by number."""
    if state.started is None:
        return
    configuration = _configuration(state.started)
    for key, instance in state.instances.items():
        for attempt in instance.attempts:
            if attempt.judged is not None:
                independent = key not in state.forks and attempt.origin not in GIVEN
                yield _row(
                    state.started,
                    configuration,
                    instance.task,
                    attempt,
                    attempt.judged,
                    independent=independent,
                )


def _configuration(started: SessionDescription) -> str:
    settings = {name: value for name, value in started.settings().items() if name not in UNCOMPARED}
    return hashlib.sha256(msgspec.json.encode(settings)).hexdigest()[:12]


def _row(
    started: SessionDescription,
    configuration: str,
    task: str,
    attempt: AttemptState,
    judged: JudgedFacts,
    *,
    independent: bool,
) -> AttemptRow:
    evaluation, examined = judged.evaluation, attempt.examined
    standing, rank = place(attempt)
    timed = attempt.timed_evaluation or evaluation
    speed = attempt.speed
    exam = examined.speed if examined is not None and examined.is_exam else None
    efficiencies = [latency.efficiency for latency in timed.latency if latency.efficiency is not None]
    shares = [share for efficiency in efficiencies if (share := efficiency.io_utilisation) is not None]
    computes = [share for efficiency in efficiencies if (share := efficiency.mfu) is not None]
    baseline_ms = sum(latency.baseline_ms for latency in timed.latency)
    candidate_ms = sum(latency.candidate_ms for latency in timed.latency)
    usage = attempt.usage
    no_call = 0 if attempt.origin is Origin.TUNE and not attempt.calls else None
    return AttemptRow(
        session=started.session,
        series=started.series,
        configuration=configuration,
        method=started.method,
        without=started.options.without,
        model=started.model,
        seed=started.seed,
        task=task,
        instance=int(split_attempt(attempt.attempt).instance.rpartition("#")[2]),
        number=attempt.number,
        attempt=attempt.attempt,
        origin=str(attempt.origin),
        independent=independent,
        verdict=evaluation.verdict,
        rejected=attempt.rejected,
        weak_oracle=evaluation.weak_oracle,
        place=(standing, *rank),
        error=evaluation.error.kind if evaluation.error is not None else "",
        stage=next((stage.name for stage in evaluation.stages if stage.ok is False), ""),
        call=evaluation.call,
        device=timed.device,
        provenance=compared_values(timed.provenance),
        against=baseline_names(timed),
        confirmation=attempt.confirmation,
        speed=speed,
        found=judged.speed.value if judged.speed is not None else None,
        confirmed=exam.value if exam is not None else None,
        geak=timed.speedup if speed is not None else None,
        sum_ratio=baseline_ms / candidate_ms if speed is not None and candidate_ms else None,
        bandwidth=max(shares, default=None),
        compute=max(computes, default=None),
        input_tokens=no_call if usage.input_tokens is None else usage.input_tokens,
        output_tokens=no_call if usage.output_tokens is None else usage.output_tokens,
        cost_usd=no_call if attempt.cost_usd is None else attempt.cost_usd,
        device_s=attempt.device_s,
        wall_s=attempt.judged_wall - attempt.started_wall if attempt.judged_wall else None,
        source_sha256=hashlib.sha256((attempt.source or "").encode()).hexdigest() if attempt.source else "",
        reference_shown=started.shows_reference(task),
        label=started.label,
        model_label=started.model_label,
    )
