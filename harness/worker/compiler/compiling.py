"""Role `compiler`: the compile worker, for one candidate and one target.

Sandboxed like a guest; its report is evidence, not proof.
"""

from __future__ import annotations

from pathlib import Path

from harness.hardware.targets import target as find_target
from harness.wire import limits
from harness.wire.calls.tensors import CASE_SPECS
from harness.wire.channels.channel import Channel
from harness.wire.messages.compiler import Compile, CompileReport
from harness.wire.messages.guest import Failed
from harness.wire.messages.requests import RequestMessage, WorkerAnswer
from harness.wire.messages.server import Spawn
from harness.worker.candidate.loading import confine, failed, import_candidate
from harness.worker.candidate.serving import serve
from harness.worker.kit import candidate_trace

from .ahead import Line
from .compiler import compile_candidate, prepare


def main(channel: Channel, spawn: Spawn) -> None:
    """Answer one `Compile`, with an `Alive` after each config of an autotuned kernel.

    Then wait: the engine copies files from the scratch folder, which ends with this process.
    """
    file = Path(spawn.scratch) / candidate_trace.NAME

    def answer(message: RequestMessage, _: tuple[int, ...]) -> WorkerAnswer:
        assert isinstance(message.body, Compile)
        return _compile(message.body, file, Line(channel, message.nonce))

    serve(channel, confine(spawn, limits.COMPILE_ADDRESS_SPACE_BYTES, run_programs=True), answer)


def _compile(request: Compile, file: Path, line: Line) -> CompileReport | Failed:
    target = find_target(request.target)
    prepare(target, line.alive)
    try:
        module = import_candidate(file, request.source)
    except SystemExit:  # the engine reports from the exit status
        raise
    except BaseException as error:  # noqa: BLE001 (foreign code may raise anything)
        return failed(error, file)
    return compile_candidate(
        module,
        request.entry_point,
        CASE_SPECS.decode(request.cases),
        target,
        allowed=request.allowed,
        further=CASE_SPECS.decode(request.ahead),
        configs=request.ahead_configs,
        line=line,
        host_cpu_s=request.host_cpu_s,
        keep=request.keep_texts,
    )
