"""Replaces Triton's autotuner: compiles configs and runs none. Uses the autotuner's internals (3.6 and 3.7)."""

from __future__ import annotations

from typing import Any

from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime import autotuner
from triton.runtime.errors import OutOfResources, PTXASError

from . import ahead, capture

SURVIVED = (OutOfResources, CompileTimeAssertionFailure, PTXASError)
"""Errors after which Triton's autotuner drops the config and goes on; any other error ends the launch on a device too."""
_seen: dict[int, set[str]] = {}
"""Compiled configs of each autotuned kernel, by the kernel's identity."""


def install() -> None:
    """
    Replace the autotuner; call it once, after `capture.install`.

    A launch compiles every config that no launch of the kernel compiled before; with `capture.tuning.always_all`, every config.
    If all are known, it compiles the first config that works. Without a working config, the launch raises the error of the first.
    An error outside `SURVIVED` always ends the launch, after all configs were tried.
    """

    def run(self: Any, *args: Any, **options: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        # Triton prunes only if there is a choice; pruning may return new configs.
        configs = self.prune_configs(options) if len(self.configs) > 1 else self.configs
        seen = _seen.setdefault(id(self), set())
        compiled: list[Any] = []
        dropped: Exception | None = None
        fatal: Exception | None = None
        for config in configs:
            if compiled and str(config) in seen and not capture.tuning.always_all:
                continue
            seen.add(str(config))
            try:
                compiled.append((config, _launch(self, config, args, options)))
            except SURVIVED as error:
                dropped = dropped or error
            except Exception as error:  # noqa: BLE001 -- raised below, after the other configs are in the table
                fatal = fatal or error
            ahead.reporting.progress()
        self.nargs = None
        failure = fatal or (None if compiled else dropped)
        if failure is not None:
            raise failure
        self.best_config, result = compiled[0]
        return result

    autotuner.Autotuner.run = run


def _launch(tuner: Any, config: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    capture.tuning.active = True
    capture.tuning.index = next((at for at, known in enumerate(tuner.configs) if known == config), None)
    tuner.best_config = config
    try:
        if config.pre_hook is not None:
            config.pre_hook({**tuner.nargs, **options, **config.all_kwargs()})
        return tuner.fn.run(*args, **options, **config.all_kwargs())
    finally:
        capture.tuning.active, capture.tuning.index = False, None
