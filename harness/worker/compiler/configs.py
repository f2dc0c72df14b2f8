"""Compiles the configs of autotuned kernels, as Triton's autotuner would take them, whose internals it touches (3.6 and 3.7)."""

from __future__ import annotations

from typing import Any

from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime import autotuner
from triton.runtime.errors import OutOfResources, PTXASError

from . import ahead, capture

SURVIVED = (OutOfResources, CompileTimeAssertionFailure, PTXASError)
"""What Triton's autotuner takes for a config that lost; anything else ends the launch on a device too."""
_seen: dict[int, set[str]] = {}
"""Configs of each autotuned kernel that were compiled, by the kernel's identity."""


def install() -> None:
    """
    Take the place of the autotuner: once, after `capture.install`. Progress is reported with each config compiled.

    Every config is compiled at the first sizes that it is launched with, at all sizes where `capture.tuning` says so. At other sizes
    the first that compiles stands for the rest. A launch fails with the error of its first config where none compiles. On a device an
    exception other than `SURVIVED` of any config leaves the launch, so it does here.
    """

    def run(self: Any, *args: Any, **options: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        # Triton prunes only where there is a choice; pruning may return configs of its own making.
        left = self.prune_configs(options) if len(self.configs) > 1 else self.configs
        known = _seen.setdefault(id(self), set())
        compiled: list[Any] = []
        lost: Exception | None = None
        fatal: Exception | None = None
        for config in left:
            if compiled and str(config) in known and not capture.tuning.every:
                continue
            known.add(str(config))
            try:
                compiled.append((config, _launch(self, config, args, options)))
            except SURVIVED as error:
                lost = lost or error
            except Exception as error:  # noqa: BLE001 -- the others still go into the table; the first is raised below
                fatal = fatal or error
            ahead.reporting.progress()
        self.nargs = None
        first = fatal or (None if compiled else lost)
        if first is not None:
            raise first
        self.best_config, result = compiled[0]
        return result

    autotuner.Autotuner.run = run


def _launch(tuner: Any, config: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    capture.tuning.runs = True
    capture.tuning.index = next((at for at, known in enumerate(tuner.configs) if known == config), None)
    tuner.best_config = config
    try:
        if config.pre_hook is not None:
            config.pre_hook({**tuner.nargs, **options, **config.all_kwargs()})
        return tuner.fn.run(*args, **options, **config.all_kwargs())
    finally:
        capture.tuning.runs, capture.tuning.index = False, None
