"""The problem of a task whose cases are calls of a script: inputs and right outputs come from recordings of the script."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

import msgspec
import torch

from harness.cases import seeds
from harness.cases.judged_case import JudgedCase
from harness.wire import limits
from harness.wire.case_specs import CaseSpec
from harness.wire.channel import BadFrame, Channel, ChannelClosed, ChannelTimeout
from harness.wire.encoding import ENCODER, decode_message
from harness.wire.guest_messages import Hello
from harness.wire.script_messages import (
    CALL,
    DRAW_SEED,
    EXPRESSIONS_FILE,
    LIKE_RESULTS,
    NAN,
    RECORD_REPORTS,
    Record,
    Recorded,
    RecordedCall,
    Script,
    TensorData,
    read_script,
)
from harness.worker.kit import place
from harness.worker.kit.arena import Value
from suites.dtypes import ITEM_BYTES
from suites.task import Case, Task

from .problem import BadProblem, Inputs, Problem, specified, torch_dtype

SLOW_S, LARGE_BYTES = 3.0, 64 << 20
"""A script that takes longer, or has larger inputs, is recorded for `FEW` seeds only."""
FEW = 2


class SlowScript(BadProblem):
    """The script did not end in time: this device, at its current load, cannot judge the task."""


class RecordedInputs(dict[str, Value]):
    """The inputs of one recorded call, with its right outputs."""

    truth: tuple[torch.Tensor, ...] = ()
    unsettled: tuple[torch.Tensor | None, ...] = ()
    """By output, which elements depend on memory that the reference never wrote; `None` if there are none."""


_GREETINGS: msgspec.msgpack.Decoder[Hello] = msgspec.msgpack.Decoder(Hello)


class ScriptLink:
    """The line to one script worker."""

    def __init__(self, channel: Channel, before_run: Callable[[], None] = lambda: None) -> None:
        """`before_run` is called before each run of the script: a run may take minutes."""
        self._channel = channel
        self._before_run = before_run
        self._greeted = False

    def record(self, script: Script, seed: int, target: str, poison: int) -> Recorded:
        """Run the script with a seed. Raises `SlowScript` if it does not end in time, `BadProblem` if its process ends."""
        self._before_run()
        limit_s = limits.script_s()
        try:
            deadline = time.monotonic() + limit_s
            if not self._greeted:
                decode_message(_GREETINGS, self._channel.receive(deadline=deadline).payload)
                self._greeted = True
            nonce = f"{seed} {poison}"
            request = Record(nonce=nonce, script=script, seed=seed, target=target, poison=poison)
            self._channel.send(ENCODER.encode(request), deadline=deadline)
            frame = self._channel.receive(deadline=deadline, limit_bytes=limits.RECORDING_BYTES)
            recorded = decode_message(RECORD_REPORTS, frame.payload)
        except ChannelTimeout as error:
            raise SlowScript(f"the benchmark's test did not end within {limit_s:.0f} s here") from error
        except (ChannelClosed, BadFrame) as error:
            raise BadProblem(f"the script ended its process: {error}") from error
        if recorded.nonce != nonce:
            raise BadProblem("the script's process sent an answer that was not asked for")
        return recorded

    def close(self) -> None:
        """Close the channel; the worker then ends."""
        self._channel.close()


class RecordedProblem(Problem):
    """Inputs at one size on every device: those of the script."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._at = "cpu"
        try:
            self._script = read_script(task.folder)
            self._expressions = msgspec.json.decode(
                (task.folder / EXPRESSIONS_FILE).read_bytes(), type=dict[int, tuple[int, str]]
            )
        except (OSError, msgspec.DecodeError) as error:
            raise BadProblem(f"{task.folder}: {error}; record the task again") from error
        self.link: ScriptLink | None = None
        """The script worker of the current request."""
        self.target = ""
        self._recordings: OrderedDict[tuple[int, int], Recorded] = OrderedDict()
        self._places = seeds.POOL

    @property
    def size_bytes(self) -> int:
        """Bytes of the recordings that are kept."""
        return sum(map(_size_bytes, self._recordings.values()))

    def forget(self) -> None:
        """Drop all recordings; the script runs again if they are needed."""
        self._recordings.clear()

    def given(self, case: JudgedCase, session_seed: int, place: int) -> Inputs:
        """Return the inputs of a call in the recording at one place of the session's pool."""
        purpose = f"{'exam' if case.case.exam else 'open'} {place % self._places}"
        return self._call(case.case, seeds.derive(session_seed, self._task.id, "script", purpose))

    def inputs(self, case: Case, session_seed: int, purpose: str) -> Inputs:
        """Return the inputs of a call; the same seed and purpose give the same inputs."""
        return self._call(case, seeds.derive(session_seed, self._task.id, "script", purpose))

    def oracle(self, case: Case, inputs: Mapping[str, Value]) -> tuple[torch.Tensor, ...]:
        """Return the right outputs of recorded inputs; other inputs raise `BadProblem`."""
        if not isinstance(inputs, RecordedInputs):
            raise BadProblem(f"case {case.name}: the script's outputs are known for its own inputs only")
        return inputs.truth

    def group(self, case: Case) -> str:
        """Return the callee: many scripts have calls with constants beside calls with drawn values."""
        return self._expressions[case.cpu[CALL]][1].partition("(")[0]

    def specifications(self, cases: Iterable[Case]) -> tuple[CaseSpec, ...]:
        """Return the argument specifications of the cases: a script has the same sizes on every device."""
        seed = next(reversed(self._recordings), (0, 0))[0]
        return tuple(specified(case.name, self._call(case, seed)) for case in cases)

    def _call(self, case: Case, seed: int) -> Inputs:
        inputs = self._inputs(case, self._same_call(case, seed, poison=NAN))
        if self._script.unsettled:
            repeated = self._inputs(case, self._same_call(case, seed, poison=LIKE_RESULTS))
            inputs.unsettled = tuple(map(_differing, inputs.truth, repeated.truth))
        return inputs

    def _same_call(self, case: Case, seed: int, *, poison: int) -> RecordedCall:
        number, expression = self._expressions[case.cpu[CALL]]
        recorded = self._recorded(seed, poison)
        if number >= len(recorded.calls) or recorded.calls[number].expression != expression:
            why = recorded.error or "other values lead to other calls"
            raise BadProblem(f"case {case.name}: the script does not make this call again: {why}")
        return recorded.calls[number]

    def _inputs(self, case: Case, call: RecordedCall) -> RecordedInputs:
        inputs = RecordedInputs({CALL: case.cpu[CALL]})
        if call.draw_seed is not None:
            inputs[DRAW_SEED] = call.draw_seed
        inputs |= {name: tensor_of(data) for name, data in call.inputs.items()}
        by_name = {output.name: number for number, output in enumerate(call.outputs)}
        truths = []
        for output in self._task.outputs_of(case):
            if output.name in by_name:
                number = by_name[output.name]
                truth = call.truths[number] if number < len(call.truths) else None
                own = call.outputs[number].tensor
                right = truth if self._script.oracle and truth is not None else own
            elif output.name in call.inputs:
                right = call.inputs[output.name]  # with these values the call leaves it as it is
            else:
                raise BadProblem(
                    f"case {case.name}: output `{output.name}` is not computed with these values"
                )
            truths.append(_comparable(tensor_of(right)))
        inputs.truth = tuple(truths)
        return inputs

    def _recorded(self, seed: int, poison: int) -> Recorded:
        key = seed, poison
        if key not in self._recordings:
            if self.link is None:
                raise BadProblem(f"{self._task.id}: there is no process to run its script")
            recorded = self.link.record(self._script, seed, self.target, poison)
            if recorded.seconds > SLOW_S or _input_bytes(recorded) > LARGE_BYTES:
                self._places = FEW
            self._recordings[key] = recorded
            while len(self._recordings) > 2 * self._places:
                self._recordings.popitem(last=False)
        self._recordings.move_to_end(key)
        return self._recordings[key]


def _size_bytes(recorded: Recorded) -> int:
    tensors = [output.tensor for call in recorded.calls for output in call.outputs]
    tensors += [truth for call in recorded.calls for truth in call.truths if truth is not None]
    return _input_bytes(recorded) + sum(len(tensor.data) for tensor in tensors)


def _input_bytes(recorded: Recorded) -> int:
    return sum(len(data.data) for call in recorded.calls for data in call.inputs.values())


def _comparable(truth: torch.Tensor) -> torch.Tensor:
    """An 8-bit float in float32, which holds all its values and has the operators of a comparison."""
    return truth.float() if truth.is_floating_point() and truth.itemsize == 1 else truth


def _differing(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor | None:
    """Which elements differ by more than the order of sums can explain; `None` if none do."""
    if first.shape != second.shape:
        return torch.ones_like(first, dtype=torch.bool)
    wide = (first.double(), second.double()) if first.is_floating_point() else (first, second)
    apart = (
        ~torch.isclose(*wide, rtol=0.1, atol=0.1, equal_nan=True)
        if first.is_floating_point()
        else first != second
    )
    return apart if bool(apart.any()) else None


def tensor_of(data: TensorData) -> torch.Tensor:
    """Return a recorded tensor on the judge's device, with its strides. Raises `BadProblem` if the bytes do not fill it."""
    if data.dtype not in ITEM_BYTES or len(data.shape) != len(data.strides) or min(data.shape, default=0) < 0:
        raise BadProblem(f"no tensor is {data.dtype}{list(data.shape)}")
    dtype = torch_dtype(data.dtype)
    if not math.prod(data.shape):
        return torch.empty(data.shape, dtype=dtype, device=place.device())
    span = 1 + sum((size - 1) * stride for size, stride in zip(data.shape, data.strides, strict=True))
    if min(data.strides, default=0) < 0 or span * dtype.itemsize != len(data.data):
        raise BadProblem(f"{len(data.data)} bytes for {data.dtype}{list(data.shape)}")
    flat = place.here(torch.frombuffer(bytearray(data.data), dtype=dtype))
    return flat.as_strided(data.shape, data.strides)
