"""Profiles of attempts and of timing baselines that a person or an agent asked for."""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import AgentRefused, BudgetSpent, one_line
from engine.judge.bench import Bench
from harness import Evaluation, HarnessError
from harness.wire.errors import NoDeviceLeft
from harness.wire.results.latency import Latency
from harness.wire.results.roofs import is_shorter_than_launch, roof_share
from sessions.events import ProfileAsked, ProfileTaken
from sessions.store.decidable import find_attempt
from suites import Task
from suites.errors import SuiteError


def case_to_profile(task: Task, evaluation: Evaluation | None, name: str = "") -> str:
    """Returns the open case of this name, by default the one that reaches the smallest share of its practical roof.

    A case does not count if its least time is shorter than an empty kernel's. Without any other, the first open case is
    taken. `AgentRefused` if there is no open case of this name.
    """
    names = [case.name for case in task.open_cases]
    if name and name not in names:
        raise AgentRefused(f"{task.short_id} has no open case {name[:60]!r}; it has {', '.join(names)}")
    timed = evaluation.latency if evaluation is not None else ()
    shares = {latency.case: share for latency in timed if (share := _share_with_room(latency)) is not None}
    with_room = min((case for case in names if case in shares), key=shares.__getitem__, default=None)
    return name or with_room or next(iter(names), "")


def _share_with_room(latency: Latency) -> float | None:
    """The share of its practical roof that a case reaches; `None` if at the roof it would take less than an empty kernel."""
    reached = roof_share(latency)
    return None if reached is None or is_shorter_than_launch(latency) else reached.share


async def take_asked(bench: Bench, tasks: Sequence[Task], request: ProfileAsked) -> None:
    """Profile an attempt, or the timing baseline of its task, and record the profile, or why there is none.

    Raises `NoDeviceLeft` if every GPU failed.
    """
    attempt, instance = find_attempt(bench.recorder.state, request.attempt)
    task = next(task for task in tasks if task.id == instance.task)
    evaluation = bench.recorder.state.baselines.get(task.id) if request.of_baseline else attempt.evaluation
    timed = (
        {latency.case: latency.configs for latency in evaluation.latency} if evaluation is not None else {}
    )
    case = request.case or case_to_profile(task, evaluation)
    profile, problem, use = None, "", None
    try:
        source = bench.judge.baseline(task).source if request.of_baseline else attempt.source or ""
        async with bench.turn(request.attempt) as (use, enter):
            profile = await bench.judge.profile(
                source, task, case=case, device=request.device, configs=timed.get(case, {}), on_stage=enter
            )
    except NoDeviceLeft:
        raise
    except (BudgetSpent, HarnessError, SuiteError, OSError) as error:
        problem = one_line(error)
    await bench.recorder.record_durable(
        ProfileTaken(
            attempt=request.attempt,
            of_baseline=request.of_baseline,
            profile=profile,
            problem=problem,
            case=case,
            device_s=use.seconds if use is not None else 0.0,
            asked=request.seq,
        )
    )
