"""The answer sheet of one evaluation: stages as they pass, and the Evaluation at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from harness.wire.evaluation import (
    SCHEMA,
    STAGES,
    ErrorReport,
    Evaluation,
    Stage,
    StageEntered,
    StageLeft,
    Verdict,
)
from suites.task import Task

OnEvent = Callable[[StageEntered | StageLeft], None]


class Sheet:
    """Collects what is learned of one candidate."""

    def __init__(self, task: Task, device: str, on_event: OnEvent | None) -> None:
        self._task = task
        self._device = device
        self._on_event = on_event
        self._stages: dict[str, Stage] = {}
        self._entered: dict[str, float] = {}
        self.facts: dict[str, Any] = {}
        """Fields of the Evaluation, by name."""
        self.notes: list[str] = []

    def place(self, device: str) -> None:
        """It is judged on this device, of several that it might have been."""
        self._device = device

    def silent(self, device: str) -> Sheet:
        """Another sheet for the same candidate that nobody watches, on another device, with what is known so far."""
        other = Sheet(self._task, device, None)
        other._stages, other.facts, other.notes = dict(self._stages), dict(self.facts), list(self.notes)
        return other

    def enter(self, stage: str, at_s: float | None = None) -> None:
        """A stage begins, or began at a time of `time.monotonic`."""
        self._entered[stage] = time.monotonic() if at_s is None else at_s
        if self._on_event is not None:
            self._on_event(StageEntered(stage=stage, device=self._device))

    def leave(self, stage: str, detail: str, *, ok: bool | None, at_s: float | None = None) -> None:
        """A stage is over, or was at a time of `time.monotonic`."""
        begun = self._entered.pop(stage, None)
        ended = time.monotonic() if at_s is None else at_s
        seconds = max(ended - begun, 0.0) if begun is not None else 0.0
        self._stages[stage] = Stage(name=stage, ok=ok, seconds=seconds, detail=detail)
        if self._on_event is not None:
            self._on_event(StageLeft(stage=self._stages[stage], device=self._device))

    def fail_open_stages(self, detail: str, *, ok: bool | None) -> None:
        """Leaves the stages that were entered and not left."""
        for stage in list(self._entered):
            self.leave(stage, detail, ok=ok)

    def revise(self, stage: str, detail: str) -> None:
        """A stage that had passed is found to have failed."""
        self._stages[stage] = Stage(name=stage, ok=False, seconds=self._stages[stage].seconds, detail=detail)

    def done(self, verdict: Verdict, error: ErrorReport | None) -> Evaluation:
        """The Evaluation; always six stages, those that were not reached with `ok: null`."""
        stages = tuple(self._stages.get(name, Stage(name=name, ok=None, seconds=0.0)) for name in STAGES)
        passed = {stage.name: stage.ok is True for stage in stages}
        return Evaluation(
            schema=SCHEMA,
            task=self._task.id,
            device=self._device,
            verdict=verdict,
            call=passed["call"] and verdict is not Verdict.CALL_ERROR,
            execution=passed["execution"],
            stages=stages,
            error=error,
            notes=tuple(dict.fromkeys(self.notes)),
            **self.facts,
        )
