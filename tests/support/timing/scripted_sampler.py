"""A telemetry sampler whose device returns scripted readings.

Run as `python -m tests.support.timing.scripted_sampler READINGS`; READINGS is a JSON list of readings.
"""

import json
import os
import sys
import time

from harness.node.telemetry.reading import Occupant, Reading
from harness.node.telemetry.sampler_process import Sampling, serve
from harness.wire.results.provenance import Provenance


class Scripted:
    """Returns the readings in order and repeats the last reading. A reading with `die` ends the process."""

    name = "nvml"

    def __init__(self, readings: list[dict[str, object]]) -> None:
        self._readings = readings
        self._occupants: tuple[Occupant, ...] | None = None

    def read(self) -> Reading:
        fields = dict(self._readings.pop(0) if len(self._readings) > 1 else self._readings[0])
        if fields.pop("die", False):
            os._exit(3)
        pids = fields.pop("pids", None)
        self._occupants = None if pids is None else tuple(Occupant(pid) for pid in pids)
        return Reading(at_s=time.monotonic(), **fields)

    def occupants(self) -> tuple[Occupant, ...] | None:
        return self._occupants

    def provenance(self) -> Provenance:
        return Provenance(product="A GPU", driver="570.86.15")


if __name__ == "__main__":
    serve(Sampling(Scripted(json.loads(sys.argv[1])), host=True), 0, 1)
