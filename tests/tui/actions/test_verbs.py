"""The `:` line: what a line means, what completes it, and what it says if it means nothing."""

from __future__ import annotations

import pytest

from sessions.events import COMMANDS, PersonCommand
from sessions.state.folding import fold
from tests.support.command_line import ROOT
from tests.support.sessions.journals import EventLog, running
from tui.actions.catalogue import ACTIONS, GPU_EVENTS
from tui.actions.line import VERBS, LineSubject, NotUnderstood, Order, completions, explained, parse

STATE = fold(running())
HERE = LineSubject(("softmax#1", "softmax#2"), "softmax#1/2")


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("pause", Order("pause", ("softmax#1", "softmax#2"))),
        ("pause vector_add#1", Order("pause", ("vector_add#1",))),
        ("stop", Order("stop")),
        ("pause session", Order("pause")),
        ("retire softmax#2", Order("retire", ("softmax#2",))),
        ("hint use 8 warps", Order("hint", HERE.instances, text="use 8 warps")),
        ("hint vector_add#1  don't  unroll ", Order("hint", ("vector_add#1",), text="don't  unroll")),
        ("hint vector_ad#1 unroll", Order("hint", ("vector_ad#1",), text="unroll")),
        ('hint say "two', Order("hint", HERE.instances, text='say "two')),
        (r"title C:\it's", Order("title", text=r"C:\it's")),
        ("fork softmax#1/2 it's  fast", Order("fork", attempt="softmax#1/2", text="it's  fast")),
        ("reject the tail is wrong", Order("reject", attempt="softmax#1/2", text="the tail is wrong")),
        ("accept softmax#1/1", Order("accept", attempt="softmax#1/1")),
        ("extend 5", Order("extend", text="5")),
        ("q", Order("quit")),
        ("show", Order("show", text="softmax#1/2")),
        ("attempt 2", Order("attempt", text="2")),
        ("fleet", Order("fleet")),
    ],
)
def test_line_acts_on_the_named_or_else_on_the_marked(text: str, order: Order) -> None:
    assert parse(text, HERE, STATE) == order


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("puase", "did you mean 'pause'"),
        ("extend many", "N is a number above 0"),
        ("gpu 0 borrow", "GPUs of the session are none"),
        ("hint", "the text is missing"),
        ("show nope#1/1", "no instance and no attempt of this session"),
        ("latency nope#1/1", "no attempt of this session"),
        ("fleet now", "'now' is too much"),
        ("stop softmax#1", "'softmax#1' is too much"),
        ("go", "unknown command"),
        ("p", "it begins pause, "),
        ("", "type a command"),
    ],
)
def test_wrong_line_says_what_would_be_right(text: str, words: str) -> None:
    with pytest.raises(NotUnderstood, match=words.replace("(", r"\(")):
        parse(text, HERE, STATE)


def test_line_without_a_subject_needs_a_name() -> None:
    with pytest.raises(NotUnderstood, match="no instance is under the cursor"):
        parse("pause", LineSubject(), STATE)
    with pytest.raises(NotUnderstood, match="needs an open session"):
        parse("pause", LineSubject(), None)


def test_gpu_of_the_session_can_be_lent() -> None:
    log = EventLog()
    log.open(devices=("0", "1"))
    assert parse("gpu 1 lend", LineSubject(), fold(log.events)) == Order("gpu", gpu="1", text="lend")
    assert [*completions("gpu 1 r", fold(log.events))] == ["return"]


def test_completions_follow_the_verb() -> None:
    assert [*completions("pa", STATE)] == ["pause"]
    assert [*completions("retire ", STATE)] == [*STATE.instances]
    assert [*completions("pause soft", STATE)] == ["softmax#1", "softmax#2"]
    assert [*completions("accept softmax#1/", STATE)] == ["softmax#1/1", "softmax#1/2", "softmax#1/3"]


def test_page_of_the_cockpit_documents_every_action_of_the_line() -> None:
    page = (ROOT / "docs" / "cockpit.md").read_text(encoding="utf-8")
    usages = [f"`{verb.usage.replace('|', chr(92) + '|')}`" for verb in VERBS.values()]
    assert [usage for usage in usages if usage not in page] == []


def test_each_command_of_a_person_is_one_action_or_two() -> None:
    tags = {action.event for action in ACTIONS.values()} | {*GPU_EVENTS.values()} - {""}
    assert {COMMANDS[tag] for tag in tags if tag} == {
        kind for kind in COMMANDS.values() if issubclass(kind, PersonCommand)
    }


def test_line_says_what_each_command_would_act_on_and_that_a_recording_does_not_read_its_words() -> None:
    state = fold(running())
    subject = LineSubject(("softmax#1",), "softmax#1/3", "the best of softmax#1")
    recorded = "The model is recorded: its next reply was made without your words."
    assert explained("", subject, state) == "acts on softmax#1/3, the best of softmax#1"
    assert explained("hint ", subject, state) == f"hint [INSTANCE] TEXT · acts on softmax#1\n{recorded}"
    assert explained("fork ", subject, state) == (
        f"fork [ATTEMPT] [HINT] · acts on softmax#1/3, the best of softmax#1\n{recorded}"
    )
    assert explained("fork ", LineSubject(("softmax#1",)), None) == "fork [ATTEMPT] [HINT]"
    assert explained("extend ", subject, state) == explained("ext", subject, state) == "extend N"
    assert explained("q", subject, state) == "quit"
    assert explained("qq", subject, state) == "no command begins with 'qq'"
