"""Role `compiler`: the compile worker, for one candidate and one target.

Sandboxed like a guest; its report is evidence, not proof.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from harness.hardware.targets import target as find_target
from harness.wire import limits
from harness.wire.case_specs import CASE_SPECS
from harness.wire.channel import Channel, ChannelClosed
from harness.wire.encoding import ENCODER
from harness.wire.guest_messages import GUEST_REQUESTS, Compile, Compiled, Compiling, GuestReport, Hello
from harness.wire.server_messages import Spawn
from harness.worker.candidate.loading import broken, confine, failed, import_candidate
from harness.worker.kit import candidate_trace

from .compiler import compile_candidate, prepare


def main(channel: Channel, spawn: Spawn) -> None:
    """Answer one `Compile` request and end; send a `Compiling` after each config of an autotuned kernel."""
    layers = confine(spawn, limits.COMPILE_ADDRESS_SPACE_BYTES, run_programs=True)
    channel.send(ENCODER.encode(Hello(sandbox=layers)))
    request = GUEST_REQUESTS.decode(channel.receive().payload)
    assert isinstance(request, Compile)
    report: GuestReport
    try:
        report = _compile(request, Path(spawn.scratch) / candidate_trace.NAME, channel)
    except Exception as error:  # noqa: BLE001 (the candidate's own errors are caught in `_compile`)
        report = broken(request.nonce, error)
    channel.send(ENCODER.encode(report))
    with suppress(
        ChannelClosed
    ):  # wait: the engine copies files from the scratch folder, which ends with this process
        channel.receive()


def _compile(request: Compile, file: Path, channel: Channel) -> GuestReport:
    target = find_target(request.target)
    working = ENCODER.encode(Compiling(nonce=request.nonce))
    prepare(target, lambda: channel.send(working))
    try:
        module = import_candidate(file, request.source)
    except SystemExit:  # the engine reports from the exit status
        raise
    except BaseException as error:  # noqa: BLE001 (foreign code may raise anything)
        return failed(request.nonce, error, file)
    report = compile_candidate(
        module,
        request.entry_point,
        CASE_SPECS.decode(request.cases),
        target,
        allowed=request.allowed,
        further=CASE_SPECS.decode(request.ahead),
        side_by_side=request.side_by_side,
        host_cpu_s=request.host_cpu_s,
    )
    return Compiled(nonce=request.nonce, report=msgspec.Raw(msgspec.msgpack.encode(report)))
