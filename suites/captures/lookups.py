"""Which tuned configurations a program looked up, from a capture of look-ups, and the files that it lacks.

Names of files and columns are those of vLLM 0.33.0, SGLang 0.5.23 and aiter e404860.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from suites.captures.capture import Capture

_GEMM = "^(?!.*(moe|bf16gemm|hgemm)).*(gemm|flatmm)"
_LOADERS = {
    "get_moe_configs": ("", "fusedmoekernel"),
    "get_2stage_cfgs": ("tuned_fmoe", "fmoe|(?<!fused)moe(gemm|mx|ck|[12])"),
    "get_GEMM_A16W16_config": ("bf16_tuned_gemm", "^cijk|wvsp|bf16gemm|hgemm|a16w16"),
    "get_CKGEMM_config": ("a8w8_tuned_gemm", _GEMM),
    "get_GEMM_config_with_quant_type": ("a8w8_bpreshuffle_tuned_gemm", _GEMM),
    "get_GEMM_config": ("a4w4_blockscale_tuned_gemm", _GEMM),
    "get_CKBatchedGEMM_config": ("a8w8_tuned_batched_gemm", _GEMM),
    "try_get_optimal_config": ("", "moegemm[12]"),
    "get_ssm_configs": ("", "selectivescanupdate"),
    "load_lora_op_config": ("", "lora(shrink|expand)"),
    "get_lora_configs": ("", "lora(shrink|expand)"),
}
"""For each loader: the table (CSV) of aiter that it reads, unless the call names one; and a regular expression.
That fits the names of the kernels that the loader chooses, in lower case without underscores."""
_TUNERS = {
    "tuned_fmoe": "ck_gemm_moe_2stages_codegen/gemm_moe_tune.py",
    "bf16_tuned_gemm": "gemm_a16w16/gemm_a16w16_tune.py",
    "a8w8_blockscale_bpreshuffle_tuned_gemm": "ck_gemm_a8w8_blockscale/gemm_a8w8_blockscale_tune.py --preshuffle",
}


@dataclass(frozen=True, slots=True)
class Lookup:
    """Look-ups of one shape with one result. `rows` are the numbers of rows M, rounded up to powers of two."""

    project: str
    function: str
    shape: Mapping[str, Any]
    rows: tuple[int, ...]
    device: str
    result: str
    """`found`, `default`, or `other file`: the one for another version of Triton or another GEMM."""
    backend: str
    path: str
    """The file in the project's repository; empty if no file is for this shape, or its layers run in aiter."""
    share: float | None
    """Share of the GPU's time of all kernels that the loader chooses; `None` if the trace has none."""

    @property
    def is_found(self) -> bool:
        """Whether the loader read the file or row for exactly this shape."""
        return self.result == "found"


def lookups_of(capture: Capture, shares: Mapping[str, float]) -> list[Lookup]:
    """Return a row for each loader, shape, device and result: missing ones first, then by share of the GPU's time."""
    groups: dict[bytes, list[dict[str, Any]]] = {}
    for signature in capture.signatures:
        row = {name: getattr(value, "value", None) for name, value in signature.arguments.items()}
        groups.setdefault(msgspec.json.encode({**row, "_rows": 0}), []).append(row)
    uses_aiter = any(b":get_2stage_cfgs" in key for key in groups)
    lookups = []
    for first, *more in groups.values():
        module, _, function = first["_loader"].partition(":")
        _, pattern = _LOADERS.get(function, ("", "w8a8(triton)?block"))
        if function == "get_gemm_config":  # GEMM-A16W16 -> _gemm_a16_w16_kernel
            pattern = first["config_name"].lower().replace("-", "")
        fitting = [share for name, share in shares.items() if re.search(pattern, name)]
        in_aiter = function == "get_moe_configs" and first["_switch"] and uses_aiter and not fitting
        names = [name for name in first if first[name] is not None and not re.match("_|.*_file", name)]
        path = ""
        with suppress(KeyError):  # the loader of another version has other parameters
            if first["_device"] and not in_aiter:
                path = _path(module, function, first, capture.versions.get("triton", ""))
        rows = tuple(sorted(row["_rows"] for row in (first, *more) if row["_rows"]))
        backend, share = "aiter" if in_aiter else first["_backend"], sum(fitting) if fitting else None
        facts = (rows, first["_device"], first["_result"], backend, path, share)
        lookups.append(Lookup(module.partition(".")[0], function, {key: first[key] for key in names}, *facts))
    return sorted(lookups, key=lambda row: (row.is_found, -(row.share or 0.0), row.function, str(row.shape)))


def _path(module: str, function: str, row: Mapping[str, Any], triton: str) -> str:
    project, *folders, last = module.split(".")
    if project == "aiter":
        return _aiter_path(last, function, row)
    is_vllm = project == "vllm"
    device = re.sub(r"[\s/]+" if is_vllm else " ", "_", row["_device"])
    folder = "/".join((*(() if is_vllm else ("python",)), project, *folders, "configs"))
    gap = "" if is_vllm else " "
    has_block = row.get("block_n") and row.get("block_k")
    block = f",block_shape=[{row['block_n']},{gap}{row['block_k']}]" if has_block else ""
    if function != "get_moe_configs":
        dtype = "int8_w8a8" if "int8" in function else row.get("dtype_label", "fp8_w8a8")
        return f"{folder}/N={row['N']},K={row['K']},device_name={device},dtype={dtype}{block}.json"
    device = "NVIDIA_H200" if is_vllm and "H200" in device.split("_") else device
    version = "" if is_vllm else f"/triton_{triton.replace('.', '_')}"
    dtype = f",dtype={row['dtype']}" if row["dtype"] else ""
    end = ",per_channel_quant=True" if row.get("per_channel_quant") else ""
    end += "_down" if row.get("down_moe") else ""
    return f"{folder}{version}/E={row['E']},N={row['N']},device_name={device}{dtype}{block}{end}.json"


def _aiter_path(module: str, function: str, row: Mapping[str, Any]) -> str:
    named = re.search("a8w8(_blockscale)?(_bpreshuffle)?", PurePosixPath(row.get("tuned_file") or "").name)
    if table := f"{named[0]}_tuned_gemm" if named else _LOADERS.get(function, ("",))[0]:
        return f"aiter/configs/{table.replace('a8w8', 'bf16') if module.endswith('bf16') else table}.csv"
    if function != "get_gemm_config" or not (row["N"] and row["K"]):
        return ""
    architecture, name = row["_device"].partition(" ")[0], row["config_name"]
    folder = f"{architecture}/triton/gemm/{name.lower().replace('-', '_')}"
    is_nested = (Path(row["_file"]).parent.parent / "configs" / folder / "DEFAULT.json").exists()
    place = f"{folder}/" if is_nested else f"gemm/{architecture}-"
    return f"aiter/ops/triton/configs/{place}{name}-N={row['N']}-K={row['K']}.json"


def tuner_commands(path: str, lookups: Iterable[Lookup]) -> str:
    """Return the shell commands by which aiter's own tuner writes the shapes of look-ups into one of aiter's tables."""
    table = PurePosixPath(path).stem
    family, _, kind = table.partition("_tuned_")
    tuner = _TUNERS.get(table, f"ck_{kind}_{family}/{kind}_{family}_tune.py")
    lines: dict[str, None] = {}
    for lookup in lookups:
        names = {"activation": "act_type", "otype": "outdtype"}
        values = {names.get(name, name): value for name, value in lookup.shape.items()}
        columns = ["M", *values]
        if lookup.function == "get_2stage_cfgs":
            columns = ["token", *columns[1 : columns.index("doweight_stage1") + 1]]
            # As aiter writes it: without the expert that only marks absent tokens, truth values as numbers.
            values["topk"] -= bool(values.get("is_ep"))
            values.update(use_g1u1=int(values["use_g1u1"]), doweight_stage1=int(values["doweight_stage1"]))
            values["q_dtype_w"] = values["q_dtype_w"].replace("uint32", "int4")
        lines[",".join(columns)] = None
        for size in lookup.rows:
            is_cut = size > 8192 and values.get("N", 0) > 4096  # as aiter rounds
            values.update(token=size, M=8192 if is_cut else size)
            lines[",".join(str(values[column]) for column in columns)] = None
    shapes = f"{table.replace('tuned', 'missed')}.csv"
    ending = f"END\npython3 csrc/{tuner} -i {shapes} -o {path}"
    return "\n".join((f"cat > {shapes} <<'END'", *lines, ending))
