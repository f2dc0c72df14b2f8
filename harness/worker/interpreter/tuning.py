"""
Autotuned kernels in the interpreter, which cannot time: each call runs the config that the judge asks for.

On a device, the first call with a new key runs every config that pruning leaves, many times, on the same arguments, before
the call that counts. So a kernel that adds to its output needs it reset. Later calls with this key use the choice and do not
prune again. Here the first call runs its config once more before the call that counts, with the same hooks and resets. Later
calls take their config from the configs that pruning left. A config with a `tl.static_assert` that fails is skipped, as on
a device. Touches internals of Triton's autotuner (3.6 and 3.7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from triton.runtime import autotuner

from .observing import current
from .traffic import Observation

asked = SimpleNamespace(config=0, tunes=False)
"""`config`: number of the config to run, modulo the remaining configs. `tunes`: as on a device, each new key gets a trial run."""
trial = SimpleNamespace(runs=False)
"""Whether the current launch is a trial run; its work is done again for the call itself."""

_STATIC = "at_compile_time"
"""Attribute of an exception: on a device no program of the kernel would have run."""
_LEFT = "left_by_pruning"
"""Attribute of an autotuner: its configs by key, as pruned in the first call, without configs that did not compile."""

_COUNTS = ("requested_read_bytes", "requested_write_bytes", "dot_flops")


def static_assert(cond: Any, msg: Any = "") -> None:
    """Replaces `tl.static_assert`: if it fails, the kernel would not compile on a device."""
    if not cond:
        error = AssertionError(msg)
        vars(error)[_STATIC] = True
        raise error


def install() -> None:
    """Replace the autotuner's `run`: once a process."""

    def run(self: Any, *args: Any, **named: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))

        def with_config(config: Any) -> Any:
            return self.fn.run(*args, **named, **config.all_kwargs())

        return tuned(self, named, with_config) if asked.tunes else untuned(self, named, with_config)

    autotuner.Autotuner.run = run


def untuned(tuner: Any, named: Mapping[str, Any], with_config: Callable[[Any], Any]) -> Any:
    """Run a call of an autotuned kernel that is not judged, as on import: nothing is stored for its key."""
    configs = tuner.prune_configs(named) if len(tuner.configs) > 1 else tuner.configs
    return _first_that_compiles(list(configs), lambda config: _launch(tuner, config, named, with_config))


def tuned(tuner: Any, named: Mapping[str, Any], with_config: Callable[[Any], Any]) -> Any:
    """Run a call of an autotuned kernel as on a device. `tuner.nargs` has its arguments; `with_config` launches."""
    if len(tuner.configs) == 1:
        return _launch(tuner, tuner.configs[0], named, with_config)
    key = _key(tuner, named)
    remaining = vars(tuner).setdefault(_LEFT, {})
    new = key not in tuner.cache
    if new:
        remaining[key] = list(tuner.prune_configs(dict(named)))

    def run(config: Any) -> Any:
        if new:
            _try(tuner, config, named, with_config)
        tuner.cache[key] = config
        return _launch(tuner, config, named, with_config)

    return _first_that_compiles(remaining.get(key) or [tuner.cache[key]], run)


def _first_that_compiles(configs: list[Any], run: Callable[[Any], Any]) -> Any:
    """Run the config that the judge asks for, or the next that compiles; configs that do not compile are removed."""
    first_error: Exception | None = None
    while configs:
        config = configs[asked.config % len(configs)]
        restore = _counts(current())
        try:
            return run(config)
        except Exception as error:
            if not is_static(error):
                raise
            restore()
            first_error = first_error or error
            configs.remove(config)
    assert first_error is not None, "pruning leaves a config"
    raise first_error


def is_static(error: BaseException | None) -> bool:
    """Whether a static assertion ended a kernel; the interpreter wraps a kernel's error once for each function."""
    while error is not None and _STATIC not in vars(error):
        error = error.__cause__
    return error is not None


def _key(tuner: Any, named: Mapping[str, Any]) -> tuple[Any, ...]:
    """The key that Triton makes."""
    arguments = {name: value for name, value in {**tuner.nargs, **named}.items() if name in tuner.arg_names}
    own = [arguments[name] for name in tuner.keys if name in arguments]
    return (*own, *(str(value.dtype) for value in arguments.values() if hasattr(value, "dtype")))


def _try(tuner: Any, config: Any, named: Mapping[str, Any], with_config: Callable[[Any], Any]) -> None:
    """Run a config once as a device does to time it, with all hooks and the final reset."""
    full = {**tuner.nargs, **named, **config.all_kwargs()}
    if config.pre_hook is not None:
        config.pre_hook(full)
    tuner.pre_hook(full)
    trial.runs = True
    try:
        with_config(config)
    except Exception as error:
        tuner.post_hook(full, exception=error)
        raise
    finally:
        trial.runs = False
    tuner.post_hook(full, exception=None)
    tuner.pre_hook(full, reset_only=True)


def _launch(tuner: Any, config: Any, named: Mapping[str, Any], with_config: Callable[[Any], Any]) -> Any:
    tuner.best_config = config
    if config.pre_hook is not None:
        config.pre_hook({**tuner.nargs, **named, **config.all_kwargs()})
    result = with_config(config)
    tuner.nargs = None
    return result


def _counts(observation: Observation | None) -> Callable[[], None]:
    """Remember the observed work; the returned function forgets the work since."""
    if observation is None:
        return lambda: None
    launches = len(observation.launches)
    counts = {name: getattr(observation, name) for name in _COUNTS}

    def restore() -> None:
        del observation.launches[launches:]
        for name, count in counts.items():
            setattr(observation, name, count)

    return restore


@contextmanager
def uncounted(observation: Observation | None) -> Iterator[None]:
    """Do not count the work of launches in the block: it is done again."""
    restore = _counts(observation)
    try:
        yield
    finally:
        restore()
