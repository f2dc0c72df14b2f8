"""What memory holds of a call's inputs and of earlier calls: what a launch that reads it may have handed on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NOTHING = 0
STATE = 1
"""Memory of the candidate's own that kernels stored to in an earlier call: what is made of it may count calls."""
INPUTS = 2
"""An input, or what was made of one, in this call or an earlier one."""

LEFT = (
    "loads of {} what an earlier call left there; no answer may hang on the calls before, so let each call write such memory before it "
    "reads it, mask the lanes that it has no use for, and put counters back to where they were"
)


@dataclass(slots=True)
class Past:
    """Of one storage."""

    level: int = NOTHING
    left: NDArray[np.uint8] | None = None
    """A byte for each byte: 1 where it holds what an earlier call made of its inputs, or what changes from call to call, until
    something is stored there. `None`: there is no such byte."""

    def meets(self, kind: str, places: slice | NDArray[np.int64], item_bytes: int) -> bool:
        """Whether an access (`load`, `store`, `atomic`) of elements that begin at `places` reads what was left."""
        if self.left is None:
            return False
        if isinstance(places, slice):
            found: slice | NDArray[np.int64] = slice(places.start, places.stop - 1 + item_bytes)
        else:
            found = (places[:, None] + np.arange(item_bytes)).reshape(-1)
        reads = kind != "store" and bool(self.left[found].any())
        if kind != "load":
            self.left[found] = 0
        return reads
