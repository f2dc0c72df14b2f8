"""Tasks and suites: the format, the loader and the registry. Nothing here needs torch.

Find tasks and suites by name:
    registry.py     folders of the suites, built in and added; clones of public benchmarks; licences
    loader.py       `load_task`, `find_task` (also by folder), `load_suite`, `load_public_suite`
    folder.py       `read_task`: one folder becomes a `Task`
What a `task.toml` may hold:
    task.py         its keys and types
    task_rules.py   the rules beyond types
    tolerances.py   the rules of tolerances, and the tolerance of an output
    dtypes.py       names and sizes of dtypes
Python that others wrote:
    source/         as text: `parse_python`, signatures of entry points; `find_package`: the package of an own kernel from its
                    file, and the table `[package]`
Kernels without a task:
    own/            makes a task of a file
Public benchmarks:
    public/         reads clones of public benchmarks: `loaders/` has one for each, `syntax/` reads and writes their Python
People's programs:
    captures/       records the calls of a function in a program, and chooses cases from them
Others:
    input_kinds.py  offsets of sequences, block tables and other inputs of serving, which a `problem.py` draws
    costs.py        runs a task's `cost.py`
    check.py        only for `wavedeck task check`: the Python files of a folder, and the bytes of its cost model
    errors.py       errors of suites and tasks
    privacy.py      variables that hold keys, and folders that only their owner can open; for all rooms
"""

from suites.check import check_suite, check_task
from suites.costs import task_cost
from suites.dtypes import item_bytes
from suites.errors import BadSuite, BadTask, SuiteError, UnknownSuite, UnknownTask
from suites.loader import (
    baseline_source,
    find_name,
    find_public_task,
    find_task,
    load_public_suite,
    load_public_task,
    load_suite,
    load_task,
    public_suite_names,
    suite_names,
)
from suites.registry import add_suite
from suites.source.package import Package, find_package
from suites.task import (
    Allowance,
    Axis,
    Case,
    Cost,
    Distribution,
    EntryPoint,
    Output,
    QuantizationTolerance,
    Task,
    Tolerance,
)
from suites.task_rules import CATEGORIES

__all__ = [
    "CATEGORIES",
    "Allowance",
    "Axis",
    "BadSuite",
    "BadTask",
    "Case",
    "Cost",
    "Distribution",
    "EntryPoint",
    "Output",
    "Package",
    "QuantizationTolerance",
    "SuiteError",
    "Task",
    "Tolerance",
    "UnknownSuite",
    "UnknownTask",
    "add_suite",
    "baseline_source",
    "check_suite",
    "check_task",
    "find_name",
    "find_package",
    "find_public_task",
    "find_task",
    "item_bytes",
    "load_public_suite",
    "load_public_task",
    "load_suite",
    "load_task",
    "public_suite_names",
    "suite_names",
    "task_cost",
]
