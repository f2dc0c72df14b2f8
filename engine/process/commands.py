"""Commands that steer a session: each is checked against the session's state and becomes one durable event.

`event_of` serves the engine's socket; `record_at_rest` serves a session that no engine runs.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from engine.errors import AlreadyAsked, CommandRefused
from engine.methods import open_method, require_method
from engine.methods.orders import MOST_CHARACTERS, orders_until
from engine.process.control import Request
from harness import Verdict
from harness.wire.device import devices_named, is_cpu, nodes_of
from sessions.events import (
    UNASKED,
    AgentLeft,
    AttemptBanned,
    AttemptPinned,
    CandidateSent,
    CandidateWithdrawn,
    DecisionMade,
    DecisionUndone,
    DeviceLent,
    DeviceReturned,
    Event,
    HintGiven,
    InstanceForked,
    MeasureAsked,
    Paused,
    ProfileAsked,
    RetireAsked,
    Role,
    SessionExtended,
    SessionTitled,
    Unpaused,
)
from sessions.home import Home
from sessions.names import instance_key, split_attempt, split_instance, title_problem
from sessions.settings import AGENT, MethodOptions
from sessions.state.state import EXTENDABLE, SessionState
from sessions.store.decidable import find_attempt
from sessions.store.reconcile import take_up

OPENING = ("extend", "fork", "edit", "measure", "profile")
"""Commands that open a finished session again."""
ENDING = "the session is just ending; give the command again in a moment"
"""Refusal of a command that comes after the last work and before the session is stored."""
ALL_GPUS = ("all",)
"""Devices of a `measure` on every GPU; no device: the GPU that judged the attempt."""
MOST_ITERATIONS = 1000
"""Most iterations of one extension."""


def event_of(request: Request, state: SessionState) -> Event:
    """Returns the event of a command; `CommandRefused` or `SessionsError` if the command is impossible now."""
    if state.finished and request.command not in (*OPENING, "title"):
        raise CommandRefused(
            "the session is finished, so no further attempt can follow; open it again with: wavedeck extend or fork"
        )
    match request.command:
        case "hint":
            return _hint(request, state)
        case "title":
            return _title(request, state)
        case "stop":
            raise CommandRefused("the session is not running, so there is nothing to stop")
        case "retire":
            _require_going_on(state, request.instance)
            if request.instance in state.retired:
                raise CommandRefused(f"{request.instance} is already being retired")
            return RetireAsked(instance=request.instance, by=request.by)
        case "pause":
            if request.instance:
                _require_going_on(state, request.instance)
            if state.is_on_hold(request.instance):
                raise CommandRefused(f"{request.instance or 'the session'} is already paused")
            return Paused(instance=request.instance, by=request.by)
        case "unpause":
            return _unpause(request, state)
        case "pin" | "ban":
            return _order(request, state)
        case "gpu":
            return _gpu(request, state)
        case "measure":
            return _measure(request, state)
        case "profile":
            return _profile(request, state)
        case "extend":
            return _extend(request, state)
        case "fork":
            return _fork(request, state)
        case "edit":
            if not request.source.strip():
                raise CommandRefused("the edit is empty; give the file of a kernel")
            return _added(request, state)
        case "propose":
            return _propose(request, state)
        case "withdraw":
            return _withdraw(request, state)
        case "leave":
            _require_agent(request.instance, state)
            return AgentLeft(instance=request.instance)
        case _:
            raise CommandRefused(f"unknown command {request.command!r}")


def decision_of(request: Request) -> DecisionMade | DecisionUndone | None:
    """Returns the decision of a command `accept`, `reject` or `undo`; `None` for another command."""
    if request.command == "undo":
        return DecisionUndone(attempt=request.attempt, by=request.by)
    if request.command not in ("accept", "reject"):
        return None
    accepted = request.command == "accept"
    return DecisionMade(
        attempt=request.attempt, accepted=accepted, why=request.why, by=request.by, forced=request.forced
    )


def record_at_rest(home: Home, session: str, request: Request) -> Event:
    """Record a command in a session that no engine runs; a resumed engine follows it.

    Raises `SessionBusy` while an engine has the session, else errors as `event_of`.
    """
    with take_up(home, session) as recorder:
        try:
            return recorder.record(event_of(request, recorder.state))
        finally:
            recorder.now(recorder.put_down())


def instances_of(state: SessionState) -> list[str]:
    """Returns the keys of the session's instances, also of those that have not begun."""
    started = state.started
    if started is None:
        return []
    planned = [
        instance_key(task, number) for number in range(1, started.instances + 1) for task in started.tasks
    ]
    return planned + list(state.forks)


def has_open_instances(state: SessionState) -> bool:
    """True if an instance of the session has work left, so that a model may be asked."""
    instances = (state.instances.get(key) for key in instances_of(state))
    return any(instance is None or instance.finished is None or instance.curable for instance in instances)


def _title(request: Request, state: SessionState) -> SessionTitled:
    title = request.text.strip()
    problem = title_problem(title)
    if not problem and title == state.title:
        problem = f"the session already has the title {title!r}" if title else "the session has no title"
    if problem:
        raise CommandRefused(problem)
    return SessionTitled(title=title, by=request.by)


def _order(request: Request, state: SessionState) -> AttemptPinned | AttemptBanned:
    attempt, instance = find_attempt(state, request.attempt)
    _require_going_on(state, instance.key)
    started = state.started
    if started is not None and Role.OPTIMIZER not in open_method(started.method).roles:
        raise CommandRefused(f"{started.method} optimizes no attempt, so there is no base to choose")
    orders = orders_until(state, instance.key, state.last_seq)
    if request.command == "ban":
        if request.attempt in orders.banned:
            raise CommandRefused(f"{request.attempt} is already banned")
        return AttemptBanned(attempt=request.attempt, by=request.by)
    if attempt.verdict is not Verdict.CORRECT:
        raise CommandRefused(
            f"{request.attempt} is not correct, so it cannot be optimized; pin a correct attempt"
        )
    if request.attempt == orders.pinned:
        raise CommandRefused(f"{request.attempt} is already pinned")
    return AttemptPinned(attempt=request.attempt, by=request.by)


def _unpause(request: Request, state: SessionState) -> Unpaused:
    if request.instance:
        _require_going_on(state, request.instance)
        if "" in state.on_hold:
            raise CommandRefused("the whole session is paused; end that pause: wavedeck unpause SESSION")
    if not (request.instance in state.on_hold if request.instance else state.on_hold):
        raise CommandRefused(f"{request.instance or 'the session'} is not paused")
    return Unpaused(instance=request.instance, by=request.by)


def _extend(request: Request, state: SessionState) -> SessionExtended:
    method = open_method(state.started.method) if state.started is not None else None
    goes_on = method is not None and (method.asks_model or method.name == AGENT)
    if method is None or not goes_on or method.iterations is not None:
        name = method.name if method is not None else "its method"
        raise CommandRefused(f"a session of {name} takes no further iterations; start another run")
    if not 0 <= request.iterations <= MOST_ITERATIONS or request.budget_usd < 0:
        raise CommandRefused(
            f"--iterations must be from 1 to {MOST_ITERATIONS}, and --budget-usd above 0; give numbers in that range"
        )
    if not request.iterations and not request.budget_usd:
        raise CommandRefused("nothing to extend by; give --iterations, --budget-usd or both")
    if request.budget_usd and (state.started is None or state.started.budget_usd is None):
        raise CommandRefused(
            "the session has no budget in USD, so none can be added; give --iterations alone"
        )
    if request.iterations and not any(_takes_iterations(state, instance) for instance in instances_of(state)):
        raise CommandRefused(
            "no instance can use more iterations: each is solved, stopped, or out of replies or budget"
        )
    return SessionExtended(iterations=request.iterations, budget_usd=request.budget_usd, by=request.by)


def _fork(request: Request, state: SessionState) -> InstanceForked:
    started = state.started
    if started is not None and not open_method(started.method).asks_model:
        raise CommandRefused(f"{started.method} asks no model; run it on a kernel with --start instead")
    if started is not None and started.options.prompt_style != MethodOptions().prompt_style:
        raise CommandRefused(
            f"the prompt style {started.options.prompt_style} has no prompt to improve a kernel; fork a session of another"
        )
    _check_hint(request.text)
    return _added(request, state)


def _propose(request: Request, state: SessionState) -> CandidateSent:
    _require_agent(request.instance, state)
    if not request.source.strip():
        raise CommandRefused("the code is empty; send one complete module")
    most = sum(state.phases(request.instance))
    if len(state.sent_to(request.instance)) >= most:
        raise CommandRefused(f"all {most} evaluations are used; a person can add some: wavedeck extend")
    return CandidateSent(
        instance=request.instance,
        source=request.source,
        strategy=request.text[:MOST_CHARACTERS],
        heard=min(request.heard, state.last_seq),
    )


def _withdraw(request: Request, state: SessionState) -> CandidateWithdrawn:
    name = split_attempt(request.attempt)
    _require_agent(name.instance, state)
    if name.number > len(state.sent_to(name.instance)):
        raise CommandRefused(f"no candidate was sent as {request.attempt}")
    return CandidateWithdrawn(attempt=request.attempt)


def _require_agent(instance: str, state: SessionState) -> None:
    """Raise `CommandRefused` if no agent may send candidates to the instance."""
    _require_going_on(state, instance)
    if state.started is None or state.started.method != AGENT or instance in state.forks:
        raise CommandRefused(f"{instance} takes no candidates of agents")
    if instance in state.left:
        raise CommandRefused(f"{instance} takes no further candidates: its agent ended the work")


def _added(request: Request, state: SessionState) -> InstanceForked:
    base, instance = find_attempt(state, request.attempt)
    if not base.source:
        raise CommandRefused(f"{request.attempt} has no kernel; choose an attempt that has one")
    taken = [split_instance(key) for key in instances_of(state)]
    return InstanceForked(
        task=instance.task,
        instance=1 + max(name.number for name in taken if name.task == instance.task),
        base=request.attempt,
        source=request.source,
        hint=request.text,
        by=request.by,
    )


def _measure(request: Request, state: SessionState) -> MeasureAsked:
    attempt, _ = find_attempt(state, request.attempt)
    if attempt.verdict is not Verdict.CORRECT or attempt.evaluation is None:
        raise CommandRefused(
            f"{request.attempt} is not correct, so its time means nothing; measure a correct attempt"
        )
    gpus = _gpus(state)
    wanted = {ALL_GPUS: tuple(gpus), (): (attempt.evaluation.device,)}.get(request.devices, request.devices)
    _require_usable(wanted, gpus, state)
    if any(measure.attempt == request.attempt for measure in state.measures):
        raise AlreadyAsked(f"{request.attempt} is already being measured; wait for its result")
    return MeasureAsked(attempt=request.attempt, devices=wanted, by=request.by)


def _profile(request: Request, state: SessionState) -> ProfileAsked:
    attempt, _ = find_attempt(state, request.attempt)
    if attempt.verdict is not Verdict.CORRECT or attempt.evaluation is None:
        raise CommandRefused(f"{request.attempt} is not correct; profile a correct attempt")
    timed = [latency.case for latency in attempt.evaluation.latency]
    if request.case and timed and request.case not in timed:
        raise CommandRefused(
            f"{request.attempt} has no open case {request.case!r}; it has {', '.join(timed)}"
        )
    wanted = request.devices or (attempt.evaluation.device,)
    _require_usable(wanted, _gpus(state), state)
    if any(
        (earlier.attempt, earlier.of_baseline) == (request.attempt, request.of_baseline)
        for earlier in state.profiles_asked
    ):
        raise AlreadyAsked(f"{request.attempt} is already being profiled; wait for its result")
    return ProfileAsked(
        attempt=request.attempt,
        device=wanted[0],
        case=request.case,
        of_baseline=request.of_baseline,
        by=request.by,
    )


def _require_usable(wanted: Sequence[str], gpus: Sequence[str], state: SessionState) -> None:
    """Raise `CommandRefused` unless these are GPUs of the session that are not lent."""
    _require_gpus(wanted, gpus)
    lent = [name for name in wanted if name in state.lent]
    if lent:
        raise CommandRefused(f"GPU {lent[0]} is lent; return it first: wavedeck gpu SESSION {lent[0]} return")


def _gpu(request: Request, state: SessionState) -> DeviceLent | DeviceReturned:
    """The request names one GPU, or a node of a cluster for all its GPUs."""
    _require_gpus(request.devices, (*_gpus(state), *nodes_of(_gpus(state))))
    if len(request.devices) != 1:
        raise CommandRefused("name one GPU, as the session names it")
    name = request.devices[0]
    devices = devices_named(name, _gpus(state))
    if request.text == "return":
        if state.lent.isdisjoint(devices):
            raise CommandRefused(f"GPU {name} is not lent")
        return DeviceReturned(device=name, by=request.by)
    if request.text != "lend":
        raise CommandRefused(f"a GPU is lent or returned; say lend or return, not {request.text!r}")
    if state.lent.issuperset(devices):
        raise CommandRefused(f"GPU {name} is already lent")
    in_service = [gpu for gpu in _gpus(state) if gpu not in state.lent and not _is_quarantined(state, gpu)]
    if not set(in_service).difference(devices):
        raise CommandRefused(f"GPU {name} is the last one in service; stop the session instead")
    return DeviceLent(device=name, by=request.by)


def _is_quarantined(state: SessionState, gpu: str) -> bool:
    return gpu in state.devices and bool(state.devices[gpu].quarantined)


def _gpus(state: SessionState) -> list[str]:
    """Returns the names of the session's GPUs; `CommandRefused` if it has none."""
    gpus = [name for name in (state.started.devices if state.started else ()) if not is_cpu(name)]
    if not gpus:
        raise CommandRefused("the session has no GPU, only cpu; start a session on a machine with a GPU")
    return gpus


def _require_gpus(names: Sequence[str], gpus: Sequence[str]) -> None:
    unknown = [name for name in names if name not in gpus]
    if unknown:
        raise CommandRefused(f"the session has no GPU {unknown[0]}; it has {', '.join(gpus)}")


def _takes_iterations(state: SessionState, instance: str) -> bool:
    known = state.instances.get(instance)
    return known is None or known.finished is None or known.curable or known.finished in EXTENDABLE


def _hint(request: Request, state: SessionState) -> HintGiven:
    _require_going_on(state, request.instance)
    if not request.text.strip():
        raise CommandRefused("the hint is empty; write what the next attempt should consider")
    _check_hint(request.text)
    if not _asks_again(state, request.instance):
        raise CommandRefused(
            f"{request.instance} asks for no further attempt, so no prompt can quote the hint; extend or fork first"
        )
    return HintGiven(instance=request.instance, text=request.text, by=request.by)


def _asks_again(state: SessionState, instance: str) -> bool:
    """True if the instance has iterations left for a prompt that is not sent yet."""
    fork, known = state.forks.get(instance), state.instances.get(instance)
    if fork is not None and fork.source:
        return False
    attempts = known.attempts if known is not None else []
    return sum(attempt.origin not in UNASKED for attempt in attempts) < sum(state.phases(instance))


def _check_hint(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise CommandRefused(f"the hint is longer than {MOST_CHARACTERS} characters; shorten it")


def _require_going_on(state: SessionState, instance: str) -> None:
    """Raise `CommandRefused` if there is no such instance or it has ended, `UsageProblem` if the session's method is gone."""
    if state.started is not None:
        require_method(state.started.method, state.started.session)
    keys = instances_of(state)
    if instance not in keys:
        nearest = difflib.get_close_matches(instance, keys, n=3) or keys[:3]
        raise CommandRefused(f"no instance {instance!r} in this session; nearest: {', '.join(nearest)}")
    known = state.instances.get(instance)
    if known is not None and known.finished is not None and not known.curable:
        raise CommandRefused(f"{instance} has ended, so no further attempt can follow")
    if known is not None and known.word == "exam":
        raise CommandRefused(f"{instance} is in its exam and ends by itself")
