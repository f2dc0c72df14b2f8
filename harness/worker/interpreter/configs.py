"""
Compiles the configs of autotuned kernels, several at once, as Triton's autotuner would take them.

Children compile ahead into the folder that Triton keeps compiled kernels in; the process itself then goes through the
configs in order and finds most of them there. What a child could not compile it compiles itself, so that errors are its
own. Touches the internals of Triton's autotuner (3.6 and 3.7).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import triton
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime import autotuner
from triton.runtime.errors import OutOfResources, PTXASError

from harness.worker.compiler import capture
from harness.worker.guest import importing

from . import tuning

SURVIVED = (OutOfResources, CompileTimeAssertionFailure, PTXASError)
"""What Triton's autotuner takes for a config that lost; anything else ends the launch on a device too."""
MOST_CHILDREN = 24
WORTHWHILE = 3
"""Configs from which on children are started."""

_CHUNK = 1 << 16
_TOLD: msgspec.msgpack.Decoder[tuple[str, str, float]] = msgspec.msgpack.Decoder(tuple[str, str, float])
_seen: dict[int, set[str]] = {}
"""Configs of each autotuned kernel that were compiled, by the kernel's identity."""


def install(progress: Callable[[], None]) -> None:
    """
    Take the place of the autotuner: once, after `capture.install`. `progress` is called with each config compiled.

    Every config is compiled at the first sizes that it is launched with, the first of them, which is the one that runs
    here, at all. On a device an exception other than `SURVIVED` of any config leaves the launch, so it does here.
    """

    def run(self: Any, *args: Any, **options: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        if capture.noting.only:
            launched = tuning.untuned if importing.current() else tuning.tuned
            return launched(
                self, options, lambda config: self.fn.run(*args, **options, **config.all_kwargs())
            )
        # Triton prunes only where there is a choice; pruning may return configs of its own making.
        left = self.prune_configs(options) if len(self.configs) > 1 else self.configs
        known = _seen.setdefault(id(self), set())
        chosen = [config for at, config in enumerate(left) if at == 0 or str(config) not in known]
        known.update(str(config) for config in chosen)
        result = None
        lost: Exception | None = None
        fatal: Exception | None = None
        with _ahead(self, chosen, args, options, progress):
            for config in chosen:
                try:
                    result = _launch(self, config, args, options)
                except SURVIVED as error:
                    lost = lost or error
                except Exception as error:  # noqa: BLE001 -- the others still go into the table; the first is raised below
                    fatal = fatal or error
                progress()
        self.best_config = left[0]
        self.nargs = None
        first = fatal if fatal is not None or result is not None else lost
        if first is not None:
            raise first
        return result

    autotuner.Autotuner.run = run


def _launch(tuner: Any, config: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    capture.tuning.index = next((at for at, known in enumerate(tuner.configs) if known == config), None)
    tuner.best_config = config
    try:
        if config.pre_hook is not None:
            config.pre_hook({**tuner.nargs, **options, **config.all_kwargs()})
        return tuner.fn.run(*args, **options, **config.all_kwargs())
    finally:
        capture.tuning.index = None


@contextlib.contextmanager
def _ahead(
    tuner: Any,
    configs: Sequence[Any],
    args: tuple[Any, ...],
    options: dict[str, Any],
    progress: Callable[[], None],
) -> Iterator[None]:
    """Let children compile all configs but the first; in the block what they have compiled is read, not made again."""
    cores = min(len(os.sched_getaffinity(0)), MOST_CHILDREN)
    if len(configs) < WORTHWHILE or cores < 2:
        yield
        return
    children = []
    for child in range(min(cores, len(configs) - 1)):
        share = configs[1 + child :: cores]
        reading, writing = os.pipe()
        try:
            pid = os.fork()
        except OSError:  # no more processes here: the rest is compiled one after the other
            os.close(reading)
            os.close(writing)
            break
        if pid == 0:
            os.close(reading)
            _compile_share(tuner, share, args, options, writing)
        os.close(writing)
        children.append((pid, reading))
    try:
        for _, reading in children:
            _hear(reading, progress)
        # Only what a child told of counts as compiled; its file would be there else without a log.
        triton.knobs.compilation.always_compile = False
        yield
    finally:
        triton.knobs.compilation.always_compile = True
        for pid, reading in children:
            os.close(reading)
            os.waitpid(pid, 0)


def _compile_share(
    tuner: Any, share: Sequence[Any], args: tuple[Any, ...], options: dict[str, Any], writing: int
) -> None:
    """The child's life; it ends here whatever happens."""
    try:
        for config in share:
            before = set(capture.told)
            with contextlib.suppress(Exception):  # the parent meets it again and tells of it
                _launch(tuner, config, args, options)
            for key in capture.told.keys() - before:
                told = msgspec.msgpack.encode((key, *capture.told[key]))
                _write(writing, len(told).to_bytes(4, "big") + told)
    finally:
        os._exit(0)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _hear(reading: int, progress: Callable[[], None]) -> None:
    """Take over what a child tells, until it is done or gone."""
    held = b""
    while part := os.read(reading, _CHUNK):
        held += part
        while len(held) >= 4 and len(held) >= 4 + (size := int.from_bytes(held[:4], "big")):
            key, log, seconds = _TOLD.decode(held[4 : 4 + size])
            capture.told[key] = log, seconds
            held = held[4 + size :]
            progress()
