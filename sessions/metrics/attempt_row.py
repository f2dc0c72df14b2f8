"""One row of plain data for each judged attempt. Metrics, studies, reports and data files are made of rows.

A row has no text of a model and no trace: thousands of rows fit into memory and into one file of a cache.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator

import msgspec

from harness import Evaluation, Verdict
from harness.wire.results.provenance import compared_values
from sessions.events import GIVEN, Origin
from sessions.names import split_attempt
from sessions.settings import SessionDescription
from sessions.state.judged import JudgedFacts
from sessions.state.speed import Speed, baseline_names
from sessions.state.state import AttemptState, Confirmation, SessionState
from sessions.state.winners import place

OLD_WEAK = "weak: "
"""Start of the fact about a weak oracle, from which older evaluations alone know it."""


class AttemptRow(msgspec.Struct, frozen=True, kw_only=True):
    """A judged attempt. `None` and empty text mean unknown; an unknown value is never 0 or 1."""

    session: str
    series: str = ""
    """Name of the study that the session belongs to."""
    method: str
    without: tuple[str, ...] = ()
    """Modules of the method that were off."""
    model: str
    seed: int
    task: str
    """Full name, `suite/task`."""
    instance: int
    """1, 2, ... within the task."""
    number: int
    """1, 2, ... within the instance: the iteration."""
    attempt: str
    """`softmax#2/7`."""
    origin: str
    independent: bool
    """False if a person added the instance or gave the kernel: such a row is no sample of the method."""
    verdict: Verdict
    rejected: bool = False
    """True if a person rejected it: it is never the best."""
    weak_oracle: str = ""
    """Why the task's oracle is weak, as the judge found it; empty if it is not, or if unknown."""
    place: tuple[float, ...] = ()
    """Sort key among the attempts at one task: `sessions.state.winners.place`, flat. Greater is better."""
    error: str = ""
    """Class of the error; empty if correct."""
    stage: str = ""
    """Stage of the judge that failed; empty if none did."""
    call: bool
    """True if it imported and ran on the first case."""
    device: str = ""
    provenance: tuple[str, ...] = ()
    """Hardware and software that must be equal before two speedups share a mean (`compared_values`)."""
    against: str = ""
    """Names of the timing baselines."""
    confirmation: Confirmation
    speed: Speed | None = None
    """The exam's speed if it timed the attempt again, else the speed as it was found."""
    found: float | None = None
    """Headline of the verdict's own timing, before any exam."""
    confirmed: float | None = None
    """Headline of the exam's timing; `None` if the exam did not time it."""
    geak: float | None = None
    """GEAK's speedup: mean over cases of the ratios of median latencies."""
    sum_ratio: float | None = None
    """Sum of the baseline's medians over the sum of the candidate's, over all timed cases."""
    bandwidth: float | None = None
    """IOU: highest share of the peak bandwidth of any case, 0 to 1."""
    compute: float | None = None
    """MFU: highest share of the peak of the matrix units of any case, 0 to 1."""
    input_tokens: int | None = None
    """0 if the attempt needed no model: a sweep made it. The same holds for the output and the cost."""
    output_tokens: int | None = None
    cost_usd: float | None = None
    device_s: float = 0.0
    """Seconds in which the judge held devices for it."""
    wall_s: float | None = None
    """Seconds from its start to its verdict."""
    source_sha256: str = ""
    reference_shown: bool = False
    """True if the prompt quotes the reference where the benchmark hides it: never in one mean with a row that does not."""
    label: str = ""
    """How the plan of a study calls the method; empty: it names none."""
    model_label: str = ""
    """How the plan of a study calls the model; empty: it names none."""

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
    for key, instance in state.instances.items():
        for attempt in instance.attempts:
            if attempt.judged is not None:
                independent = key not in state.forks and attempt.origin not in GIVEN
                yield _row(state.started, instance.task, attempt, attempt.judged, independent=independent)


def _weak_before(evaluation: Evaluation) -> str:
    """The weaknesses of an oracle in an older evaluation. Without them, metrics would count its attempts."""
    oracles = (fact.value for fact in evaluation.facts if fact.name == "oracle")
    return next((value.removeprefix(OLD_WEAK) for value in oracles if value.startswith(OLD_WEAK)), "")


def _flat_place(attempt: AttemptState) -> tuple[float, ...]:
    standing, rank = place(attempt)
    # Files of rows have no infinite numbers.
    return (standing, *(max(-sys.float_info.max, value) for value in rank))


def _row(
    started: SessionDescription,
    task: str,
    attempt: AttemptState,
    judged: JudgedFacts,
    *,
    independent: bool,
) -> AttemptRow:
    evaluation, examined = judged.evaluation, attempt.examined
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
        weak_oracle=evaluation.weak_oracle or _weak_before(evaluation),
        place=_flat_place(attempt),
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
