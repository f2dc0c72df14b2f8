"""The report, the agent's page *Speed* and the Review screen say the same about serving."""

from __future__ import annotations

import msgspec
import pytest

from harness import Evaluation
from harness.wire.results.served_calls import BatchRows, ServedCall
from sessions.state.folding import fold
from sessions.state.state import AttemptState, InstanceState
from tests.support.sessions import reviews
from tests.support.sessions.journals import EventLog
from tui.cockpit.draw.lines import plain
from tui.cockpit.screens.agent.page import PageSubject
from tui.cockpit.screens.agent.tabs import page_of
from tui.cockpit.screens.review.evidence import evidence
from tui.commands.look.show import verdict_lines
from tui.facts.evaluation.page import evaluation_tables
from tui.print.plain import tables_text

SERVED = msgspec.structs.replace(
    reviews.candidate(1.8),
    serving=(
        ServedCall(case="fp32", host_us=21.4, no_graph="not permitted", host_waits=True, same_bits=True),
    ),
    batch_rows=(BatchRows("fp32", "rows", 1, 4096, same_bits=False),),
)


def judged(evaluation: Evaluation, exam: Evaluation | None = None) -> tuple[AttemptState, str]:
    """Return the attempt, and its evidence on the Review screen."""
    log = EventLog()
    log.open(review="manual", devices=("2",))
    log.attempt("softmax#1/1", reviews.RIGHT_SOURCE, evaluation)
    if exam is not None:
        log.exam("softmax#1/1", exam)
    state = fold(log.events)
    attempt, (instance, *_) = state.attempt("softmax#1/1"), state.instances.values()
    return attempt, "\n".join(map(plain, evidence(state, attempt, instance, wall=None, width=400)))


@pytest.mark.parametrize("where", ["report", "speed", "review"])
def test_obstacles_to_serving_are_named(where: str) -> None:
    attempt, review = judged(SERVED)
    speed = "\n".join(map(plain, page_of("speed", PageSubject(attempt), 400)))
    text = {"report": tables_text(evaluation_tables(SERVED)), "speed": speed, "review": review}[where]
    for words in (
        "no, in case fp32: not permitted",
        "yes, in case fp32",
        "21.4 us",
        "no, rows=1 alone and in rows=4096, case fp32",
        "2 over all cases, for gfx942, 0.8 s to compile",
    ):
        assert words in text, words


def test_what_verdict_and_exam_measured_about_serving_is_told_apart_everywhere() -> None:
    call = ServedCall(case="fp32", host_us=21.4, no_graph="", host_waits=False, same_bits=True)
    batches = (BatchRows("exam-fp16", "rows", 1, 6151, same_bits=False),)
    served = msgspec.structs.replace(
        SERVED, serving=(call,), batch_rows=(BatchRows("fp32", "rows", 1, 4096, same_bits=True),)
    )
    examined = msgspec.structs.replace(served, exam=True, batch_rows=batches)
    attempt, review = judged(served, examined)
    instance = InstanceState("softmax#1", "starter/softmax", 1)
    printed = "\n".join(verdict_lines("session", attempt, instance))
    speed = "\n".join(map(plain, page_of("speed", PageSubject(attempt), 400)))
    for text in (printed, speed, review):
        assert "measured again in the exam" in text
        assert "no, rows=1 alone and in rows=6151, case exam-fp16" in text
        assert "over the cases of the exam, for gfx942" in text
    assert "yes, rows=1 alone and in rows=4096, case fp32" in printed
    attempt, review = judged(examined, msgspec.structs.replace(served, exam=True))
    assert "before the exam, same bits in any batch: no, rows=1 alone and in rows=6151" in review
