"""The exam at the end of an instance: who is examined, what is kept, and that no model ever hears of it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import ModelError, UselessToRetry
from engine.job import session_started
from engine.models import Reply, Request, ScriptedClient
from engine.reviewing import Decisions
from harness import ErrorReport, Evaluation, Fact, Stage, Verdict
from harness.evaluation import Basis
from sessions import Home, Recorder, fold, resume
from sessions.events import (
    CallStarted,
    DecisionMade,
    EngineStarted,
    Event,
    InstanceFinished,
    Notice,
    SessionFinished,
    Usage,
    WinnerExamined,
)
from sessions.journal import read_journal
from sessions.state import Confirmation
from sessions.store import Store
from tests.support.engines import ToldJudge, answer_of, answering, plan, play, run, shared, told, until
from tests.support.evaluations import correct, failed

Exam = Callable[[str], Evaluation]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def judging(exam: Exam) -> ToldJudge:
    judge = ToldJudge()
    judge.exam = exam
    return judge


def exams(events: list[Event]) -> dict[str, Verdict]:
    return {event.attempt: event.evaluation.verdict for event in events if isinstance(event, WinnerExamined)}


def best(events: list[Event]) -> list[str | None]:
    return [event.best for event in events if isinstance(event, InstanceFinished)]


def failing_at(*speedups: str) -> Exam:
    """An exam that candidates of these speedups fail."""

    def exam(source: str) -> Evaluation:
        wrong = any(source.startswith(f"# judge: correct {speedup}\n") for speedup in speedups)
        return failed(Verdict.WRONG, "an exam case is wrong") if wrong else correct()

    return exam


async def test_the_winner_is_examined_when_the_instance_ends_and_called_confirmed(home: Home) -> None:
    judge = ToldJudge()
    events = await play(home, told("correct 1.0", "correct 3.0", "correct 2.0"), judge=judge)
    assert exams(events) == {"vector_add#1/2": Verdict.CORRECT}
    assert [source.splitlines()[0] for source in judge.examined] == ["# judge: correct 3.0"]
    state = fold(events)  # type: ignore[arg-type]
    assert state.attempt("vector_add#1/2").confirmation is Confirmation.CONFIRMED
    assert state.attempt("vector_add#1/1").confirmation is Confirmation.NOT_EXAMINED
    assert best(events) == ["vector_add#1/2"]


async def test_where_the_winner_fails_the_next_best_is_examined_and_held_up(home: Home) -> None:
    events = await play(
        home, told("correct 1.0", "correct 3.0", "correct 2.0"), judge=judging(failing_at("3.0"))
    )
    assert exams(events) == {"vector_add#1/2": Verdict.WRONG, "vector_add#1/3": Verdict.CORRECT}
    assert best(events) == ["vector_add#1/3"]


async def test_at_most_three_are_examined_and_none_is_confirmed_by_default(home: Home) -> None:
    of = plan(iterations=4)
    client = told("correct 1.0", "correct 4.0", "correct 3.0", "correct 2.0")
    events = await play(home, client, of=of, judge=judging(lambda _: failed(Verdict.WRONG)))
    assert list(exams(events)) == ["vector_add#1/2", "vector_add#1/3", "vector_add#1/4"]
    confirmed = [attempt for attempt in fold(events).attempts() if attempt.confirmation is Confirmation.CONFIRMED]  # type: ignore[arg-type]
    assert confirmed == []


async def test_an_instance_whose_every_winner_fails_ends_with_its_best_not_confirmed(home: Home) -> None:
    client = told("wrong", "correct 1.0", "correct 2.0")
    events = await play(home, client, judge=judging(lambda _: failed(Verdict.REJECTED)))
    assert list(exams(events)) == ["vector_add#1/3", "vector_add#1/2"]
    assert best(events) == ["vector_add#1/3"]
    winner = fold(events).attempt("vector_add#1/3")  # type: ignore[arg-type]
    assert winner.confirmation is Confirmation.NOT_CONFIRMED


async def test_a_copy_of_what_failed_is_not_examined_again(home: Home) -> None:
    same = ScriptedClient(answer=lambda _: Reply(text=answer_of("correct 1.0", "same")))
    judge = judging(lambda _: failed(Verdict.WRONG))
    events = await play(home, same, judge=judge)
    assert (len(judge.examined), len(exams(events))) == (1, 1)


async def test_nothing_correct_is_nothing_to_examine(home: Home) -> None:
    judge = ToldJudge()
    await play(home, told("wrong", "prose", "timeout"), judge=judge)
    assert judge.examined == []


async def test_a_judge_that_fails_once_is_asked_again_and_twice_is_said(home: Home) -> None:
    answers = [failed(Verdict.INFRA_ERROR, "a worker died")]
    once = judging(lambda _: answers.pop() if answers else correct())
    events = await play(home, told("correct 1.0"), judge=once)
    assert exams(events) == {"vector_add#1/1": Verdict.CORRECT}
    assert len(once.examined) == 2
    [notice] = [event.message for event in events if isinstance(event, Notice)]
    assert notice == "the judge failed on the exam of vector_add#1/1: a worker died; judging it once more"


@pytest.mark.parametrize(
    ("verdict", "asked"), [(Verdict.INFRA_ERROR, 2), (Verdict.CANCELLED, 2), (Verdict.UNSUPPORTED, 1)]
)
async def test_an_exam_that_says_nothing_of_the_winner_is_the_last_and_says_why(
    home: Home, verdict: Verdict, asked: int
) -> None:
    silent = failed(Verdict.INFRA_ERROR, "no room for a guest")
    judge = judging(lambda _: msgspec.structs.replace(silent, verdict=verdict))
    events = await play(home, told("correct 1.0", "correct 2.0"), of=plan(iterations=2), judge=judge)
    assert exams(events) == {"vector_add#1/2": verdict}
    assert len(judge.examined) == asked
    winner = fold(events).attempt("vector_add#1/2")  # type: ignore[arg-type]
    assert (winner.confirmation, winner.unexamined_because) == (
        Confirmation.NOT_EXAMINED,
        "no room for a guest",
    )
    assert [event.reason for event in events if isinstance(event, InstanceFinished)] == ["iterations"]


async def test_an_instance_that_the_budget_ended_is_examined_for_it_asks_no_model(home: Home) -> None:
    client = told("correct 1.0", usage=Usage(input_tokens=500, output_tokens=500))
    events = await play(home, client, of=plan(iterations=9, budget_tokens=1500))
    assert [event.reason for event in events if isinstance(event, InstanceFinished)] == ["budget"]
    assert list(exams(events).values()) == [Verdict.CORRECT]


async def test_what_a_person_rejected_is_not_examined(home: Home) -> None:
    def person(recorder: Recorder, decisions: Decisions) -> object:
        async def decide() -> None:
            for number, accepted in ((1, True), (2, False)):
                await until(lambda name=f"vector_add#1/{number}": waits(recorder, name))
                made = DecisionMade(attempt=f"vector_add#1/{number}", accepted=accepted)
                await recorder.decide(made)
                decisions.made(made)

        return asyncio.get_running_loop().create_task(decide(), name="person")

    judge = ToldJudge()
    of = plan(review="manual", iterations=2)
    events = await play(home, told("correct 1.0", "correct 2.0"), of=of, judge=judge, before=person)
    assert exams(events) == {"vector_add#1/1": Verdict.CORRECT}


def waits(recorder: Recorder, name: str) -> bool:
    return any(attempt.attempt == name and attempt.waiting for attempt in recorder.state.attempts())


async def test_a_stop_in_the_exam_leaves_it_to_the_resume(home: Home) -> None:
    class Slow(ToldJudge):
        async def evaluate(self, *arguments: object, exam: bool = False, **rest: object) -> Evaluation:  # type: ignore[override]
            if exam:
                self.examined.append("")
                await asyncio.Event().wait()
            return await super().evaluate(*arguments, exam=exam, **rest)  # type: ignore[arg-type]

    of, slow = plan(iterations=1), Slow()
    with Recorder.begin(home, session_started(of)) as recorder:
        going = asyncio.create_task(run(shared(recorder, of, told("correct 1.0"), slow)))
        await until(lambda: slow.examined)
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        assert recorder.state.attempt("vector_add#1/1").confirmation is Confirmation.NOT_EXAMINED
    client, judge = told("correct 1.0"), ToldJudge()
    with resume(home, of.session) as recorder:
        recorder.record(EngineStarted(host="here", pid=2, resumed=True))
        await run(shared(recorder, of, client, judge))
        assert recorder.state.attempt("vector_add#1/1").confirmation is Confirmation.CONFIRMED
    assert (client.requests, judge.evaluated, len(judge.examined)) == ([], [], 1)


async def test_a_clone_holds_the_exams_and_shows_them(home: Home, tmp_path: Path) -> None:
    of, judge = plan(), judging(failing_at("3.0"))
    with Recorder.begin(home, session_started(of)) as recorder:
        await run(shared(recorder, of, told("correct 1.0", "correct 3.0", "correct 2.0"), judge))
        recorder.record(SessionFinished())
        await recorder.finish()
    with Store.read_only(cloned(home, tmp_path / "clone")) as store:
        tree = store.session_tree(of.session)
        kept = {
            path: msgspec.json.decode(store.repository.read_file(sha), type=Evaluation)
            for path, sha in tree.items()
            if path.startswith("exams/")
        }
        assert {path: each.verdict for path, each in kept.items()} == {
            "exams/starter/vector_add/1/2.json": Verdict.WRONG,
            "exams/starter/vector_add/1/3.json": Verdict.CORRECT,
        }
        assert all(evaluation.exam for evaluation in kept.values())
        state = fold(store.session_events(of.session))
    assert state.attempt("vector_add#1/3").confirmation is Confirmation.CONFIRMED
    assert state.attempt("vector_add#1/2").confirmation is Confirmation.NOT_CONFIRMED


def cloned(home: Home, clone: Path) -> Path:
    subprocess.run(["git", "clone", "-q", "--bare", str(home.store), str(clone)], check=True)
    return clone


# That nothing of it reaches a model


def telling(verdict: Verdict, words: str) -> Exam:
    """An exam whose evaluation says `words` wherever an evaluation can say something."""

    def exam(_: str) -> Evaluation:
        base = correct() if verdict is Verdict.CORRECT else failed(verdict)
        error = None if verdict is Verdict.CORRECT else ErrorReport(words, words, trace=words, line=1)
        return msgspec.structs.replace(
            base,
            error=error,
            stages=tuple(Stage(stage.name, stage.ok, stage.seconds, words) for stage in base.stages),
            notes=(words,),
            printed=words,
            facts=(Fact(words, words, Basis.PROOF),),
            versions={words: words},
            compile_errors={words: words},
        )

    return exam


WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P")), min_size=12, max_size=40)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    verdict=st.sampled_from([Verdict.CORRECT, Verdict.WRONG, Verdict.UNSUPPORTED, Verdict.INFRA_ERROR]),
    words=WORDS,
    verdicts=st.lists(
        st.sampled_from(["wrong", "correct 1.0", "correct 2.0", "prose"]), min_size=2, max_size=4
    ),
)
async def test_every_prompt_is_the_same_whatever_the_exam_said(
    tmp_path_factory: pytest.TempPathFactory, verdict: Verdict, words: str, verdicts: list[str]
) -> None:
    """The first instance ends for want of a model, is examined, and goes on after a resume; the second comes later."""
    asked = await prompts_with(tmp_path_factory.mktemp("told"), telling(verdict, words), verdicts)
    silent = await prompts_with(tmp_path_factory.mktemp("silent"), lambda _: correct(), verdicts)
    assert asked == silent
    assert not any(words in text for text in asked)


async def prompts_with(folder: Path, exam: Exam, verdicts: list[str]) -> list[str]:
    """Every message that two engines sent in a session whose exams go like this, by call."""
    home, of = Home(folder), plan(instances=2, iterations=len(verdicts) + 1)
    usual = answering(*verdicts, "wrong")

    def answer(request: Request) -> Reply | ModelError:
        if request.key.attempt > len(verdicts):
            return UselessToRetry("no_credit", "pay first")
        return usual(request)

    with Recorder.begin(home, session_started(of)) as recorder:
        recorder.record(EngineStarted(host="here", pid=1))
        await run(shared(recorder, of, ScriptedClient(answer=answer), judging(exam)))
    with resume(home, of.session) as recorder:
        recorder.record(EngineStarted(host="here", pid=2, resumed=True))
        await run(shared(recorder, of, told(*verdicts, "wrong"), judging(exam)))
        events = read_journal(recorder.live.journal).events
    if any(verdict.startswith("correct") for verdict in verdicts):
        assert events.index(next(event for event in events if isinstance(event, WinnerExamined))) < max(
            place for place, each in enumerate(events) if isinstance(each, CallStarted)
        ), "an exam comes before the last calls"
    return sorted(messages_of(events))


def messages_of(events: list[Event]) -> Iterator[str]:
    for event in events:
        if isinstance(event, CallStarted):
            yield f"{event.call}\n" + "\n".join(message.content for message in event.messages)
