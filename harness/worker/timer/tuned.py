"""
Autotuned kernels in a timer: compiled before the lease, tuned once during it, then fixed to the chosen config.

Uses internals of Triton's autotuner and launcher (3.6 and 3.7).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from triton.runtime import autotuner, jit


class Tuning:
    """Records and fixes the configs that autotuners of this process choose. Install it once, before foreign code is imported."""

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = {}
        self.fixed: dict[str, str] = {}
        """Config to use, by kernel, as Triton prints it."""
        self._ahead = False

    @property
    def chosen(self) -> dict[str, str]:
        """The chosen config of each kernel since `begin`.

        A kernel with several, by its key, is left out: each process tunes it.
        """
        return {kernel: next(iter(configs)) for kernel, configs in self._seen.items() if len(configs) == 1}

    @property
    def described(self) -> dict[str, str]:
        """The chosen configs of each kernel, in words."""
        return {kernel: " or ".join(sorted(configs)) for kernel, configs in self._seen.items()}

    def begin(self, fixed: dict[str, str]) -> None:
        """Begin a case with these fixed configs."""
        self._seen.clear()
        self.fixed = fixed

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """Until the block ends, launches only compile; of an autotuned kernel, every config."""
        self._ahead = True
        try:
            yield
        finally:
            self._ahead = False

    def install(self) -> None:
        """Replace methods of Triton's classes."""
        tune, launch = autotuner.Autotuner.run, jit.JITFunction.run

        def run(tuner: Any, *args: Any, **options: Any) -> Any:
            if self._ahead:
                options.pop("warmup", None)  # `tuner.warmup` passes it too
                return tuner.warmup(*args, **options)
            name = tuner.base_fn.__name__
            fixed = [config for config in tuner.configs if str(config) == self.fixed.get(name)]
            if not fixed:
                result = tune(tuner, *args, **options)
                if len(tuner.configs) > 1:
                    self._seen.setdefault(name, set()).add(str(tuner.best_config))
                return result
            all_configs, tuner.configs = tuner.configs, fixed
            try:
                self._seen.setdefault(name, set()).add(str(fixed[0]))
                return tune(tuner, *args, **options)
            finally:
                tuner.configs = all_configs

        def launch_or_compile(function: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
            return launch(function, *args, grid=grid, warmup=warmup or self._ahead, **options)

        autotuner.Autotuner.run = run
        jit.JITFunction.run = launch_or_compile
