"""Profiles: on a person's command, of an attempt and of its baseline; refusals; a profiler that fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.judge.profiling import case_to_profile
from harness.profiling.launches import ProfileFailed
from harness.wire.results.kernel_counts import Profile
from harness.wire.results.latency import Bound, Efficiency, Latency
from sessions import Home, SessionState, fold
from sessions.errors import CommandRefused
from sessions.events import EngineStarted, ProfileAsked, ProfileTaken, SessionFinished, checked
from sessions.store.reconcile import take_up
from suites import baseline_source, load_task
from tests.support.engine.engines import ScriptedJudge, plan, play, run, scripted_model, shared
from tests.support.judge.evaluations import correct

ATTEMPT = "vector_add#1/1"
PLAN = plan(iterations=1, devices=("0", "1"))


async def profile(home: Home, judge: ScriptedJudge, **fields: Any) -> SessionState:
    """Open the session again for one profile, and run it to its end."""
    with take_up(home, PLAN.session) as recorder:
        command = ProfileAsked(attempt=ATTEMPT, **fields)
        recorder.record(checked(command, recorder.state))
        recorder.record(EngineStarted(host="here", pid=2, resumed=True))
        assert "already being profiled" in command.refusal(recorder.state)
        await run(shared(recorder, PLAN, scripted_model("correct"), judge))
        recorder.record(SessionFinished())
        return recorder.state


async def test_attempt_and_baseline_are_profiled_after_the_end(tmp_path: Path) -> None:
    home, judge, task = Home(tmp_path), ScriptedJudge(), load_task("vector_add")
    await play(home, scripted_model("correct 1.2"), session_plan=PLAN)
    first, second = task.open_cases[0].name, "small"
    await profile(home, judge, device="1")
    await profile(home, judge, device="0", case=second)
    state = await profile(home, judge, device="1", of_baseline=True)
    own = state.attempt(ATTEMPT).source
    assert judge.profiled == [(own, first, "1"), (own, second, "0"), (baseline_source(task), first, "1")]
    assert list(state.attempt(ATTEMPT).profiles) == [first, second]
    assert list(state.baseline_profiles[task.id]) == [first]
    assert state.attempt(ATTEMPT).profiles[first].kernels[0].name == "softmax_kernel"
    assert not state.profiles_asked


async def test_profile_that_nobody_asked_for_in_an_old_session_leaves_a_request(tmp_path: Path) -> None:
    home = Home(tmp_path)
    await play(home, scripted_model("correct 1.2"), session_plan=PLAN)
    with take_up(home, PLAN.session) as recorder:
        asked = recorder.record(ProfileAsked(attempt=ATTEMPT, device="0", case="small"))
        recorder.record(ProfileTaken(attempt=ATTEMPT, problem="off"))
        assert [waiting.case for waiting in recorder.state.profiles_asked] == ["small"]
        recorder.record(ProfileTaken(attempt=ATTEMPT, problem="off", asked=asked.seq))
        assert not recorder.state.profiles_asked
        recorder.record(SessionFinished())


async def test_profiler_that_fails_gives_a_notice_and_ends_no_session(tmp_path: Path) -> None:
    class Failing(ScriptedJudge):
        async def profile(self, *_: object, **__: object) -> Profile:
            raise ProfileFailed("ncu is not installed; install it")

    home = Home(tmp_path)
    await play(home, scripted_model("correct 1.2"), session_plan=PLAN)
    state = await profile(home, Failing(), device="0")
    assert ("error", f"{ATTEMPT} has no new profile: ncu is not installed; install it") in state.notices
    assert (state.finished, state.profiles_asked) == (True, [])


def test_case_with_the_most_room_is_profiled_by_default() -> None:
    task = load_task("softmax")
    full, ragged, one_row, narrow, *_ = (case.name for case in task.open_cases)
    evaluation = correct(speedup=1.0)
    tiny = msgspec.structs.replace(reaching(narrow, 0.02), candidate_ms=0.004, floor_ms=0.001)
    timed = (reaching(full, 0.97), reaching(ragged, 0.4), reaching(one_row, 0.01, bound=Bound.AT_LEAST), tiny)
    evaluation = msgspec.structs.replace(evaluation, latency=timed)
    assert case_to_profile(task, evaluation) == ragged
    assert case_to_profile(task, evaluation, full) == full
    assert case_to_profile(task, msgspec.structs.replace(evaluation, latency=())) == full


def reaching(case: str, share: float, *, bound: Bound = Bound.NONE) -> Latency:
    """Return a timed case at this share of the fastest copy."""
    used = Efficiency("H100", 1, 1, "fp32", 1.0, 1.0, None, None, io_measured=share)
    return Latency("0", case, 1.0, 1.0, 1.0, None, "tape", efficiency=used, bound=bound)


async def test_unknown_gpu_or_case_is_refused(tmp_path: Path) -> None:
    events = await play(Home(tmp_path), scripted_model("correct 1.2"), session_plan=PLAN)
    state = fold(events)  # type: ignore[arg-type]
    with pytest.raises(CommandRefused, match="no GPU 7; it has 0"):
        checked(ProfileAsked(attempt=ATTEMPT, device="7"), state)
    with pytest.raises(CommandRefused, match="has no open case 'round'; it has small"):
        checked(ProfileAsked(attempt=ATTEMPT, case="round"), state)
