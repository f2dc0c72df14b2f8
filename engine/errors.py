"""Errors of the engine, all below `EngineError`; those of models are below `ModelError`."""

from __future__ import annotations

import errno
import os

from sessions.events import EndReason

REFUSALS = {
    errno.ENOSPC: "make room and try again",
    errno.EDQUOT: "make room and try again",
    errno.EROFS: "use a folder that you may write",
    errno.EACCES: "use a folder that you may read and write",
    errno.EPERM: "use a folder that you may read and write",
    errno.EISDIR: "a folder is where a file belongs: move it away and try again",
    errno.ENOTDIR: "a file is where a folder belongs: move it away and try again",
    errno.EEXIST: "a file is where a folder belongs: move it away and try again",
    errno.EIO: "check the disk",
}
"""Advice by error number, if the system refuses a file or folder. Such an error is no bug of Wavedeck."""


def refusal(error: BaseException) -> str:
    """Return one line about the file or folder that the system refused; empty for any other error."""
    if not isinstance(error, OSError) or error.errno not in REFUSALS:
        return ""
    path = f"{os.fsdecode(error.filename)} " if isinstance(error.filename, str | bytes) else "a file "
    return f"{path}cannot be used ({error.strerror}); {REFUSALS[error.errno]}"


def one_line(words: object) -> str:
    """Return a text, or an error's message, without line breaks."""
    return " ".join(str(words).split())


class EngineError(Exception):
    """Base class of the engine's errors; each message is one line that names the cause and the next step."""


class UsageProblem(EngineError):
    """The person's request is impossible; nothing was started."""


class BudgetSpent(EngineError):
    """The session reached a limit of its budget; what does not fit any more does not start."""


class StopRuleMet(EngineError):
    """A stop rule ends the instance. `reason` is its `EndReason`."""

    def __init__(self, reason: EndReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class JudgeUnable(EngineError):
    """The judge itself failed twice on one candidate, so the candidate has no verdict."""


class EngineUnreachable(EngineError):
    """A running engine does not answer: it ended, runs elsewhere, or uses another protocol version."""


class AgentRefused(EngineError):
    """An agent asks for something that is impossible."""


class EngineDidNotStart(EngineError):
    """An engine process ended before it opened its session."""


class ModelError(EngineError):
    """The model gave no reply. Events carry `reason`, and `cause` if the reason is that no try is left."""

    def __init__(self, reason: str, message: str, *, cause: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.cause = cause


class TryAgain(ModelError):
    """A retry may help. `retry_after_s` is the wait that the server asks for, if it names one."""

    def __init__(self, reason: str, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(reason, message)
        self.retry_after_s = retry_after_s


class UselessToRetry(ModelError):
    """A retry cannot help: `bad_key`, `no_credit`, `unknown_model`, `bad_request`, `too_slow`, ..."""


class ContextTooLong(ModelError):
    """The prompt does not fit the model's context; a shorter prompt may."""

    def __init__(self, message: str) -> None:
        super().__init__("context_too_long", message)


class GaveUp(ModelError):
    """No tries are left, or the server asks for a wait that is too long. `cause` is the reason of the last try."""

    def __init__(self, message: str, *, cause: str) -> None:
        super().__init__("gave_up", message, cause=cause)


class RecordingExhausted(ModelError):
    """The recording has no reply for this call."""

    def __init__(self) -> None:
        super().__init__(
            EndReason.RECORDING_EXHAUSTED, "the recording has no further reply: with a model it would go on"
        )
