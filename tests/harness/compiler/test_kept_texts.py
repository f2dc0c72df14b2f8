"""Which of the compiler's texts a session keeps."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator

from harness.wire.messages.compiler import KEPT_BYTES
from harness.wire.results.evaluation import KernelResources
from harness.worker.compiler.kept_texts import TOO_MUCH, keep_texts


def row(index: int | None = None) -> KernelResources:
    return KernelResources(
        kernel="kernel",
        case="a",
        config={},
        autotune_index=index,
        architecture="gfx942",
        binary_sha256="",
        grid=None,
    )


def noise(size: int) -> str:
    """Text that hardly gets shorter."""
    return random.Random(size).randbytes(size // 2).hex()


def test_texts_are_kept_without_the_folder_of_the_candidate() -> None:
    texts = {
        "amdgcn": '.file 1 "/tmp/guest-1" "kernel.py"',
        "ttgir": 'loc("/tmp/guest-1/kernel.py":9:0)',
        "ttir": "",
    }
    [kept], blobs = keep_texts([row()], [texts], "/tmp/guest-1")
    assert set(kept.texts) == {"amdgcn", "ttgir"}
    contents = {name: gzip.decompress(blobs[digest]).decode() for name, digest in kept.texts.items()}
    assert contents == {"amdgcn": '.file 1 "." "kernel.py"', "ttgir": 'loc("kernel.py":9:0)'}


def test_llir_is_the_first_to_be_left_out() -> None:
    texts = {"llir": noise(200_000), "amdgcn": noise(220_000), "ttgir": noise(180_000)}
    rows, blobs = keep_texts([row(), row()], [texts, {"amdgcn": noise(100_000)}], "/x")
    assert [set(kept.texts) for kept in rows] == [{"amdgcn", "ttgir"}, {"amdgcn"}]
    assert rows[0].texts_left_out == {"llir": TOO_MUCH}
    assert sum(map(len, blobs.values())) <= KEPT_BYTES


def test_further_configs_keep_their_assembly_alone() -> None:
    texts = [{"amdgcn": f"config {number}", "ttgir": f"ttgir {number}"} for number in range(2)]
    first, second = keep_texts([row(0), row(1)], texts, "/x")[0]
    assert (set(first.texts), set(second.texts)) == ({"amdgcn", "ttgir"}, {"amdgcn"})


def test_missing_disassembler_is_a_reason() -> None:
    class Texts(dict[str, object]):
        def __iter__(self) -> Iterator[str]:
            return iter(("ptx", "cubin"))

        def __missing__(self, key: str) -> object:
            raise RuntimeError("Cannot find cuobjdump")

    [kept], _ = keep_texts([row()], [Texts(ptx="ptx", cubin=b"")], "/x")
    assert set(kept.texts) == {"ptx"}
    assert "Cannot find cuobjdump" in kept.texts_left_out["sass"]
