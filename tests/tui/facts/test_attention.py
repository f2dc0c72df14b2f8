"""Attention list: what needs a person, in which order, and in which words."""

from __future__ import annotations

import msgspec

from harness import Evaluation
from sessions import events as ev
from sessions.state.folding import fold
from sessions.state.state import SessionState
from tests.support.sessions import story
from tests.support.sessions.fleets import measured
from tests.support.sessions.journals import EventLog, call_error, correct, latencies, wrong
from tui.cockpit.data.sources import TailHealth
from tui.facts.attention import Concern, ConcernKind, attention, model_trouble, summary

RUNNING = TailHealth(running=True)


def opened(**options: object) -> EventLog:
    log = EventLog()
    log.open(devices=("0", "1"), review="manual")
    log.events[0] = story.changed(log.events[0], **options)
    return log


def judged(log: EventLog, attempt: str, evaluation: Evaluation) -> None:
    log.add(ev.AttemptStarted(attempt=attempt, origin=ev.Origin.FRESH), after_s=1.0)
    log.add(ev.AttemptJudged(attempt=attempt, evaluation=evaluation), after_s=1.0)


def concerns(log: EventLog, *, after_s: float = 0.0, health: TailHealth | None = RUNNING) -> list[Concern]:
    return attention(fold(log.events), now_wall=log.wall + after_s, health=health)


def kinds(log: EventLog, **options: object) -> list[ConcernKind]:
    return [concern.kind for concern in concerns(log, **options)]


def refused(log: EventLog) -> SessionState:
    for number, wait_s in ((1, 30.0), (2, 40.0)):
        name = f"softmax#{number}/1"
        call = f"{name}/generator/1"
        log.add(ev.AttemptStarted(attempt=name, origin=ev.Origin.FRESH))
        log.add(ev.CallStarted(call=call, attempt=name, role=ev.Role.GENERATOR, model="m", messages=()))
        refusal = ev.CallRetried(call=call, reason="rate_limited", message="too many", wait_s=wait_s, retry=1)
        log.add(refusal, after_s=10.0)
    return fold(log.events)


def test_nothing_needs_a_person_at_the_start() -> None:
    assert concerns(opened()) == []


def test_review_says_how_long_it_waits_and_what_it_gains() -> None:
    log = opened()
    judged(log, "softmax#1/1", measured(1.5))
    judged(log, "softmax#1/2", measured(1.8))
    log.add(ev.WaitingForPerson(attempt="softmax#1/2"))
    (review,) = concerns(log, after_s=250.0)
    assert (review.subject, review.instance, review.attempt) == ("softmax#1/2", "softmax#1", 2)
    assert review.words == "waits 4:10: 1.80x, own gain +20 %, not examined"


def test_oldest_review_comes_first_and_before_a_stuck_instance() -> None:
    log = opened()
    for number in (1, 2, 3):
        judged(log, f"softmax#2/{number}", call_error())
    for instance in (3, 1):
        judged(log, f"softmax#{instance}/1", correct())
        log.add(ev.WaitingForPerson(attempt=f"softmax#{instance}/1"), after_s=5.0)
    first, second, stuck = concerns(log)
    assert [first.instance, second.instance] == ["softmax#3", "softmax#1"]
    assert stuck.words.startswith("same error 3 times: TypeError: maximum()")
    assert summary([first, second, stuck]) == "2 reviews  1 stuck"


def test_other_errors_and_a_success_are_not_the_same_error() -> None:
    log = opened()
    for number, evaluation in enumerate((call_error(), wrong(), call_error(), call_error()), start=1):
        judged(log, f"softmax#1/{number}", evaluation)
    assert kinds(log) == []
    judged(log, "softmax#1/5", call_error())
    assert kinds(log) == [ConcernKind.STUCK]
    judged(log, "softmax#1/6", correct())
    assert kinds(log) == []


def test_silent_model_has_a_cause_until_it_answers() -> None:
    log = opened()
    state = refused(log)
    assert model_trouble(state, log.wall + 15.0) == "MODEL 429 for 0:25, retry in 0:05, 2 wait"
    for number in (1, 2):
        log.add(ev.ReplyPiece(call=f"softmax#{number}/1/generator/1", kind="text", text="def"))
    assert model_trouble(fold(log.events), log.wall) == ""


def test_budget_above_nine_tenths() -> None:
    log = opened(budget_usd=10.0)
    call = ev.CallFinished(call="softmax#1/1/generator/1", text="x", cost_usd=8.9)
    log.add(call)
    assert kinds(log) == []
    log.add(msgspec.structs.replace(call, call="softmax#1/2/generator/1", cost_usd=0.5))
    assert [concern.words for concern in concerns(log)] == ["budget 94 % used: $9.40 of $10.00"]


def test_lost_throttled_and_foreign_gpus() -> None:
    log = opened()
    log.device("0", "softmax#1/1", share=0.9)
    log.device("1", share=0.0)
    log.add(ev.DeviceQuarantined(device="0", why="the probe hung"))
    holder = "a process of kim (pid 77 on node17) runs on it since 12:00:00"
    log.add(ev.DeviceAwaited(device="1", holders=(holder,), users=(ev.DeviceUser("kim", 77),)))
    lost, used = concerns(log, after_s=40.0)
    assert lost.words == "lost 0:40 ago: the probe hung; 1 attempt queued again"
    assert (used.subject, used.words) == ("1", "used by kim: pid 77")
    slow = msgspec.structs.replace(latencies()[0], device="1")
    log.add(ev.AttemptJudged(attempt="softmax#1/1", evaluation=correct(speed=(slow,))))
    assert concerns(log)[-1].words.startswith("throttled (power cap) for 0:00")


def test_session_never_waits_for_itself() -> None:
    log = opened()
    log.device("0", share=0.0)
    session = log.events[0].session
    holder = f"session {session} of ada (pid 77 on node17) times on it since 12:00:00"
    user = ev.DeviceUser("ada", 77, session)
    log.add(ev.DeviceAwaited(device="0", holders=(holder,), users=(user,)))
    assert concerns(log) == []


def test_ended_engine_has_its_cause_and_hides_what_no_longer_changes() -> None:
    log = opened()
    refused(log)
    log.add(ev.EngineStopped(reason="stopped by ada"))
    assert [concern.words for concern in concerns(log, after_s=40.0)] == [
        "ENGINE ENDED 0:40 ago: stopped by ada"
    ]
    del log.events[-1]
    (crash,) = concerns(log, after_s=40.0, health=TailHealth(running=False))
    assert crash.words == "ENGINE ENDED 0:40 ago: it crashed or was killed"


def test_busy_instance_without_events_is_idle() -> None:
    log = opened()
    log.add(ev.InstanceStarted(task="starter/softmax", instance=1))
    log.add(ev.AttemptStarted(attempt="softmax#1/1", origin=ev.Origin.FRESH))
    assert kinds(log, after_s=599.0) == []
    assert kinds(log, after_s=700.0) == [ConcernKind.IDLE]
    log.add(ev.Paused(instance="softmax#1", by="ada"))
    assert kinds(log, after_s=700.0) == [], "a person asked for it"


def test_failed_instance_names_its_cause() -> None:
    log = opened()
    end = ev.InstanceFinished(
        task="starter/softmax", instance=1, reason="model_failed", message="the key was refused"
    )
    log.add(end)
    (concern,) = concerns(log)
    assert concern.words == "failed: the model failed: the key was refused"
