"""Protects the note on kernels that only large sizes launch: their answers were never compared."""

from __future__ import annotations

import pytest

from harness import DevicePool
from tests.support.judge.candidates import KERNEL, adding
from tests.support.judge.judging import judge

pytestmark = [pytest.mark.judge, pytest.mark.asyncio(loop_scope="session")]
SOURCE = adding(top=KERNEL.replace("add_kernel", "many")).replace(
    "    add_kernel[", "    kernel = add_kernel if x.numel() < LIMIT else many\n    kernel["
)


@pytest.mark.parametrize(
    ("limit", "note_count"), [("1 << 20", 1), pytest.param("1 << 62", 0, marks=pytest.mark.soak)]
)
async def test_kernel_of_only_large_sizes_gets_a_note(pool: DevicePool, limit: str, note_count: int) -> None:
    evaluation = await judge(pool, SOURCE.replace("LIMIT", limit))
    assert evaluation.verdict == "correct", evaluation.error
    notes = [note for note in evaluation.notes if "nothing is known of its answers" in note]
    assert len(notes) == note_count
    assert all(note.startswith("`many` is launched at the gpu sizes of case") for note in notes)
