"""Puts the inputs of cases where timers can read them: into shared device memory, or into arenas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

from harness.cases.judged_case import JudgedCase
from harness.wire.calls.tensors import Arguments, TensorSpec
from harness.wire.messages.clock import Measure
from harness.wire.messages.timer import SETS, BringBack, Done, Prepare, Renew, count_launches
from harness.worker.kit import place
from harness.worker.kit.arena import Arena, lay_out
from harness.worker.kit.device_memory import DeviceArena, NotShared
from harness.worker.oracle.problem import Problem
from harness.worker.oracle.vault import Given, Vault
from suites.task import Case

from .lines import TimerLine
from .timed_seat import STEP_S

LaidOut = Arena | DeviceArena
PERSISTING = "evict_last"
"""Text of each source that asks the L2 cache to keep lines: Triton's eviction policy, and PTX's."""


class CaseInputs:
    """The inputs of one candidate's cases, with the session's secret values."""

    def __init__(self, problem: Problem, vault: Vault, seed: int) -> None:
        self._problem = problem
        self._vault = vault
        self._seed = seed
        self.not_shared: str | None = None
        """Why device memory is not shared with timers, empty if it is; `None` before `try_sharing`."""

    def values(self, case: Case, number: int) -> Given:
        """One set of values, with the oracle's outputs for it."""
        return self._vault.given(self._problem, JudgedCase(case), self._seed, number)

    def unseen(self, case: Case) -> Given:
        """The next set of values, which no timer has seen."""
        return self.values(case, SETS)

    def draw(self, case: Case, *, unseen: int) -> None:
        """Draw a case's values and the right outputs of the first `unseen` sets into the vault: ahead of the lease's time."""
        for number in range(SETS):
            self.values(case, number)
        for number in range(unseen):
            _ = self.values(case, SETS + number).expected

    def try_sharing(self, timer: TimerLine) -> None:
        """Find out whether a timer can read the clock's device memory; sets `not_shared`."""
        try:
            probe = DeviceArena({"tried": torch.zeros(1024)})
        except NotShared as error:
            self.not_shared = str(error)
            return
        try:
            self.not_shared = timer.ask(probe.memory.place, Done, wall_s=STEP_S).problem
        finally:
            probe.close()

    @contextmanager
    def laid_out(self, sets: Sequence[Given]) -> Iterator[Sequence[LaidOut]]:
        """Sets of values in memory that timers can read, until the block ends."""
        arenas: list[LaidOut] = []
        try:
            arenas.extend(
                Arena(values.inputs, shared=True) if self.not_shared else DeviceArena(values.inputs)
                for values in sets
            )
            yield arenas
        finally:
            for arena in arenas:
                arena.close()

    def renew(self, timer: TimerLine, values: Given) -> None:
        """Put new values into the tensors that a timer holds."""
        with self.laid_out((values,)) as laid_out:
            renew = Renew(handle=next(iter(handles(laid_out)), b""))
            timer.ask(renew, Done, descriptors(laid_out), wall_s=STEP_S)

    def size_bytes(self, case: Case) -> int:
        """The size of one copy of the inputs, with guard zones."""
        _, size_bytes = lay_out(self.values(case, 0).inputs)
        return size_bytes

    def input_bytes(self, case: Case) -> int:
        """The size of the inputs alone."""
        arguments, _ = lay_out(self.values(case, 0).inputs)
        return sum(value.storage_bytes for value in arguments.values() if isinstance(value, TensorSpec))

    def count_launches(self, case: Case, call_ms: float, own_bytes: int, rotate_bytes: int) -> int:
        """See `harness.wire.messages.timer.count_launches`; a call allocates `own_bytes`."""
        bytes_a_call = self.size_bytes(case) + own_bytes
        return count_launches(
            call_ms, self.input_bytes(case), bytes_a_call, rotate_bytes, place.graph_bytes()
        )

    def send(
        self,
        timer: TimerLine,
        measure: Measure,
        case: Case,
        arguments: Arguments,
        size_bytes: int,
        laid_out: Sequence[LaidOut] = (),
        *,
        chosen: Mapping[str, str] | None = None,
    ) -> None:
        """Send a case with inputs; without inputs the timer compiles it and does not run it. The timer answers `Prepared`."""
        prepare = Prepare(
            entry_point=measure.task.entry_points[0].name,
            case=case.name,
            arguments=arguments,
            arena_bytes=size_bytes,
            rotate_bytes=measure.flush_bytes,
            flush_bytes=measure.flush_bytes,
            chosen=dict(chosen or {}),
            handles=handles(laid_out),
            ahead=not laid_out,
            changed_inputs=measure.task.changed_inputs_of(case),
            returns=measure.task.returns,
            graph_nodes=measure.graph_nodes,
            releases_lines=any(PERSISTING in source for source in measure.sources.values()),
        )
        timer.send(prepare, descriptors(laid_out), wall_s=measure.limits.call_s)

    def changed(self, timer: TimerLine, case: Case, copy: int) -> tuple[str, ...]:
        """Names of inputs with changed bytes in one of the timer's copies; guard zones inside their storages count."""
        inputs = self.values(case, copy % SETS).inputs
        returned = Arena(inputs) if self.not_shared else DeviceArena(inputs)
        try:
            returned.blank()
            bring = BringBack(copy=copy, handle=next(iter(handles((returned,))), b""))
            timer.ask(bring, Done, descriptors((returned,)), wall_s=STEP_S)
            return returned.changed()
        finally:
            returned.close()


def handles(laid_out: Sequence[LaidOut]) -> tuple[bytes, ...]:
    """The handles of arenas in shared device memory."""
    return tuple(arena.memory.handle for arena in laid_out if isinstance(arena, DeviceArena))


def descriptors(laid_out: Sequence[LaidOut]) -> tuple[int, ...]:
    """The descriptors of arenas in host memory."""
    return tuple(arena.descriptor for arena in laid_out if isinstance(arena, Arena))
