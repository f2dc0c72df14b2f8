"""
What Triton launches a jit function by, and keeps its compiled code under, is what its definition says.

The interpreter goes by the Python function alone: an attribute that was replaced makes another kernel on a device. Of Triton 3.6 and 3.7.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any

from triton.runtime import jit

_OF_PARAMETERS = ("name", "annotation", "annotation_type", "is_constexpr", "is_const")


def check(kernel: Any) -> None:
    """`ValueError` where an attribute of a `JITFunction` was replaced after its definition."""
    name = kernel.fn.__name__
    if not _same_signature(kernel):
        raise ValueError(f"the signature of `{name}` was replaced after its definition")
    if kernel.hash is not None and kernel.hash != _hash(kernel):
        raise ValueError(f"`{name}` was given a hash; leave it to Triton")


def _same_signature(kernel: Any) -> bool:
    written, taken = inspect.signature(kernel.fn).parameters, kernel.signature.parameters
    if type(kernel.signature) is not inspect.Signature or not len(written) == len(taken) == len(
        kernel.params
    ):
        return False
    pairs = zip(written.values(), taken.values(), kernel.params, strict=True)
    return all(_same_parameter(at, *pair) for at, pair in enumerate(pairs))


def _same_parameter(at: int, written: inspect.Parameter, taken: inspect.Parameter, known: Any) -> bool:
    if type(taken) is not inspect.Parameter or type(known) is not jit.KernelParam or known.num != at:
        return False
    fresh = jit.KernelParam(at, written, known.do_not_specialize, known.do_not_specialize_on_alignment)
    return (
        (taken.name, taken.kind) == (written.name, written.kind)
        and taken.default is written.default
        and all(getattr(known, name) == getattr(fresh, name) for name in _OF_PARAMETERS)
    )


def _hash(kernel: Any) -> str:
    fresh = copy.copy(kernel)
    fresh.hash = None
    return str(fresh.cache_key)
