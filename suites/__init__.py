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

from suites.check import check_suite as check_suite
from suites.check import check_task as check_task
from suites.costs import task_cost as task_cost
from suites.dtypes import item_bytes as item_bytes
from suites.errors import BadSuite as BadSuite
from suites.errors import BadTask as BadTask
from suites.errors import SuiteError as SuiteError
from suites.errors import UnknownSuite as UnknownSuite
from suites.errors import UnknownTask as UnknownTask
from suites.loader import baseline_source as baseline_source
from suites.loader import find_name as find_name
from suites.loader import find_public_task as find_public_task
from suites.loader import find_task as find_task
from suites.loader import load_public_suite as load_public_suite
from suites.loader import load_public_task as load_public_task
from suites.loader import load_suite as load_suite
from suites.loader import load_task as load_task
from suites.loader import public_suite_names as public_suite_names
from suites.loader import suite_names as suite_names
from suites.registry import add_suite as add_suite
from suites.source.package import Package as Package
from suites.source.package import find_package as find_package
from suites.task import Allowance as Allowance
from suites.task import Axis as Axis
from suites.task import Case as Case
from suites.task import Cost as Cost
from suites.task import Distribution as Distribution
from suites.task import EntryPoint as EntryPoint
from suites.task import Output as Output
from suites.task import QuantizationTolerance as QuantizationTolerance
from suites.task import Task as Task
from suites.task import Tolerance as Tolerance
from suites.task_rules import CATEGORIES as CATEGORIES
