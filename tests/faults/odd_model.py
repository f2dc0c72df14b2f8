"""A model that sends one odd answer: a count or a stop reason that no provider sends, or a connection that drops."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.engine.live_engines import right, wrong
from tests.support.engine.model_server import Answer, Seen, cuts, frames_of, says
from tests.support.waiting import LIMIT_S

ODD_VALUES = (b"1000.0", b"8.5", b"-3", b'"NaN"', b"null", b"[1, 2]", b"{}", b"1e400", b"true", b"9" * 30)
ODD_STOPS = (b"7", b'"weird"', b'["stop"]', b"{}", b"true")


@dataclass
class Model:
    """Answers with a wrong kernel, a reflection, then right kernels; each whole reply has a mark of its own."""

    chance: random.Random
    wire: str
    odd_request: int = -1
    """Number of the request that gets an odd answer."""
    odd: Callable[[Model, str], Answer] | None = None
    whole: set[str] = field(default_factory=set)
    """Marks of the replies that were sent to their end."""
    gate: threading.Event = field(default_factory=threading.Event)
    """No request is answered before it is set."""
    number: int = 0

    def answer(self, seen: Seen) -> Answer:
        """Return the answer to a request."""
        self.gate.wait(LIMIT_S)
        number, self.number = self.number, self.number + 1
        mark = f"mark-{self.chance.getrandbits(64):016x}"
        if "Explain the failure" in seen.prompt:
            text = "It subtracts."
        else:
            text = right(mark) if "It subtracts." in seen.prompt or "+ tl.load(" in seen.prompt else wrong()
        text += f"\n{mark}\n"
        if number == self.odd_request and self.odd is not None:
            answer = self.odd(self, text)
            if answer.cut_after is not None:
                return answer
        else:
            answer = says(text)
        self.whole.add(mark)
        return answer


def cut(model: Model, text: str) -> Answer:
    """Drop the connection in the middle of a reply."""
    return cuts(text, after=model.chance.randrange(4))


def odd_count(model: Model, text: str) -> Answer:
    """Send an odd value for one count of the usage, or for all of it."""
    raw, value = whole_stream(model, text), model.chance.choice(ODD_VALUES)
    names = sorted(set(re.findall(rb'"(\w*tokens)": \d+', raw)))
    name = model.chance.choice([*names, b"usage"])
    known = rb"\{[^{}]*(?:\{[^{}]*\}[^{}]*)?\}" if name == b"usage" else rb"\d+"
    return Answer(raw=re.sub(rb'"' + name + rb'": ' + known, b'"' + name + b'": ' + value, raw))


def odd_stop(model: Model, text: str) -> Answer:
    """Send an odd stop reason."""
    value = model.chance.choice(ODD_STOPS)
    raw = whole_stream(model, text)
    return Answer(raw=re.sub(rb'"(finish_reason|stop_reason)": "\w+"', rb'"\1": ' + value, raw))


def whole_stream(model: Model, text: str) -> bytes:
    frames = frames_of(model.wire, says(text), {"stream_options": {"include_usage": True}})
    return b"".join(frame for _, frame in frames)
