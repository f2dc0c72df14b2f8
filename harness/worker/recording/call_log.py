"""Records the outermost calls of a script's entry points."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from msgspec.structs import replace

from harness.cases.seeds import derive
from harness.wire.calls.tensors import TensorSpec
from harness.wire.limits import memory_words
from harness.wire.messages.script import MODEL_SEED, RecordedCall, RunScript
from harness.worker.kit.poison import Poison
from harness.worker.recording.one_call.on_gpu import guard_zones

from .execution import EndsHere
from .expressions import CannotExpress, Expressions, Made, data_of, parameter_names, parts_of
from .one_call.gradients import Gradients, with_gradients
from .one_call.host_operators import FreshMemory, HostOperators
from .one_call.moved_bytes import ReadBytes, moved_bytes, reads_of_kernels
from .one_call.results import outputs_of, returned_numbers, returned_words, truths_of
from .seeding import set_seed

MOST_CALLS = 32
"""Different calls of one script; later calls are dropped."""
MOST_BYTES = 512 << 20
"""Bound for all tensors of one recording."""

MOST_STATE_BYTES = 48 << 20
"""Bound for the parameters of one model. The parameters of a larger model come from its seed alone."""

_CHECKS = (
    (torch, "allclose", True),
    (torch.testing, "assert_close", None),
    (np, "allclose", True),
    (np.testing, "assert_allclose", None),
)
"""Functions with which tests compare results, and what they return if the results are equal."""

Observe = Callable[[Mapping[str, torch.Tensor]], AbstractContextManager[Any]]


class CallLog:
    """The calls of one run of a script."""

    def __init__(self, request: RunScript, test: Mapping[str, Any], observe: Observe) -> None:
        """`test`: names of the running test, among them its oracle. `observe` watches kernels."""
        self._request = request
        self._script = request.script
        self._poison = Poison(request.poison)
        self._test = test
        self._observe = observe
        self._taken = frozenset(self._script.entry_points)
        self._differentiates = "backward(" in self._script.test
        self._call_count = 0
        """Calls so far, recorded or not; seeds of calls follow from it."""
        self._inside = 0
        """Blocks of `unrecorded` that run now."""
        self._distinct: set[tuple[Any, ...]] = set()
        """The text and the inputs of each recorded call, as digests."""
        self._size_bytes = 0
        """Bytes of all recorded tensors."""
        self._objects: dict[int, Made] = {}
        """How instances of the script's classes were made, by `id`."""
        self.calls: list[RecordedCall] = []
        self.for_timing = False
        """True while calls are made with inputs for timing: they are recorded beyond `MOST_CALLS`."""
        self.oversized = 0
        """Calls that are left out because of the size of their tensors."""

    @property
    def judged(self) -> int:
        """Number of calls that can be judged."""
        return len(self._distinct)

    @property
    def is_full(self) -> bool:
        """True if no further call can be recorded."""
        return self.judged >= MOST_CALLS

    def fresh_memory(self) -> FreshMemory:
        """Return a context that poisons the memory which the script allocates outside of calls and of `unrecorded`."""
        return FreshMemory(self._poison, lambda: self._inside > 0)

    @contextmanager
    def passing_checks(self) -> Iterator[None]:
        """Let comparisons of the test pass outside of calls: many tests make no further calls after the first difference."""
        originals = [(module, name, getattr(module, name)) for module, name, _ in _CHECKS]
        for module, name, result in _CHECKS:
            setattr(module, name, self._passing(getattr(module, name), result))
        try:
            yield
        finally:
            for module, name, original in originals:
                setattr(module, name, original)

    def _passing(self, check: Callable[..., Any], result: Any) -> Callable[..., Any]:
        def passing(*args: Any, **named: Any) -> Any:
            return check(*args, **named) if self._inside else result

        return passing

    def note_object(
        self, instance: object, name: str, kind: Any, args: Sequence[Any], named: Mapping[str, Any]
    ) -> None:
        """Note how an instance of one of the script's classes was made."""
        self._objects[id(instance)] = Made(instance, name, kind, args, named)

    @contextmanager
    def building(self) -> Iterator[None]:
        """Let the block make an instance of one of the script's classes; calls that this makes are not recorded.

        If the script builds models, the block starts with the seed of all models, and its end restores torch's generators.
        """
        with self.unrecorded(), torch.random.fork_rng() if self._script.builds_models else nullcontext():
            if self._script.builds_models:
                set_seed(MODEL_SEED)
            yield

    @contextmanager
    def unrecorded(self) -> Iterator[None]:
        """Record no call that is made in the block."""
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    def call(
        self,
        callee: Any,
        function: Callable[..., Any],
        args: Sequence[Any],
        named: Mapping[str, Any],
        names: Sequence[str] = (),
    ) -> Any:
        """Make a call and record it, unless it is made inside another.

        `callee`: text, an instance of one of the script's classes, or for a launch a function that returns the text. `names`:
        names of a kernel's parameters; a launch has no result that is judged.
        """
        if self._inside:
            return function(*args, **named)
        expressions = Expressions(self._objects, self._taken)
        try:
            if names:
                text = callee()
            else:
                text = callee if isinstance(callee, str) else expressions.text_of(callee, "module")
            called = callee.forward if isinstance(callee, torch.nn.Module) else function
            arguments = expressions.arguments(names or parameter_names(called), args, named)
            state = tuple(
                (name, expressions.text_of(tensor, f"module_{name}"))
                for name, tensor in self._state_of(callee).items()
            )
        except CannotExpress as reason:
            self._note_unsupported(str(reason))
            with self.unrecorded():
                value = function(*args, **named)
        else:
            model = text if self._script.builds_models else ""
            call = RecordedCall(f"{text}({arguments})", {}, (), model=model, state=state)
            reads = self._read_bytes(callee, call, expressions.tensors)
            with guard_zones(expressions.tensors.values(), self._poison):
                value = self._record(
                    call, expressions.tensors, function, args, named, is_launch=bool(names), reads=reads
                )
        self._end_if_complete()
        return value

    def _record(
        self,
        call: RecordedCall,
        tensors: dict[str, torch.Tensor],
        function: Callable[..., Any],
        args: Sequence[Any],
        named: Mapping[str, Any],
        *,
        is_launch: bool,
        reads: ReadBytes | None,
    ) -> Any:
        """Make a call of an entry point, record it, and return its value, which the script goes on with.

        A call like an earlier one, or beyond the number that is kept, runs without a record. A call that cannot be judged, or
        with too many bytes, is noted as unsupported. Raises what the entry point raises.
        """
        inputs = {name: data_of(tensor) for name, tensor in tensors.items()}
        truth = self._truth(args, named)
        self._call_count += 1
        draw_seed = derive(self._request.seed, "call", str(self._call_count))
        gradients = Gradients()
        with (
            self.unrecorded(),
            torch.random.fork_rng(),
            self._observe(tensors) as observation,
            reads_of_kernels(observation, reads),
            HostOperators(observation if self._script.has_kernels else None, self._poison, reads) as host,
        ):
            observation.outside = self._poison
            if self._differentiates:
                gradients = with_gradients(function, args, named, tensors, draw_seed)
            set_seed(draw_seed)
            state_before = _random_state()
            value = function(*args, **named)
            state_after = _random_state()
        drew = not all(map(torch.equal, state_before, state_after))
        call = replace(call, inputs=inputs, draw_seed=draw_seed if drew else None, draws=tuple(host.draws))
        identity = (call.expression, *((name, _digest(data)) for name, data in inputs.items()))
        if identity in self._distinct or (self.is_full and not self.for_timing):
            return value
        if host.launches_nothing:
            self._note_unsupported("its reference launches no kernel in it")
            return value
        outputs, unjudged = outputs_of(tensors, inputs, None if is_launch else value, host)
        truths = truths_of(outputs, None if is_launch else value, truth)
        call = replace(
            call,
            inputs=inputs | gradients.inputs,
            outputs=(*outputs, *gradients.outputs),
            truths=() if gradients.outputs else truths,
            operators=tuple(sorted(host.names)),
            differentiated=gradients.wanted,
            gradients=gradients.drawn,
            multiplies=reads is not None and reads.multiplies,
            returns="" if is_launch else returned_words(value, tensors),
            numbers=() if is_launch else tuple(map(repr, returned_numbers(value))),
            # Of the gradients' inputs, it is not known what the reference reads.
            moved_bytes=None if gradients.outputs else moved_bytes(reads, inputs, outputs),
            unjudged=(*unjudged, *gradients.problems),
            for_timing=self.for_timing,
        )
        size_bytes = sum(len(data.data) for data in call.inputs.values())
        size_bytes += sum(len(output.tensor.data) for output in call.outputs)
        if self._size_bytes + size_bytes > MOST_BYTES:
            self._note_unsupported(
                f"with it, the tensors of a recording take more than {memory_words(MOST_BYTES)}"
            )
            self.oversized += 1
        else:
            self._size_bytes += size_bytes
            self._distinct.add(identity)
            self.calls.append(call)
        return value

    def _end_if_complete(self) -> None:
        """Raise `EndsHere` to end the script if all its wanted calls are made; never during calls for timing."""
        if self.for_timing:
            return
        is_last = self._script.calls and len(self.calls) >= self._script.calls
        if is_last or (self._request.budget_s and self.is_full and not self._script.is_pytest):
            raise EndsHere

    def _state_of(self, callee: Any) -> dict[str, torch.Tensor]:
        """Return copies of a model's parameters and buffers; empty if they are no inputs of the call."""
        if not (self._script.builds_models and isinstance(callee, torch.nn.Module)):
            return {}
        state = callee.state_dict()
        if sum(tensor.nbytes for tensor in state.values()) > MOST_STATE_BYTES:
            return {}
        return {name: tensor.detach().clone() for name, tensor in state.items()}

    def _read_bytes(
        self, callee: Any, call: RecordedCall, tensors: Mapping[str, torch.Tensor]
    ) -> ReadBytes | None:
        """Return the counter of what the call reads: its arguments and, for a model, the model's own state."""
        if not self._request.counts_bytes:
            return None
        copies = {name for _, name in call.state}
        watched = [tensor for name, tensor in tensors.items() if name not in copies]
        if self._script.builds_models and isinstance(callee, torch.nn.Module):
            watched += callee.state_dict().values()
        return ReadBytes(watched)

    def _truth(self, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any] | None:
        """Return the oracle's outputs for these arguments; `None` if there is no oracle that takes them."""
        oracle = self._test.get(self._script.oracle)
        if not callable(oracle):
            return None
        try:
            with self.unrecorded(), torch.random.fork_rng(), torch.no_grad():
                value = oracle(*map(_copy, args), **{name: _copy(value) for name, value in named.items()})
                return [part for _, part in parts_of(value)]
        except Exception:  # noqa: BLE001 -- its parameters may be different
            return None

    def _note_unsupported(self, reason: str) -> None:
        self.calls.append(RecordedCall("", {}, (), unsupported=reason))


def _digest(data: TensorSpec) -> tuple[Any, ...]:
    return data.dtype, data.shape, data.strides, hashlib.blake2b(data.data, digest_size=16).digest()


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _random_state() -> tuple[torch.Tensor, ...]:
    on_gpu = (torch.cuda.get_rng_state(),) if torch.cuda.is_available() else ()
    return torch.get_rng_state(), *on_gpu
