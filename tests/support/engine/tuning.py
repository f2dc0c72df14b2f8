"""Judge for tests of `tune`: more warps and larger blocks are faster, up to an optimum."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from engine.judge.judging import OnStage
from harness import Effort, Evaluation, StageEvent, Verdict
from harness.stages.modes import Rough
from harness.stages.survey import Compiled
from harness.stages.timing.baselines import Baseline
from harness.wire.results.latency import RoughTime
from sessions.state.state import AttemptState, SessionState
from suites import Task, baseline_source, load_task
from tests.support.engine.engines import ScriptedJudge
from tests.support.engine.surveys import ScriptedSurvey, compiled
from tests.support.judge.evaluations import correct, failed

BASELINE = baseline_source(load_task("vector_add"))
"""Source with BLOCK 1024 and no option: BLOCK, num_warps and waves_per_eu can be swept."""


def block_of(source: str) -> int:
    return int(re.findall(r"block = (\d+)", source)[0])


def warps_of(source: str) -> int:
    match = re.search(r"num_warps=(\d+)", source)
    return int(match[1]) if match else 4


def speed(source: str) -> float:
    """Return the speedup of a source; the maximum is at 16 warps and blocks of 4096."""
    return 1.5 - 0.3 * (abs(warps_of(source) - 16) / 16 + abs(block_of(source) - 4096) / 4096)


class TuningJudge(ScriptedJudge):
    """Judge whose speedup is `speed`; in its sweeps more warps and larger blocks give more occupancy."""

    def __init__(self, verdict: str = "correct", *, timed: bool = False, wrong: Sequence[int] = ()) -> None:
        super().__init__()
        self.surveying = self.scripted_survey = ScriptedSurvey(self._compiled)
        self.exam = lambda _: correct()
        self._verdict, self._timed, self._wrong = verdict, timed, wrong
        self.estimated: list[tuple[str, Effort]] = []
        self.seen_by_rungs = True
        """True if a rung (an estimate) already finds wrong variants."""
        self.had_passed: list[bool] = []
        """For each estimate: True if the call carried an earlier passed evaluation."""
        self.unable = 0
        """Number of next estimates that end with `infra_error`."""

    async def evaluate(self, source: str, task: Task, **rest: object) -> Evaluation:
        if rest.get("exam"):
            return await super().evaluate(source, task, **rest)  # type: ignore[arg-type]
        self.evaluated.append(source)
        return self._evaluation_of(source)

    async def estimate(
        self, source: str, task: Task, rough: Rough, *, start: Baseline, on_stage: OnStage
    ) -> Evaluation:
        effort, passed = rough.effort, rough.passed
        self.estimated.append((source, effort))
        self.had_passed.append(passed is not None)
        on_stage(StageEvent("call", "0"))
        if self.unable:
            self.unable -= 1
            return failed(Verdict.INFRA_ERROR, "a worker died")
        evaluation = self._evaluation_of(source) if self.seen_by_rungs else correct()
        if evaluation.verdict is not Verdict.CORRECT:
            return evaluation
        ratio = speed(source) / speed(start.source)
        times = tuple(
            RoughTime("0", case.name, ratio, 1 / ratio, 2 * effort.pairs, effort.pairs, start.name)
            for case in task.open_cases
        )
        return msgspec.structs.replace(evaluation, rough=times, speedup=None, latency=())

    def _evaluation_of(self, source: str) -> Evaluation:
        if self._verdict != "correct":
            return failed(Verdict(self._verdict))
        if block_of(source) in self._wrong:
            return failed()
        return correct(speedup=speed(source) if self._timed else None)

    @staticmethod
    def _compiled(source: str) -> Compiled:
        return compiled(source, occupancy=min(8.0, warps_of(source) * block_of(source) / 2048))


def notices(state: SessionState) -> str:
    return "\n".join(words for _, words in state.notices)


def attempts_of(state: SessionState) -> list[AttemptState]:
    return state.instances["vector_add#1"].attempts
