"""Makes autotuned kernels of a script take the first config that runs, because a recording on a GPU times nothing.

Patches internals of Triton's autotuner (3.6 and 3.7).
"""

from __future__ import annotations

from typing import Any

from triton.runtime import autotuner

_IMPOSSIBLE = [float("inf")] * 3


def install() -> None:
    """Replace the autotuner's measurement, once a process."""
    bench = autotuner.Autotuner._bench

    def run_first(self: Any, *args: Any, **options: Any) -> Any:
        if getattr(self, "_wavedeck_has_run", None) is self.nargs:
            return _IMPOSSIBLE
        self._do_bench = _run_once
        times = bench(self, *args, **options)
        if times != _IMPOSSIBLE:
            self._wavedeck_has_run = self.nargs
        return times

    autotuner.Autotuner._bench = run_first


def _run_once(call: Any, **_: Any) -> list[float]:
    call()
    return [1.0] * 3
