"""How autotuned kernels run in this process: one policy, which takes the place of `run` of Triton's autotuner.

On a device, the first call with a new key runs every config that pruning leaves, many times, on the same arguments, before
the call that counts. So a kernel that adds to its output needs it reset. Later calls with this key use the choice and do not
prune again. A config that does not compile or does not fit is skipped. The policy keeps these rules where nothing is timed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import triton
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.autotuner import Autotuner
from triton.runtime.errors import PTXASError
from triton.testing import do_bench

if TYPE_CHECKING:
    from .config_race import ConfigRace

DROPPED = (triton.OutOfResources, CompileTimeAssertionFailure, PTXASError)
"""Errors after which Triton's autotuner drops the config and goes on; any other error ends the launch on a device too."""
BRIEFLY_MS = 1
"""How long a config runs if its time does not matter."""
_STATIC = "at_compile_time"
"""Attribute of an exception: on a device no program of the kernel would have run."""
_LEFT = "left_by_pruning"
"""Attribute of an autotuner: its configs by key, as pruned in the first call, without configs that did not compile."""


class Mode(Enum):
    """The way in which a call of an autotuned kernel runs."""

    TUNE = auto()
    """Triton's tuner times the configs; see `brief`."""
    FIXED = auto()
    """The config in `fixed` runs. A kernel that is not in `fixed` is tuned."""
    FIRST = auto()
    """One config runs: `number` modulo the configs that are left, or the next that compiles."""
    ALL = auto()
    """All configs are launched, by a launch that only compiles; see `again`."""


@dataclass
class Policy:
    """How this process runs autotuned kernels. Install it once, before foreign code is imported."""

    mode: Mode = Mode.TUNE
    brief: bool = False
    """Mode `TUNE`: run each config only once or twice. Every config must be correct, and its speed does not matter."""
    race: ConfigRace | None = None
    """Mode `TUNE`: times the configs in the place of Triton's benchmark; `None`: Triton's own, if not `brief`. Set it before
    the first call: a tuner keeps the race of its first timing."""
    fixed: Mapping[str, str] = field(default_factory=dict)
    """Config to use, by kernel, as Triton prints it."""
    number: int = 0
    rehearses: bool = False
    """Mode `FIRST`: as on a device, each new key gets a trial run, and the config is kept for the key."""
    again: bool = False
    """Mode `ALL`: also launch configs that an earlier launch of the kernel compiled. Else, if all are known, only the first."""
    progress: Callable[[], None] = lambda: None
    """Mode `ALL`: called after each config."""

    trying: bool = False
    """The current launch is a trial: its work is done again for the call itself."""
    index: int | None = None
    """Place of the config that is launched now; `None` for a config that pruning made."""
    config: str = ""
    """The config that is launched now, as Triton prints it."""
    launching: bool = False
    """A config of an autotuned kernel is launched now, in mode `FIRST` or `ALL`."""
    _used: dict[str, set[str]] = field(default_factory=dict)
    _seen: dict[int, set[str]] = field(default_factory=dict)
    """Mode `ALL`: launched configs of each autotuned kernel, by the kernel's identity."""

    @property
    def chosen(self) -> dict[str, str]:
        """The config of each kernel since `begin`, in the modes `TUNE` and `FIXED`.

        A kernel with several, by its key, is left out: each process tunes it.
        """
        return {kernel: next(iter(configs)) for kernel, configs in self._used.items() if len(configs) == 1}

    def begin(self, fixed: Mapping[str, str]) -> None:
        """Begin a case with these fixed configs."""
        self._used.clear()
        self.fixed = fixed

    def install(self) -> None:
        """Let every later call of an autotuned kernel follow this policy, for the rest of the process.

        Replaces two methods of Triton's autotuner: `run`, which calls a kernel, and `_bench`, which times one config.
        """
        triton_run, triton_bench = Autotuner.run, Autotuner._bench

        def run(tuner: Any, *args: Any, **named: Any) -> Any:
            """Call an autotuned kernel by the policy's mode."""
            if self.mode in (Mode.TUNE, Mode.FIXED):
                return self._run_by_triton(triton_run, tuner, *args, **named)
            run_configs = {Mode.FIRST: self._run_first, Mode.ALL: self._run_all}[self.mode]
            # Triton's pruning reads the arguments there.
            tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
            try:
                return run_configs(_TunedCall(self, tuner, args, named))
            finally:
                tuner.nargs = None  # a tuner outlives the call and would keep its tensors

        def bench(tuner: Any, *args: Any, **named: Any) -> Any:
            """Time one config, as a trial, by the policy's benchmark unless the kernel has one of its own."""
            # A kernel with a benchmark of its own keeps that one. Triton uses one benchmark for the life of a tuner.
            if tuner._do_bench is None and self.race is not None:
                tuner._do_bench = self.race.time
            elif tuner._do_bench is None and self.brief:
                tuner._do_bench = functools.partial(do_bench, warmup=BRIEFLY_MS, rep=BRIEFLY_MS)
            with self.trial():
                return triton_bench(tuner, *args, **named)

        Autotuner.run, Autotuner._bench = run, bench

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """Until the block ends, launch all configs. Launches must only compile."""
        before, self.mode, self.again = (self.mode, self.again), Mode.ALL, True
        try:
            yield
        finally:
            self.mode, self.again = before

    @contextmanager
    def trial(self) -> Iterator[None]:
        """Launches in the block are trials."""
        before, self.trying = self.trying, True
        try:
            yield
        finally:
            self.trying = before

    def _run_by_triton(self, triton_run: Callable[..., Any], tuner: Any, *args: Any, **named: Any) -> Any:
        """Let Triton run the kernel's fixed config, or tune the kernel if it has none; note the config that ran."""
        name, configs = tuner.base_fn.__name__, tuner.configs
        fixed = [config for config in configs if str(config) == self.fixed.get(name)]
        try:
            tuner.configs = fixed or configs
            call = functools.partial(triton_run, tuner, *args, **named)
            result = call() if self.race is None else self.race.run(call)
        finally:
            tuner.configs = configs
        if len(configs) > 1:
            self._used.setdefault(name, set()).add(str(tuner.best_config))
        return result

    def _run_first(self, call: _TunedCall) -> Any:
        """Run the call with one config, see `Mode.FIRST`, or with the next that compiles.

        If the policy rehearses, pruning and the trial run happen once for each key, as on a device, and later calls with the
        key keep the config. Raises the first config's error if none compiles.
        """
        tuner = call.tuner
        if not self.rehearses or len(tuner.configs) == 1:
            return self._first_that_compiles(list(call.pruned()), call.launch)
        key, pruned = call.key(), vars(tuner).setdefault(_LEFT, {})
        new = key not in tuner.cache
        if new:
            pruned[key] = list(call.pruned())

        def run(config: Any) -> Any:
            if new:
                call.try_once(config)
            tuner.cache[key] = config
            return call.launch(config)

        return self._first_that_compiles(pruned.get(key) or [tuner.cache[key]], run)

    def _first_that_compiles(self, configs: list[Any], run: Callable[[Any], Any]) -> Any:
        """Run the config that is asked for, or the next that compiles; configs that do not compile are removed."""
        first_error: Exception | None = None
        while configs:
            config = configs[self.number % len(configs)]
            try:
                return run(config)
            except Exception as error:
                if not (is_static(error) or isinstance(error, DROPPED)):
                    raise
                first_error = first_error or error
                configs.remove(config)
        assert first_error is not None, "pruning leaves a config"
        raise first_error

    def _run_all(self, call: _TunedCall) -> Any:
        """Launch the configs. Without a working config, raise the error of the first; an error outside `DROPPED` always."""
        seen = self._seen.setdefault(id(call.tuner), set())
        compiled: list[Any] = []
        dropped: Exception | None = None
        fatal: Exception | None = None
        for config in call.pruned():
            if compiled and str(config) in seen and not self.again:
                continue
            seen.add(str(config))
            try:
                compiled.append((config, call.launch(config)))
            except DROPPED as error:
                dropped = dropped or error
            except Exception as error:  # noqa: BLE001 -- raised below, after the other configs are compiled
                fatal = fatal or error
            self.progress()
        failure = fatal or (None if compiled else dropped)
        if failure is not None:
            raise failure
        call.tuner.best_config, result = compiled[0]
        return result


@dataclass
class _TunedCall:
    """One call of an autotuned kernel; `tuner.nargs` has its positional arguments."""

    policy: Policy
    tuner: Any
    args: tuple[Any, ...]
    named: Mapping[str, Any]

    def pruned(self) -> list[Any]:
        """The configs that pruning leaves. Triton prunes only if there is a choice; pruning may return new configs."""
        configs = self.tuner.configs
        return self.tuner.prune_configs(dict(self.named)) if len(configs) > 1 else configs  # type: ignore[no-any-return]

    def key(self) -> tuple[Any, ...]:
        """The key that Triton makes."""
        tuner = self.tuner
        arguments = {**tuner.nargs, **self.named}
        arguments = {name: value for name, value in arguments.items() if name in tuner.arg_names}
        own = [arguments[name] for name in tuner.keys if name in arguments]
        return (*own, *(str(value.dtype) for value in arguments.values() if hasattr(value, "dtype")))

    def launch(self, config: Any) -> Any:
        """Launch with a config for the call itself, after the config's own hook; it is the tuner's best config from now on."""
        self.tuner.best_config = config
        if config.pre_hook is not None:
            config.pre_hook(self._arguments(config))
        return self._launch(config)

    def try_once(self, config: Any) -> None:
        """Run a config once as a device does to time it, with all hooks and the final reset."""
        tuner, arguments = self.tuner, self._arguments(config)
        if config.pre_hook is not None:
            config.pre_hook(arguments)
        tuner.pre_hook(arguments)
        try:
            with self.policy.trial():
                self._launch(config)
        except Exception as error:
            tuner.post_hook(arguments, exception=error)
            raise
        tuner.post_hook(arguments, exception=None)
        tuner.pre_hook(arguments, reset_only=True)

    def _launch(self, config: Any) -> Any:
        """Launch with a config, without hooks; the policy knows the config's place during the launch."""
        policy = self.policy
        policy.launching = True
        policy.index = next((at for at, listed in enumerate(self.tuner.configs) if listed == config), None)
        policy.config = str(config)
        try:
            return self.tuner.fn.run(*self.args, **self.named, **config.all_kwargs())
        finally:
            policy.launching, policy.index, policy.config = False, None, ""

    def _arguments(self, config: Any) -> dict[str, Any]:
        return {**self.tuner.nargs, **self.named, **config.all_kwargs()}


policy = Policy()
"""The policy of this process."""


def static_assert(cond: Any, msg: Any = "") -> None:
    """Replaces `tl.static_assert` in the interpreter: if it fails, the kernel would not compile on a device."""
    if not cond:
        error = AssertionError(msg)
        vars(error)[_STATIC] = True
        raise error


def is_static(error: BaseException | None) -> bool:
    """Whether a false `tl.static_assert` is the error or one of its causes: each function of a kernel wraps its error."""
    while error is not None:
        if _STATIC in vars(error) or isinstance(error, CompileTimeAssertionFailure):
            return True
        error = error.__cause__
    return False
