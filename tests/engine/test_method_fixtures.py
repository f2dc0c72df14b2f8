"""Kept sessions of each method with real model replies: their attempts are as documented, and a second run is equal."""

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
from engine.models import CallKey, Request, changed_templates
from engine.plan import RunPlan
from engine.prompting import template_hashes
from harness import STAGES, Verdict
from sessions import AttemptState, Home, SessionState, fold, write_recording
from sessions import events as ev
from sessions.events import MethodOptions, Origin, Role, Usage
from sessions.names import split_call
from sessions.state import Confirmation
from tests.support.kept_sessions import METHODS, TASKS, kept_session, recording_in, replay_session
from tests.support.live_engines import journal, started

FRESH, OPTIMIZE = Origin.FRESH, Origin.OPTIMIZE
DOCS = Path(__file__).resolve().parents[2] / "docs" / "methods.md"


class AttemptFacts(NamedTuple):
    """Facts of one attempt."""

    number: int
    origin: Origin
    base: int | None
    roles: tuple[Role, ...]
    verdict: Verdict


ALONE = AttemptFacts(1, FRESH, None, (Role.GENERATOR,), Verdict.CORRECT)
LOSER = AttemptFacts(2, FRESH, None, (Role.GENERATOR,), Verdict.CANCELLED)
SIBLING = AttemptFacts(2, FRESH, None, (Role.GENERATOR,), Verdict.CORRECT)
EXPECTED = {
    "direct": (ALONE,),
    "reflexion": (ALONE,),
    "kernelagent": (ALONE, LOSER),
    "geak": (
        ALONE,
        AttemptFacts(2, OPTIMIZE, 1, (Role.OPTIMIZER,), Verdict.CORRECT),
        AttemptFacts(3, OPTIMIZE, 2, (Role.OPTIMIZER,), Verdict.CORRECT),
    ),
    "geak-evolve": (ALONE, SIBLING, AttemptFacts(3, OPTIMIZE, 2, (Role.OPTIMIZER,), Verdict.CORRECT)),
}
"""Attempts by method, equal on both tasks. With `geak-evolve`, attempt 2 was the better sibling and the base of attempt 3."""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.ensure()
    return home


def attempt_facts(state: SessionState) -> dict[str, tuple[AttemptFacts, ...]]:
    """Return the judged attempts of each instance, in order."""
    return {
        key: tuple(
            AttemptFacts(
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
    """Return the attempt of an event; empty for an event without attempt."""
    call = getattr(event, "call", "")
    return split_call(call).attempt if call else getattr(event, "attempt", "")


def tokens(usages: list[Usage]) -> tuple[int, int]:
    return sum(usage.input_tokens or 0 for usage in usages), sum(usage.output_tokens or 0 for usage in usages)


def finished_by(attempts: list[AttemptState]) -> list[Usage]:
    return [call.usage for attempt in attempts for call in attempt.calls if call.finished]


# Content of the kept sessions


@pytest.mark.parametrize("method", METHODS)
def test_method_makes_exactly_its_documented_attempts(method: str) -> None:
    state = kept_session(method).state
    assert attempt_facts(state) == {f"{task.partition('/')[2]}#1": EXPECTED[method] for task in TASKS}
    assert (state.finished, state.skipped_events, state.notices) == (True, 0, [])
    assert {instance.finished for instance in state.instances.values()} == {"iterations"}
    bests = [state.attempt(instance.best or "") for instance in state.instances.values()]
    assert exams(state) == {best.attempt: Confirmation.CONFIRMED for best in bests}


@pytest.mark.parametrize("method", METHODS)
def test_events_are_in_the_order_of_the_work(method: str) -> None:
    events = kept_session(method).events
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert all(earlier.mono <= later.mono for earlier, later in pairwise(events))
    assert isinstance(events[0], ev.SessionStarted)
    assert isinstance(events[-1], ev.SessionFinished)
    for attempt in kept_session(method).state.attempts():
        steps = [
            type(event)
            for event in events
            if attempt_of(event) == attempt.attempt
            and not isinstance(event, ev.StageStarted | ev.StageFinished | ev.WinnerExamined)
        ]
        if attempt.verdict is Verdict.CANCELLED:
            assert steps == [ev.AttemptStarted, ev.CallStarted, ev.CallFailed, ev.AttemptJudged]
            continue
        call_steps = (ev.AttemptStarted, ev.CallStarted, ev.ReplyPiece, ev.CallFinished)
        assert steps == [*call_steps, ev.CandidateProposed, ev.AttemptJudged, ev.AttemptCommitted]
        for exam in {False, attempt.exam is not None}:
            stages = [
                (type(event), getattr(event.stage, "name", event.stage))
                for event in events
                if isinstance(event, ev.StageStarted | ev.StageFinished)
                and (event.attempt, event.exam) == (attempt.attempt, exam)
            ]
            assert stages == [(kind, name) for name in STAGES for kind in (ev.StageStarted, ev.StageFinished)]


@pytest.mark.parametrize("method", METHODS)
def test_no_call_is_open_or_retried(method: str) -> None:
    state = kept_session(method).state
    calls = [call for attempt in state.attempts() for call in attempt.calls]
    assert len({call.call for call in calls}) == len(calls)
    assert not any(call.live or call.retries for call in calls)
    assert {bool(call.text) for call in calls if call.finished} == {True}
    for call in calls:
        assert call.finished is not bool(call.failed)


@pytest.mark.parametrize("method", METHODS)
def test_token_sums_agree_over_calls_attempts_instances_and_session(method: str) -> None:
    state = kept_session(method).state
    by_call = tokens(
        [event.usage for event in kept_session(method).events if isinstance(event, ev.CallFinished)]
    )
    by_attempt = tokens([attempt.usage for attempt in state.attempts()])
    by_instance = [tokens(finished_by(instance.attempts)) for instance in state.instances.values()]
    assert by_call == by_attempt == (state.input_tokens, state.output_tokens)
    assert (sum(figures[0] for figures in by_instance), sum(figures[1] for figures in by_instance)) == by_call
    assert all(min(figures) > 0 for figures in by_instance)


@pytest.mark.parametrize("method", METHODS)
async def test_restored_budget_equals_the_tokens_of_the_calls(method: str) -> None:
    state = kept_session(method).state
    spent = state.input_tokens + state.output_tokens
    call = Request(CallKey("starter/softmax", 1, 1, Role.GENERATOR, 1), messages=(), max_output_tokens=10)
    enough = Budget(tokens=spent + 10)
    enough.restore(state)
    await enough.reserve("openai:x", call)
    spare = Budget(tokens=spent + 9)
    spare.restore(state)
    with pytest.raises(BudgetSpent, match=f"9 of {spent + 9:,} are left"):
        await spare.reserve("openai:x", call)


@pytest.mark.parametrize("method", METHODS)
def test_recording_equals_the_one_written_from_the_journal(method: str, tmp_path: Path) -> None:
    written = write_recording(kept_session(method).state, method, tmp_path)
    files = sorted(path.relative_to(written) for path in written.rglob("*") if path.is_file())
    kept_files = {
        path.relative_to(kept_session(method).folder) for path in kept_session(method).folder.rglob("*")
    }
    assert {*files} <= kept_files
    assert len(files) == 1 + len(TASKS)
    for file in files:
        assert (written / file).read_bytes() == (kept_session(method).folder / file).read_bytes()


@pytest.mark.parametrize("method", METHODS)
def test_kept_replies_match_the_current_templates(method: str) -> None:
    changed = changed_templates(kept_session(method).started.templates, template_hashes())
    assert changed == (), (
        "the prompts changed: run these sessions again, as tests/fixtures/methods/README.md says"
    )


def test_cancelled_worker_of_kernelagent_is_not_counted() -> None:
    state = kept_session("kernelagent").state
    for instance in state.instances.values():
        winner, loser = instance.attempts
        [call] = loser.calls
        assert call.failed == "cancelled: another worker's candidate is correct"
        assert (loser.source, loser.commit, loser.usage) == (None, None, Usage())
        assert instance.best == winner.attempt
        assert loser.evaluation is not None
        assert not loser.evaluation.verdict.counted


def test_workers_and_descendants_start_from_different_prompts() -> None:
    for method in ("kernelagent", "geak-evolve"):
        sent = prompts(kept_session(method).state)
        for task in TASKS:
            first, second = (sent[f"{task.partition('/')[2]}#1/{number}/generator/1"] for number in (1, 2))
            assert first[0] == second[0], "the shared text comes first, for the provider's cache"
            assert first[1] != second[1]


@pytest.mark.parametrize("method", ["geak", "geak-evolve"])
def test_optimizer_prompt_shows_all_earlier_attempts_best_last(method: str) -> None:
    state = kept_session(method).state
    shown = 0
    for attempt in state.attempts():
        for call in attempt.calls:
            if call.role is not Role.OPTIMIZER:
                continue
            [instance] = [instance for instance in state.instances.values() if attempt in instance.attempts]
            before = [earlier for earlier in instance.attempts if earlier.number < attempt.number]
            prompt = call.messages[-1].content
            assert all(earlier.strategy in prompt and str(earlier.source) in prompt for earlier in before)
            last = max(before, key=lambda earlier: prompt.index(str(earlier.source)))
            assert last.attempt == attempt.base
            shown += len(before)
    assert shown == {"geak": 6, "geak-evolve": 4}[method]


# Second run of the kept sessions


@pytest.mark.parametrize("method", METHODS)
async def test_second_run_gives_the_same_prompts(method: str, home: Home) -> None:
    """Prompts are equal to the byte: they depend only on replies, evaluations and tasks."""
    state = fold(await replay_session(kept_session(method), home))
    assert prompts(state) == prompts(kept_session(method).state)
    assert attempt_facts(state) == attempt_facts(kept_session(method).state)
    assert replies(state) == replies(kept_session(method).state)
    assert exams(state) == exams(kept_session(method).state)


async def test_spent_budget_ends_the_instance_after_its_last_paid_attempt(home: Home) -> None:
    kept = kept_session("geak")
    first, second, _ = finished_by(kept.state.instances["matmul_w8a8#1"].attempts)
    spent = sum(tokens([first, second]))
    state = fold(await replay_session(kept, home, tasks=(TASKS[1],), budget_attempts=2))
    [instance] = state.instances.values()
    assert attempt_facts(state) == {"matmul_w8a8#1": EXPECTED["geak"][:2]}
    assert (instance.finished, instance.best) == ("budget", "matmul_w8a8#1/2")
    assert state.input_tokens + state.output_tokens == spent


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"row {row.number}")
async def test_every_ablation_row_plays_the_kept_replies(row: AblationRow, home: Home) -> None:
    without = row.without
    state = fold(await replay_session(kept_session("geak"), home, options=MethodOptions(without=without)))
    whole = EXPECTED["geak"]
    assert set(attempt_facts(state).values()) == {whole[:1] if "optimizer" in without else whole}
    whole_prompts = prompts(kept_session("geak").state)
    for call, messages in prompts(state).items():
        modules = {"knowledge", "one-shot"} if split_call(call).role == Role.GENERATOR else {"knowledge"}
        changed = modules & {*without}
        assert (messages == whole_prompts[call]) is not bool(changed)


@pytest.mark.judge
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("method", ["direct", "kernelagent"])
def test_run_with_the_real_judge_gives_the_same_verdicts(method: str, tmp_path: Path) -> None:
    home, kept = Home(tmp_path / "home"), kept_session(method)
    plan = RunPlan(
        model=recording_in(home, method),
        tasks=kept.started.tasks,
        method=method,
        iterations=kept.started.iterations,
        devices=kept.started.devices,
        targets=kept.started.targets,
        seed=kept.started.seed,
        options=kept.started.options,
    )
    with started(plan, home) as session:
        while home.live(
            session
        ).running:  # only the test's own timeout limits the wait: judging depends on the machine
            time.sleep(0.05)
        state = fold(journal(home, session))
    assert state.finished
    assert state.started is not None
    assert state.started.templates == kept.started.templates
    assert attempt_facts(state) == attempt_facts(kept.state)
    assert replies(state) == replies(kept.state)
    assert prompts(state) == prompts(kept.state)
    assert exams(state) == exams(kept.state)


# Figures in the docs


def test_figures_in_the_docs_match_the_events() -> None:
    documented = dict(
        re.findall(r"^\| `([a-z-]+)` \| (\d.*) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    )
    for method in METHODS:
        state = kept_session(method).state
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
        assert documented[method] == " | ".join(map(str, figures))
