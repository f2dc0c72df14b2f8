"""
Autotuned kernels in the interpreter, which cannot time: each config has its turn, and the rest is as on a device.

There the first call with a new key runs every config that pruning leaves, many times over, on the very arguments, before the
one that counts: a kernel that adds to its output has to have it reset. And what was chosen then is kept for the key: later
calls with other sizes do not prune again. Here that first call runs its config once more beforehand, hooks and resets as there,
and later calls take their turn among what pruning left then. A config whose `tl.static_assert` fails is skipped, as there.
Touches the internals of Triton's autotuner (3.6 and 3.7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

from triton.runtime import autotuner

from .observing import current
from .traffic import Observation

asked = SimpleNamespace(config=0, tunes=False)
"""Which config the call that runs should take of those that are left, beyond the last beginning anew; and whether it is a call
as on a device, with a trial run for each new key."""
trial = SimpleNamespace(runs=False)
"""Whether the launch that runs is one of tuning, whose work is done over."""

_STATIC = "at_compile_time"
"""Of an exception: no program of the kernel ran on a device."""
_LEFT = "left_by_pruning"
"""Of an autotuner: its configs by key, as the first call found them, without those that did not compile."""


def static_assert(cond: Any, msg: Any = "") -> None:
    """Stands for `tl.static_assert`: where it fails, the kernel would not have compiled on a device."""
    if not cond:
        error = AssertionError(msg)
        vars(error)[_STATIC] = True
        raise error


def install() -> None:
    """Take the place of the autotuner: once a process."""

    def run(self: Any, *args: Any, **named: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))

        def with_config(config: Any) -> Any:
            return self.fn.run(*args, **named, **config.all_kwargs())

        return tuned(self, named, with_config) if asked.tunes else untuned(self, named, with_config)

    autotuner.Autotuner.run = run


def untuned(tuner: Any, named: Mapping[str, Any], with_config: Callable[[Any], Any]) -> Any:
    """A call of an autotuned kernel outside of any that is judged, as on import: nothing is kept of it."""
    left = tuner.prune_configs(named) if len(tuner.configs) > 1 else tuner.configs
    return _first_that_compiles(list(left), lambda config: _launch(tuner, config, named, with_config))


def tuned(tuner: Any, named: Mapping[str, Any], with_config: Callable[[Any], Any]) -> Any:
    """A call of an autotuned kernel as on a device, its arguments by place in `tuner.nargs`; `with_config` launches."""
    if len(tuner.configs) == 1:
        return _launch(tuner, tuner.configs[0], named, with_config)
    key = _key(tuner, named)
    known = vars(tuner).setdefault(_LEFT, {})
    new = key not in tuner.cache
    if new:
        known[key] = list(tuner.prune_configs(dict(named)))

    def run(config: Any) -> Any:
        if new:
            _try(tuner, config, named, with_config)
        tuner.cache[key] = config
        return _launch(tuner, config, named, with_config)

    return _first_that_compiles(known.get(key) or [tuner.cache[key]], run)


def _first_that_compiles(left: list[Any], run: Callable[[Any], Any]) -> Any:
    """What `run` gives for the config whose turn it is, or for the next that compiles; `left` loses the configs that do not."""
    lost: Exception | None = None
    while left:
        config = left[asked.config % len(left)]
        before = _Counts.of(current())
        try:
            return run(config)
        except Exception as error:
            if not is_static(error):
                raise
            before.restore()
            lost = lost or error
            left.remove(config)
    assert lost is not None, "pruning leaves a config"
    raise lost


def is_static(error: BaseException | None) -> bool:
    """Whether a kernel ended by a static assertion; the interpreter wraps what a kernel raises, once for each function."""
    while error is not None and _STATIC not in vars(error):
        error = error.__cause__
    return error is not None


def _key(tuner: Any, named: Mapping[str, Any]) -> tuple[Any, ...]:
    """As Triton makes it."""
    given = {name: one for name, one in {**tuner.nargs, **named}.items() if name in tuner.arg_names}
    own = [given[name] for name in tuner.keys if name in given]
    return (*own, *(str(one.dtype) for one in given.values() if hasattr(one, "dtype")))


def _try(tuner: Any, config: Any, named: Mapping[str, Any], with_config: Callable[[Any], Any]) -> None:
    """One of the runs that would be timed, with what is done around each, and what is done after the last."""
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


class _Counts(NamedTuple):
    """How much work a call was seen to do so far."""

    observation: Observation | None
    launches: int = 0
    counts: tuple[int, int, int] = (0, 0, 0)

    @classmethod
    def of(cls, observation: Observation | None) -> _Counts:
        if observation is None:
            return cls(None)
        counts = observation.requested_read_bytes, observation.requested_write_bytes, observation.dot_flops
        return cls(observation, len(observation.launches), counts)

    def restore(self) -> None:
        """What was done since is no part of what is told of the call's work."""
        if self.observation is None:
            return
        del self.observation.launches[self.launches :]
        (
            self.observation.requested_read_bytes,
            self.observation.requested_write_bytes,
            self.observation.dot_flops,
        ) = self.counts


@contextmanager
def uncounted(observation: Observation | None) -> Iterator[None]:
    """What launches do in the block is done over and not counted."""
    before = _Counts.of(observation)
    try:
        yield
    finally:
        before.restore()
