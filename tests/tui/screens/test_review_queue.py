"""The queue of attempts to decide, and the words of the evidence and of the consequences."""

from __future__ import annotations

import msgspec
import pytest

from sessions import events as ev
from sessions.state.folding import fold
from sessions.state.state import SessionState
from tests.support.sessions import fleets, reviews
from tests.support.sessions.journals import RIGHT_SOURCE, EventLog, finished, running
from tui.cockpit.data.archive import Archive
from tui.cockpit.draw.lines import cells, plain
from tui.cockpit.screens.review.evidence import evidence
from tui.cockpit.screens.review.review_queue import QueueKind, empty_words, review_queue
from tui.facts.attempt import consequences, gain_words


def facts(
    state: SessionState,
    name: str,
    *,
    width: int = 100,
    wall: float | None = None,
    archive: Archive | None = None,
) -> dict[str, str]:
    """Return the facts by name, each on one line."""
    attempt = state.attempt(name)
    instance = state.instances[name.partition("/")[0]]
    values: dict[str, str] = {}
    for line in map(plain, evidence(state, attempt, instance, wall=wall, width=width, archive=archive)):
        name = line[:10].strip() or name
        values[name] = f"{values.get(name, '')}  {line[10:]}".strip()
    return values


def test_winners_of_a_finished_session_are_open() -> None:
    entries = review_queue(fold(finished()), over=True)
    assert [(entry.key, entry.kind) for entry in entries] == [
        ("softmax#1/3", QueueKind.OPEN),
        ("vector_add#1/1", QueueKind.OPEN),
        ("softmax#1/2", QueueKind.DECIDED),
    ]


def test_best_attempt_of_a_running_instance_is_no_winner_yet() -> None:
    state = fold(running())
    assert [entry.kind for entry in review_queue(state, over=False)] == [QueueKind.DECIDED]
    assert QueueKind.OPEN in [entry.kind for entry in review_queue(state, over=True)]


def test_attempt_stays_in_the_queue_when_its_decision_is_undone() -> None:
    log = EventLog(events=reviews.waiting())
    log.wall = log.events[-1].wall
    log.add(ev.DecisionUndone(attempt="softmax#2/1", by="kim"))
    kinds = {entry.key: entry.kind for entry in review_queue(fold(log.events), over=False)}
    assert kinds["softmax#2/1"] is QueueKind.OPEN


def test_evidence_compares_a_slower_attempt_with_the_best_of_the_session() -> None:
    log = EventLog()
    log.open(devices=("2",))
    for instance, speedup in ((1, 1.89), (2, 1.51)):
        log.add(ev.InstanceStarted(task="starter/softmax", instance=instance))
        log.attempt(f"softmax#{instance}/1", RIGHT_SOURCE, fleets.measured(speedup))
    state = fold(log.events)
    shown = facts(state, "softmax#2/1", width=120, archive=Archive())
    best = "softmax#1/1 1.89x"
    assert shown["before"] == f"accepted: none  session's best: {best}, this -20 %  best ever: {best}"


def test_gain_is_the_ratio_of_the_speeds_on_screen() -> None:
    state = fold(reviews.waiting())
    instance = state.instances["softmax#1"]
    # 2.43x after 2.37x: two of four cases gained 1.81 / 1.71, the others did not change.
    assert gain_words(state.attempt("softmax#1/3"), instance) == "+3 %"
    assert gain_words(state.attempt("softmax#1/1"), instance) == "first"
    unmeasured = fold(finished())
    assert gain_words(unmeasured.attempt("softmax#1/3"), unmeasured.instances["softmax#1"]) == "-"


def test_claim_is_green_if_its_exact_cases_are_faster_and_never_for_a_bound_alone() -> None:
    state = fold(reviews.waiting())
    styles = {}
    for name in ("softmax#1/3", "vector_add#1/1"):
        attempt = state.attempt(name)
        instance = state.instances[name.partition("/")[0]]
        row = evidence(state, attempt, instance, wall=None, width=100)[0]
        styles[name] = row[1].style
    assert "good" in styles["softmax#1/3"]
    assert "good" not in styles["vector_add#1/1"], "only its lower bound of 12x is above 1"
    shown = facts(state, "vector_add#1/1")
    assert "slower: ragged" in shown["measured"]


def test_unmeasured_attempt_has_an_estimate_and_no_speedup() -> None:
    shown = facts(fold(finished()), "softmax#1/3")
    assert shown["claim"] == "traffic 1.70x  base: traffic 2.60x  not timed (no GPU)"
    assert "measured" not in shown
    assert shown["exam"] == "confirmed by exam: tolerance used 59 % (case fp16 wide)"


@pytest.mark.parametrize("width", [60, 79, 100])
def test_no_line_of_the_evidence_is_too_wide(width: int) -> None:
    state = fold(reviews.waiting())
    instance = state.instances["softmax#1"]
    lines = evidence(state, state.attempt("softmax#1/3"), instance, wall=None, width=width)
    assert max(map(cells, lines)) <= width


def test_decision_of_another_person_is_named_with_its_age() -> None:
    state = fold(reviews.waiting())
    decision = state.attempt("softmax#2/1").decision
    shown = facts(state, "softmax#2/1", wall=decision.wall + 5)
    assert shown["decision"] == "rejected by kim 0:05 ago: ignores the stride"
    assert "UTC" in facts(state, "softmax#2/1", wall=None)["decision"], "at rest no clock runs"


def words(state: SessionState, name: str, *, accepted: bool, over: bool = False) -> str:
    return consequences(state, state.attempt(name), accepted=accepted, over=over)


def test_dialog_says_who_reads_the_reason() -> None:
    state = fold(reviews.waiting())
    state.started = msgspec.structs.replace(state.started, model="anthropic:claude")
    assert words(state, "softmax#1/3", accepted=False) == (
        "Rejected: softmax#1 goes on without it.\n"
        "The reason goes to the reflector: into the next prompt of softmax#1, and into those of softmax#2."
    )
    assert words(state, "softmax#1/3", accepted=True) == (
        "Accepted: softmax#1 goes on from it, the store gets accepted:starter/softmax/kernel.py instead of #1/1.\n"
        "The reason goes into the next prompts of softmax#1, softmax#2."
    )


def test_dialog_says_that_a_recorded_model_does_not_know_the_reason() -> None:
    state = fold(reviews.waiting())
    assert state.started.model.startswith("recorded:")
    assert "its next reply was made without your words" in words(state, "softmax#1/3", accepted=False)


def test_reason_at_a_stopped_engine_waits_for_a_resume() -> None:
    sentences = words(fold(reviews.waiting()), "softmax#1/3", accepted=False, over=True)
    assert "goes on without it after `wavedeck resume`" in sentences
    assert "After `wavedeck resume` the next prompts of softmax quote it" in sentences


def test_empty_queue_names_manual_review() -> None:
    auto = " ".join(empty_words(fold(running()), over=False))
    assert "`wavedeck run --review manual`" in auto
    manual = " ".join(empty_words(fold(reviews.waiting()), over=False))
    assert "better than the best of its instance" in manual
