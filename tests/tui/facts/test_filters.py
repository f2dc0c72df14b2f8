"""The filter language of lists."""

from __future__ import annotations

import pytest

from sessions import Home
from tests.support.command_line import Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tui.diagnostics import Complaint, ExitCode
from tui.facts.filters import parse

SOFTMAX = {
    "task": "softmax", "title": "Paged attention, night run", "state": "running", "verdict": "wrong",
    "model": "claude-x", "speedup": 1.8412, "attempts": 12, "cost": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        ("", True),
        ("   ", True),
        ("SOFT", True),
        ("rope", False),
        ("-rope", True),
        ("softmax wrong", True),
        ("softmax correct", False),
        ("task:soft verdict:wrong model:claude state:running", True),
        ("-state:running", False),
        ('title:"paged attention"', True),
        ("task=softmax", True),
        ("task=soft", False),
        ("speedup>1.2 attempts>=12", True),
        ("speedup<1.2x", False),
        ("speedup=1.84", True),
        ("attempts:12", True),
        ("attempts<=11", False),
        ("12", False),
    ],
)
def test_row_must_meet_every_condition(text: str, *, matched: bool) -> None:
    assert parse(text).matches(SOFTMAX) is matched


def test_unknown_value_meets_no_comparison() -> None:
    assert not parse("cost<5").matches(SOFTMAX)
    assert not parse("cost>=5").matches(SOFTMAX)
    assert parse("-cost>5").matches(SOFTMAX)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("speedpu>1.2", "no field 'speedpu' to filter by; nearest: speedup"),
        ("model>5", "model holds text, so > cannot compare it; write model:5"),
        ("speedup>fast", "speedup holds a number; write for example speedup>1.2"),
        ("speedup>", "speedup holds a number; write for example speedup>1.2"),
    ],
)
def test_error_is_one_line_with_the_right_spelling(text: str, error: str) -> None:
    with pytest.raises(Complaint) as refusal:
        parse(text)
    assert str(refusal.value) == error


def test_list_accepts_only_its_own_fields() -> None:
    with pytest.raises(Complaint, match="no field 'verdict' to filter by; fields: cost, task"):
        parse("verdict:wrong", fields={"task", "cost"})


def test_listed_sessions_are_filtered(shell: Shell, home: Home) -> None:
    stored.finished(home, stored.FIRST)
    stored.stopped(home, stored.SECOND)
    listed = shell("sessions", "list", "--filter", "state:finished attempts>=2 task:softmax")
    assert stored.FIRST in listed.out
    assert stored.SECOND not in listed.out
    assert shell("sessions", "list", "--filter", "speedup>1", "--json").out == "[]\n"
    assert "no session matches 'rope'" in one_line(shell("sessions", "list", "--filter", "rope"))
    refused = shell("sessions", "list", "--filter", "speed>1")
    assert refused.code == ExitCode.USAGE
    assert "nearest: speedup" in one_line(refused)
