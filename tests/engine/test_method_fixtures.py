"""Each method on two starter tasks with a model's own replies: what the kept sessions hold, and that they can be made again."""

from __future__ import annotations

import re
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from engine.ablation import ROWS, AblationRow
from engine.budget import Budget
from engine.errors import BudgetSpent
from engine.models import changed_templates
from engine.plan import RunPlan
from engine.prompting import template_hashes
from harness import STAGES, Verdict
from sessions import AttemptState, Home, SessionState, fold, write_recording
from sessions import events as ev
from sessions.events import MethodOptions, Origin, Role, Usage
from sessions.names import split_call
from sessions.state import Confirmation
from tests.support.kept_sessions import METHODS, TASKS, kept, recording_in, told_again
from tests.support.live_engines import journal, started

FRESH, OPTIMIZE = Origin.FRESH, Origin.OPTIMIZE
DOCS = Path(__file__).resolve().parents[2] / "docs" / "methods.md"


class Made(NamedTuple):
    """An attempt as a method makes it."""

    number: int
    origin: Origin
    base: int | None
    roles: tuple[Role, ...]
    verdict: Verdict


ALONE = Made(1, FRESH, None, (Role.GENERATOR,), Verdict.CORRECT)
LOSER = Made(2, FRESH, None, (Role.GENERATOR,), Verdict.CANCELLED)
SIBLING = Made(2, FRESH, None, (Role.GENERATOR,), Verdict.CORRECT)
MADE = {
    "direct": (ALONE,),
    "reflexion": (ALONE,),
    "kernelagent": (ALONE, LOSER),
    "geak": (
        ALONE,
        Made(2, OPTIMIZE, 1, (Role.OPTIMIZER,), Verdict.CORRECT),
        Made(3, OPTIMIZE, 2, (Role.OPTIMIZER,), Verdict.CORRECT),
    ),
    "geak-evolve": (ALONE, SIBLING, Made(3, OPTIMIZE, 2, (Role.OPTIMIZER,), Verdict.CORRECT)),
}
"""On either task; the best of two siblings, which is the base of the third, was the second on both."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.ensure()
    return home


def made(state: SessionState) -> dict[str, tuple[Made, ...]]:
    """The attempts of each instance, in order."""
    return {
        key: tuple(
            Made(
                attempt.number,
                attempt.origin,
                int(attempt.base.rpartition("/")[2]) if attempt.base else None,
                tuple(call.role for call in attempt.calls),
                attempt.evaluation.verdict,
            )
            for attempt in instance.attempts
            if attempt.evaluation is not None
        )
        for key, instance in state.instances.items()
    }


def prompts(state: SessionState) -> dict[str, tuple[ev.Message, ...]]:
    return {call.call: call.messages for attempt in state.attempts() for call in attempt.calls}


def replies(state: SessionState) -> dict[str, tuple[str, Usage]]:
    return {
        call.call: (call.text, call.usage)
        for attempt in state.attempts()
        for call in attempt.calls
        if call.finished
    }


def exams(state: SessionState) -> dict[str, Confirmation]:
    return {attempt.attempt: attempt.confirmation for attempt in state.attempts() if attempt.exam is not None}


def attempt_of(event: ev.AnyEvent) -> str:
    """The attempt that an event is about; empty for one about none."""
    call = getattr(event, "call", "")
    return split_call(call).attempt if call else getattr(event, "attempt", "")


def tokens(usages: list[Usage]) -> tuple[int, int]:
    return sum(usage.input_tokens or 0 for usage in usages), sum(usage.output_tokens or 0 for usage in usages)


def finished_by(attempts: list[AttemptState]) -> list[Usage]:
    return [call.usage for attempt in attempts for call in attempt.calls if call.finished]


# What the kept sessions hold


@pytest.mark.parametrize("method", METHODS)
def test_a_method_makes_its_own_attempts_and_nothing_beyond(method: str) -> None:
    state = kept(method).state
    assert made(state) == {f"{task.partition('/')[2]}#1": MADE[method] for task in TASKS}
    assert (state.finished, state.skipped_events, state.notices) == (True, 0, [])
    assert {instance.finished for instance in state.instances.values()} == {"iterations"}
    bests = [state.attempt(instance.best or "") for instance in state.instances.values()]
    assert exams(state) == {best.attempt: Confirmation.CONFIRMED for best in bests}


@pytest.mark.parametrize("method", METHODS)
def test_events_come_in_the_order_of_the_work(method: str) -> None:
    events = kept(method).events
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert all(earlier.mono <= later.mono for earlier, later in pairwise(events))
    assert isinstance(events[0], ev.SessionStarted)
    assert isinstance(events[-1], ev.SessionFinished)
    for attempt in kept(method).state.attempts():
        steps = [
            type(event)
            for event in events
            if attempt_of(event) == attempt.attempt
            and not isinstance(event, ev.StageStarted | ev.StageFinished | ev.WinnerExamined)
        ]
        if attempt.verdict is Verdict.CANCELLED:
            assert steps == [ev.AttemptStarted, ev.CallStarted, ev.CallFailed, ev.AttemptJudged]
            continue
        said = (ev.AttemptStarted, ev.CallStarted, ev.ReplyPiece, ev.CallFinished)
        assert steps == [*said, ev.CandidateProposed, ev.AttemptJudged, ev.AttemptCommitted]
        for exam in {False, attempt.exam is not None}:
            stages = [
                (type(event), getattr(event.stage, "name", event.stage))
                for event in events
                if isinstance(event, ev.StageStarted | ev.StageFinished)
                and (event.attempt, event.exam) == (attempt.attempt, exam)
            ]
            assert stages == [(kind, name) for name in STAGES for kind in (ev.StageStarted, ev.StageFinished)]


@pytest.mark.parametrize("method", METHODS)
def test_no_call_is_left_open_or_was_tried_twice(method: str) -> None:
    state = kept(method).state
    calls = [call for attempt in state.attempts() for call in attempt.calls]
    assert len({call.call for call in calls}) == len(calls)
    assert not any(call.live or call.retries for call in calls)
    assert {bool(call.text) for call in calls if call.finished} == {True}
    for call in calls:
        assert call.finished is not bool(call.failed)


@pytest.mark.parametrize("method", METHODS)
def test_tokens_by_call_attempt_instance_and_session_are_one_sum(method: str) -> None:
    state = kept(method).state
    by_call = tokens([event.usage for event in kept(method).events if isinstance(event, ev.CallFinished)])
    by_attempt = tokens([attempt.usage for attempt in state.attempts()])
    by_instance = [tokens(finished_by(instance.attempts)) for instance in state.instances.values()]
    assert by_call == by_attempt == (state.input_tokens, state.output_tokens)
    assert (sum(figures[0] for figures in by_instance), sum(figures[1] for figures in by_instance)) == by_call
    assert all(min(figures) > 0 for figures in by_instance)


@pytest.mark.parametrize("method", METHODS)
def test_a_budget_taken_over_at_a_resume_is_what_the_calls_used(method: str) -> None:
    state = kept(method).state
    spent = state.input_tokens + state.output_tokens
    enough = Budget(usd=None, tokens=spent + 1, prices={})
    enough.restore(state)
    enough.check()
    spare = Budget(usd=None, tokens=spent, prices={})
    spare.restore(state)
    with pytest.raises(BudgetSpent, match=f"used {spent} of {spent} tokens"):
        spare.check()


@pytest.mark.parametrize("method", METHODS)
def test_the_recording_is_what_the_journal_makes(method: str, tmp_path: Path) -> None:
    written = write_recording(kept(method).state, method, tmp_path)
    files = sorted(path.relative_to(written) for path in written.rglob("*") if path.is_file())
    there = {path.relative_to(kept(method).folder) for path in kept(method).folder.rglob("*")}
    assert {*files} <= there
    assert len(files) == 1 + len(TASKS)
    for file in files:
        assert (written / file).read_bytes() == (kept(method).folder / file).read_bytes()


@pytest.mark.parametrize("method", METHODS)
def test_replies_are_to_the_prompts_as_they_are(method: str) -> None:
    changed = changed_templates(kept(method).started.templates, template_hashes())
    assert changed == (), (
        "the prompts changed: make these sessions anew, as tests/fixtures/methods/README.md says"
    )


def test_the_loser_of_kernelagent_is_cancelled_and_counts_nowhere() -> None:
    state = kept("kernelagent").state
    for instance in state.instances.values():
        winner, loser = instance.attempts
        [call] = loser.calls
        assert call.failed == "cancelled: another worker's candidate is correct"
        assert (loser.source, loser.commit, loser.usage) == (None, None, Usage())
        assert instance.best == winner.attempt
        assert loser.evaluation is not None
        assert not loser.evaluation.verdict.counted


def test_workers_and_descendants_start_from_prompts_of_their_own() -> None:
    for method in ("kernelagent", "geak-evolve"):
        sent = prompts(kept(method).state)
        for task in TASKS:
            first, second = (sent[f"{task.partition('/')[2]}#1/{number}/generator/1"] for number in (1, 2))
            assert first[0] == second[0], "what all share stands first, for the provider's cache"
            assert first[1] != second[1]


@pytest.mark.parametrize("method", ["geak", "geak-evolve"])
def test_an_optimizer_is_shown_what_was_achieved_best_last(method: str) -> None:
    state = kept(method).state
    shown = 0
    for attempt in state.attempts():
        for call in attempt.calls:
            if call.role is not Role.OPTIMIZER:
                continue
            [instance] = [instance for instance in state.instances.values() if attempt in instance.attempts]
            before = [each for each in instance.attempts if each.number < attempt.number]
            told = call.messages[-1].content
            assert all(earlier.strategy in told and str(earlier.source) in told for earlier in before)
            last = max(before, key=lambda each: told.index(str(each.source)))
            assert last.attempt == attempt.base
            shown += len(before)
    assert shown == {"geak": 6, "geak-evolve": 4}[method]


# Made again


@pytest.mark.parametrize("method", METHODS)
async def test_the_same_prompts_come_out_of_replies_and_verdicts_alone(method: str, home: Home) -> None:
    """To the byte: a prompt holds nothing that replies, evaluations and tasks do not tell."""
    state = fold(await told_again(kept(method), home))
    assert prompts(state) == prompts(kept(method).state)
    assert made(state) == made(kept(method).state)
    assert replies(state) == replies(kept(method).state)
    assert exams(state) == exams(kept(method).state)


async def test_a_budget_stops_before_the_next_call_and_judges_what_was_paid_for(home: Home) -> None:
    of = kept("geak")
    first, second, _ = finished_by(of.state.instances["matmul_w8a8#1"].attempts)
    spent = sum(tokens([first, second]))
    state = fold(await told_again(of, home, tasks=(TASKS[1],), budget_tokens=spent))
    [instance] = state.instances.values()
    assert made(state) == {"matmul_w8a8#1": MADE["geak"][:2]}
    assert (instance.finished, instance.best) == ("budget", "matmul_w8a8#1/2")
    assert state.input_tokens + state.output_tokens == spent


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"row {row.number}")
async def test_every_row_of_an_ablation_plays_the_replies(row: AblationRow, home: Home) -> None:
    without = row.without
    state = fold(await told_again(kept("geak"), home, options=MethodOptions(without=without)))
    whole = MADE["geak"]
    assert set(made(state).values()) == {whole[:1] if "optimizer" in without else whole}
    whole_prompts = prompts(kept("geak").state)
    for call, messages in prompts(state).items():
        in_it = {"knowledge", "one-shot"} if split_call(call).role == Role.GENERATOR else {"knowledge"}
        changed = in_it & {*without}
        assert (messages == whole_prompts[call]) is not bool(changed)


@pytest.mark.judge
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("method", ["direct", "kernelagent"])
def test_a_replay_by_the_real_judge_gives_the_same_verdicts(method: str, tmp_path: Path) -> None:
    home, of = Home(tmp_path / "home"), kept(method)
    plan = RunPlan(
        model=recording_in(home, method),
        tasks=of.started.tasks,
        method=method,
        iterations=of.started.iterations,
        devices=of.started.devices,
        targets=of.started.targets,
        seed=of.started.seed,
        options=of.started.options,
    )
    with started(plan, home) as session:
        while home.live(
            session
        ).running:  # bounded by the test's own limit alone: judging takes what the machine takes
            time.sleep(0.05)
        state = fold(journal(home, session))
    assert state.finished
    assert state.started is not None
    assert state.started.templates == of.started.templates
    assert made(state) == made(of.state)
    assert replies(state) == replies(of.state)
    assert prompts(state) == prompts(of.state)
    assert exams(state) == exams(of.state)


# What is said of them


def test_the_figures_in_the_docs_are_those_of_the_events() -> None:
    said = dict(re.findall(r"^\| `([a-z-]+)` \| (\d.*) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE))
    for method in METHODS:
        state = kept(method).state
        calls = [call for attempt in state.attempts() for call in attempt.calls]
        verdicts = [attempt.verdict for attempt in state.attempts()]
        figures = (
            len(verdicts),
            verdicts.count(Verdict.CORRECT),
            verdicts.count(Verdict.CANCELLED),
            len(exams(state)),
            len(calls),
            sum(call.finished for call in calls),
            f"{state.input_tokens:,}",
            f"{state.output_tokens:,}",
        )
        assert said[method] == " | ".join(map(str, figures))
