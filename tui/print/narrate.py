"""A session as plain lines, event by event."""

from __future__ import annotations

import textwrap

from sessions import SessionState
from sessions import events as ev
from sessions.events import AnyEvent
from sessions.names import instance_key, short_task, split_attempt, split_call, stage_word
from sessions.state.figure_words import ratio_words
from sessions.state.folding import apply
from suites.source.python_source import source_lines
from tui.diagnostics import one_line
from tui.facts.attempt import decided_words, origin_words
from tui.facts.endings import ending_words
from tui.facts.evaluation.certainty import exam_sentence, exam_word
from tui.facts.evaluation.provenance import verification_words
from tui.facts.evaluation.spread import measured_words
from tui.facts.evaluation.verdict import headline
from tui.facts.settings_words import method_words, timing_words
from tui.facts.spending import spent_words
from tui.facts.vocabulary import counted, duration, money

LABEL_WIDTH = 20
STRATEGY_WIDTH = 80


class Narrator:
    """Folds events and returns lines for a user without a cockpit. Streamed text of models gives no lines."""

    def __init__(self, past: SessionState | None = None) -> None:
        self.state = past or SessionState()
        self._failure = ""

    def lines(self, event: AnyEvent) -> list[str]:
        """Return the lines for one event, often none. Events of a resumed session may come again from the start."""
        apply(self.state, event)
        try:
            line = self._line(event)
        except (KeyError, ValueError):
            line = None  # a journal from elsewhere may lack the attempt that an event names
        if line is None:
            return []
        label, words = line
        passed = event.wall - (self.state.started_wall or event.wall)
        return [f"{clock(passed)}  {label:<{LABEL_WIDTH}}  {one_line(words)}"]

    def _line(self, event: AnyEvent) -> tuple[str, str] | None:
        match event:
            case ev.SessionStarted(settings=run):
                return "session", (
                    f"{event.session}: {method_words(run.method, run.options)} with {run.model}, "
                    f"{counted(len(run.tasks), 'task')}, {counted(run.instances, 'instance')} each, "
                    f"up to {counted(run.iterations, 'attempt')}"
                    + (f"; {words}" if (words := timing_words(run)) else "")
                )
            case ev.EngineStarted(resumed=True):
                return "session", f"resumed on {event.host}"
            case ev.EngineStarted():
                return "session", "starting the judge"
            case ev.CallRetried():
                return split_attempt(split_call(event.call).attempt).instance, (
                    f"asks again in {duration(event.wait_s)} ({event.reason}: {event.message})"
                )
            case ev.CallFailed():
                if event.reason == ev.EndReason.RECORDING_EXHAUSTED:
                    self._failure = event.message
                    return None  # the line of the instance's end says it
                self._failure = f"{event.reason}: {event.message}"
                reason = f"{event.reason}, {event.cause}" if event.cause else event.reason
                return split_attempt(
                    split_call(event.call).attempt
                ).instance, f"no reply ({reason}): {event.message}"
            case ev.CandidateProposed():
                return event.attempt, self._proposed(event)
            case ev.CandidateWithdrawn():
                return event.attempt, "withdrawn by the agent"
            case ev.AgentLeft():
                return event.instance, "the agent ended the work"
            case ev.AttemptSwept():
                return event.attempt, f"swept for {event.target}: {swept_words(event)}"
            case ev.SweepRung():
                return event.attempt, rung_words(event)
            case ev.AttemptJudged():
                same = f" (same source as {event.same_as}, not judged again)" if event.same_as else ""
                return event.attempt, f"{headline(event.evaluation)}{same}"
            case ev.WinnerExamined():
                return event.attempt, exam_sentence(self.state.attempt(event.attempt), None)
            case ev.BaselineStageStarted(stage=ev.RECORDING):
                return short_task(event.task), "recording its test"
            case ev.BaselineStageStarted():
                return short_task(event.task), f"judging the baseline: {stage_word(event.stage)}"
            case ev.BaselineMeasured():
                timed = event.evaluation.latency
                known = f"{counted(len(timed), 'case')} timed" if timed else "not timed"
                return short_task(event.task), f"baseline: {known}"
            case ev.WinnerMeasured():
                return event.attempt, f"measured on {measured_words(event)}"
            case ev.ProfileTaken():
                subject = "its baseline" if event.of_baseline else "it"
                if event.profile is None:
                    return event.attempt, f"{subject} was not profiled: {event.problem}"
                return event.attempt, f"{subject} was profiled in case {event.profile.case}"
            case ev.WaitingForPerson():
                session = self.state.started.session if self.state.started else "SESSION"
                command = f"wavedeck accept {session} {event.attempt} --why TEXT"
                return event.attempt, f"waits for a decision, accept or reject: {command}"
            case ev.DecisionMade():
                return event.attempt, decided_words(event)
            case ev.DecisionUndone():
                return event.attempt, f"decision undone by {event.by}"
            case ev.HintGiven():
                return event.instance, f"hint by {event.by}: {event.text}"
            case ev.SessionTitled():
                return "session", f"titled by {event.by}: {event.title}" if event.title else (
                    f"title removed by {event.by}"
                )
            case ev.AttemptPinned():
                return event.attempt, f"pinned by {event.by}: the base of the next optimizations"
            case ev.AttemptBanned():
                return event.attempt, f"banned by {event.by}: no longer a base"
            case ev.RetireAsked():
                return event.instance, f"retired by {event.by}"
            case ev.InstanceForked():
                word, hint = "edit" if event.source else "fork", f", hint: {event.hint}" if event.hint else ""
                key = instance_key(event.task, event.instance)
                return key, f"{word} of {event.base} by {event.by}{hint}"
            case ev.MeasureAsked():
                return (
                    event.attempt,
                    f"to be measured on GPU {', '.join(event.devices)}, asked by {event.by}",
                )
            case ev.DeviceLent():
                return f"device {event.device}", f"lent by {event.by}: no candidate starts on it"
            case ev.DeviceReturned():
                return f"device {event.device}", f"returned by {event.by}"
            case ev.SessionExtended():
                gains = [
                    f"{counted(event.iterations, 'further attempt')} each" if event.iterations else "",
                    f"{money(event.budget_usd)} more" if event.budget_usd else "",
                ]
                return "session", f"extended by {event.by}: {', '.join(filter(None, gains))}"
            case ev.Paused():
                return event.instance or "session", f"paused by {event.by}: no call and no attempt starts"
            case ev.Unpaused():
                return event.instance or "session", f"unpaused by {event.by}"
            case ev.InstanceFinished():
                instance = self.state.instances[instance_key(event.task, event.instance)]
                word = exam_word(self.state.attempt(event.best), instance) if event.best else ""
                best = f", best {event.best}{f' ({word})' if word else ''}" if event.best else ""
                # The line of a failed call already has this message.
                message = f" ({event.message})" if event.message not in ("", self._failure) else ""
                spent = f"; spent {words}" if (words := spent_words(instance.attempts)) else ""
                return instance.key, f"ends: {ending_words(event.reason)}{best}{message}{spent}"
            case ev.DeviceAwaited():
                return f"device {event.device}", f"waits: {'; '.join(event.holders)}"
            case ev.DeviceQuarantined():
                return f"device {event.device}", f"in quarantine, other devices take its work: {event.why}"
            case ev.VerificationRead():
                return "node", verification_words(event.standings)
            case ev.NodePaused():
                again = duration(event.next_probe_s)
                return "node", f"judging is paused, next probe of the GPUs in {again}: {event.why}"
            case ev.NodeResumed():
                return "node", f"judging resumes after {duration(event.seconds)}"
            case ev.Notice():
                return event.level, event.message
            case ev.TaskLeftOut():
                return "warning", f"{event.task} is left out: {event.why}"
            case ev.EngineStopped():
                return "session", f"stopped: {event.reason}"
            case ev.SessionFinished():
                return "session", f"finished, {counted(len(event.solved), 'task')} solved"
            case _:
                return None

    def _proposed(self, event: ev.CandidateProposed) -> str:
        attempt = self.state.attempt(event.attempt)
        lines = counted(len(source_lines(event.source)), "line") if event.source else no_code(event.unusable)
        strategy = textwrap.shorten(event.strategy, STRATEGY_WIDTH, placeholder=" ...")
        return f"{origin_words(attempt)}, {lines}" + (f": {strategy}" if strategy else "")


def no_code(why: str) -> str:
    """Return the words for a reply without a candidate, with the reason."""
    return f"no code (the reply: {why.replace('_', ' ')})" if why else "no code"


def swept_words(swept: ev.AttemptSwept) -> str:
    """Return how many variants a sweep compiled, and how many of them look better than the attempt."""
    better = sum(variant.better for variant in swept.variants)
    result = f"{better} may be better" if better else "none looks better"
    return f"{counted(swept.tried, 'variant')} compiled, {result}"


def rung_words(rung: ev.SweepRung) -> str:
    """Return how many variants of a sweep stay after this rung, and the estimated speedup of the best."""
    wrong = sum(entry.verdict != "correct" for entry in rung.entries)
    estimates = [entry.estimate for entry in rung.entries if entry.kept and entry.estimate is not None]
    best = f"; best estimate {ratio_words(max(estimates))}" if estimates else ""
    not_correct = f", {wrong} not correct" if wrong else ""
    kept = sum(entry.kept for entry in rung.entries)
    return f"rung {rung.rung}: {kept} of {counted(len(rung.entries), 'variant')} kept{not_correct}{best}"


def clock(seconds: float) -> str:
    """Return the time since the session began: `0:02:03`."""
    whole = max(0, int(seconds))
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"
