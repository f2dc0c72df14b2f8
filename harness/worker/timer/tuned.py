"""
Autotuned kernels in a timer: compiled ahead of the lease, tuned once inside it, held to what was chosen.

Touches the internals of Triton's autotuner and launcher (3.6 and 3.7).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from triton.runtime import autotuner, jit


class Tuning:
    """What the autotuners of one process choose, and what they are held to. Install it once, before foreign code is imported."""

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = {}
        self.held: dict[str, str] = {}
        """Configs by kernel, as Triton prints them."""
        self._ahead = False

    @property
    def chosen(self) -> dict[str, str]:
        """By kernel, since `begin`; a kernel that chose several, by its key, is left out: it is tuned in each process."""
        return {kernel: next(iter(configs)) for kernel, configs in self._seen.items() if len(configs) == 1}

    @property
    def described(self) -> dict[str, str]:
        """By kernel, for people."""
        return {kernel: " or ".join(sorted(configs)) for kernel, configs in self._seen.items()}

    def begin(self, held: dict[str, str]) -> None:
        """A case begins."""
        self._seen.clear()
        self.held = held

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """Launches compile, every config of an autotuned kernel, and nothing runs."""
        self._ahead = True
        try:
            yield
        finally:
            self._ahead = False

    def install(self) -> None:
        """Takes its place in Triton's classes."""
        tune, launch = autotuner.Autotuner.run, jit.JITFunction.run

        def run(tuner: Any, *args: Any, **options: Any) -> Any:
            if self._ahead:
                options.pop("warmup", None)  # Triton's own warm-up says it itself
                return tuner.warmup(*args, **options)
            name = tuner.base_fn.__name__
            held = self.held.get(name)
            kept = [config for config in tuner.configs if str(config) == held]
            if not kept:
                found = tune(tuner, *args, **options)
                if len(tuner.configs) > 1:
                    self._seen.setdefault(name, set()).add(str(tuner.best_config))
                return found
            every, tuner.configs = tuner.configs, kept
            try:
                self._seen.setdefault(name, set()).add(str(kept[0]))
                return tune(tuner, *args, **options)
            finally:
                tuner.configs = every

        def launched(function: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
            return launch(function, *args, grid=grid, warmup=warmup or self._ahead, **options)

        autotuner.Autotuner.run = run
        jit.JITFunction.run = launched
