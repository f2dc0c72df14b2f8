"""The subject of a task: the facts on which knowledge pages and examples depend."""

from __future__ import annotations

import re

from engine.knowledge import Subject
from engine.prompting.facts import case_facts
from harness import Target
from harness.hardware.product import Product
from suites import Task, task_cost

FLOAT8 = re.compile(r"float8|fp8|\bf8|e4m3|e5m2|8-bit float", re.IGNORECASE)


EXPONENTIAL = re.compile(
    r"\bexp\b|exponential|softmax|logsumexp|log-sum-exp|sigmoid|softplus|silu|swish|swiglu|mish|cross[ _-]?entropy|attention",
    re.IGNORECASE,
)


def named_subject(task: Task) -> Subject:
    """Returns what a task is about, without the facts that depend on a target."""
    return Subject(
        category=task.category,
        name=spaced(task.name),
        products=multiplies(task),
        float8=FLOAT8.search(f"{task.name} {task.instruction}") is not None,
        recorded=task.script is not None,
        single=multiplies(task, "float32"),
        exponential=EXPONENTIAL.search(f"{spaced(task.name)} {task.instruction}") is not None,
    )


def subject_of(task: Task, target: Target, product: Product | None = None) -> Subject:
    """Returns what a task is about. Raises `BadTask` if its `cost.py` fails."""
    is_short = all(facts.is_short for facts in case_facts(task, target, product))
    return named_subject(task)._replace(short=is_short)


def spaced(name: str) -> str:
    """Returns a name in lower case with blanks."""
    return name.replace("_", " ").lower()


def multiplies(task: Task, dtype: str = "") -> bool:
    """Returns whether a task multiplies matrices in some case, with `dtype` matrices of it; True if it is not known."""
    if task.script is not None:
        return task.script.multiplies
    costs = (task_cost(task, case.gpu, case.dtype) for case in task.open_cases)
    return any(cost.dot_dtype is not None and dtype in ("", cost.dot_dtype) for cost in costs)
