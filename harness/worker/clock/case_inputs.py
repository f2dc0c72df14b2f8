"""Inputs of cases where timers can read them: in device memory that is shared, or in arenas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch

from harness.cases.judged_case import JudgedCase
from harness.wire.timer_messages import BringBack, Done, Reach, Renew, count_copies
from harness.worker.kit.arena import Arena, lay_out
from harness.worker.kit.device_memory import DeviceArena, NotShared
from harness.worker.oracle.problem import Problem
from harness.worker.oracle.vault import Given, Vault
from suites.task import Case

from .timed_process import STEP_S
from .timer_link import TimerLink

LaidOut = Arena | DeviceArena
SETS = 2
"""Sets of other values that the copies of the inputs hold by turns; two more are kept for checks of outputs: the candidate's, its tape's."""


class CaseInputs:
    """The cases of one candidate, with a session's secret values."""

    def __init__(self, problem: Problem, vault: Vault, seed: int) -> None:
        self._problem = problem
        self._vault = vault
        self._seed = seed
        self.not_shared: str | None = None
        """Why device memory is not shared with timers; `None` until it was tried."""

    def given(self, case: Case, number: int) -> Given:
        """One set of values."""
        return self._vault.given(self._problem, JudgedCase(case), self._seed, number)

    def unseen(self, case: Case, *, by_candidate: bool = False) -> Given:
        """Values that no timer was given before; `by_candidate`: nor in its check, for what a candidate had a hand in since."""
        return self.given(case, SETS + by_candidate)

    def try_sharing(self, timer: TimerLink) -> None:
        """Finds out whether a timer can reach device memory of the clock's."""
        try:
            tried = DeviceArena({"tried": torch.zeros(1024)})
        except NotShared as error:
            self.not_shared = str(error)
            return
        try:
            reach = partial(Reach, handle=tried.handle, size_bytes=tried.size_bytes)
            self.not_shared = timer.ask(lambda nonce: reach(nonce=nonce), Done, wall_s=STEP_S).problem
        finally:
            tried.close()

    @contextmanager
    def laid_out(self, given: Sequence[Given]) -> Iterator[Sequence[LaidOut]]:
        """Where timers can read them, until the block ends."""
        found: list[LaidOut] = []
        try:
            found.extend(
                Arena(one.inputs, shared=True) if self.not_shared else DeviceArena(one.inputs)
                for one in given
            )
            yield found
        finally:
            for laid_out in found:
                laid_out.close()

    def renew(self, timer: TimerLink, given: Given) -> None:
        """Puts other values into the tensors that a timer holds."""
        with self.laid_out((given,)) as laid_out:
            renew = partial(Renew, handle=next(iter(handles(laid_out)), b""))
            timer.ask(lambda nonce: renew(nonce=nonce), Done, descriptors(laid_out), wall_s=STEP_S)

    def copies(self, case: Case, rotate_bytes: int) -> int:
        """How many copies of the inputs a timer holds."""
        _, size_bytes = lay_out(self.given(case, 0).inputs)
        return count_copies(SETS, size_bytes, rotate_bytes)

    def changed(self, timer: TimerLink, case: Case, copy: int) -> tuple[str, ...]:
        """Names of the inputs that are other bytes by now in this copy that a timer holds, guard zones inside their storages too."""
        given = self.given(case, copy % SETS)
        brought = Arena(given.inputs) if self.not_shared else DeviceArena(given.inputs)
        try:
            brought.blank()
            bring = partial(BringBack, copy=copy, handle=next(iter(handles((brought,))), b""))
            timer.ask(lambda nonce: bring(nonce=nonce), Done, descriptors((brought,)), wall_s=STEP_S)
            return brought.changed()
        finally:
            brought.close()


def handles(laid_out: Sequence[LaidOut]) -> tuple[bytes, ...]:
    """Of those in shared device memory."""
    return tuple(one.handle for one in laid_out if isinstance(one, DeviceArena))


def descriptors(laid_out: Sequence[LaidOut]) -> tuple[int, ...]:
    """Of those in arenas."""
    return tuple(one.descriptor for one in laid_out if isinstance(one, Arena))
