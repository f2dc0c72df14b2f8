"""Codec: events round-trip through JSON lines; unknown events and bad lines are recognised."""

from __future__ import annotations

import functools
import re
import types
import typing

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Stage, Verdict
from sessions import events as ev
from sessions.errors import EventNotKeepable
from sessions.journal.codec import TAGS, BadLine, UnknownEvent, decode, encode, readable, tag_of
from tests.support.sessions import story

NAMES = (
    "softmax",
    "own/my_gemm",
    "softmax#2",
    "own/my_gemm#12",
    "softmax#2/7",
    "softmax#2/7/generator/1",
    "",
)


@functools.cache
def values(kind: typing.Any) -> st.SearchStrategy[typing.Any]:
    """Return a strategy for any JSON value of a field's type. A new strategy for each example would take most of the time."""
    if hasattr(kind, "__metadata__"):
        bounds = kind.__metadata__[0]
        names = st.sampled_from([name for name in NAMES if re.search(bounds.pattern or "", name)])
        if bounds.gt is not None:
            return st.floats(bounds.gt, bounds.le, exclude_min=True)
        numbers = {int: st.integers, float: st.floats}
        return names if bounds.pattern else numbers[kind.__origin__](bounds.ge, bounds.le)
    arguments = typing.get_args(kind)
    match typing.get_origin(kind):
        case types.UnionType | typing.Union:
            return st.one_of([values(argument) for argument in arguments])
        case origin if origin is tuple and arguments[-1] is ...:
            return st.lists(values(arguments[0]), max_size=2).map(tuple)
        case origin if origin is tuple:
            return st.tuples(*map(values, arguments))
        case origin if origin is dict:
            return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=2)
    if kind is typing.Any:
        return st.none() | st.booleans() | st.text(max_size=2)
    if issubclass(kind, msgspec.Struct):
        fields = typing.get_type_hints(kind, include_extras=True)
        return st.builds(kind, **{name: values(fields[name]) for name in kind.__struct_fields__})
    if kind is float:
        return st.floats(allow_nan=False, allow_infinity=False)
    if kind is int:
        return st.integers(-(2**63), 2**63 - 1)
    return st.from_type(kind)


EVENTS = st.sampled_from(typing.get_args(ev.AnyEvent)).flatmap(values)


@given(EVENTS)
def test_event_round_trips_through_its_line(event: ev.Event) -> None:
    line = encode(event)
    assert b"\n" not in line
    assert decode(line) == event


def test_tags_are_unique() -> None:
    kinds = typing.get_args(ev.AnyEvent)
    assert len({tag_of(kind) for kind in kinds}) == len(kinds) == len(TAGS)


def test_unknown_event_is_not_a_bad_line() -> None:
    assert decode(b'{"type":"agent_sang","seq":7,"wall":1.5,"song":[1]}') == UnknownEvent(
        "agent_sang", 7, 1.5
    )


def test_unknown_fields_are_ignored() -> None:
    line = encode(ev.Notice(seq=3, level="info", message="hello"))[:-1] + b',"colour":"red"}'
    assert decode(line) == ev.Notice(seq=3, level="info", message="hello")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[1]",
        b'"notice"',
        b"\xff\xfe",
        b'{"seq":1}',
        b'{"type":"notice","seq":1}',
        b'{"type":"notice","level":1,"message":""}',
        b"\0\0\0",
    ],
)
def test_line_without_an_event_is_bad(line: bytes) -> None:
    assert isinstance(decode(line), BadLine)


def test_lone_surrogate_in_a_reply_is_replaced() -> None:
    line = encode(ev.CallFinished(call="softmax#1/1/generator/1", text="a\ud800b"))
    event = decode(line)
    assert event.text == "a?b"


def test_unreadable_number_is_refused_at_encoding() -> None:
    bad = msgspec.structs.replace(
        story.evaluation(Verdict.CORRECT), stages=(Stage("static", True, float("nan")),)
    )
    event = ev.AttemptJudged(attempt="softmax#1/1", evaluation=bad)
    with pytest.raises(EventNotKeepable, match="attempt_judged"):
        readable(event, encode(event))
