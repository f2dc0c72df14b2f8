"""
Records which tuned configurations a program looked up, and what it found, for `wavedeck capture --lookups`.

Python 3.9 and newer; standard library only. An error in here never reaches the program. It calls functions of the program only to
learn the device, once for each row, after a loader has called them.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from operator import attrgetter
from types import ModuleType
from typing import Any

from wavedeck_capture_hook import MOST_SIGNATURES, CallRecorder, CallRow  # type: ignore[import-not-found]

LOADERS = (
    "get_moe_configs", "get_w8a8_block_configs", "get_w8a8_block_fp8_configs", "get_w8a8_block_int8_configs",
    "get_gemm_config", "get_CKGEMM_config", "get_GEMM_config", "get_GEMM_config_with_quant_type",
    "get_GEMM_A16W16_config", "get_CKBatchedGEMM_config", "get_2stage_cfgs", "try_get_optimal_config", "get_ssm_configs",
    "load_lora_op_config", "get_lora_configs",
)  # fmt: skip
DEVICE = (
    "get_device_name", "current_platform.get_device_name", "get_device_name_as_file_name", "arch_info.get_arch",
    "get_gfx_runtime", "get_gfx", "get_cu_num",
)  # fmt: skip
"""Functions in a loader's module that return the device by which it chooses a file or a row."""
SWITCHES = {"vllm": "VLLM_ROCM_USE_AITER", "sglang": "SGLANG_USE_AITER"}
"""Variables that let aiter run layers of the package."""


def plain(value: Any) -> Any:
    """Return an argument as plain data; its type's name if it has no plain form."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind.__name__ in ("dtype", "PosixPath"):
        return str(value)
    return f"{kind.__name__}.{value.name}" if hasattr(kind, "__members__") else kind.__name__


def outcome(module: ModuleType, name: str, result: Any) -> tuple[bool, str]:
    """Return whether a loader found a configuration, and the backend that runs then; empty if the result has none."""
    if name == "try_get_optimal_config":
        return result is not vars(module).get("_FLYDSL_MOE_DEFAULT_CONFIG"), "flydsl"
    if name == "get_2stage_cfgs":  # it returns the functions of both stages, with the names of their kernels
        words = [*result.stage1.keywords.items(), *getattr(result.stage2, "keywords", {}).items()]
        is_found = any(key.startswith("kernelName") and type(word) is str and word for key, word in words)
        return is_found, result.stage1.func.__name__.strip("_")
    if name in ("get_gemm_config", "load_lora_op_config") or name.endswith("_configs"):
        return bool(result[1] if type(result) is tuple else result), "triton"
    # The default of `get_GEMM_A16W16_config` is a row without a time.
    is_found = bool(result) and (name != "get_GEMM_A16W16_config" or "us" in result)
    return is_found, str(result.get("libtype", "ck")) if result else ""


class LookupRecorder(CallRecorder):  # type: ignore[misc]
    """Wraps the loaders of the packages, and keeps what they were asked and what they found in this process."""

    wants = re.compile(r"(vllm|sglang|aiter)(\.|$)").match

    def wrap(self, module: ModuleType) -> None:
        """Replace the loaders that a module defines by proxies that record their calls."""
        from json import dumps

        self.dumps, self.kind = dumps, "lookups"
        self.guarded(self._wrap_loaders, module)

    def _wrap_loaders(self, module: ModuleType) -> None:
        from inspect import signature

        for name in LOADERS:
            loader: Any = vars(module).get(name)
            # A module that only imports a loader has the proxy of the module that defines it.
            if getattr(loader, "__module__", None) == module.__name__:
                defaults = {item.name: item.default for item in signature(loader).parameters.values()}
                setattr(module, name, self.recording(loader, (module, name, defaults)))
                self.is_found = True
                self._write()

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any], loader: Any) -> Any:
        """Return what a loader is asked, and the variable `M` of its caller in its own module, as in vLLM and SGLang."""
        module, name, defaults = loader
        frame = sys._getframe(4)  # below this function, `guarded`, `begin` and the proxy
        is_asked = frame.f_globals is vars(module) and "M" in frame.f_code.co_varnames
        rows = frame.f_locals.get("M") if is_asked else None
        return module, name, {"M": rows, **defaults, **dict(zip(defaults, args)), **kwargs}

    def end(self, call: Any, result: Any) -> None:
        """Count a look-up."""
        if call is not None:
            self.guarded(self._add, *call, result)

    def _add(self, module: ModuleType, name: str, arguments: dict[str, Any], result: Any) -> None:
        values = {parameter: plain(value) for parameter, value in arguments.items()}
        rows = values.pop("token", values.pop("M"))
        # aiter rounds up to a power of two, if it has no exact row.
        values["_rows"] = 1 << max(rows - 1, 0).bit_length() if type(rows) is int else None
        is_found, values["_backend"] = outcome(module, name, result)
        values["_result"] = "found" if is_found else "default"
        key = (module.__name__, name, *values.items())
        if key not in self.rows:
            if is_found and is_of_other(module, arguments):
                values["_result"] = "other file"
            switch = SWITCHES.get(module.__name__.partition(".")[0], "")
            values["_switch"] = os.environ.get(switch, "").lower() in ("1", "true")
            values["_loader"] = f"{module.__name__}:{name}"
            values.update(_file=str(getattr(module, "__file__", "")), _device=device_of(module))
            described = {parameter: {"kind": "scalar", "value": value} for parameter, value in values.items()}
            with self.lock:
                if len(self.rows) >= MOST_SIGNATURES:
                    self.others += 1
                    return
                self.rows.setdefault(key, CallRow({"arguments": described, "same": (), "shared": ()}, "wall"))
        self.rows[key].calls += 1
        if self.rows[key].calls == 1:  # the last new look-up of a server that is killed may be an hour old
            self._begin_process(None, None)
            self._write()


def is_of_other(module: ModuleType, arguments: dict[str, Any]) -> bool:
    """Return True if SGLang took the file of another version of Triton, or for the second GEMM that of the first."""
    with suppress(AttributeError, KeyError, TypeError):  # no MoE loader of SGLang
        words = {name: arguments[name] for name in ("E", "N", "dtype", "per_channel_quant", "down_moe")}
        blocks = [arguments["block_n"], arguments["block_k"]]
        file = module.get_config_file_name(block_shape=blocks, **words)
        folder = os.environ.get(
            "SGLANG_MOE_CONFIG_DIR", os.path.dirname(os.path.realpath(str(module.__file__)))
        )
        version = f"triton_{module.triton.__version__.replace('.', '_')}"
        return not os.path.exists(os.path.join(folder, "configs", version, file))
    return False


def device_of(module: ModuleType) -> str:
    """Return the device as a loader knows it: a product, or an architecture and a number of compute units."""
    answers: dict[str, str] = {}
    for path in DEVICE:
        with suppress(AttributeError, OSError, RuntimeError):
            answer = str(attrgetter(path)(module)())
            answers.setdefault(re.sub(r"[\s/]+", "_", answer), answer)
    return " ".join(answers.values())
