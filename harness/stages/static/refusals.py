"""Constructs that a kernel module has no honest use for, found in its syntax tree; and oddities that become notes."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import NamedTuple, TypeGuard

from .reachability import own_nodes, reachable_statements


class Refusal(NamedTuple):
    """A construct that is refused, and why."""

    line: int
    why: str
    unsupported: bool = False
    """True if it may be honest, but the judge cannot watch it."""


_MODULES = {
    **dict.fromkeys(
        ("subprocess", "socket", "ctypes", "cffi", "multiprocessing", "_thread", "concurrent", "asyncio", "runpy",
         "pickle", "marshal", "shelve", "mmap", "signal", "atexit", "pty", "fcntl", "resource", "urllib", "http",
         "requests", "ftplib", "smtplib", "ssl", "select", "selectors", "builtins", "code", "codeop", "imp",
         "zipimport", "pkgutil", "shutil", "tempfile", "pathlib", "glob", "tracemalloc", "faulthandler", "cupy",
         "numba", "unittest", "pip", "setuptools"),
        "a kernel module has no use for it",
    ),
    **dict.fromkeys(("harness", "suites", "engine", "sessions", "tui", "wavedeck"), "it belongs to the judge"),
}  # fmt: skip
"""Top-level modules that a candidate may import but not use, with the reason."""

_MEMBERS = {
    "os": ("path", "environ", "getenv", "cpu_count", "name", "sep", "linesep", "getpid"),
    "sys": ("maxsize", "version", "version_info", "float_info", "byteorder", "platform", "stdout", "stderr", "argv",
            "getsizeof", "implementation", "hexversion"),
    "gc": ("collect", "enable", "disable", "isenabled"),
    "inspect": ("signature", "Parameter", "getsource", "getdoc", "isfunction"),
    "threading": ("Lock", "RLock", "local"),
    "importlib": ("util.find_spec", "metadata.version", "metadata.PackageNotFoundError"),
    "io": ("StringIO", "BytesIO"),
}  # fmt: skip
"""The only members of these modules that a candidate may name."""

_TORCH = (
    "torch._C", "torch.utils._python_dispatch", "torch.utils.cpp_extension", "torch.utils.dlpack", "torch.overrides",
    "torch.hub", "torch.load", "torch.save", "torch.compile", "torch.jit", "torch._inductor",
    "torch._dynamo.optimize", "torch._dynamo.export", "torch._dynamo.eval_frame", "torch._dynamo.convert_frame",
    "torch.multiprocessing", "torch.ops.load_library", "torch.from_file",
    "triton._C", "triton.runtime.interpreter", "triton.runtime.jit.JITFunction.run", "triton.knobs.runtime",
    "triton.runtime.driver.set_active", "torch.utils._mode_utils", "triton.knobs.compilation.listener",
)  # fmt: skip
"""Parts of torch and triton with which a candidate could compute outside its kernels or leave the judge's view."""
_HARMLESS = (
    "torch.jit.is_scripting", "torch.jit.is_tracing", "torch.jit.ignore", "torch.jit.unused", "torch.jit.export", "torch.jit.Final",
    "torch._inductor.config", "torch._inductor.runtime.triton_helpers",
    "torch._C._cuda_getCurrentRawStream", "torch._C._dynamo.guards._empty_strided_cuda",
)  # fmt: skip
"""Members of `_TORCH` that compile nothing: marks, questions and settings, and what code from `torch.compile` calls."""

_CUSTOM_OPERATORS = "torch.library"

_INSIDE_LIBRARIES = frozenset({
    "os", "sys", "subprocess", "ctypes", "ctypeslib", "socket", "importlib", "builtins", "inspect", "gc", "threading",
    "pickle", "shutil", "tempfile", "pathlib", "memmap", "fromfile", "tofile", "DataSource",
})  # fmt: skip
"""Modules that torch, triton and numpy import, and their file access: `torch.os` is `os` too."""

_BUILTINS = frozenset({
    "exec", "eval", "compile", "__import__", "open", "input", "breakpoint", "globals", "locals", "vars", "__builtins__",
    "__loader__", "__spec__", "memoryview",
})  # fmt: skip
_ATTRIBUTES = frozenset({
    "__globals__", "__builtins__", "__code__", "__closure__", "__subclasses__", "__bases__", "__mro__", "__loader__",
    "__spec__", "__import__", "__reduce__", "__reduce_ex__", "__getattribute__", "f_back", "f_locals", "f_globals",
    "f_builtins", "tb_frame", "gi_frame", "cr_frame", "_getframe", "get_objects", "get_referrers", "_current_frames",
    "settrace", "setprofile", "_unsafe_update_src", "modules", "meta_path", "path_hooks", "_C",
})  # fmt: skip
_MODULE_ONLY_ATTRIBUTES = frozenset({"modules"})
"""Harmless on anything but `sys`, as `nn.Module.modules`."""
_CONFIGURATION = (
    "torch.backends", "torch.set_", "torch._dynamo.config", "torch._inductor.config",
    "triton.knobs.autotuning", "triton.knobs.compilation", "triton.knobs.amd", "triton.knobs.nvidia",
)  # fmt: skip
MODULE = "kernel"
_INTERPRETER_VARIABLE = "TRITON_INTERPRET"


def find_refusals(
    tree: ast.Module, own_names: frozenset[str], entry_points: Collection[str]
) -> Iterator[Refusal]:
    """Each refused construct that may run, in no particular order. `own_names` are bound by the module itself."""
    imported = _imports(tree)
    parameters = _parameters_read(tree)
    # A `__main__` block at the end never runs, because the module is imported.
    body = (
        part
        for statement in tree.body
        for part in (statement.orelse if _is_main_block(statement) else [statement])
    )
    statements = reachable_statements(body, entry_points)
    for node in (node for statement in statements for node in own_nodes(statement)):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if node not in parameters:
                yield from _check_name(node, name, imported, own_names)
            case ast.Attribute():
                yield from _check_attribute(node, imported)
                if isinstance(node.ctx, (ast.Store, ast.Del)):
                    yield from _check_patch(node, imported)
            case ast.ImportFrom():
                yield from _check_import_from(node)
            case ast.Import(names=names) if any(alias.name == MODULE for alias in names):
                yield Refusal(node.lineno, "the candidate imports itself")
            case ast.Call(func=ast.Name(id="setattr" | "delattr" | "getattr"), args=[target, name, *_]):
                yield from _check_reflection(node, target, name, imported)
            case ast.Subscript(ctx=ast.Store() | ast.Del()) if _dotted(node.value, imported) == "os.environ":
                if _constant(node.slice) in (None, _INTERPRETER_VARIABLE):
                    yield Refusal(node.lineno, "it changes how the judge runs the module")
            case ast.Constant(value=str() as text) if text == _INTERPRETER_VARIABLE:
                yield Refusal(
                    node.lineno, f"{_INTERPRETER_VARIABLE}: a kernel must not behave differently when judged"
                )


def _is_main_block(statement: ast.stmt) -> TypeGuard[ast.If]:
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'"


def find_oddities(tree: ast.Module, kernels: Collection[str]) -> Iterator[str]:
    """Notes on what is allowed and worth a look."""
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
    for name, module in _imports(tree).items():
        if module.partition(".")[0] in _MODULES and name not in used:
            yield f"`{module}` is imported and not used"
        if module == "numpy":
            yield "numpy is imported: work done in it is not a kernel's"


def _imports(tree: ast.Module) -> dict[str, str]:
    """Imported names with their meaning: `tl` -> `triton.language`; follows plain aliases (`F = torch.nn.functional`)."""
    meaning: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                meaning[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                meaning[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            path = _dotted(node.value, meaning)
            if path is not None:
                meaning.setdefault(node.targets[0].id, path)
    return meaning


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
    node: ast.Name, name: str, imported: dict[str, str], own: frozenset[str]
) -> Iterator[Refusal]:
    if name in _BUILTINS and name not in own and name not in imported:
        yield Refusal(node.lineno, f"`{name}` has no use in a kernel module")
    module = imported.get(name)
    if module is not None:
        top = module.partition(".")[0]
        if top in _MODULES:
            yield Refusal(node.lineno, f"`{module}` is used; {_MODULES[top]}")
        yield from _check_path(node.lineno, module)


def _check_attribute(node: ast.Attribute, imported: dict[str, str]) -> Iterator[Refusal]:
    path = _dotted(node, imported)
    is_harmless = path is not None and _is_harmless(path)
    if node.attr in _MODULE_ONLY_ATTRIBUTES:
        is_harmless = path is None or not path.startswith("sys.")
    if node.attr in _ATTRIBUTES and not is_harmless:
        yield Refusal(node.lineno, f"`.{node.attr}` has no use in a kernel module")
    if path is not None:
        yield from _check_path(node.lineno, path)


def _check_path(line: int, path: str) -> Iterator[Refusal]:
    top, _, member = path.partition(".")
    if member and not any(_leads_to(member, allowed) for allowed in _MEMBERS.get(top, (member,))):
        yield Refusal(line, f"`{path}` has no use in a kernel module")
    if top in ("torch", "triton", "numpy") and not _INSIDE_LIBRARIES.isdisjoint(path.split(".")[1:]):
        yield Refusal(line, f"`{path}` has no use in a kernel module")
    if path.startswith(_CUSTOM_OPERATORS):
        why = f"`{path}` registers an operator, and the judge cannot watch what runs inside it; call the kernel directly"
        yield Refusal(line, why, unsupported=True)
    if _is_harmless(path):
        return
    for refused in _TORCH:
        if path == refused or path.startswith(refused + "."):
            yield Refusal(line, f"`{path}` leaves the kernels or the judge's view")


def _is_harmless(path: str) -> bool:
    """True if a path is, leads to or lies within a member of `_HARMLESS`."""
    return any(_leads_to(path, harmless) for harmless in _HARMLESS)


def _leads_to(member: str, allowed: str) -> bool:
    """True if `member` contains the allowed member, is the allowed member, or lies within it."""
    return f"{allowed}.".startswith(f"{member}.") or member.startswith(f"{allowed}.")


def _check_patch(node: ast.Attribute, imported: dict[str, str]) -> Iterator[Refusal]:
    """Refuse assignments to a library's attributes, except to settings that exist to be assigned."""
    path = _dotted(node, imported)
    if path is None or path.startswith(_CONFIGURATION):
        return
    if path.partition(".")[0] in ("torch", "triton", "numpy", "sys", "os", "time", "math"):
        yield Refusal(node.lineno, f"`{path}` is replaced; leave libraries as they are")


def _check_import_from(node: ast.ImportFrom) -> Iterator[Refusal]:
    if node.level:
        yield Refusal(node.lineno, "a relative import: the candidate is one module")
    if node.module == MODULE:
        yield Refusal(node.lineno, "the candidate imports itself")
    top = (node.module or "").partition(".")[0]
    for alias in node.names:
        if alias.name == "*" and (top in _MODULES or top in _MEMBERS):
            yield Refusal(node.lineno, f"everything of `{node.module}` is imported")


def _check_reflection(
    node: ast.Call, target: ast.expr, name: ast.expr, imported: dict[str, str]
) -> Iterator[Refusal]:
    assert isinstance(node.func, ast.Name)
    path, attribute = _dotted(target, imported), _constant(name)
    library = path is not None and path.partition(".")[0] in ("torch", "triton", *_MEMBERS, *_MODULES)
    if node.func.id != "getattr" and library:
        yield Refusal(node.lineno, f"`{path}` is changed; leave libraries as they are")
    if attribute in _ATTRIBUTES:
        yield Refusal(node.lineno, f"`{attribute}` has no use in a kernel module")
    if library and attribute is not None:
        yield from _check_path(node.lineno, f"{path}.{attribute}")
    if library and attribute is None and node.func.id == "getattr" and _hides(path or "", name):
        yield Refusal(node.lineno, f"a member of `{path}` is named by an expression; name it plainly")


def _hides(path: str, name: ast.expr) -> bool:
    """True if `getattr(path, name)` hides the member's name from this check.

    Outside torch and triton any computed name hides it. Inside, only a name made of literals alone: a variable looks up a
    type, as in `getattr(tl, str(x.dtype).removeprefix("torch."))`.
    """
    if path.partition(".")[0] not in ("torch", "triton"):
        return True
    return not any(isinstance(node, (ast.Name, ast.Attribute)) for node in ast.walk(name))


def _dotted(node: ast.expr, imported: dict[str, str]) -> str | None:
    """`torch.nn.functional.softmax` for `F.softmax`; `None` if the root is no imported name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in imported:
        return None
    return ".".join([imported[node.id], *reversed(parts)])


def _constant(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
