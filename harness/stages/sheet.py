"""The answer sheet of one evaluation: what each stage returned, and the `Evaluation` made of it at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from harness.sandbox.layers import find_different_layers
from harness.wire.findings import drop_repeated
from harness.wire.messages.judge import Judged
from harness.wire.results.evaluation import (
    SCHEMA,
    STAGES,
    ErrorReport,
    Evaluation,
    Finding,
    FullSize,
    Layer,
    Stage,
    StageEvent,
    Traffic,
    Verdict,
)
from harness.wire.results.provenance import Provenance
from suites.task import Task

from .compilation import CompileResults
from .modes import USUAL_MODE, Cases, Exam, Mode
from .timing.conclusions import Timing, list_untimed_cases, mean_speedups, not_timed
from .verdicts import conclude

OnEvent = Callable[[StageEvent], None]


@dataclass(slots=True)
class Sheet:
    """Collects the results of one candidate's stages."""

    task: Task
    device: str
    mode: Mode = USUAL_MODE
    on_event: OnEvent | None = None
    provenance: Provenance | None = None
    compiled: CompileResults = field(default_factory=CompileResults)
    judged: Judged | None = None
    """The judge's report on call, execution and integrity."""
    traffic: tuple[Traffic, ...] = ()
    full_sizes: tuple[FullSize, ...] = ()
    not_sampled: dict[str, str] = field(default_factory=dict)
    raised_at_full_sizes: tuple[str, ...] = ()
    findings_at_full_sizes: tuple[Finding, ...] = ()
    timing: Timing = field(default_factory=lambda: Timing((), ""))
    printed: str = ""
    notes: list[str] = field(default_factory=list)
    judged_again: bool = False
    """See `Evaluation`."""
    _stages: dict[str, Stage] = field(default_factory=dict)
    _entered: dict[str, float] = field(default_factory=dict)

    def copy_after_static(self, device: str) -> Sheet:
        """A sheet for the same candidate on another device, with the static stage; it reports no events."""
        copy = Sheet(self.task, device, self.mode, provenance=self.provenance)
        copy._stages = {name: stage for name, stage in self._stages.items() if name == "static"}
        copy.notes, copy.judged_again = list(self.notes), self.judged_again
        return copy

    def start_again(self, note: str) -> Sheet:
        """A sheet for the same candidate on the same device, with the static stage and a note."""
        again = self.copy_after_static(self.device)
        again.on_event = self.on_event
        again.notes.append(note)
        return again

    def enter(self, stage: str, at_s: float | None = None) -> None:
        """Begin a stage, now or at a time of `time.monotonic`."""
        self._entered[stage] = time.monotonic() if at_s is None else at_s
        if self.on_event is not None:
            self.on_event(StageEvent(stage=stage, device=self.device))

    def leave(
        self,
        stage: str,
        detail: str,
        *,
        ok: bool | None,
        at_s: float | None = None,
        cases: tuple[int, int] | None = None,
    ) -> None:
        """End a stage, now or at a time of `time.monotonic`; `cases` are those that passed, and all."""
        ended = time.monotonic() if at_s is None else at_s
        seconds = max(ended - self._entered.pop(stage, ended), 0.0)
        self._stages[stage] = Stage(name=stage, ok=ok, seconds=seconds, detail=detail, cases=cases)
        if self.on_event is not None:
            self.on_event(StageEvent(stage, self.device, self._stages[stage]))

    def leave_untimed(self, why: str) -> None:
        """End the performance stage without a time."""
        self.timing = not_timed(why)
        self.leave("performance", self.timing.detail, ok=None)

    def leave_open_stages(self, detail: str, *, ok: bool | None) -> None:
        """End every stage that was entered and not left."""
        for stage in list(self._entered):
            self.leave(stage, detail, ok=ok)

    def fail_stage(self, stage: str, detail: str) -> None:
        """Mark a stage that had passed as failed."""
        self._stages[stage] = Stage(name=stage, ok=False, seconds=self._stages[stage].seconds, detail=detail)

    def conclude(self, error: ErrorReport | None) -> Evaluation:
        """The Evaluation; always six stages, with `ok: null` for a stage that was not reached."""
        stages = tuple(self._stages.get(name, Stage(name=name, ok=None, seconds=0.0)) for name in STAGES)
        verdict = conclude(error)
        passed = {stage.name: stage.ok is True for stage in stages}
        judged, timing = self.judged, self.timing
        findings = judged.findings if judged is not None else ()
        chosen = self.mode.names if isinstance(self.mode, Cases) else ()
        timed_all = not isinstance(self.mode, Cases)
        speedup, geomean = mean_speedups(timing.latency) if timed_all else (None, None)
        return Evaluation(
            schema=SCHEMA,
            task=self.task.id,
            device=self.device,
            verdict=verdict,
            call=passed["call"] and verdict is not Verdict.CALL_ERROR,
            execution=passed["execution"],
            stages=stages,
            error=error,
            latency=timing.latency,
            rough=timing.rough,
            speedup=speedup,
            speedup_ci=timing.speedup_ci if timed_all else None,
            speedup_geomean=geomean,
            speedup_geomean_ci=timing.speedup_geomean_ci if timed_all else None,
            speedup_weighted_ci=timing.speedup_weighted_ci if timed_all else None,
            case_weights=self.task.shares,
            not_timed=list_untimed_cases(self.task.timed_cases, timing.latency),
            why_not_timed=timing.why_not_timed,
            device_before=timing.before,
            device_after=timing.after,
            resources=self.compiled.resources,
            compile_errors=self.compiled.errors,
            traffic=self.traffic,
            full_sizes=self.full_sizes,
            not_sampled=self.not_sampled,
            raised_at_full_sizes=self.raised_at_full_sizes,
            sandbox=self._sandbox(),
            provenance=self.provenance,
            findings=drop_repeated((*findings, *self.findings_at_full_sizes)),
            notes=tuple(dict.fromkeys(self.notes)),
            judged_again=self.judged_again,
            facts=(*(judged.facts if judged is not None else ()), *timing.facts),
            weak_oracle=judged.weak_oracle if judged is not None else "",
            margins=judged.margins if judged is not None else (),
            serving=timing.served,
            batch_rows=judged.batch_rows if judged is not None else (),
            exam=isinstance(self.mode, Exam),
            only_cases=tuple(case.name for case in self.task.open_cases if case.name in chosen),
            printed=self.printed,
        )

    def _sandbox(self) -> tuple[Layer, ...]:
        """Return the layers of the guest's sandbox, and those of the compiling worker that differ.

        Until the judge has reported the guest's, these are the compiling worker's.
        """
        if self.judged is None:
            return self.compiled.layers
        guest = self.judged.sandbox
        return (*guest, *find_different_layers(self.compiled.layers, guest))
