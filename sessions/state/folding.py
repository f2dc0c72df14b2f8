"""Builds a session's state from its events: `apply` for one event, `fold` for all.

Both use no clock, file or network. Live view, attach, replay, resume and reports all use these functions. If an event
names an unknown instance or attempt, because a line was lost, that instance or attempt is created. So a damaged
journal still shows everything that is left.
"""

from __future__ import annotations

import bisect
import sys
from collections.abc import Iterable
from typing import assert_never

import msgspec

from harness.wire.device import devices_named
from harness.wire.results.evaluation import Verdict
from sessions import events as ev
from sessions.journal.codec import Skipped
from sessions.journal.reader import JournalReader
from sessions.names import instance_key, split_attempt, split_call, split_instance

from .copying import own_attempt
from .device_facts import note_timings, quarantine, take_sample
from .judged import judged_facts
from .state import (
    EXTENDABLE,
    NOTHING,
    AttemptState,
    CallState,
    DeviceState,
    InstanceState,
    SessionState,
    Spend,
    Words,
    without_trailing_space,
)
from .winners import best_of

SESSION = "session"
"""Dirty key of changes that belong to no instance or device."""

WORD_OF_ROLE = {
    ev.Role.GENERATOR: "generate",
    ev.Role.OPTIMIZER: "optimize",
    ev.Role.REFLECTOR: "reflect",
}


def device_key(device: str) -> str:
    """Returns the dirty key of a device."""
    return f"device:{device}"


def fold(events: Iterable[ev.AnyEvent | Skipped]) -> SessionState:
    """Returns the state after these events; it reads large values again if they are of a `JournalReader`."""
    state = SessionState(journal=events if isinstance(events, JournalReader) else None)
    for event in events:
        apply(state, event)
    return state


def apply(state: SessionState, event: ev.AnyEvent | Skipped) -> frozenset[str]:
    """Change the state by one event; returns the dirty keys: instances, `device:<name>`, `session`."""
    if not isinstance(event, ev.Event):
        state.skipped_events += 1
        return frozenset((SESSION,))
    _pass_time(state, event)
    try:
        dirty = _apply(state, event)
    except ValueError:
        # A malformed name: Wavedeck never writes it, so the event counts as unreadable.
        state.skipped_events += 1
        return frozenset((SESSION,))
    for key in dirty:
        if key in state.instances:
            state.instances[key].last_wall = event.wall
    return dirty


def _pass_time(state: SessionState, event: ev.Event) -> None:
    """Count the event, and the time since the engine's last event."""
    state.last_seq = max(state.last_seq, event.seq)
    state.last_wall = event.wall
    match event:
        case ev.EngineStarted():
            state.engine_mono, state.engine_wall = event.mono, event.wall
        case ev.DecisionMade() | ev.DecisionUndone() | ev.SessionTitled():
            pass  # may be from a process that is no engine
        case _ if state.engine_mono is not None and event.mono > state.engine_mono:
            state.worked_s += event.mono - state.engine_mono
            state.engine_mono, state.engine_wall = event.mono, event.wall
    if isinstance(event, ev.EngineStopped | ev.SessionFinished):
        state.engine_mono = None


def _apply(state: SessionState, event: ev.AnyEvent) -> frozenset[str]:
    if isinstance(event, ev.Command) and event.opens and state.finished:
        state.finished, state.stopped = False, "opened again"
    match event:
        case ev.SessionStarted():
            state.started = event.describe()
            state.started_wall = event.wall
            state.title = event.settings.title
        case ev.SessionTitled():
            state.title = event.title
        case ev.EngineStarted():
            return _start_engine(state, event)
        case ev.InstanceStarted():
            instance = _instance(state, instance_key(event.task, event.instance))
            instance.finished, instance.message, instance.word = None, "", "wait"
            if state.baseline_stages.get(event.task, ("",))[0] == ev.RECORDING:
                del state.baseline_stages[event.task]
            return frozenset((instance.key,))
        case ev.AttemptStarted():
            return _start_attempt(state, event)
        case ev.CallStarted() | ev.ReplyPiece() | ev.CallRetried() | ev.CallFinished() | ev.CallFailed():
            return _apply_call(state, event)
        case ev.CandidateProposed():
            attempt, instance = _attempt(state, event.attempt)
            attempt.proposed, attempt.strategy = state.keep(event), event.strategy
            attempt.source_hash = hash(without_trailing_space(event.source))
            _set_word(instance, attempt, "wait", event.wall)
            return frozenset((instance.key,))
        case ev.CandidateSent():
            state.sent.append(event)
            return frozenset((event.instance,))
        case ev.CandidateWithdrawn():
            state.withdrawn.add(event.attempt)
            return frozenset((split_attempt(event.attempt).instance,))
        case ev.AgentLeft():
            state.left.add(event.instance)
            return frozenset((event.instance,))
        case ev.SweepStarted():
            attempt, instance = _attempt(state, event.attempt)
            _set_word(instance, attempt, "tune", event.wall)
            return frozenset((instance.key,))
        case ev.AttemptSwept():
            attempt, instance = _attempt(state, event.attempt)
            attempt.swept = state.keep(event)
            _set_word(instance, attempt, "wait", event.wall)
            return frozenset((instance.key,))
        case ev.SweepRung():
            attempt, instance = _attempt(state, event.attempt)
            attempt.rungs.append(event)
            attempt.device_s += event.device_s
            _set_word(instance, attempt, "wait", event.wall)
            return frozenset((instance.key,))
        case ev.StageStarted(exam=True) | ev.StageFinished(exam=True) | ev.WinnerExamined():
            return _apply_exam(state, event)
        case ev.BaselineStageStarted():
            state.baseline_stages[event.task] = (event.stage, event.wall)
        case ev.BaselineMeasured():
            state.baseline_stages.pop(event.task, None)
            state.baselines[event.task] = event.evaluation
            state.baselines_device_s += event.device_s
        case ev.WinnerMeasured():
            return _apply_measurement(state, event)
        case ev.MeasureAsked():
            _, instance = _attempt(state, event.attempt)
            state.measures.append(event)
            return frozenset((SESSION, instance.key))
        case ev.ProfileAsked():
            state.profiles_asked.append(event)
            return frozenset((SESSION, _attempt(state, event.attempt)[1].key))
        case ev.ProfileTaken():
            return _apply_profile(state, event)
        case ev.StageStarted() | ev.StageFinished() | ev.AttemptJudged():
            return _apply_judging(state, event) | _clear_wait(state, event)
        case ev.AttemptCommitted():
            attempt, instance = _attempt(state, event.attempt)
            attempt.commit = event.commit
            attempt.committed_seq = attempt.committed_seq or event.seq
            return frozenset((instance.key,))
        case ev.InstanceFinished():
            instance = _instance(state, instance_key(event.task, event.instance))
            instance.finished, instance.message = event.reason, event.message
            instance.word = _resting_word(instance)
            if event.reason == ev.EndReason.SUBMITTED:
                _join_last_words(state, instance)
            for attempt in _owned_attempts(state, instance):
                attempt.waiting, attempt.stage, attempt.examining = False, None, None
                attempt.word = "wait"
            return frozenset((instance.key,))
        case ev.WaitingForPerson() | ev.DecisionMade() | ev.DecisionUndone():
            return _apply_decision(state, event)
        case ev.HintGiven():
            split_instance(event.instance)
            state.commands.append(event)
            return frozenset((event.instance,))
        case ev.AttemptPinned() | ev.AttemptBanned():
            _, instance = _attempt(state, event.attempt)
            state.commands.append(event)
            return frozenset((instance.key,))
        case ev.RetireAsked():
            state.retired[event.instance] = event.by
            return frozenset((event.instance,))
        case ev.InstanceForked():
            split_attempt(event.base)
            key = instance_key(event.task, event.instance)
            state.forks[key] = event
            state.commands.append(event)
            return frozenset((SESSION, key))
        case ev.SessionExtended():
            return _extend(state, event)
        case ev.Paused():
            state.on_hold.add(event.instance)
            return _held_keys(state, event.instance)
        case ev.Unpaused():
            state.on_hold -= {event.instance} if event.instance else set(state.on_hold)
            return _held_keys(state, event.instance)
        case ev.DeviceSampled():
            take_sample(_device(state, event.device), event)
            return frozenset((device_key(event.device),))
        case ev.DeviceLent():
            lent = devices_named(event.device, state.started.devices if state.started else ())
            state.lent.update(lent or (event.device,))
            return frozenset(map(device_key, lent or (event.device,)))
        case ev.DeviceReturned():
            returned = devices_named(event.device, state.started.devices if state.started else ())
            state.lent.difference_update(returned or (event.device,))
            return frozenset(map(device_key, returned or (event.device,)))
        case ev.DeviceAwaited():
            device = _device(state, event.device)
            device.waits_for, device.users = event.holders, event.users
            return frozenset((device_key(event.device),))
        case ev.DeviceQuarantined():
            quarantine(_device(state, event.device), event)
            state.notices.append(("error", f"device {event.device} is in quarantine: {event.why}"))
            return frozenset((device_key(event.device), SESSION))
        case ev.VerificationRead():
            state.verification = event.standings
        case ev.NodePaused():
            if not state.paused:
                state.notices.append(
                    ("error", f"nothing is judged: no GPU passes its health probe: {event.why}")
                )
            state.paused = event.why
        case ev.NodeResumed():
            state.paused = ""
            state.notices.append(("info", f"judging goes on after {event.seconds:.0f} s"))
        case ev.Notice():
            state.notices.append((event.level, event.message))
        case ev.TaskLeftOut():
            state.baseline_stages.pop(event.task, None)
            state.notices.append(("warning", f"{event.task} is left out: {event.why}"))
            if state.started is not None:
                tasks = tuple(task for task in state.started.tasks if task != event.task)
                state.started = msgspec.structs.replace(state.started, tasks=tasks)
        case ev.EngineStopped():
            # After `SessionFinished`: the session could not be put in the store, so it is not finished.
            state.finished, state.stopped, state.stopped_wall = False, event.reason, event.wall
            return _stop_exams(state)
        case ev.SessionFinished():
            state.finished, state.stopped = True, None
        case _:
            assert_never(event)
    return frozenset((SESSION,))


def _apply_measurement(state: SessionState, event: ev.WinnerMeasured) -> frozenset[str]:
    attempt, instance = _attempt(state, event.attempt)
    attempt.measured.pop(event.device, None)  # the latest is the last
    attempt.measured[event.device] = state.keep(event)
    attempt.device_s += event.device_s
    remaining = [
        msgspec.structs.replace(asked, devices=tuple(name for name in asked.devices if name != event.device))
        if asked.attempt == event.attempt
        else asked
        for asked in state.measures
    ]
    state.measures = [asked for asked in remaining if asked.devices]
    return frozenset((instance.key,))


def _apply_profile(state: SessionState, event: ev.ProfileTaken) -> frozenset[str]:
    attempt, instance = _attempt(state, event.attempt)
    attempt.device_s += event.device_s
    state.profiles_asked = [request for request in state.profiles_asked if request.seq != event.asked]
    if event.profile is None:
        state.notices.append(("error", event.failure))
        if not event.of_baseline:
            attempt.profile_failures[event.case] = event.failure
    elif event.of_baseline:
        kept = state.baseline_profiles.get(instance.task, {})
        state.baseline_profiles[instance.task] = kept | {event.profile.case: event.profile}
    else:
        attempt.profiled.pop(event.profile.case, None)  # the latest is the last
        attempt.profiled[event.profile.case] = state.keep(event)
        attempt.profile_failures.pop(event.profile.case, None)
    return frozenset((SESSION, instance.key))


def _extend(state: SessionState, event: ev.SessionExtended) -> frozenset[str]:
    """Open the instances that have work again, and a finished session."""
    state.extensions.append(event)
    state.added_usd += event.budget_usd
    for instance in state.instances.values():
        if event.iterations:
            _go_on(instance)
        if event.budget_usd and instance.finished == ev.EndReason.BUDGET:
            instance.finished, instance.message, instance.word = None, "", "wait"
    return frozenset((SESSION, *state.instances))


def _go_on(instance: InstanceState) -> None:
    """Open an instance that used all its iterations or met a stop rule, because it got more iterations."""
    if instance.finished in EXTENDABLE:
        instance.finished, instance.message, instance.word = None, "", "wait"


def _held_keys(state: SessionState, instance: str) -> frozenset[str]:
    return frozenset((instance,)) if instance else frozenset((SESSION, *state.instances))


def _start_engine(state: SessionState, event: ev.EngineStarted) -> frozenset[str]:
    """Mark the session as running; at a resume, drop the unfinished work of the last engine, because it is repeated."""
    state.stopped, state.paused = None, ""
    state.baseline_stages.clear()
    state.reserved.clear()
    if not event.resumed:
        return frozenset((SESSION,))
    for instance in state.instances.values():
        for attempt in _owned_attempts(state, instance):
            for call in attempt.calls:
                if call.live:
                    _lose(state, call)
            attempt.calls = [call for call in attempt.calls if not call.live]
            attempt.stage = attempt.examining = None
            attempt.word = "person" if attempt.waiting else "wait"
            if attempt.verdict is None:
                attempt.stages_so_far = None
        if instance.finished is None:
            instance.word = "person" if any(attempt.waiting for attempt in instance.attempts) else "wait"
    dirty = frozenset((SESSION, *state.instances, *map(device_key, state.devices)))
    state.devices.clear()
    return dirty


def _stop_exams(state: SessionState) -> frozenset[str]:
    """End the exams that an engine left; a resume repeats them."""
    dirty = {SESSION}
    for instance in state.instances.values():
        for place, attempt in enumerate(instance.attempts):
            if attempt.examining is not None:
                own_attempt(state, instance, place).examining = None
        if instance.finished is None:
            dirty.add(instance.key)
    return frozenset(dirty)


def _device(state: SessionState, name: str) -> DeviceState:
    if name not in state.devices:
        state.devices[name] = DeviceState(name, "", (), None, None, None, None, None, None)
    return state.devices[name]


def _clear_wait(
    state: SessionState, event: ev.StageStarted | ev.StageFinished | ev.AttemptJudged
) -> frozenset[str]:
    """A stage started on the device, so no candidate waits for it."""
    if not isinstance(event, ev.StageStarted) or event.device not in state.devices:
        return frozenset()
    device = state.devices[event.device]
    if not device.waits_for:
        return frozenset()
    device.waits_for, device.users = (), ()
    return frozenset((device_key(event.device),))


def _start_attempt(state: SessionState, event: ev.AttemptStarted) -> frozenset[str]:
    attempt, instance = _attempt(state, event.attempt)
    attempt.origin, attempt.base, attempt.heard = event.origin, event.base, event.heard
    if not attempt.started_wall:
        attempt.started_wall = event.wall
    instance.finished, instance.message = None, ""
    _set_word(instance, attempt, "wait", event.wall)
    return frozenset((instance.key,))


def _apply_call(
    state: SessionState,
    event: ev.CallStarted | ev.ReplyPiece | ev.CallRetried | ev.CallFinished | ev.CallFailed,
) -> frozenset[str]:
    name = split_call(event.call)
    attempt, instance = _attempt(state, name.attempt)
    dirty = frozenset((instance.key,))
    call = next((call for call in reversed(attempt.calls) if call.call == event.call), None)
    if call is None:
        call = CallState(event.call, attempt.attempt, ev.Role(name.role), "")
        attempt.calls.append(call)
    match event:
        case ev.CallStarted():
            # The model's name is in every call.
            model, started = sys.intern(event.model), state.keep(event)
            fresh = CallState(event.call, attempt.attempt, event.role, model, started)
            fresh.most = state.reserved[event.call] = Spend(event.most_tokens, event.most_usd)
            attempt.calls[attempt.calls.index(call)] = fresh
            _set_word(instance, attempt, WORD_OF_ROLE[event.role], event.wall)
        case ev.ReplyPiece():
            call.streamed.setdefault(event.kind, Words()).add(event.text)
        case ev.CallRetried():
            began = bool(call.streamed)
            refused_wall = event.wall if began or not call.retries else call.refused_wall
            call.streamed = {}
            if event.billed:
                _lose(state, call)
            call.retries, call.retry_reason = event.retry, event.reason
            call.last_retry = f"{event.reason}: {event.message}"
            call.refused_wall, call.retry_wall = refused_wall, event.wall + event.wait_s
        case ev.CallFinished():
            call.streamed = {}
            call.reply, call.failed, call.too_long = state.keep(event), "", False
            call.refused_wall, call.retry_wall = 0.0, 0.0
            call.stop_reason, call.usage, call.cost_usd = (
                sys.intern(event.stop_reason),
                event.usage,
                event.cost_usd,
            )
            call.seconds, call.temperature, call.served = event.seconds, event.temperature, event.served
            _set_word(instance, attempt, "wait", event.wall)
            _count(state, event, call)
            return dirty | {SESSION}
        case ev.CallFailed():
            cause = f", {event.cause}" if event.cause else ""
            # That a recording ends is no failure, so its code says nothing that its words do not say.
            is_end = event.reason == ev.EndReason.RECORDING_EXHAUSTED
            call.failed = event.message if is_end else f"{event.reason}{cause}: {event.message}"
            call.too_long = event.too_long
            if event.billed:
                _lose(state, call)
            state.reserved.pop(event.call, None)
            _set_word(instance, attempt, "wait", event.wall)
        case _:
            assert_never(event)
    return dirty


def _lose(state: SessionState, call: CallState) -> None:
    """Note a try of a call that may be billed although it brought no reply."""
    state.lost_tries.append(call)
    state.assumed = state.assumed.plus(call.most)


def _count(state: SessionState, event: ev.CallFinished, call: CallState) -> None:
    state.reserved.pop(event.call, None)
    counts = (event.usage.input_tokens, event.usage.output_tokens)
    unknown = Spend(
        max(0, call.most.tokens - sum(filter(None, counts))) if None in counts else 0,
        call.most.usd if event.cost_usd is None else 0.0,
    )
    state.assumed, call.most = state.assumed.plus(unknown), NOTHING
    state.input_tokens += event.usage.input_tokens or 0
    state.output_tokens += event.usage.output_tokens or 0
    if event.cost_usd is not None:
        state.cost_usd = (state.cost_usd or 0.0) + event.cost_usd
    elif not call.is_of_agent:
        state.unpriced_calls += 1


def _apply_judging(
    state: SessionState, event: ev.StageStarted | ev.StageFinished | ev.AttemptJudged
) -> frozenset[str]:
    attempt, instance = _attempt(state, event.attempt)
    match event:
        case ev.StageStarted():
            attempt.stage = event.stage
            _set_word(instance, attempt, event.stage, event.wall)
            # A repeated stage: the judging started again, perhaps on another device.
            names = [stage.name for stage in attempt.stages]
            if event.stage in names:
                attempt.stages_so_far = attempt.stages[: names.index(event.stage)]
        case ev.StageFinished():
            attempt.stage = None
            attempt.stages_so_far = [*attempt.stages, event.stage]
        case ev.AttemptJudged():
            attempt.stage, attempt.stages_so_far, attempt.same_as = None, None, event.same_as
            attempt.judged = judged_facts(event, state.journal)
            attempt.judged_wall, attempt.judged_seq = event.wall, event.seq
            attempt.judged_worked_s = state.worked_s
            attempt.device_s += event.device_s
            # Also if no stage was seen: the wait begins with the verdict.
            attempt.word = ""
            _set_word(instance, attempt, "wait", event.wall)
            instance.best = _best_after_verdict(instance, attempt)
            throttled = note_timings(state.devices, event.evaluation, event.wall)
            return frozenset((instance.key, *map(device_key, throttled)))
        case _:
            assert_never(event)
    return frozenset((instance.key,))


def _apply_exam(
    state: SessionState, event: ev.StageStarted | ev.StageFinished | ev.WinnerExamined
) -> frozenset[str]:
    """The verdict on the open cases does not change."""
    attempt, instance = _attempt(state, event.attempt)
    match event:
        case ev.StageStarted():
            attempt.examining = event.stage
            _set_word(instance, attempt, "exam", event.wall)
        case ev.StageFinished():
            attempt.examining = None
        case ev.WinnerExamined():
            attempt.examining, attempt.examined = None, judged_facts(event, state.journal)
            attempt.device_s += event.device_s
            _set_word(instance, attempt, "wait", event.wall)
            instance.best = _best(instance)
        case _:
            assert_never(event)
    return frozenset((instance.key,))


def _set_word(instance: InstanceState, attempt: AttemptState, word: str, wall: float) -> None:
    """Set the attempt's word, and the instance's word to that of its latest busy attempt."""
    if attempt.word == word == instance.word == "wait":
        return  # nothing is busy that was not
    if attempt.word != word:
        attempt.word, attempt.word_wall = word, wall
    busy = (state.word for state in reversed(instance.attempts) if state.word != "wait")
    instance.word = next(busy, _resting_word(instance))


def _resting_word(instance: InstanceState) -> str:
    """The word of an instance without a busy attempt."""
    return "wait" if instance.finished is None else "failed" if instance.curable else "done"


def _best(instance: InstanceState) -> str | None:
    best = best_of(instance.attempts)
    return best.attempt if best else None


def _best_after_verdict(instance: InstanceState, judged: AttemptState) -> str | None:
    """Returns the best after one more verdict; compares only two attempts, because ranks are costly."""
    if instance.best is None or instance.best == judged.attempt:
        return _best(instance)
    before = instance.attempts[_place(instance, split_attempt(instance.best).number)]
    best = best_of(sorted((before, judged), key=lambda attempt: attempt.number))
    return best.attempt if best else None


def _apply_decision(
    state: SessionState, event: ev.WaitingForPerson | ev.DecisionMade | ev.DecisionUndone
) -> frozenset[str]:
    attempt, instance = _attempt(state, event.attempt)
    match event:
        case ev.WaitingForPerson():
            attempt.waiting = attempt.held = True
            attempt.waiting_wall = event.wall
            _set_word(instance, attempt, "person", event.wall)
        case ev.DecisionMade():
            state.commands.append(event)
            attempt.decision = event
            if attempt.waiting:
                attempt.waiting = False
                _set_word(instance, attempt, "wait", event.wall)
        case ev.DecisionUndone():
            state.commands.append(event)
            attempt.decision = None
        case _:
            assert_never(event)
    instance.best = _best(instance)
    return frozenset((instance.key,))


def _join_last_words(state: SessionState, instance: InstanceState) -> None:
    """Give the calls after the last candidate to the attempt of that candidate: who submits makes no further attempt."""
    if len(instance.attempts) < 2:
        return
    last = instance.attempts[-1]
    is_sent = last.number <= len(state.sent_to(instance.key))  # and withdrawn before its judging began
    if last.proposed is None and not is_sent and last.verdict in (None, Verdict.CANCELLED):
        del instance.attempts[-1]
        own_attempt(state, instance, -1).calls += last.calls


def _instance(state: SessionState, key: str) -> InstanceState:
    instance = state.instances.get(key)
    if instance is None:
        name = split_instance(key)
        instance = state.instances[key] = InstanceState(key, name.task, name.number)
    return instance


def _attempt(state: SessionState, attempt: str) -> tuple[AttemptState, InstanceState]:
    name = split_attempt(attempt)
    instance = _instance(state, name.instance)
    place = _place(instance, name.number)
    if place == len(instance.attempts) or instance.attempts[place].number != name.number:
        state.owned.add(attempt)
        instance.attempts.insert(place, AttemptState(attempt, name.number, ev.Origin.FRESH, None))
    return own_attempt(state, instance, place), instance


def _place(instance: InstanceState, number: int) -> int:
    """The place of the attempt with this number, or of the first later one: attempts are in order."""
    return bisect.bisect_left(instance.attempts, number, key=lambda attempt: attempt.number)


def _owned_attempts(state: SessionState, instance: InstanceState) -> list[AttemptState]:
    """All attempts of an instance, to be changed."""
    return [own_attempt(state, instance, place) for place in range(len(instance.attempts))]
