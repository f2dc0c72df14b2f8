"""The prompts of one task, for tests."""

from __future__ import annotations

import msgspec

from engine.prompting.judged import JudgedCandidate
from engine.prompting.prompting import Setting
from harness import target
from sessions.events import Message
from suites import load_task
from tests.support.judge.judged_attempts import judge_again

SETTING = Setting(load_task("softmax"), (target("gfx942"),))


def text(messages: tuple[Message, ...]) -> str:
    """Return the text of a prompt after its system message."""
    assert [message.role for message in messages] == ["system", "user"]
    return messages[1].content


def changed(judged: JudgedCandidate, **fields: object) -> JudgedCandidate:
    """Give a candidate's evaluation these fields."""
    judge_again(judged.record, msgspec.structs.replace(judged.evaluation, **fields))
    return judged
