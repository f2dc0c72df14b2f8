"""`geak --tune`: the variant that follows a correct attempt, and its effect on prompts and recordings."""

from __future__ import annotations

from pathlib import Path

from engine.models import RecordedClient, Reply, Request, ScriptedClient
from engine.plan.plan import SessionPlan
from harness import Evaluation, Verdict
from sessions import Home, fold
from sessions.events import Role
from sessions.recording import load_recording, write_recording
from sessions.settings import MethodOptions
from sessions.state.state import SessionState
from suites import Task
from tests.support.engine.engines import plan, play
from tests.support.engine.tuning import BASELINE, TuningJudge, attempts_of, block_of, warps_of
from tests.support.judge.evaluations import failed

GEAK = plan(iterations=3, options=MethodOptions(tune=True))


def marking_model(*verdicts: str) -> ScriptedClient:
    """Model whose candidate n is the baseline with a first line that names verdict n and n."""

    def answer(request: Request) -> Reply:
        key = request.key
        if key.role is Role.REFLECTOR:
            return Reply(text="Cause.")
        source = f"# {verdicts[key.attempt - 1]} {key.attempt}\n{BASELINE}"
        return Reply(text=f"## Strategy\n\nIdea {key.attempt}.\n\n```python\n{source}```\n")

    return ScriptedClient(answer=answer)


class MarkingJudge(TuningJudge):
    """`TuningJudge` that fails sources marked `wrong`, and changed variants of sources marked `fragile`."""

    async def evaluate(self, source: str, task: Task, **rest: object) -> Evaluation:
        word = source[2:].partition(" ")[0]
        if not rest.get("exam") and (
            word == "wrong" or (word == "fragile" and (block_of(source), warps_of(source)) != (1024, 4))
        ):
            self.evaluated.append(source)
            return failed()
        return await super().evaluate(source, task, **rest)


async def geak(
    home: Path, *verdicts: str, session_plan: SessionPlan = GEAK
) -> tuple[SessionState, ScriptedClient]:
    client = marking_model(*verdicts)
    events = await play(Home(home), client, session_plan=session_plan, judge=MarkingJudge(timed=True))
    return fold(events), client  # type: ignore[arg-type]


def lineage(state: SessionState) -> list[tuple[str, str | None]]:
    return [
        (str(attempt.origin), attempt.base and attempt.base.rpartition("/")[2])
        for attempt in attempts_of(state)
    ]


async def test_variant_follows_each_correct_attempt_and_is_no_iteration(tmp_path: Path) -> None:
    state, client = await geak(tmp_path, "correct", "wrong", "correct")
    assert lineage(state) == [
        ("fresh", None), ("tune", "1"), ("optimize", "2"), ("repair", "3"), ("tune", "4"),
    ], "the model continues from the variant and writes the same number of candidates"  # fmt: skip
    plain, client_alone = await geak(
        tmp_path / "plain", "correct", "wrong", "correct", session_plan=plan(iterations=3)
    )
    assert len(attempts_of(plain)) == 3
    assert len(client.requests) == len(client_alone.requests), "no additional call"
    variant = attempts_of(state)[1]
    assert not variant.calls
    assert "num_warps=16" in client.requests[1].messages[-1].content, "the optimizer sees the variant"


async def test_failed_variant_is_not_repaired(tmp_path: Path) -> None:
    state, client = await geak(
        tmp_path, "fragile", "correct", session_plan=plan(iterations=2, options=MethodOptions(tune=True))
    )
    assert [attempt.verdict for attempt in attempts_of(state)][:2] == [Verdict.CORRECT, Verdict.WRONG]
    assert lineage(state)[:3] == [("fresh", None), ("tune", "1"), ("optimize", "1")]
    assert {request.key.role for request in client.requests} == {Role.GENERATOR, Role.OPTIMIZER}


async def test_recording_plays_with_and_without_sweeps(tmp_path: Path) -> None:
    made, _ = await geak(tmp_path / "made", "correct", "wrong", "correct")
    folder = write_recording([made], "tuned", tmp_path / "recordings")
    recording = load_recording(folder)
    assert recording.longest_chain() == 3, "only attempts with model calls count"
    for tune in (True, False):
        session_plan = plan(iterations=3, options=MethodOptions(tune=tune))
        events = await play(
            Home(tmp_path / f"again-{tune}"),
            RecordedClient(recording),
            session_plan=session_plan,
            judge=MarkingJudge(timed=True),
        )
        again = fold(events)  # type: ignore[arg-type]
        assert again.instances["vector_add#1"].finished == "iterations"
        assert [attempt.source for attempt in attempts_of(again) if attempt.calls] == [
            attempt.source for attempt in attempts_of(made) if attempt.calls
        ]
