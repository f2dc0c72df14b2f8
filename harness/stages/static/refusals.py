"""Constructs that hide work from the judge, found in a module's syntax tree; and oddities that become notes."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import NamedTuple, TypeGuard

from suites.source.package import Package, absolute_name
from suites.source.python_source import parse_python

from .imports import IMPORT_MODULE, dotted, followed_imports, imported_names, module_of_call
from .reachability import own_nodes, reachable_statements


class Refusal(NamedTuple):
    """A construct that is refused, and why."""

    line: int
    why: str
    unsupported: bool = False
    """True if it may be honest, but the judge cannot watch it."""


_JUDGE = ("harness", "suites", "engine", "sessions", "tui", "wavedeck")
_MODULES = {
    **dict.fromkeys(_JUDGE, "it belongs to the judge"),
    **dict.fromkeys(
        ("subprocess", "multiprocessing", "_thread", "concurrent", "asyncio", "signal", "atexit", "pty", "runpy", "pip"),
        "its work runs outside the call that is judged",
    ),
    **dict.fromkeys(
        ("socket", "urllib", "http", "requests", "ftplib", "smtplib", "ssl", "select", "selectors"),
        "candidates run without a network",
    ),
}  # fmt: skip
"""Top-level modules that a candidate may import but not use, with the reason."""

_UNWATCHED = {
    **dict.fromkeys(
        ("pathlib", "glob", "shutil", "tempfile", "pickle", "shelve", "fcntl", "zipimport", "pkgutil"),
        "it works with files",
    ),
    **dict.fromkeys(
        ("ctypes", "cffi", "mmap", "marshal", "cupy", "numba"),
        "the judge cannot watch memory that is reached without torch",
    ),
    **dict.fromkeys(
        ("builtins", "code", "codeop", "imp", "resource", "tracemalloc", "faulthandler", "unittest", "setuptools", "pydoc",
         "pdb", "bdb", "doctest", "trace", "profile", "cProfile"),
        "it changes Python or the process around the kernels",
    ),
}  # fmt: skip
"""Top-level modules with honest uses that the judge cannot watch, with the reason."""

_MEMBERS = {
    "os": ("path", "environ", "getenv", "cpu_count", "name", "sep", "linesep", "getpid"),
    "sys": ("maxsize", "version", "version_info", "float_info", "byteorder", "platform", "stdout", "stderr", "argv",
            "getsizeof", "implementation", "hexversion"),
    "gc": ("collect", "enable", "disable", "isenabled"),
    "inspect": ("signature", "Parameter", "getsource", "getdoc", "isfunction"),
    "threading": ("Lock", "RLock", "local"),
    "importlib": ("util.find_spec", "metadata.version", "metadata.PackageNotFoundError"),
    "io": ("StringIO", "BytesIO"),
    "pkgutil": ("get_data",),
}  # fmt: skip
"""The only members of these modules that the judge can watch."""

_TORCH = {
    **dict.fromkeys(
        ("torch.jit", "torch._inductor", "torch._dynamo.optimize", "torch._dynamo.export", "torch._dynamo.eval_frame",
         "torch._dynamo.convert_frame", "torch.utils.cpp_extension", "torch.ops.load_library"),
        "it runs code that is no kernel of this module",
    ),
    **dict.fromkeys(
        ("torch.overrides", "torch.utils._python_dispatch", "torch.utils._mode_utils"),
        "it changes how torch runs operators, which the judge counts",
    ),
    **dict.fromkeys(
        ("triton._C", "triton.runtime.interpreter", "triton.runtime.jit.JITFunction.run", "triton.knobs.runtime",
         "triton.runtime.driver.set_active", "triton.knobs.compilation.listener"),
        "it changes how Triton compiles and launches kernels, which the judge watches",
    ),
    **dict.fromkeys(("torch.hub", "torch.load", "torch.save", "torch.from_file"), "candidates run without files and network"),
    "torch.utils.dlpack": "the judge cannot watch memory that is reached without torch",
    "torch.multiprocessing": "its work runs outside the call that is judged",
    "torch._C": "it reaches the inside of torch, where the judge cannot watch",
}  # fmt: skip
"""Parts of torch and triton with which a candidate could compute outside its kernels or unseen by the judge, with the reason."""
_HARMLESS = (
    "torch.jit.is_scripting", "torch.jit.is_tracing", "torch.jit.ignore", "torch.jit.unused", "torch.jit.export", "torch.jit.Final",
    "torch._inductor.config", "torch._inductor.runtime.triton_helpers", "torch._inductor.runtime.hints",
    "torch._C._cuda_getCurrentRawStream", "torch._C._dynamo.guards._empty_strided_cuda",
)  # fmt: skip
"""Members of `_TORCH` that compile nothing: marks, questions and settings, and what code from `torch.compile` calls."""

_CUSTOM_OPERATORS = "torch.library"
_WRAPPED_KERNEL = "torch.library.wrap_triton"
"""Returns a kernel to launch and registers nothing."""

_INSIDE_LIBRARIES = frozenset({
    "os", "sys", "subprocess", "ctypes", "ctypeslib", "socket", "importlib", "builtins", "inspect", "gc", "threading",
    "pickle", "shutil", "tempfile", "pathlib", "memmap", "fromfile", "tofile", "DataSource", "__dict__",
})  # fmt: skip
"""Modules that other modules import, and their file access: `torch.os` and `queue.threading` are `os` and `threading` too."""

_BUILTINS = {
    **dict.fromkeys(("exec", "eval", "compile", "__import__"), "the judge cannot read code that is made at run time"),
    **dict.fromkeys(("open", "input", "breakpoint"), "candidates run without files and without a terminal"),
    **dict.fromkeys(("globals", "locals", "vars"), "the judge cannot follow names that are looked up at run time"),
    "memoryview": "the judge cannot watch memory that is reached without torch",
}  # fmt: skip
"""Builtins with honest uses that the judge cannot watch, with the reason."""
_OF_PACKAGES = frozenset({"open", "pathlib", "glob", "importlib.resources", "pkgutil.get_data"})
"""Names that read files. A module of a package may use them."""
_ATTRIBUTES = frozenset({
    "__globals__", "__builtins__", "__code__", "__closure__", "__subclasses__", "__bases__", "__mro__", "__loader__",
    "__spec__", "__import__", "__reduce__", "__reduce_ex__", "__getattribute__", "f_back", "f_locals", "f_globals",
    "f_builtins", "tb_frame", "gi_frame", "cr_frame", "_getframe", "currentframe", "get_objects", "get_referrers",
    "_current_frames", "settrace", "setprofile", "modules", "meta_path", "path_hooks", "_C",
    "_get_current_dispatch_mode", "_get_current_dispatch_mode_stack", "_pop_mode", "_pop_mode_temporarily",
    "_disable_current_modes",
})  # fmt: skip
"""Attributes and names through which a candidate reaches the judge's objects."""
_LIBRARIES = ("torch", "triton", "numpy")
_GETTERS = ("operator.attrgetter", "operator.methodcaller", "getattr")
_NEW_TEXT = "_unsafe_update_src"
_MODULE_ONLY_ATTRIBUTES = frozenset({"modules"})
"""Harmless on anything but `sys`, as `nn.Module.modules`."""
_CONFIGURATION = (
    "torch.distributed", "torch.backends", "torch.set_", "torch._dynamo.config", "torch._inductor.config",
    "triton.knobs.autotuning", "triton.knobs.compilation", "triton.knobs.amd", "triton.knobs.nvidia",
)  # fmt: skip
MODULE = "kernel"
_INTERPRETER_VARIABLE = "TRITON_INTERPRET"


def find_refusals(
    tree: ast.Module, own_names: frozenset[str], entry_points: Collection[str], package: Package | None = None
) -> Iterator[Refusal]:
    """Each refused construct that may run, in no particular order. `own_names` are bound by the module itself.

    A module of a `package` may import from it and read files: the sandbox opens no others.
    """
    imported = imported_names(tree, package)
    allowed = _OF_PACKAGES if package is not None else frozenset()
    launched = _Launched(package)
    followed = _parameters_read(tree) | followed_imports(tree, imported)
    plain = _plain_getters(tree)
    # A `__main__` block at the end never runs, because the module is imported.
    body = (
        part
        for statement in tree.body
        for part in (statement.orelse if _is_main_block(statement) else [statement])
    )
    statements = reachable_statements(body, entry_points)
    for node in (node for statement in statements for node in own_nodes(statement)):
        match node:
            case ast.Name() | ast.Attribute() if node not in plain and _path_of(node, imported) in _GETTERS:
                yield Refusal(
                    node.lineno,
                    f"`{ast.unparse(node)}` gets an attribute with a computed name; write the name out",
                )
            case ast.Name(id=name, ctx=ast.Load()) if node not in followed:
                yield from _check_name(node, name, imported, own_names, allowed)
                yield from launched.check(node, imported)
            case ast.Attribute() if node not in followed:
                yield from _check_attribute(node, imported, allowed)
                yield from launched.check(node, imported)
                if isinstance(node.ctx, (ast.Store, ast.Del)):
                    yield from _check_patch(node, imported)
            case ast.Call() if module := module_of_call(node, imported):
                yield from _check_module(node.lineno, module, allowed)
            case ast.ImportFrom():
                yield from _check_import_from(node, package)
            case ast.Import(names=names) if any(alias.name == _name_of(package) for alias in names):
                yield Refusal(node.lineno, "the candidate imports itself")
            case ast.Call(func=ast.Name(id="setattr" | "delattr" | "getattr"), args=[target, name, *_]):
                yield from _check_reflection(node, target, name, imported, allowed)
            case ast.Subscript(ctx=ast.Store() | ast.Del()) if dotted(node.value, imported) == "os.environ":
                if _constant(node.slice) in (None, _INTERPRETER_VARIABLE):
                    yield Refusal(node.lineno, "it changes how the judge runs the module")
            case ast.Constant(value=str() as text) if text == _INTERPRETER_VARIABLE:
                yield Refusal(
                    node.lineno, f"{_INTERPRETER_VARIABLE}: a kernel must not behave differently when judged"
                )


def _path_of(node: ast.Name | ast.Attribute, imported: dict[str, str]) -> str | None:
    """The dotted path of an expression; a name that is not imported is its own path."""
    return dotted(node, imported) or (node.id if isinstance(node, ast.Name) else None)


def _plain_getters(tree: ast.Module) -> frozenset[ast.AST]:
    """Uses of functions that get attributes, in calls that name the attributes plainly.

    `getattr` may get a variable: `_check_reflection` decides about its target.
    """
    plain: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="getattr") as function, args=[_, name, *_]):
                if _constant(name) or any(
                    isinstance(part, (ast.Name, ast.Attribute)) for part in ast.walk(name)
                ):
                    plain.add(function)
            case ast.Call(func=ast.Name() | ast.Attribute() as function, args=names):
                texts = [_constant(name) or "" for name in names]
                if all(text and _ATTRIBUTES.isdisjoint(text.split(".")) for text in texts):
                    plain.add(function)
            case _:
                pass
    return frozenset(plain)


class _Launched:
    """Finds kernels of the package's other modules: functions that their own module launches. Helpers of kernels are none."""

    def __init__(self, package: Package | None) -> None:
        self._package = package
        self._by_module: dict[str, frozenset[str]] = {}

    def check(self, node: ast.Name | ast.Attribute, imported: dict[str, str]) -> Iterator[Refusal]:
        """A refusal if an expression names such a kernel."""
        path = dotted(node, imported)
        module, _, name = (path or "").rpartition(".")
        if self._package is not None and module and name in self._launched_by(self._package, module):
            why = f"`{name}` is a kernel of {module}; kernels of the candidate must do the work, and may use only helpers of the package"
            yield Refusal(node.lineno, why)

    def _launched_by(self, package: Package, module: str) -> frozenset[str]:
        """Return the functions that a module of the package launches by `name[grid](...)`; none if it cannot be read."""
        if module not in self._by_module:
            file = package.file_of(module)
            names: set[str] = set()
            if file is not None and file.is_file() and module != package.module:
                with suppress(OSError, SyntaxError, ValueError):  # the import itself says what is wrong
                    for node in ast.walk(parse_python(file.read_text(encoding="utf-8"), str(file))):
                        match node:
                            case ast.Call(func=ast.Subscript(value=ast.Name(id=name))):
                                names.add(name)
                            case _:
                                pass
            self._by_module[module] = frozenset(names)
        return self._by_module[module]


def _name_of(package: Package | None) -> str:
    return MODULE if package is None else package.module


def _is_main_block(statement: ast.stmt) -> TypeGuard[ast.If]:
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'"


def find_oddities(tree: ast.Module, kernels: Collection[str]) -> Iterator[str]:
    """Yield notes on what is allowed and may be a mistake: unused kernels, broad `except`, imports without use, numpy."""
    nodes = list(ast.walk(tree))
    used = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for kernel in kernels:
        if kernel not in used:
            yield f"kernel `{kernel}` is used nowhere"
    for node in nodes:
        match node:
            case ast.ExceptHandler(type=None | ast.Name(id="Exception" | "BaseException")):
                yield f"line {node.lineno}: a broad except hides what fails"
            case _:
                pass
    for name, module in imported_names(tree).items():
        if module.partition(".")[0] in {*_MODULES, *_UNWATCHED} and name not in used:
            yield f"`{module}` is imported and not used"
        if module == "numpy":
            yield "numpy is imported: work done in it is not a kernel's"


def _parameters_read(tree: ast.Module) -> frozenset[ast.AST]:
    """Names that mean a parameter of a function around them: many authors call a tensor `input`."""
    read: set[ast.AST] = set()
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        own = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
        body = function.body if isinstance(function.body, list) else [function.body]
        for statement in body:
            read.update(node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id in own)
    return frozenset(read)


def _check_name(
    node: ast.Name, name: str, imported: dict[str, str], own: frozenset[str], allowed: frozenset[str]
) -> Iterator[Refusal]:
    """Refuse the use of a name: a builtin that the judge cannot watch, a private name of Python, or a refused import."""
    if name in _BUILTINS and name not in allowed and name not in own and name not in imported:
        yield Refusal(node.lineno, f"`{name}` is used: {_BUILTINS[name]}", unsupported=True)
    if name in _ATTRIBUTES - _BUILTINS.keys() and name.startswith("__"):
        yield _reaching(node.lineno, name)
    module = imported.get(name)
    if module is not None:
        yield from _check_module(node.lineno, module, allowed)
        yield from _check_path(node.lineno, module, allowed)


def _check_module(line: int, module: str, allowed: frozenset[str]) -> Iterator[Refusal]:
    """Refuse a module that hides work from the judge, or that the judge cannot watch; `allowed` names may be used."""
    top = module.partition(".")[0]
    if top in _MODULES:
        yield Refusal(line, f"`{module}` is used: {_MODULES[top]}")
    if top in _UNWATCHED and not any(_leads_to(module, name) for name in allowed):
        yield Refusal(line, f"`{module}` is used: {_UNWATCHED[top]}", unsupported=True)


def _reaching(line: int, name: str) -> Refusal:
    return Refusal(line, f"`{name}` reaches objects of Python that do not belong to the candidate")


def _check_attribute(
    node: ast.Attribute, imported: dict[str, str], allowed: frozenset[str]
) -> Iterator[Refusal]:
    """Refuse an attribute that reaches into Python's objects, replaces a kernel's text, or is a refused member of a library."""
    path = dotted(node, imported)
    is_harmless = path is not None and _is_harmless(path)
    if node.attr in _MODULE_ONLY_ATTRIBUTES:
        is_harmless = path is None or not path.startswith("sys.")
    if node.attr in _ATTRIBUTES and not is_harmless:
        yield _reaching(node.lineno, f".{node.attr}")
    if node.attr == _NEW_TEXT:
        why = f"`.{_NEW_TEXT}` gives a kernel another text, which the judge cannot read"
        yield Refusal(node.lineno, why, unsupported=True)
    if path is not None:
        yield from _check_path(node.lineno, path, allowed)


def _check_path(line: int, path: str, allowed: frozenset[str]) -> Iterator[Refusal]:
    """Refuse a dotted name of a library, such as `torch.utils.cpp_extension.load`, if the judge cannot watch it.

    `allowed` are names that the task permits. Members of modules that are limited to a list, private parts of libraries and
    operators of `torch.library` are refused, each with its reason.
    """
    top, _, member = path.partition(".")
    permitted = any(_leads_to(path, name) for name in allowed)
    if (
        member
        and not permitted
        and not any(_leads_to(member, allowed_member) for allowed_member in _MEMBERS.get(top, (member,)))
    ):
        why = f"the judge cannot watch it; of `{top}` a candidate may use {', '.join(_MEMBERS[top])}"
        if path == IMPORT_MODULE:
            why = "the judge cannot follow a module that is named at run time; import it by its name"
        yield Refusal(line, f"`{path}` is used: {why}", unsupported=True)
    if (top in _LIBRARIES or top in sys.stdlib_module_names) and not _INSIDE_LIBRARIES.isdisjoint(
        member.split(".")
    ):
        yield Refusal(line, f"`{path}` reaches files or modules of Python through a library")
    if path.startswith(_CUSTOM_OPERATORS) and not _leads_to(path, _WRAPPED_KERNEL):
        why = f"`{path}` is used: the judge cannot watch what runs inside an operator of torch.library; call the kernel directly"
        yield Refusal(line, why, unsupported=True)
    if _is_harmless(path):
        return
    for refused, why in _TORCH.items():
        if path == refused or path.startswith(refused + "."):
            yield Refusal(line, f"`{path}` is used: {why}")


def _is_harmless(path: str) -> bool:
    """True if a path is, leads to or lies within a member of `_HARMLESS`."""
    return any(_leads_to(path, harmless) for harmless in _HARMLESS)


def _leads_to(member: str, allowed: str) -> bool:
    """True if `member` contains the allowed member, is the allowed member, or lies within it."""
    return f"{allowed}.".startswith(f"{member}.") or member.startswith(f"{allowed}.")


def _check_patch(node: ast.Attribute, imported: dict[str, str]) -> Iterator[Refusal]:
    """Refuse an assignment to an attribute of a library, such as `torch.empty = ...`.

    Allowed are settings (`_CONFIGURATION`), and attributes of libraries that neither kernels nor the judge use.
    """
    path = dotted(node, imported)
    if path is None or path.startswith(_CONFIGURATION):
        return
    if path.partition(".")[0] in ("torch", "triton", "numpy", "sys", "os", "time", "math"):
        yield Refusal(node.lineno, f"`{path}` is replaced; leave libraries as they are")


def _check_import_from(node: ast.ImportFrom, package: Package | None) -> Iterator[Refusal]:
    """Refuse a `from` import of the candidate itself, from above its package, or of all names of a watched library."""
    module = absolute_name(node, package.parent if package is not None else "")
    if node.level and not module:
        why = (
            "is one module"
            if package is None
            else f"is the module {package.module}, and the import begins above its package"
        )
        yield Refusal(node.lineno, f"a relative import: the candidate {why}")
    if module == _name_of(package):
        yield Refusal(node.lineno, "the candidate imports itself")
    top = module.partition(".")[0]
    for alias in node.names:
        if alias.name == "*" and top in {*_MODULES, *_UNWATCHED, *_MEMBERS}:
            yield Refusal(
                node.lineno, f"everything of `{node.module}` is imported: import what is used by name"
            )


def _check_reflection(
    node: ast.Call, target: ast.expr, name: ast.expr, imported: dict[str, str], allowed: frozenset[str]
) -> Iterator[Refusal]:
    """Refuse `getattr`, `setattr` and `delattr` where they reach what the plain form may not.

    `target` and `name` are the first two arguments. A library's member must have a plain name; no library may be changed.
    """
    assert isinstance(node.func, ast.Name)
    path, attribute = dotted(target, imported), _constant(name)
    library = path is not None and path.partition(".")[0] in (
        "torch",
        "triton",
        *_MEMBERS,
        *_MODULES,
        *_UNWATCHED,
    )
    if node.func.id != "getattr" and library:
        yield Refusal(node.lineno, f"`{path}` is changed; leave libraries as they are")
    if attribute is not None and attribute in _ATTRIBUTES:
        yield _reaching(node.lineno, attribute)
    if library and attribute is not None:
        yield from _check_path(node.lineno, f"{path}.{attribute}", allowed)
    if (
        library
        and not isinstance(name, ast.Constant)
        and node.func.id == "getattr"
        and _hides(path or "", name)
    ):
        yield Refusal(node.lineno, f"a member of `{path}` is named by an expression; name it plainly")


def _hides(path: str, name: ast.expr) -> bool:
    """True if `getattr(path, name)` hides the member's name from this check.

    Outside torch and triton any computed name hides it. Inside, only a name made of literals alone: a variable looks up a
    type, as in `getattr(tl, str(x.dtype).removeprefix("torch."))`.
    """
    if path.partition(".")[0] not in ("torch", "triton"):
        return True
    return not any(isinstance(node, (ast.Name, ast.Attribute)) for node in ast.walk(name))


def _constant(node: ast.expr) -> str | None:
    """The text of a literal, or of literals that are joined by `+`."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            first, second = _constant(left), _constant(right)
            return None if first is None or second is None else first + second
        case _:
            return None
