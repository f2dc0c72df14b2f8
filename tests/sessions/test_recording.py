"""Recordings: written from finished sessions, read back unchanged, and errors for damaged recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import Verdict
from sessions import SessionState, fold, load_recording, write_recording
from sessions import events as ev
from sessions.errors import BadRecording
from tests.support.sessions import story

TASK = "starter/softmax"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    return write_recording([fold(story.whole())], "mine", tmp_path / "recordings")


def test_recording_reads_back_all_replies(recorded: Path) -> None:
    recording = load_recording(recorded)
    facts = recording.facts
    assert (facts.name, facts.model, facts.session) == ("mine", "recorded:starter", story.SESSION)
    assert facts.date == "2023-11-14T22:13:21+00:00"
    assert facts.templates == {"generator.j2": "0" * 64}
    assert recording.tasks() == [TASK]
    assert (recording.chain_count(TASK), recording.longest_chain()) == (2, 3)
    for (task, chain), replies in recording.chains.items():
        attempts = fold(story.whole()).instances[f"softmax#{chain}"].attempts
        calls = [call for attempt in attempts for call in attempt.calls]
        assert task == TASK
        assert [reply.text for reply in replies] == [call.text for call in calls]
        assert [reply.reasoning for reply in replies] == ["let me think"] * len(calls)
    reply = recording.reply(TASK, 2, 1, ev.Role.REFLECTOR, 1)
    assert (reply.text, reply.usage, reply.seconds, reply.stop_reason) == (
        "The mask is wrong.",
        ev.Usage(100, 20, 50),
        2.5,
        "end",
    )
    assert recording.reply(TASK, 2, 1, ev.Role.REFLECTOR, 2) is None
    assert recording.reply(TASK, 3, 1, ev.Role.REFLECTOR, 1) is None


def test_corrective_request_has_its_own_reply(tmp_path: Path) -> None:
    events = [
        story.started(),
        *story.call("softmax#1/1", ev.Role.GENERATOR, "no code, sorry"),
        *story.call("softmax#1/1", ev.Role.GENERATOR, "```python\n```", n=2),
        ev.SessionFinished(),
    ]
    recording = load_recording(write_recording([fold(events)], "two", tmp_path))
    assert [(reply.attempt, reply.n) for reply in recording.chains[TASK, 1]] == [(1, 1), (1, 2)]


def test_start_and_fork_of_a_session_are_kept_and_a_fork_is_no_chain_of_a_run(tmp_path: Path) -> None:
    first = "softmax#1/1"
    events = [
        story.started(),
        ev.InstanceStarted(task=TASK, instance=1),
        ev.AttemptStarted(attempt=first, origin=ev.Origin.HUMAN),
        ev.CandidateProposed(attempt=first, source="# the start\n", strategy=""),
        *story.attempt("softmax#1/2", Verdict.CORRECT, origin=ev.Origin.OPTIMIZE, base=first),
        ev.InstanceForked(task=TASK, instance=3, base="softmax#1/2", seq=900),
        ev.InstanceStarted(task=TASK, instance=3),
        ev.AttemptStarted(attempt="softmax#3/1", origin=ev.Origin.FORK, base="softmax#1/2"),
        *story.call("softmax#3/2", ev.Role.OPTIMIZER, "of the fork"),
        ev.SessionFinished(),
    ]
    recording = load_recording(write_recording([fold(events)], "forked", tmp_path))
    assert recording.starts == {(TASK, 1): "# the start\n"}
    reply = recording.reply(TASK, 3, 1, ev.Role.OPTIMIZER, 1)
    assert reply is not None
    assert reply.text == "of the fork"
    assert recording.chain_count(TASK) == 1


def test_unusual_characters_round_trip(tmp_path: Path) -> None:
    odd = 'a "quoted"\\ \x7f \t name \u2028 \U0001f40e'
    events = [
        story.started(model=odd),
        *story.call("softmax#1/1", ev.Role.GENERATOR, odd),
        ev.SessionFinished(),
    ]
    recording = load_recording(write_recording([fold(events)], "odd", tmp_path))
    assert recording.facts.model == odd
    assert recording.chains[TASK, 1][0].text == odd


@pytest.mark.parametrize(
    ("events", "name", "words"),
    [
        (story.whole()[:-1], "x", "only a finished session"),
        ([story.started(), ev.SessionFinished()], "x", "no reply"),
        (story.whole(), "../x", "cannot name a recording"),
        (story.whole(), "mine", "already"),
    ],
)
def test_unusable_session_or_name_is_refused(
    recorded: Path, events: list[ev.Event], name: str, words: str
) -> None:
    before = sorted(recorded.parent.iterdir())
    with pytest.raises(BadRecording, match=words):
        write_recording([fold(events)], name, recorded.parent)
    assert sorted(recorded.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("recording.toml", "schema = 1", "schema = 2", "update it"),
        ("recording.toml", "schema = 1", "schema = one", r"recording\.toml cannot be read"),
        ("recording.toml", 'model = "recorded:starter"', "", "model"),
        ("recording.toml", "chain = 2", "chain = 1", "is repeated or less than 1"),
        ("recording.toml", "chain = 2", "chain = 3", r"3\.jsonl cannot be read: No such file"),
        (
            f"chains/{TASK}/1.jsonl",
            '"role":"reflector"',
            '"role":"critic"',
            r"1\.jsonl line 2 is not a reply",
        ),
        (
            f"chains/{TASK}/1.jsonl",
            '"role":"reflector"',
            '"role":"generator"',
            "line 2 repeats call 1 of generator",
        ),
    ],
)
def test_damaged_recording_error_names_file_and_line(
    recorded: Path, file: str, old: str, new: str, words: str
) -> None:
    path = recorded / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(BadRecording, match=words):
        load_recording(recorded)


def test_folder_without_a_recording_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadRecording, match="does not exist"):
        load_recording(tmp_path)


OTHER = "20250102-040506-geak-0a1c"


def story_of(session: str, mark: str, **changes: object) -> SessionState:
    """Return the state of a finished session with two instances; replies contain `mark` and the instance's number."""
    events = [story.started(session, **changes)]
    for number in (1, 2):
        name = f"softmax#{number}/1"
        events += [
            ev.InstanceStarted(task=TASK, instance=number),
            ev.AttemptStarted(attempt=name, origin=ev.Origin.FRESH),
            *story.call(name, ev.Role.GENERATOR, f"{mark} {number}"),
        ]
    return fold(story.numbered([*events, ev.SessionFinished()]))


def test_chains_are_numbered_across_sessions(tmp_path: Path) -> None:
    states = [story_of(story.SESSION, "first"), story_of(OTHER, "second")]
    recording = load_recording(write_recording(states, "both", tmp_path))
    replies = [recording.reply(TASK, chain, 1, ev.Role.GENERATOR, 1) for chain in (1, 2, 3, 4)]
    assert [reply.text for reply in replies if reply] == ["first 1", "first 2", "second 1", "second 2"]
    assert recording.facts.session == f"{story.SESSION}, {OTHER}"


@pytest.mark.parametrize(
    ("changes", "words"), [({"model": "openai:other"}, "another model"), ({"templates": {}}, "other prompts")]
)
def test_sessions_of_a_recording_must_share_model_and_prompts(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    states = [story_of(story.SESSION, "first"), story_of(OTHER, "second", **changes)]
    with pytest.raises(BadRecording, match=f"{OTHER} was made with {words} than {story.SESSION}"):
        write_recording(states, "both", tmp_path)
