"""Run a task's `cost.py`: plain Python of the task's author, for trusted processes only."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from suites.dtypes import TASK_DTYPES
from suites.errors import BadTask
from suites.task import Cost, Task

Config = Mapping[str, int | str | None]
"""Launch parameters by name."""


def task_cost(task: Task, sizes: dict[str, int], dtype: str) -> Cost:
    """Return the cost of a case by the task's own model. Raises `BadTask` if `cost.py` fails or returns a wrong value."""
    file = task.folder / "cost.py"
    try:
        cost = _module(file).cost(dict(sizes), dtype)
    except Exception as error:  # an error of the author's code becomes one line
        raise BadTask(file, "cost", f"raised {type(error).__name__}: {error}") from error
    if not isinstance(cost, Cost):
        raise BadTask(file, "cost", f"returned {type(cost).__name__}, not suites.Cost")
    for key in ("flops", "minimal_bytes"):
        value = getattr(cost, key)
        if type(value) is not int or value < 0:
            raise BadTask(file, key, f"is {value!r}; it must be a whole number, 0 or more")
    if cost.dot_dtype is not None and cost.dot_dtype not in TASK_DTYPES:
        raise BadTask(file, "dot_dtype", f"{cost.dot_dtype!r} is no dtype")
    return cost


def constraint_of(task: Task) -> Callable[[Config], bool] | None:
    """Return whether launch parameters fulfil the task's `constraint` at the `gpu` sizes of every open case.

    `None` if `cost.py` defines no `constraint`. The function raises `BadTask` if the constraint fails.
    """
    file = task.folder / "cost.py"
    try:
        constraint = getattr(_module(file), "constraint", None)
    except Exception as error:  # an error of the author's code becomes one line
        raise BadTask(file, "constraint", f"raised {type(error).__name__}: {error}") from error
    if constraint is None:
        return None

    def is_allowed(config: Config) -> bool:
        try:
            return all(constraint(dict(config), dict(case.gpu)) for case in task.open_cases)
        except Exception as error:  # the same
            raise BadTask(file, "constraint", f"raised {type(error).__name__}: {error}") from error

    return is_allowed


class _CostLoader(SourceFileLoader):
    """Loads a file without writing byte code: the folder belongs to the author."""

    def set_data(self, path: str, data: object, *, _mode: int = 0o666) -> None:
        """Write no byte code."""


def _module(file: Path) -> ModuleType:
    """Return the file as a module outside `sys.modules`; a changed file is loaded again."""
    return _load(file, file.stat().st_mtime_ns)


@functools.lru_cache(maxsize=1024)
def _load(file: Path, _changed_ns: int) -> ModuleType:
    spec = importlib.util.spec_from_loader("cost", _CostLoader("cost", str(file)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
