"""Tasks and suites: the format, the loader and the registry. Nothing here needs torch."""

from suites.check import check_suite
from suites.costs import task_cost
from suites.dtypes import item_bytes
from suites.errors import BadSuite, BadTask, SuiteError, UnknownSuite, UnknownTask
from suites.folder import CATEGORIES
from suites.loader import baseline_source, load_suite, load_task, suite_names
from suites.registry import add_suite
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
    "QuantizationTolerance",
    "SuiteError",
    "Task",
    "Tolerance",
    "UnknownSuite",
    "UnknownTask",
    "add_suite",
    "baseline_source",
    "check_suite",
    "item_bytes",
    "load_suite",
    "load_task",
    "suite_names",
    "task_cost",
]
