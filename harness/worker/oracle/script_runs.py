"""Runs scripts of recorded tasks in the judge's script worker, and keeps their recordings."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

import msgspec

from harness.wire import limits
from harness.wire.calls.tensors import TensorSpec
from harness.wire.channels.channel import (
    ENCODER,
    BadFrame,
    Channel,
    ChannelClosed,
    ChannelTimeout,
    decode_message,
)
from harness.wire.messages.guest import Hello
from harness.wire.messages.script import (
    RanCall,
    RanScript,
    RunCall,
    RunScript,
    Script,
)

from .problem import BadProblem

Report = TypeVar("Report", RanScript, RanCall, Hello)


class CannotJudge(BadProblem):
    """The benchmark's own test keeps the task from being judged here; neither candidate nor judge failed."""


class SlowScript(CannotJudge):
    """The script did not end in time: this device, at its current load, cannot judge the task."""


class ScriptRuns:
    """The line to the latest script worker, and the recordings of all requests."""

    def __init__(self, announce_wait: Callable[[], None] = lambda: None) -> None:
        """`announce_wait` is called before each wait for the script worker, which may take minutes."""
        self._announce_wait = announce_wait
        self._channel: Channel | None = None
        self._target = ""
        self._is_ready = False
        """True after the script worker's greeting."""
        self._failure: BadProblem | None = None
        """Why the script worker answers nothing more."""
        self._kept: OrderedDict[tuple[Hashable, int, int], RanScript] = OrderedDict()

    def attach(self, channel: Channel, target: str) -> None:
        """Use a script worker for the next requests."""
        self.detach()
        self._channel, self._target, self._is_ready, self._failure = channel, target, False, None

    def detach(self) -> None:
        """Close the line to the script worker, if there is one; the worker then ends."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def recorded(self, owner: Hashable, script: Script, seed: int, poison: int) -> RanScript:
        """Return the recording of a script with a seed; runs the script if it is not kept. `owner` identifies the script.

        Raises `SlowScript` if the script does not end in time, and `BadProblem` if its process ends or does not get ready.
        """
        key = owner, seed, poison
        if key not in self._kept:
            request = RunScript(script=script, seed=seed, target=self._target, poison=poison)
            self._kept[key] = self._ask(request, RanScript)
        self._kept.move_to_end(key)
        return self._kept[key]

    def keep_latest(self, owner: Hashable, most: int) -> None:
        """Drop recordings, the oldest first: of `owner` all but `most`, of other scripts those beyond a bound for memory."""
        own_keys = [key for key in self._kept if key[0] is owner]
        older_keys = [key for key in self._kept if key[0] is not owner]
        kept_bytes = sum(self._kept[key].size_bytes for key in older_keys)
        for key in own_keys[:-most]:
            del self._kept[key]
        for key in older_keys:
            if kept_bytes <= limits.KEPT_RECORDINGS_BYTES:
                return
            kept_bytes -= self._kept.pop(key).size_bytes

    def call(self, source: str, arguments: dict[str, TensorSpec | int]) -> RanCall:
        """Make one call of the script's reference with these arguments; return its outputs. Raises as `recorded`."""
        return self._ask(RunCall(source=source, target=self._target, arguments=arguments), RanCall)

    def _ask(self, request: RunScript | RunCall, kind: type[Report]) -> Report:
        """Send a request to the script worker and return its report, which must be of this kind.

        Raises `SlowScript` if no report arrives in time, and `BadProblem` if there is no script worker, if it does not get ready
        or ends, or if it sends anything else. After any of these errors the line is closed, and each later request raises the
        same error.
        """
        if self._failure is not None:
            raise self._failure
        if self._channel is None:
            raise BadProblem("there is no process to run the benchmark's test")
        if (
            not self._is_ready
        ):  # no script can delay the start of its process, so the start has a limit of its own
            limit_s = limits.GUEST_START_S
            late = BadProblem(f"the process of the benchmark's test was not ready after {limit_s:.0f} s")
            self._receive(self._channel, Hello, limit_s, late)
            self._is_ready = True
        limit_s = limits.script_s()
        late = SlowScript(f"the benchmark's test did not end within {limit_s:.0f} s here")
        return self._receive(self._channel, kind, limit_s, late, request)

    def _receive(
        self,
        channel: Channel,
        kind: type[Report],
        limit_s: float,
        late: BadProblem,
        request: RunScript | RunCall | None = None,
    ) -> Report:
        """Send the request, if there is one, and return the next message. Raises `late` if it takes longer than `limit_s`."""
        self._announce_wait()
        deadline = time.monotonic() + limit_s
        try:
            if request is not None:
                channel.send(ENCODER.encode(request), deadline=deadline)
            frame = channel.receive(deadline=deadline, limit_bytes=limits.RECORDING_BYTES)
            return decode_message(msgspec.msgpack.Decoder(kind), frame.payload)
        except ChannelTimeout as error:
            raise self._give_up(late) from error
        except ChannelClosed as error:
            raise self._give_up(BadProblem(f"the benchmark's test ended its process: {error}")) from error
        except BadFrame as error:
            message = f"the process of the benchmark's test sent no valid report: {error}"
            raise self._give_up(BadProblem(message)) from error

    def _give_up(self, failure: BadProblem) -> BadProblem:
        """Close the line and return the error: on an open line a late report would pass for the report on the next request."""
        self.detach()
        self._failure = failure
        return failure
