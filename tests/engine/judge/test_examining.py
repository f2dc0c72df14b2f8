"""Exams at the end of an instance: which attempts are examined, what is stored, and that no prompt contains exam facts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import ModelError, UselessToRetry
from engine.models import Reply, Request, ScriptedClient
from engine.plan.job import session_started
from engine.run.person import Changes
from harness import ErrorReport, Evaluation, Fact, Stage, Verdict
from harness.wire.results.evaluation import Basis
from harness.wire.results.provenance import Provenance
from sessions import Home, Recorder, fold
from sessions.events import (
    CallStarted,
    Command,
    DecisionMade,
    DecisionUndone,
    EngineStarted,
    Event,
    InstanceFinished,
    Notice,
    Usage,
    WinnerExamined,
)
from sessions.state.state import Confirmation, SessionState
from tests.conftest import SOAK
from tests.support.engine.engines import (
    ScriptedJudge,
    answer_of,
    endings,
    plan,
    play,
    resume_to_end,
    run,
    scripted_answer,
    scripted_model,
    shared,
    until,
)
from tests.support.judge.evaluations import correct, failed

Exam = Callable[[str], Evaluation]


def judge_with(exam: Exam) -> ScriptedJudge:
    judge = ScriptedJudge()
    judge.exam = exam
    return judge


def exams(events: list[Event]) -> dict[str, Verdict]:
    return {event.attempt: event.evaluation.verdict for event in events if isinstance(event, WinnerExamined)}


def best(events: list[Event]) -> list[str | None]:
    return [event.best for event in events if isinstance(event, InstanceFinished)]


def failing_at(*speedups: str) -> Exam:
    """Return an exam that fails candidates of these speedups."""

    def exam(source: str) -> Evaluation:
        wrong = any(source.startswith(f"# judge: correct {speedup}\n") for speedup in speedups)
        return failed(Verdict.WRONG, "an exam case is wrong") if wrong else correct()

    return exam


@pytest.mark.parametrize(
    ("failing", "examined", "confirmed"),
    [((), [2], 2), (("4.0",), [2, 3], 3), (("4.0", "3.0", "2.0"), [2, 3, 4], None)],
    ids=["the winner passes", "the next best passes", "at most three are examined"],
)
async def test_best_attempts_are_examined_until_one_passes(
    home: Home, failing: tuple[str, ...], examined: list[int], confirmed: int | None
) -> None:
    client = scripted_model("correct 1.0", "correct 4.0", "correct 3.0", "correct 2.0")
    events = await play(home, client, session_plan=plan(iterations=4), judge=judge_with(failing_at(*failing)))
    assert list(exams(events)) == [f"vector_add#1/{number}" for number in examined]
    assert [
        number
        for number, attempt in enumerate(fold(events).attempts(), start=1)
        if attempt.confirmation is Confirmation.CONFIRMED
    ] == ([confirmed] if confirmed else [])
    assert fold(events).attempt("vector_add#1/1").confirmation is Confirmation.NOT_EXAMINED
    assert best(events) == [f"vector_add#1/{confirmed or 1}"]


async def test_copy_of_a_failed_source_is_not_examined_again(home: Home) -> None:
    same = ScriptedClient(answer=lambda _: Reply(text=answer_of("correct 1.0", "same")))
    judge = judge_with(lambda _: failed(Verdict.WRONG))
    events = await play(home, same, judge=judge)
    assert (len(judge.examined), len(exams(events))) == (1, 1)


async def test_instance_without_a_correct_attempt_has_no_exam(home: Home) -> None:
    judge = ScriptedJudge()
    await play(home, scripted_model("wrong", "prose", "timeout"), judge=judge)
    assert judge.examined == []


async def test_exam_is_repeated_once_after_a_judge_failure(home: Home) -> None:
    answers = [failed(Verdict.INFRA_ERROR, "a worker died")]
    once = judge_with(lambda _: answers.pop() if answers else correct())
    events = await play(home, scripted_model("correct 1.0"), judge=once)
    assert exams(events) == {"vector_add#1/1": Verdict.CORRECT}
    assert len(once.examined) == 2
    [notice] = [event.message for event in events if isinstance(event, Notice)]
    assert notice == "the judge failed on the exam of vector_add#1/1: a worker died; judging it once more"


@pytest.mark.parametrize(
    ("verdict", "exam_count"), [(Verdict.INFRA_ERROR, 2), (Verdict.CANCELLED, 2), (Verdict.UNSUPPORTED, 1)]
)
async def test_exam_without_a_verdict_ends_the_exams_with_a_reason(
    home: Home, verdict: Verdict, exam_count: int
) -> None:
    silent = failed(Verdict.INFRA_ERROR, "no room for a guest")
    judge = judge_with(lambda _: msgspec.structs.replace(silent, verdict=verdict))
    events = await play(
        home, scripted_model("correct 1.0", "correct 2.0"), session_plan=plan(iterations=2), judge=judge
    )
    assert exams(events) == {"vector_add#1/2": verdict}
    assert len(judge.examined) == exam_count
    winner = fold(events).attempt("vector_add#1/2")  # type: ignore[arg-type]
    assert (winner.confirmation, winner.unexamined_because) == (
        Confirmation.NOT_EXAMINED,
        "no room for a guest",
    )
    assert endings(events) == ["iterations"]


async def test_exam_runs_after_the_budget_is_spent(home: Home) -> None:
    model = scripted_model("correct 1.0", usage=Usage(10_000, 30_000))
    events = await play(home, model, session_plan=plan(iterations=9, budget_tokens=100_000))
    assert endings(events) == ["budget"]
    assert list(exams(events).values()) == [Verdict.CORRECT]


def waits(*names: str) -> Callable[[SessionState], bool]:
    return lambda state: (
        all(attempt.waiting for attempt in state.attempts() if attempt.attempt in names)
        and ({attempt.attempt for attempt in state.attempts()} >= set(names))
    )


async def decided(
    home: Home, *steps: tuple[Callable[[SessionState], object], Command], **shape: int
) -> list[Event]:
    """Play a session in which a person gives each command as soon as its condition holds."""

    def person(recorder: Recorder, changes: Changes) -> object:
        async def decide() -> None:
            for condition, command in steps:
                await until(lambda condition=condition: condition(recorder.state))
                await recorder.follow(command)
                changes.announce()

        return asyncio.get_running_loop().create_task(decide(), name="person")

    model, session_plan = scripted_model("correct 1.0", "correct 2.0"), plan(review="manual", **shape)
    return await play(home, model, session_plan=session_plan, before=person)


async def test_rejected_attempt_is_not_examined(home: Home) -> None:
    events = await decided(
        home,
        (waits("vector_add#1/1"), DecisionMade(attempt="vector_add#1/1", accepted=True)),
        (waits("vector_add#1/2"), DecisionMade(attempt="vector_add#1/2", accepted=False)),
        iterations=2,
    )
    assert exams(events) == {"vector_add#1/1": Verdict.CORRECT}


async def test_best_that_an_undo_gives_back_during_an_exam_is_examined(home: Home) -> None:
    events = await decided(
        home,
        (waits("vector_add#1/1"), DecisionMade(attempt="vector_add#1/1", accepted=True)),
        (waits("vector_add#1/2"), DecisionMade(attempt="vector_add#1/2", accepted=False)),
        (lambda state: state.attempt("vector_add#1/1").examining, DecisionUndone(attempt="vector_add#1/2")),
        iterations=2,
    )
    assert exams(events) == {"vector_add#1/1": Verdict.CORRECT, "vector_add#1/2": Verdict.CORRECT}
    assert best(events) == ["vector_add#1/2"]


async def test_best_that_an_undo_gives_back_after_the_end_is_examined(home: Home) -> None:
    def examined(state: SessionState) -> bool:
        return (
            state.attempt("vector_add#1/1").exam is not None
            and state.instances["vector_add#1"].word == "done"
        )

    events = await decided(
        home,
        (waits("vector_add#1/1", "vector_add#2/1"), DecisionMade(attempt="vector_add#1/1", accepted=False)),
        (lambda state: state.instances["vector_add#1"].finished, DecisionUndone(attempt="vector_add#1/1")),
        (examined, DecisionMade(attempt="vector_add#2/1", accepted=True)),
        iterations=1,
        instances=2,
    )
    assert exams(events) == {"vector_add#1/1": Verdict.CORRECT, "vector_add#2/1": Verdict.CORRECT}


async def test_interrupted_exam_runs_after_a_resume(home: Home) -> None:
    class Slow(ScriptedJudge):
        async def evaluate(self, *arguments: object, exam: bool = False, **rest: object) -> Evaluation:  # type: ignore[override]
            if exam:
                self.examined.append("")
                await asyncio.Event().wait()
            return await super().evaluate(*arguments, exam=exam, **rest)  # type: ignore[arg-type]

    session_plan, slow = plan(iterations=1), Slow()
    with Recorder.begin(home, session_started(session_plan)) as recorder:
        engine_task = asyncio.create_task(
            run(shared(recorder, session_plan, scripted_model("correct 1.0"), slow))
        )
        await until(lambda: slow.examined)
        engine_task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await engine_task
        assert recorder.state.attempt("vector_add#1/1").confirmation is Confirmation.NOT_EXAMINED
    client, judge = scripted_model("correct 1.0"), ScriptedJudge()
    state = fold(await resume_to_end(home, session_plan, client, judge))
    assert state.attempt("vector_add#1/1").confirmation is Confirmation.CONFIRMED
    assert (client.requests, judge.evaluated, len(judge.examined)) == ([], [], 1)


# No prompt depends on an exam


def verbose_exam(verdict: Verdict, words: str) -> Exam:
    """Return an exam whose evaluation holds `words` in every text field."""

    def exam(_: str) -> Evaluation:
        base = correct() if verdict is Verdict.CORRECT else failed(verdict)
        error = None if verdict is Verdict.CORRECT else ErrorReport(words, words, trace=words, line=1)
        return msgspec.structs.replace(
            base, error=error,
            stages=tuple(Stage(stage.name, stage.ok, stage.seconds, words) for stage in base.stages),
            notes=(words,), printed=words, facts=(Fact(words, words, Basis.PROOF),),
            provenance=Provenance(product=words), compile_errors={words: words},
        )  # fmt: skip

    return exam


WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P")), min_size=12, max_size=40)


@settings(
    max_examples=12 if SOAK else 3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    verdict=st.sampled_from([Verdict.CORRECT, Verdict.WRONG, Verdict.UNSUPPORTED, Verdict.INFRA_ERROR]),
    words=WORDS,
    verdicts=st.lists(
        st.sampled_from(["wrong", "correct 1.0", "correct 2.0", "prose"]), min_size=2, max_size=4
    ),
)
async def test_prompts_do_not_depend_on_exams(
    tmp_path_factory: pytest.TempPathFactory, verdict: Verdict, words: str, verdicts: list[str]
) -> None:
    """Instance 1 loses its model, is examined and continues after a resume; instance 2 follows later."""
    prompts = await prompts_with(tmp_path_factory.mktemp("verbose"), verbose_exam(verdict, words), verdicts)
    silent = await prompts_with(tmp_path_factory.mktemp("silent"), lambda _: correct(), verdicts)
    assert prompts == silent
    assert not any(words in text for text in prompts)


async def prompts_with(folder: Path, exam: Exam, verdicts: list[str]) -> list[str]:
    """Run a session with this exam in two engines and return the messages of all calls."""
    home, session_plan = Home(folder), plan(instances=2, iterations=len(verdicts) + 1)
    usual = scripted_answer(*verdicts, "wrong")

    def answer(request: Request) -> Reply | ModelError:
        if request.key.attempt > len(verdicts):
            return UselessToRetry("no_credit", "pay first")
        return usual(request)

    with Recorder.begin(home, session_started(session_plan)) as recorder:
        recorder.record(EngineStarted(host="here", pid=1))
        await run(shared(recorder, session_plan, ScriptedClient(answer=answer), judge_with(exam)))
    events = await resume_to_end(home, session_plan, scripted_model(*verdicts, "wrong"), judge_with(exam))
    if any(verdict.startswith("correct") for verdict in verdicts):
        assert events.index(next(event for event in events if isinstance(event, WinnerExamined))) < max(
            index for index, event in enumerate(events) if isinstance(event, CallStarted)
        ), "an exam comes before the last calls"
    return sorted(messages_of(events))


def messages_of(events: list[Event]) -> Iterator[str]:
    for event in events:
        if isinstance(event, CallStarted):
            yield f"{event.call}\n" + "\n".join(message.content for message in event.messages)
