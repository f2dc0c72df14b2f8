"""The modes of an evaluation, one of which `cascade.evaluate` takes."""

from __future__ import annotations

import msgspec

from harness.wire.messages.clock import Effort
from harness.wire.results.evaluation import Evaluation


class Attempt(msgspec.Struct, frozen=True, tag=True):
    """Judge the open cases and hidden ones."""

    device: str = ""
    """Use this device alone; empty for any device of the pool."""


class Exam(msgspec.Struct, frozen=True, tag=True):
    """Judge the exam cases and not the open ones. Show the result to no model."""

    avoid: str = ""
    """Prefer another device than this one."""


class Rough(msgspec.Struct, frozen=True, tag=True):
    """Estimate times: a GPU only times, with few samples, after the interpreter accepted the candidate.

    The evaluation has estimates (`rough`) and no latencies, and its verdict is not kept. On `cpu` it is as an `Attempt`.
    """

    effort: Effort
    passed: Evaluation | None = None
    """An earlier rough evaluation of the same candidate; the interpreter does not run again."""


class Cases(msgspec.Struct, frozen=True, tag=True):
    """Judge these open cases alone, without hidden ones: for a reproducer, also under a profiler.

    It is no verdict about the task. The evaluation names the cases in `only_cases`. It has no overall speedup, because a speedup
    over some cases is not the task's.
    """

    names: tuple[str, ...]


Mode = Attempt | Exam | Rough | Cases
USUAL_MODE = Attempt()
