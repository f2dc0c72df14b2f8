"""Protects the static stage: statements without honest use are refused, unusual honest code passes."""

from __future__ import annotations

import ast
import re

import msgspec
import pytest

from harness import Verdict
from harness.stages.static.inspection import inspect_source
from harness.stages.verdicts import conclude
from harness.wire.calls.signatures import definition_parameters, signature_error
from suites import load_task
from suites.task import EntryPoint
from tests.support.judge.candidates import IMPORTS, KERNEL, adding

TASK = load_task("vector_add")
NORM = load_task("layer_norm")


def verdict_of(source: str) -> Verdict:
    return conclude(inspect_source(source, TASK).error)


@pytest.mark.parametrize(
    "statement",
    [
        "import subprocess; subprocess.run(['true'])",
        "import os; os.environ['TRITON_INTERPRET'] = '0'",
        "import sys; sys.modules['torch'] = None",
        "import gc; gc.get_objects()",
        "import inspect; inspect.currentframe()",
        "(lambda: 0).__globals__",
        "(lambda: 0).__code__",
        "().__class__.__bases__[0].__subclasses__()",
        "torch.matmul = None",
        "setattr(triton, 'jit', None)",
        "getattr(torch, 'o' + 's')",
        "torch._C._dispatch_tls_set_dispatch_key_excluded",
        "triton.knobs.runtime.interpret = False",
        "torch.utils.cpp_extension.load_inline",
        "torch.jit.script(torch.add)",
        "torch._inductor.compile(None, None)",
        "[torch][0]._C._DisableTorchDispatch()",
        "torch.utils._mode_utils.no_dispatch()",
        "triton.testing.do_bench = None",
        "import numpy; numpy.ctypeslib",
        "import numpy as np; np.fromfile('a')",
        "library = torch; library.os.system('true')",
        "from harness.worker.judge import judge; judge.main",
        "import os; getattr(os, str(x))",
        "triton.knobs.runtime.launch_enter_hook = print",
        "triton.knobs.compilation.listener = print",
    ],
)
def test_statement_without_honest_use_is_refused_with_line(statement: str) -> None:
    source = adding(before=statement)
    report = inspect_source(source, TASK)
    assert conclude(report.error) is Verdict.REJECTED
    assert report.error.line == next(
        n for n, t in enumerate(source.splitlines(), 1) if t.strip() == statement
    )


@pytest.mark.parametrize(
    "statement",
    [
        "import threading; threading.Thread(target=print).start()",
        "import ctypes as c; c.CDLL(None)",
        "import importlib; importlib.import_module(str(x))",
        "import importlib; found = importlib.import_module(str(x)); found.__version__; found.system('true')",
        "import importlib; importlib.import_module('ctypes').CDLL(None)",
        "import importlib; sysm = importlib.import_module('os'); sysm.system('true')",
        "import importlib; importlib.import_module('os').system('true')",
        "import os; os.makedirs('a')",
        "import pathlib; pathlib.Path('a').read_text()",
        "import torch.library; torch.library.custom_op('a::b', mutates_args=())",
        "add_kernel._unsafe_update_src('')",
        "eval('1')",
        "exec('x = 1')",
        "compile('1', 'a', 'eval')",
        "__import__('os')",
        "open('/etc/passwd')",
        "globals()['torch'] = None",
        "import importlib.util; importlib.util.module_from_spec(None)",
    ],
)
def test_statement_that_the_judge_cannot_watch_is_unsupported_with_reason(statement: str) -> None:
    report = inspect_source(adding(before=statement), TASK)
    assert conclude(report.error) is Verdict.UNSUPPORTED
    assert report.error is not None
    assert re.search("judge cannot|works with files|without files", report.error.message)


def test_way_around_the_judge_is_named_before_what_cannot_be_watched() -> None:
    report = inspect_source(adding(before="open('a'); (lambda: 0).__globals__"), TASK)
    assert conclude(report.error) is Verdict.REJECTED
    assert report.error is not None
    assert "__globals__" in report.error.message


@pytest.mark.parametrize(
    "statement",
    [
        "import os, sys, threading",
        "import os; os.path.join('a', 'b')",
        "import os; verbose = os.environ.get('VERBOSE')",
        "import gc; gc.collect()",
        "import re; re.compile('a')",
        "torch.backends.cuda.matmul.allow_tf32 = True",
        "torch.nn.Linear(1, 1).modules()",
        "x.open = 1",
        "name = 'os.system and exec are words here'",
        "getattr(x, 'is_' + 'cuda')",
        "config = {'compile': 1}['compile']",
        "torch.signal.windows",
        "class Plan: modules = ()",
        "triton.testing.do_bench(lambda: 0)",
        "import threading; lock = threading.Lock()",
        "import importlib.util; importlib.util.find_spec('apex')",
        "from importlib.metadata import version; version('triton')",
        "import io; io.StringIO()",
        "torch.compile(torch.add)",
        "torch.distributed.all_gather_into_tensor = torch.distributed._all_gather_base",
        "import importlib; importlib.import_module('packaging').__version__",
        "import importlib; found = importlib.import_module(str(x)); has = hasattr(found, '__version__')",
        "import importlib; nothing = importlib.import_module('triton.language')",
        "from importlib.util import find_spec; find_spec('apex')",
        "assert torch.library.wrap_triton(add_kernel) is not None",
        "import os; os.getpid()",
        "getattr(tl, str(x.dtype).removeprefix('torch.'))",
        "triton.knobs.autotuning.print = True",
        "(lambda input, open=0: input + open)(2)",
        "assert not torch.distributed.is_initialized() or torch.distributed.get_world_size() == 1",
        "torch._dynamo.config.cache_size_limit = 64",
        "assert not torch.jit.is_scripting()",
        "torch._inductor.config.debug = True",
        "allocate = torch._C._dynamo.guards._empty_strided_cuda",
    ],
)
def test_unusual_honest_statement_passes(statement: str) -> None:
    report = inspect_source(adding(before=statement), TASK)
    assert report.error is None


def test_main_guard_is_not_checked_but_its_else_is() -> None:
    trial = "\nif __name__ == '__main__':\n    import sys\n    sys.exit(0)\n"
    assert verdict_of(adding() + trial) is Verdict.CORRECT
    assert verdict_of(adding() + trial + "else:\n    exec('')\n") is Verdict.UNSUPPORTED


def test_unused_function_is_not_checked() -> None:
    reference = "\n@torch.compile\ndef reference(x, y):\n    return eval('x + y')\n"
    assert verdict_of(adding(top=reference)) is Verdict.CORRECT
    assert verdict_of(adding(top=reference, before="reference(x, y)")) is Verdict.UNSUPPORTED
    assert verdict_of(adding(top=f"{reference}\ntable = {{'add': reference}}\n")) is Verdict.UNSUPPORTED
    registered = "\ndef keep(function):\n    return function\n" + reference.replace("@torch.compile", "@keep")
    assert verdict_of(adding(top=registered)) is Verdict.UNSUPPORTED


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("torch.jit.script(vector_add)", "it runs code that is no kernel of this module"),
        ("torch.save(x, 'x.pt')", "candidates run without files and network"),
        ("triton.knobs.runtime.debug", "it changes how Triton compiles and launches kernels"),
    ],
)
def test_refusal_of_a_library_part_says_the_reason(statement: str, why: str) -> None:
    assert f"is used: {why}" in inspect_source(adding(before=statement), TASK).error.message


SCALE = EntryPoint("scale", "scale(x)")


@pytest.mark.parametrize(
    ("source", "entry_point", "lines"),
    [
        ("import triton", NORM.entry_points[0], ["`vector_add`, `layer_norm` are not defined; define vector_add(x, y), "]),
        (adding(before="open('a')\n    eval('1')"), None, ["line 14: `open`", "line 15: `eval`"]),
        (adding().replace("(x, y):", "(a, b):") + "\ndef scale(z):\n    return z\n", SCALE, ["`vector_add`: ", "`scale`: "]),
    ],
    ids=["missing", "refused", "signatures"],
)  # fmt: skip
def test_all_problems_of_a_kind_are_named_at_once(
    source: str, entry_point: EntryPoint | None, lines: list[str]
) -> None:
    entry_points = (*TASK.entry_points, *filter(None, [entry_point]))
    report = inspect_source(source, msgspec.structs.replace(TASK, entry_points=entry_points))
    named = report.error.message.split("\n")
    assert all(line.startswith(begin) for line, begin in zip(named, lines, strict=True)), named


def test_own_function_named_as_builtin_passes() -> None:
    assert verdict_of(adding(top="def compile(x):\n    return x\n", before="compile(x)")) is Verdict.CORRECT


@pytest.mark.parametrize(
    "definition",
    [
        "from triton import jit\n" + KERNEL.replace("@triton.jit", "@jit"),
        KERNEL.replace("@triton.jit", "@triton.jit(do_not_specialize=['n'])"),
        KERNEL.replace("@triton.jit", "@triton.autotune(configs=[], key=[])\n@triton.jit"),
        KERNEL.replace("@triton.jit\n", "").replace("add_kernel", "_plain")
        + "\nadd_kernel = triton.jit(_plain)\n",
    ],
)
def test_every_form_of_kernel_definition_is_found(definition: str) -> None:
    report = inspect_source(adding(kernel=definition), TASK)
    assert report.error is None
    assert report.kernels == ("add_kernel",)


def test_entry_point_may_be_an_alias_or_in_a_branch() -> None:
    aliased = adding().replace("def vector_add", "def _add") + "\nvector_add = _add\n"
    assert verdict_of(aliased) is Verdict.CORRECT
    wrong = aliased.replace("(x, y):", "(x):")
    report = inspect_source(wrong, TASK)
    assert (conclude(report.error), report.error.kind if report.error else "") == (
        Verdict.CALL_ERROR,
        "signature",
    )
    branched = f"{IMPORTS}{KERNEL}\nif True:\n    def vector_add(x, y):\n        return x\n"
    assert verdict_of(branched) is Verdict.CORRECT


@pytest.mark.parametrize(
    ("signature", "problem"),
    [
        ("layer_norm(x, weight, bias, eps=1e-5)", ""),
        ("layer_norm(x, weight, bias, eps=0.00001, block=64)", ""),
        ("layer_norm(x, weight, bias, *, eps=1e-5)", ""),
        ("layer_norm(x, weight, bias, eps=1e-6)", "defaults to 1e-06, not 1e-05"),
        ("layer_norm(x, weight, bias, eps)", "has no default"),
        ("layer_norm(x, bias, weight, eps=1e-5)", "is called `bias`"),
        ("layer_norm(x, weight, bias)", "`eps` is missing"),
        ("layer_norm(x, /, weight, bias, eps=1e-5)", "cannot be passed by name"),
    ],
)
def test_signature_difference_is_reported_if_callers_are_affected(signature: str, problem: str) -> None:
    definition = ast.parse(f"def {signature}: ...").body[0]
    message = signature_error(NORM.entry_points[0].signature, definition_parameters(definition))
    assert (message == "") == (problem == "")
    assert problem in message


@pytest.mark.parametrize(
    "source",
    ["\0", "(" * 5000, "x = " + "-" * 200_000 + "1", "\ud800 = 1", "é" * 10],
    ids=["null", "parentheses", "minus signs", "surrogate", "accents"],
)
def test_unparsable_source_is_a_call_error(source: str) -> None:
    report = inspect_source(source, TASK)
    assert conclude(report.error) is Verdict.CALL_ERROR
    assert "\n" not in report.error.message


def test_unusual_imports_and_broad_except_are_noted() -> None:
    source = adding(top="import numpy\nimport socket\n", before="try: pass\n    except Exception: pass")
    notes = " | ".join(inspect_source(source, TASK).notes)
    assert "numpy is imported" in notes
    assert "`socket` is imported and not used" in notes
    assert "broad except" in notes
