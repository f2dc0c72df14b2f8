"""Tuned configurations in the files of vLLM, SGLang and aiter, which map a number of rows M to launch parameters.

The formats are those that the loaders of vLLM 0.33.0 (`get_moe_configs`, `get_w8a8_block_fp8_configs`), SGLang 0.5.23
(`get_moe_configs`) and aiter e404860 (`get_gemm_config`) read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from engine.errors import UsageProblem
from harness import Target
from harness.hardware.product_tables import find_product
from harness.wire.results.provenance import Provenance

from .launch_config import Config
from .legal import launch_options

REQUIRED = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")
"""Keys of a row in a file that has no row yet."""
OPTIONAL = ("waves_per_eu", "matrix_instr_nonkdim", "kpack")
"""Keys that a row has if the kernel sets them."""
BOUNDS = tuple(1 << power for power in (0, *range(2, 14)))
"""The M_LEQ bounds that aiter looks for."""
_DEVICE = r",device_name=(?P<device>[^,]+)(,dtype=\w+)?"
_VLLM = re.compile(
    rf"(E=(?P<E>\d+),N=(?P<N>\d+)|N=(?P<n>\d+),K=(?P<K>\d+)){_DEVICE}(,block_shape=\[\d+,(?(n)(?P<space> )?)\d+\])?\.json"
)
_SGLANG = re.compile(
    rf"triton_(?P<triton>\d+_\d+_\d+)/E=(?P<E>\d+),N=(?P<N>\d+){_DEVICE}(,block_shape=\[\d+, \d+\])?"
    r"(,per_channel_quant=True)?(_down)?\.json"
)
_AITER = re.compile(
    r"(gemm/(?P<arch>gfx\w+)-|(?P<nested>gfx\w+)/\w+/gemm/\w+/)(?P<kernel>[\w-]+)-N=(?P<N>\d+)-K=(?P<K>\d+)\.json"
)
NAMES = (
    "E=8,N=14336,device_name=AMD_Instinct_MI300X.json (vLLM), triton_3_6_0/E=8,N=14336,device_name=AMD_Instinct_MI300X.json "
    "(SGLang), gemm/gfx942-GEMM-A16W16-N=256-K=4096.json (aiter)"
)


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file, as far as its path says it."""

    path: str
    home: str
    """`vLLM`, `SGLang` or `aiter`."""
    sizes: dict[str, int]
    """The sizes of the problem that all rows share."""
    device: str = ""
    """The device's name in torch, with underscores; empty in aiter."""
    target: str = ""
    """The architecture; only in aiter."""
    triton: str = ""
    """The version; only in SGLang."""
    default: str = ""
    """The file that must exist beside a new one; only in aiter."""

    def check(self, provenance: Provenance | None, target: Target) -> None:
        """Raise `UsageProblem` if times of other hardware or of another Triton would go into the file."""
        timed = provenance or Provenance()
        if self.target and self.target != target.name:
            raise UsageProblem(f"{self.path} is for {self.target}, but the kernel was timed on {target.name}")
        if self.device:
            name = self.device.replace("_", " ")
            try:
                names = find_product(timed.product).names
            except KeyError:
                names = (re.escape(timed.product),)
            if not any(re.fullmatch(pattern, name, re.IGNORECASE) for pattern in names):
                raise UsageProblem(
                    f"{self.path} is for {name}, but the kernel was timed on {timed.product or 'an unknown GPU'}"
                )
        if self.triton and not re.match(rf"{re.escape(self.triton)}(\D|$)", timed.triton):
            raise UsageProblem(
                f"{self.path} is for Triton {self.triton}, but the kernel was timed with {timed.triton or 'another'}"
            )


def config_file(path: str) -> ConfigFile:
    """Return what a path says. Raises `UsageProblem` if no loader would look for it."""
    name = PurePosixPath(path).name
    if match := _SGLANG.search(path):
        triton = match["triton"].replace("_", ".")
        return ConfigFile(path, "SGLang", _sizes(match, E="E", N="N"), match["device"], triton=triton)
    if "triton_" not in PurePosixPath(path).parent.name and (match := _VLLM.fullmatch(name)):
        sizes = _sizes(match, E="E", N="N", n="N", K="K")
        return ConfigFile(path, "SGLang" if match["space"] else "vLLM", sizes, match["device"])
    if match := _AITER.search(path):
        default = "DEFAULT" if match["nested"] else f"{match['arch']}-{match['kernel']}"
        return ConfigFile(
            path,
            "aiter",
            _sizes(match, N="N", K="K"),
            target=match["nested"] or match["arch"],
            default=str(PurePosixPath(path).with_name(f"{default}.json")),
        )
    raise UsageProblem(f"{path} is no configuration file; the names of such files are as {NAMES}")


def _sizes(match: re.Match[str], **names: str) -> dict[str, int]:
    """Return the numbers of the groups that matched, by the name of their size."""
    texts = match.groupdict("")
    return {name: int(texts[group]) for group, name in names.items() if texts[group]}


@dataclass(frozen=True, slots=True)
class TunedRow:
    """A case that goes into a file."""

    case: str
    sizes: Mapping[str, int]
    config: Config
    is_faster: bool
    """False: the start is best, so an existing row stays."""


def rows_by_size(file: ConfigFile, rows: Sequence[TunedRow]) -> dict[int, TunedRow]:
    """Return the rows of the file's problem by M. Raises `UsageProblem` if there are none, or two with one M."""
    fitting = [
        row for row in rows if all(row.sizes.get(name, size) == size for name, size in file.sizes.items())
    ]
    if not fitting:
        sizes = ", ".join(f"{name}={size}" for name, size in file.sizes.items())
        raise UsageProblem(f"no case of the task has the sizes of {file.path}: {sizes}")
    by_size: dict[int, TunedRow] = {}
    for row in fitting:
        if "M" not in row.sizes:
            raise UsageProblem(f"case {row.case} has no size M, by which {file.home} chooses a row")
        first = by_size.setdefault(row.sizes["M"], row)
        if first is not row:
            raise UsageProblem(
                f"the cases {first.case} and {row.case} both have M={row.sizes['M']}; the task must have one case for each row"
            )
    return dict(sorted(by_size.items()))


def with_rows(
    file: ConfigFile,
    text: str | None,
    rows: Mapping[int, TunedRow],
    *,
    start: Config,
    target: Target,
    default: str | None = None,
) -> tuple[str, list[int]]:
    """Return the file's new text, and the sizes of the rows that were written. All other rows stay.

    A row is written where a configuration was measured as faster than the `start`, and where the file has no row.
    `default` is the text of aiter's default file. Raises `UsageProblem` if a value of a row is not known.
    """
    present = _read(file.path, text) if text is not None else {}
    if file.default and text is None:
        if default is None:
            raise UsageProblem(
                f"aiter does not look at {file.path} without {file.default}, which is not in the repository"
            )
        # The new file hides the default one, so other sizes keep the rows that they have today.
        present = _read(file.default, default)
    written: list[int] = []
    for size, row in rows.items():
        name = f"M_LEQ_{size}" if file.home == "aiter" else str(size)
        if file.home == "aiter" and size not in BOUNDS and name not in present:
            raise UsageProblem(
                f"aiter looks for no row {name}; M must be one of {', '.join(map(str, BOUNDS))}"
            )
        if row.is_faster or name not in present:
            like = present.get(name) or next(
                (values for values in present.values() if isinstance(values, dict)), {}
            )
            present[name] = _values(file, row, list(like) or list(REQUIRED), start, target)
            written.append(size)
    return json.dumps(dict(sorted(present.items(), key=_place)), indent=4) + "\n", written


def _read(path: str, text: str) -> dict[str, Any]:
    try:
        rows = json.loads(text)
    except ValueError as error:
        raise UsageProblem(f"{path} is no JSON: {error}") from error
    if not isinstance(rows, dict):
        raise UsageProblem(f"{path} holds no object with rows")
    return rows


def _place(item: tuple[str, object]) -> tuple[int, int]:
    """Sort key: words that are no row, rows by size, aiter's M_GEQ rows, `any`."""
    name = item[0]
    if name == "any":
        return 3, 0
    number = re.fullmatch(r"(M_LEQ_|M_GEQ_)?(\d+)", name)
    if number is None:
        return 0, 0
    return (2 if number[1] == "M_GEQ_" else 1), int(number[2])


def _values(
    file: ConfigFile, row: TunedRow, keys: Sequence[str], start: Config, target: Target
) -> dict[str, object]:
    """Return the row with the keys of its neighbours, and with further options that the kernel sets."""
    defaults = {option.name: option.default for option in launch_options(target)}
    keys = [*keys, *(name for name in (*REQUIRED, *OPTIONAL) if name in row.config and name not in keys)]
    lost = [
        name
        for name in row.config
        if row.config[name] != start.get(name, defaults.get(name)) and name not in keys
    ]
    if lost:
        raise UsageProblem(f"case {row.case} is tuned by {lost[0]}, for which {file.path} has no key")
    unknown = [name for name in keys if name not in row.config and name not in defaults]
    if unknown:
        raise UsageProblem(
            f"a row of {file.path} needs {unknown[0]}, which the launch of the kernel does not set to a plain value"
        )
    return {name: row.config.get(name, defaults.get(name)) for name in keys}
