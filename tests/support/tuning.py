"""A judge under which more warps and larger blocks are better, and what a session that was tuned came to."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from engine.judging import OnStage
from harness import Effort, Evaluation, RoughTime, StageEntered, Verdict
from harness.stages.survey import Compiled
from harness.stages.timing.baselines import Baseline
from sessions.state import AttemptState, SessionState
from suites import Task, baseline_source, load_task
from tests.support.engines import ToldJudge
from tests.support.evaluations import correct, failed
from tests.support.surveys import ToldSurvey, compiled

BASELINE = baseline_source(load_task("vector_add"))
"""BLOCK 1024 and no option given: BLOCK, num_warps and waves_per_eu can be swept."""


def block_of(source: str) -> int:
    return int(re.findall(r"block = (\d+)", source)[0])


def warps_of(source: str) -> int:
    found = re.search(r"num_warps=(\d+)", source)
    return int(found[1]) if found else 4


def speed(source: str) -> float:
    """Highest with 16 warps and blocks of 4096."""
    return 1.5 - 0.3 * (abs(warps_of(source) - 16) / 16 + abs(block_of(source) - 4096) / 4096)


class Judging(ToldJudge):
    """Says of each source what a function does, and lets sweeps see more occupancy with more warps and larger blocks."""

    def __init__(self, verdict: str = "correct", *, timed: bool = False, wrong: Sequence[int] = ()) -> None:
        super().__init__()
        self.surveying = self.survey_told = ToldSurvey(self._compiled)
        self.exam = lambda _: correct()
        self._verdict, self._timed, self._wrong = verdict, timed, wrong
        self.estimated: list[tuple[str, Effort]] = []
        self.seen_by_rungs = True
        """Whether what is wrong is seen where time is estimated already."""
        self.known: list[bool] = []
        """Of each estimate, whether the judge was told what it had said of the source before."""
        self.unable = 0
        """How many of the next estimates end with `infra_error`."""

    async def evaluate(self, source: str, task: Task, **rest: object) -> Evaluation:
        if rest.get("exam"):
            return await super().evaluate(source, task, **rest)  # type: ignore[arg-type]
        self.evaluated.append(source)
        return self._said(source)

    async def estimate(
        self,
        source: str,
        task: Task,
        *,
        start: Baseline,
        effort: Effort,
        passed: Evaluation | None,
        on_stage: OnStage,
    ) -> Evaluation:
        self.estimated.append((source, effort))
        self.known.append(passed is not None)
        on_stage(StageEntered("call", "0"))
        if self.unable:
            self.unable -= 1
            return failed(Verdict.INFRA_ERROR, "a worker died")
        said = self._said(source) if self.seen_by_rungs else correct()
        if said.verdict is not Verdict.CORRECT:
            return said
        ratio = speed(source) / speed(start.source)
        rough = tuple(
            RoughTime("0", case.name, ratio, 1 / ratio, 2 * effort.pairs, effort.pairs, start.name)
            for case in task.open_cases
        )
        return msgspec.structs.replace(said, rough=rough, speedup=None)

    def _said(self, source: str) -> Evaluation:
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


def only(state: SessionState) -> list[AttemptState]:
    return state.instances["vector_add#1"].attempts
