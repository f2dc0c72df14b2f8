"""An evaluation of chosen open cases alone: for a reproducer, also under a profiler. It is no verdict about the task."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.processes.pool import DevicePool
from harness.stages.timing.baselines import USUAL, Against
from harness.wire.device import Target
from harness.wire.effort import WHOLE, Effort
from harness.wire.evaluation import Evaluation
from suites.task import Task

from .cascade import evaluate
from .sheet import OnEvent


async def evaluate_cases(
    candidate: str,
    task: Task,
    cases: Sequence[str],
    *,
    pool: DevicePool,
    targets: Sequence[Target],
    seed: int,
    against: Against = USUAL,
    effort: Effort = WHOLE,
    on_event: OnEvent | None = None,
) -> Evaluation:
    """Evaluate `candidate` on these open cases, without hidden cases; the evaluation names them in `only_cases`.

    It has no overall speedup: a speedup over some cases is not the task's. Raises `UnknownCase`, else as `evaluate`.
    """
    evaluation = await evaluate(
        candidate,
        task.with_cases(cases),
        pool=pool,
        targets=targets,
        seed=seed,
        against=against,
        effort=effort,
        hidden=False,
        on_event=on_event,
    )
    chosen = tuple(case.name for case in task.open_cases if case.name in cases)
    others = tuple(case.name for case in task.open_cases if case.name not in cases)
    return msgspec.structs.replace(
        evaluation,
        only_cases=chosen,
        speedup=None,
        speedup_ci=None,
        speedup_geomean=None,
        speedup_geomean_ci=None,
        not_timed=(*evaluation.not_timed, *others) if evaluation.latency else (),
    )
