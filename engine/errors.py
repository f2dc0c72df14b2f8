"""What can go wrong in the engine.

EngineError
 ├─ UsageProblem            what a person asked for cannot be: exit code 2
 ├─ BudgetSpent             the session reached its limit of money or tokens
 ├─ JudgeUnable             the judge failed twice on one candidate, by its own fault
 ├─ EngineUnreachable       a running engine cannot be spoken to
 ├─ CommandRefused          an engine will not do what a command asks for
 ├─ EngineDidNotStart       an engine process ended before it took its session up
 └─ ModelError              no reply came
     ├─ TryAgain            asking again may help: overload, a lost connection, a stream that broke
     ├─ UselessToRetry      asking again cannot help: a wrong key, an unknown model, a refused request
     ├─ ContextTooLong      the prompt does not fit the model
     ├─ GaveUp              the tries are used up
     └─ RecordingExhausted  the recording holds no such reply
"""

from __future__ import annotations


class EngineError(Exception):
    """Root of the engine's errors; each message is one line that names the thing and the next step."""


class UsageProblem(EngineError):
    """What a person asked for cannot be done as asked; nothing was started."""


class BudgetSpent(EngineError):
    """The session reached its limit of money or tokens; no further call is made."""


class JudgeUnable(EngineError):
    """The judge failed twice on one candidate, by its own fault: the candidate has no verdict."""


class EngineUnreachable(EngineError):
    """A running engine cannot be spoken to: it is gone, elsewhere, or speaks another protocol."""


class CommandRefused(EngineError):
    """An engine will not do what a command asks for."""


class EngineDidNotStart(EngineError):
    """An engine process ended before it took its session up."""


class ModelError(EngineError):
    """No reply came. `reason` is the word that events carry."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class TryAgain(ModelError):
    """Asking again may help. `retry_after_s` is the server's own wish, where it told one."""

    def __init__(self, reason: str, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(reason, message)
        self.retry_after_s = retry_after_s


class UselessToRetry(ModelError):
    """Asking again cannot help: `bad_key`, `no_credit`, `unknown_model`, `bad_request`, `too_slow`."""


class ContextTooLong(ModelError):
    """The prompt does not fit the model's context; a shorter one may."""

    def __init__(self, message: str) -> None:
        super().__init__("context_too_long", message)


class GaveUp(ModelError):
    """The tries are used up, or the server asks for a wait that is no use to anybody."""

    def __init__(self, message: str) -> None:
        super().__init__("gave_up", message)


class RecordingExhausted(ModelError):
    """The recording holds no reply for this call."""

    def __init__(self, message: str) -> None:
        super().__init__("recording_exhausted", message)
