"""Divides Triton's compiler at Triton IR.

Triton IR is made in the candidate's process, because that executes foreign Python. The stages behind it run in a process of their
own, in which no foreign code runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import triton
from triton._C.libtriton import ir
from triton.backends import backends
from triton.backends.compiler import Language
from triton.compiler.compiler import make_backend

from harness.hardware.targets import target as find_target
from harness.wire.device import Target
from harness.wire.messages.compiler import MOST_IR, Binary, KernelIr

from . import cache_files
from .stub_driver import gpu_target

PLACE = "/candidate"
"""The candidate's folder in requests: equal kernels in two folders are one request."""
_OWN_FILES = ("extern_libs", "ir_override")
"""Options that name files. A kernel that sets one is compiled in the candidate's process."""
_BINARIES = ("cubin", "hsaco")


def run_stages(kernel: KernelIr, scratch: Path) -> tuple[dict[str, bytes], str]:
    """Return the content of each stage, and what the stages added to the options, as JSON.

    Raises as Triton's stages do, and `ValueError` for options that name files: a process with foreign code may have sent them.
    """
    triton.knobs.nvidia.dump_ptxas_log = True
    cache_files.skip_unread_dumps()
    target = gpu_target(find_target(kernel.target))
    backend = make_backend(target)
    named = json.loads(kernel.options)
    if any(named.get(name) for name in _OWN_FILES):
        raise ValueError("a binary follows from its request alone, and files may change")
    options = backend.parse_options(
        {name: tuple(value) if isinstance(value, list) else value for name, value in named.items()}
    )
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    file = scratch / "kernel.ttir"
    file.write_text(kernel.ttir, encoding="utf-8")
    module = ir.parse_mlir_module(str(file), context)
    module.context = context
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, Language.TRITON)
    before = {**vars(options), "target": target}
    metadata = {**before, "hash": ""}
    files = {}
    for name, stage in list(stages.items())[1:]:
        module = stage(module, metadata)
        files[name] = module if isinstance(module, bytes) else str(module).encode()
    del metadata["hash"]
    added = {name: value for name, value in metadata.items() if name not in before or before[name] != value}
    return files, json.dumps(added)


class Listed(BaseException):
    """Ends the compilation of a kernel when its Triton IR is made."""


def end_at_ir(target: Target, folder: Path, note: Callable[[str, KernelIr, str], None]) -> None:
    """From now on, kernels are not compiled for `target`: each is given to `note`, and `Listed` is raised.

    `note` gets the hash by which Triton names the compiled kernel, the kernel, and its options as JSON. `folder` is the folder of
    the candidate. A kernel that cannot be compiled elsewhere is left out.
    """
    kind: Any = backends["amd" if target.backend == "hip" else "nvidia"].compiler
    add_stages = kind.add_stages

    def add(backend: Any, stages: dict[str, Any], options: Any, *language: Any) -> None:
        """Add the compiler's stages, with one that ends the compiler in the place of the first after Triton IR."""
        add_stages(backend, stages, options, *language)
        usual = backend.parse_options({})
        has_own_files = any(getattr(options, name, None) != getattr(usual, name, None) for name in _OWN_FILES)
        first, second, *_ = stages

        def end(module: Any, metadata: dict[str, Any]) -> None:
            """Note the kernel's IR if another process can compile it, and end the compiler by `Listed`."""
            plain = {name: value for name, value in vars(options).items() if name not in _OWN_FILES}
            text = str(module).replace(str(folder), PLACE)
            if first == "ttir" and not has_own_files and len(text) <= MOST_IR:
                kernel = KernelIr(text, target.name, json.dumps(plain, sort_keys=True))
                note(metadata["hash"], kernel, json.dumps(metadata, default=vars))
            raise Listed

        stages[second if first == "ttir" else first] = end  # Gluon has no Triton IR

    kind.add_stages = add


def files_of(kernel: KernelIr, binary: Binary, folder: Path, metadata: str) -> dict[str, bytes]:
    """Return the files of a compiled kernel by suffix, as Triton writes them; `metadata` as noted. None without a binary."""
    if not binary.files:
        return {}
    texts = {"ttir": kernel.ttir.encode(), **binary.files}
    files = {
        name: content if name in _BINARIES else content.replace(PLACE.encode(), str(folder).encode())
        for name, content in texts.items()
    }
    return {**files, "json": json.dumps(json.loads(metadata) | json.loads(binary.metadata)).encode()}
