"""Marks memory, goes back to a snapshot and marks it once more, and prints the marks each time, as JSON; run by the tests."""

import json
import sys

import torch

from harness.worker.serving.records import View
from harness.worker.verifier import shadow
from harness.worker.verifier.shadow import Shadows

WHOLE = View(storage=1, dtype="uint8", shape=(8,), strides=(1,), offset=0)
HALF = View(storage=1, dtype="uint8", shape=(4,), strides=(2,), offset=1)
OTHER = View(storage=2, dtype="uint8", shape=(4,), strides=(1,), offset=0)


def stored(marks: Shadows) -> None:
    marks.store(1, 2, torch.tensor([1, 0, 1], dtype=torch.uint8))


def filled(marks: Shadows) -> None:
    marks.fill(HALF, 1, shadow.FILLED)


def copied(marks: Shadows) -> None:
    marks.copy(HALF, 1, OTHER, 1)


def fresh() -> Shadows:
    marks = Shadows()
    marks.add(1, 8, shadow.UNWRITTEN)
    marks.add(2, 4, shadow.ORIGINAL)
    return marks


def told(marks: Shadows) -> list[int]:
    return marks.elements(WHOLE, 1).tolist()


seen = {}
for change in (stored, filled, copied):
    marks = fresh()
    before = told(marks)
    kept = marks.snapshot()
    change(marks)
    after = told(marks)
    marks.restore(kept)
    back = told(marks)
    change(marks)
    again = told(marks)
    marks.restore(kept)
    seen[change.__name__] = [before, after, back, again, told(marks)]
sys.stdout.write(json.dumps(seen))
