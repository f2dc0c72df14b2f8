"""Chooses the compiler's texts that a session keeps of one candidate, and compresses them."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from harness.wire.messages.compiler import KEPT_BYTES
from harness.wire.results.evaluation import KernelResources

NAMES = ("amdgcn", "ptx", "sass", "ttgir", "llir")
"""In the order of their importance: if a candidate has more than `KEPT_BYTES`, the last ones are left out."""
ASSEMBLY = frozenset(("amdgcn", "ptx"))
TOO_MUCH = f"the texts of an attempt may take {KEPT_BYTES // 1000} KB, and this one did not fit"


class _Text(NamedTuple):
    row: int
    name: str
    texts: Mapping[str, Any]


def keep_texts(
    rows: Sequence[KernelResources], assemblies: Sequence[Mapping[str, Any] | None], folder: str
) -> tuple[tuple[KernelResources, ...], dict[str, bytes]]:
    """Return the rows with the names of their texts, and the texts as gzip by the SHA-256 of these bytes.

    `assemblies` has Triton's texts of each row, `None` for a row without. `folder`, the candidate's, is cut from all paths: equal
    code has equal texts. The first config of an autotuned kernel counts; of the others there is the assembly, if it fits.
    """
    texts = [
        (is_further, NAMES.index(name), _Text(row, name, texts))
        for row, (is_further, texts) in enumerate(zip(_further_configs(rows), assemblies, strict=True))
        if texts is not None
        for name in (*texts, *(("sass",) if "cubin" in texts and "sass" not in texts else ()))
        if name in NAMES and (not is_further or name in ASSEMBLY)
    ]
    kept: dict[str, bytes] = {}
    names: list[dict[str, str]] = [{} for _ in rows]
    left_out: list[dict[str, str]] = [{} for _ in rows]
    room = KEPT_BYTES
    for _, _, text in sorted(texts, key=lambda entry: entry[:2]):
        try:
            content = str(text.texts[text.name])  # Triton disassembles `sass` here
        except Exception as error:  # noqa: BLE001 (Triton raises many kinds if its disassembler is missing or fails)
            left_out[text.row][text.name] = f"not disassembled: {type(error).__name__}: {error}"[:200]
            continue
        content = content.replace(f"{folder}/", "").replace(folder, ".")
        packed = gzip.compress(content.encode(), mtime=0)
        digest = hashlib.sha256(packed).hexdigest()
        if digest not in kept:
            if len(packed) > room:
                left_out[text.row][text.name] = TOO_MUCH
                continue
            kept[digest] = packed
            room -= len(packed)
        names[text.row][text.name] = digest
    new_rows = tuple(
        msgspec.structs.replace(row, texts=names[place], texts_left_out=left_out[place])
        for place, row in enumerate(rows)
    )
    return new_rows, kept


def _further_configs(rows: Sequence[KernelResources]) -> list[bool]:
    """Whether each row is a config of an autotuned kernel behind the first that compiled."""
    first: dict[tuple[str, str], int | None] = {}
    for row in rows:
        if row.architecture:
            first.setdefault((row.kernel, row.case), row.autotune_index)
    return [row.autotune_index != first.get((row.kernel, row.case), row.autotune_index) for row in rows]
