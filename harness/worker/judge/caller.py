"""One call of a candidate's entry point, from the judge's side: the one place where inputs go out and outputs come in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from harness.limits import TimeLimits
from harness.worker.serving.arena import Arena
from harness.worker.serving.messages import Call, Returned
from suites.task import Case, Task

from .link import GuestLink
from .plan import Step
from .problem import Inputs
from .vault import Given


@dataclass(slots=True)
class Run:
    """One call of the entry point, seen from the judge."""

    step: Step
    given: Given
    returned: Returned
    changed_inputs: tuple[str, ...]
    """Proof: the judge compared the bytes."""
    broken_guards: tuple[str, ...]

    @property
    def case(self) -> Case:
        """The configuration that was run."""
        return self.given.case.case

    @property
    def inputs(self) -> Inputs:
        """What the entry point was given, as the judge keeps it."""
        return self.given.inputs

    @property
    def answer(self) -> bytes:
        """Equal for calls whose outputs are equal bit for bit."""
        return hashlib.blake2b(b"".join(output.data for output in self.returned.outputs)).digest()


class Caller:
    """Calls one guest. Close it when the last call is made: it may hold the memory of one."""

    def __init__(
        self, link: GuestLink, task: Task, limits: TimeLimits, given: Callable[[Step], Given]
    ) -> None:
        self._link = link
        self._entry_point = task.entry_points[0].name
        self._limits = limits
        self._given = given
        self._held: Arena | None = None

    def call(self, step: Step, *, first: bool = False) -> Run:
        """What came of one step; the ways in which a guest can fail to answer are `GuestLink`'s exceptions."""
        given = self._given(step)
        arena, again = self._arena(step, given)
        try:
            returned = self._link.ask(
                lambda nonce: Call(
                    nonce=nonce,
                    entry_point=self._entry_point,
                    case=step.case.name,
                    arguments=arena.arguments,
                    arena_bytes=arena.size_bytes,
                    hold=step.hold,
                    config=step.config,
                    again=again,
                ),
                Returned,
                wall_s=self._limits.call_s if first else self._limits.case_s,
                cpu_s=self._limits.call_cpu_s if first else self._limits.case_cpu_s,
                descriptors=(arena.descriptor,),
            )
            return Run(step, given, returned, arena.changed(), arena.broken_guards())
        finally:
            if step.hold:
                self._held = arena
            else:
                arena.close()

    def close(self) -> None:
        """Lets go what is held."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def _arena(self, step: Step, given: Given) -> tuple[Arena, bool]:
        """Memory with the inputs in it, and whether it is that of the call before, under the very same tensors."""
        held, self._held = self._held, None
        if held is not None:
            if step.again and held.refilled(given.inputs):
                return held, True
            held.close()
        return Arena(given.inputs), False
