"""Role `script`: runs one script in a sandbox, for one seed after the other, and reports the calls of its entry points."""

from __future__ import annotations

import sys
import time
import traceback
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from harness.hardware.targets import target
from harness.wire import limits
from harness.wire.channel import Channel, ChannelClosed
from harness.wire.encoding import ENCODER
from harness.wire.guest_messages import Hello
from harness.wire.script_messages import RECORD_REQUESTS, Record, Recorded
from harness.wire.server_messages import Spawn
from harness.worker.candidate.loading import confine, import_candidate
from harness.worker.interpreter import interpreter
from harness.worker.kit import gpu

from . import seeding
from .call_log import CallLog

TEST = "wavedeck_test.py"


def main(channel: Channel, spawn: Spawn) -> None:
    """Answer `Record` requests until the judge closes the channel."""
    layers = confine(spawn, limits.ADDRESS_SPACE_BYTES)
    if spawn.device is not None:
        gpu.warm(spawn.device)
    channel.send(ENCODER.encode(Hello(sandbox=layers)))
    runner: _Runner | None = None
    while True:
        try:
            frame = channel.receive()
        except ChannelClosed:
            return
        request = RECORD_REQUESTS.decode(frame.payload)
        runner = runner or _Runner(spawn, request)
        channel.send(ENCODER.encode(runner.run(request)))


class _Runner:
    """Prepares the process once, and runs the script for each request."""

    def __init__(self, spawn: Spawn, request: Record) -> None:
        self._scratch = Path(spawn.scratch)
        if spawn.device is None:
            interpreter.prepare(target(request.target))
            self._observe: Any = interpreter.observe
        else:
            gpu.start(spawn.device)
            gpu.build_driver()
            self._observe = lambda inputs: nullcontext()
        seeding.install()

    def run(self, request: Record) -> Recorded:
        """Run the script; what it raises is part of the report."""
        began = time.monotonic()
        seeding.draw_from(request.seed)
        namespace: dict[str, Any] = {}
        script = request.script

        def oracle() -> Any:
            function = namespace.get(script.oracle) if script.oracle else None
            return function if callable(function) else None

        log = CallLog(request, oracle, self._observe)
        error = ""
        try:
            module = import_candidate(self._scratch / "reference.py", script.reference)
            namespace |= vars(module)
            namespace |= {name: log.wrap(module, name) for name in script.entry_points if hasattr(module, name)}
            file = self._scratch / TEST
            file.write_text(script.test, encoding="utf-8")
            namespace["__file__"] = str(file)
            exec(compile(script.test, str(file), "exec"), namespace)  # noqa: S102 -- the benchmark's own test
        except BaseException as raised:  # noqa: BLE001 -- scripts may raise anything, also SystemExit
            error = "".join(traceback.format_exception_only(raised)).strip().partition("\n")[0][:400]
            traceback.print_exc(file=sys.stderr)
        np.seterr(all="ignore")
        return Recorded(
            nonce=request.nonce, calls=tuple(log.calls), error=error, seconds=time.monotonic() - began
        )
