"""Writes small clones of public benchmarks: our own files in their formats."""

from .files import SEPARATOR, TRITON, separated, write
from .modules import atrex, kernelbench, robust_kbench
from .scripts import SCRIPT, TORCH, geak_eval, kernelbench_x, tritonbench
from .task_folders import arena, arena_of_schema_2, geak_tasks, gpu_mode
from .trace_sets import sol_execbench, solution, trace_set

__all__ = [
    "SCRIPT",
    "SEPARATOR",
    "TORCH",
    "TRITON",
    "arena",
    "arena_of_schema_2",
    "atrex",
    "geak_eval",
    "geak_tasks",
    "gpu_mode",
    "kernelbench",
    "kernelbench_x",
    "robust_kbench",
    "separated",
    "sol_execbench",
    "solution",
    "trace_set",
    "tritonbench",
    "write",
]
