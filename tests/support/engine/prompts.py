"""The prompts of one task, for tests."""

from __future__ import annotations

from engine.prompting.prompting import Setting
from harness import target
from sessions.events import Message
from suites import load_task

SETTING = Setting(load_task("softmax"), (target("gfx942"),))


def text(messages: tuple[Message, ...]) -> str:
    """Return the text of a prompt after its system message."""
    assert [message.role for message in messages] == ["system", "user"]
    return messages[1].content
