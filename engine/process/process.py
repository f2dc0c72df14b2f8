"""The engine process: runs one session from its plan to its end, and answers commands on a socket.

The engine does not depend on the process that started it. It ends when every instance has ended, at a stop command,
or at a signal; a second signal ends it at once. The journal always has all finished work, and a resume continues from
there.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import msgspec
import psutil

from engine.errors import EngineError, UsageProblem, one_line, refusal
from engine.judge.judging import Judge
from engine.judge.unrecorded import record_tests
from engine.keys import close_memory, receive_environment
from engine.models import Gates
from engine.models.clients.recorded import RecordedClient, changed_templates
from engine.plan.budget import budget_of
from engine.plan.job import Job, open_job, plan_of, read_plan, references_shown, session_started
from engine.plan.plan import SessionPlan
from engine.process.control import ENDING, ControlServer
from engine.process.launch import WRONG_USAGE
from engine.process.telemetry import DeviceSampler, ReadState, device_event, state_on_node
from engine.prompting.prompting import template_hashes
from engine.run.person import Changes
from engine.run.scheduler import run_instances
from engine.run.shared import Shared, note_once
from harness import DevicePool, HarnessError
from harness.cluster.cluster_pool import ClusterPool
from harness.cluster.ray_cluster import reconnect
from harness.node.telemetry.watcher import Telemetry
from harness.processes.gpus.capacity import RECORDED_CASE_BYTES, largest_case_bytes
from harness.processes.gpus.quarantine import DeviceEvent
from harness.processes.starting.judge_python import JudgePython, find_python
from harness.stages.evaluator import Evaluator, LocalEvaluator
from harness.wire.errors import BadPython
from sessions.engine_info import EngineInfo, boot_id, pid_namespace, write_engine_info
from sessions.errors import CommandRefused, SessionsError, StoreBroken
from sessions.events import (
    Command,
    DecisionMade,
    DecisionUndone,
    EngineStarted,
    EngineStopped,
    Notice,
    Ping,
    SessionFinished,
    Stop,
    TaskLeftOut,
    VerificationRead,
    checked,
)
from sessions.files import write_whole
from sessions.home import Home, SessionFiles
from sessions.state.state import SessionState
from sessions.store.reconcile import resume
from sessions.store.recorder import Recorder
from sessions.verifications import graph_nodes_of, newest_verification, standing_of
from suites import SuiteError
from suites.privacy import keys_in

log = logging.getLogger(__name__)

TICK_S = 1.0
MACHINERY_FAILED = 3
STOPPED_AT_ONCE = 130
KNOWN = (EngineError, SessionsError, HarnessError, SuiteError)
"""Errors with a message for people; any other exception is a bug of Wavedeck."""


class StopAsked(Exception):
    """A command or a signal asked the engine to stop."""


def main(folder: Path) -> int:
    """Run the engine of a session's folder to its end; returns the exit code."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s"
    )
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    close_memory()
    try:
        return asyncio.run(Engine(SessionFiles(folder.absolute()), receive_environment()).run())
    except KNOWN as error:
        sys.stderr.write(f"{one_line(error)}\n")
        return WRONG_USAGE if isinstance(error, (UsageProblem, BadPython)) else MACHINERY_FAILED
    except OSError as error:
        words = refusal(error)
        if not words:
            raise
        sys.stderr.write(f"{words}\n")
        return MACHINERY_FAILED


class Engine:
    """One session's engine."""

    def __init__(self, live: SessionFiles, environ: Mapping[str, str]) -> None:
        self._live = live
        self._home = Home(live.folder.parent.parent)
        self._environ = environ
        self._busy: dict[str, list[str]] = {}
        self._stop: asyncio.Future[str] | None = None
        """Resolved with the reason when the engine is asked to stop."""

    async def run(self) -> int:
        """Open the session, run it, and leave it finished or resumable; returns the exit code."""
        self._watch_signals()
        resumed = self._live.has_journal or not self._live.plan.exists()
        recorder: Recorder | None = None
        async with AsyncExitStack() as stack:
            if resumed:
                recorder = await asyncio.to_thread(resume, self._home, self._live.session)
                stack.enter_context(recorder)
            plan = read_plan(self._live) or plan_of(recorder.state.started if recorder else None)
            if recorder is not None:
                plan = remaining_plan(plan, recorder.state)
            python = await asyncio.to_thread(find_python, plan.python, self._home.judge_packages)
            is_open = recorder is None or has_open_instances(recorder.state)
            job = await stack.enter_async_context(
                open_job(plan, home=self._home, environ=self._environ, has_open_instances=is_open)
            )
            if recorder is None:
                plan = msgspec.structs.replace(plan, references_shown=references_shown(job))
                recorder = await asyncio.to_thread(Recorder.begin, self._home, session_started(plan, python))
                stack.enter_context(recorder)
            codes = [
                file.read_text(errors="replace") for task in job.tasks for file in task.folder.glob("*.py")
            ]
            recorder.masks.hide(keys_in(self._environ), shown="\n".join([*map(str, job.tasks), *codes]))
            recorder.record(EngineStarted(host=socket.gethostname(), pid=os.getpid(), resumed=resumed))
            for task, why in () if resumed else plan.left_out.items():
                recorder.record(TaskLeftOut(task=task, why=why))
            report_changes(recorder, job)
            return await self._serve(recorder, job, python)

    # Leaving

    def _watch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        self._stop = loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)

    def _on_signal(self, number: signal.Signals) -> None:
        if not self._ask_to_stop(f"signal {number.name}"):
            os._exit(STOPPED_AT_ONCE)

    def _ask_to_stop(self, reason: str) -> bool:
        """Stop the engine; returns False if a stop was asked for before."""
        assert self._stop is not None
        if self._stop.done():
            return False
        self._stop.set_result(reason)
        return True

    async def _leave_when_asked(self) -> None:
        assert self._stop is not None
        raise StopAsked(await asyncio.shield(self._stop))

    # Running

    async def _serve(self, recorder: Recorder, job: Job, python: JudgePython) -> int:
        """Run the job and answer commands; then finish the session, or stop it in good order.

        While the session is put away, commands are refused with the time so far.
        """
        changes = Changes()
        token = secrets.token_hex(16)
        await asyncio.to_thread(write_whole, self._live.token, token.encode() + b"\n", mode=0o600)

        async def handle(command: Command) -> int:
            return await self._obey(command, recorder, changes)

        curable: Sequence[str] = ()
        failure: ExceptionGroup[Exception] | None = None
        async with ControlServer(token=token, environ=self._environ, handle=handle) as control:
            await self._announce(control)
            try:
                async with asyncio.TaskGroup() as group:
                    helpers = (
                        group.create_task(self._tick(recorder, control), name="tick"),
                        group.create_task(self._leave_when_asked(), name="leave"),
                    )
                    curable = await self._work(recorder, job, python, changes)
                    for helper in helpers:
                        helper.cancel()
            except ExceptionGroup as errors:
                failure = errors
            await control.refuse_commands(putting_away(self._live.session))
            try:
                if failure is not None or curable:
                    await recorder.commit_all()
                else:
                    # First, because a session counts as finished only if it is in the store.
                    await recorder.settle()
                    await recorder.record_durable(SessionFinished(solved=solved(recorder)))
                    await recorder.finish()
                    return 0
            except StoreBroken as error:
                earlier = failure.exceptions if failure is not None else ()
                failure = ExceptionGroup("the session could not be stored", [*earlier, error])
            reason, code = self._why_stopped(recorder, failure, curable)
            await recorder.record_durable(EngineStopped(reason=reason, failed=code != 0))
            await recorder.flush()
            await recorder.keep_summary(at_end=True)
            self._live.engine.unlink(missing_ok=True)
            return code

    async def _work(
        self, recorder: Recorder, job: Job, python: JudgePython, changes: Changes
    ) -> tuple[str, ...]:
        plan = job.plan
        budget = budget_of(plan)
        budget.restore(recorder.state)

        def on_device(report: DeviceEvent) -> None:
            recorder.record(device_event(report))

        async with AsyncExitStack() as stack:
            evaluator: Evaluator
            if plan.cluster:
                evaluator = await stack.enter_async_context(
                    ClusterPool(
                        await reconnect(plan.cluster, self._live.session),
                        plan.devices,
                        tasks=job.tasks,
                        session=self._live.session,
                        python=plan.python,
                        on_device=on_device,
                        on_warning=partial(note_once, recorder, "warning"),
                    )
                )
            else:
                evaluator = LocalEvaluator(
                    await stack.enter_async_context(
                        DevicePool(
                            plan.devices,
                            tasks=job.tasks,
                            case_bytes=case_bytes(job),
                            session=self._live.session,
                            on_device=on_device,
                            python=python,
                            trusted_graphs=partial(graph_nodes_of, self._home),
                        )
                    )
                )
            shared = Shared(
                plan=plan,
                recorder=recorder,
                clients=job.clients,
                judge=Judge(
                    evaluator,
                    targets=job.targets,
                    seed=plan.seed,
                    against=plan.against,
                    against_source=plan.against_source,
                    keep_texts=recorder.files.keep_texts,
                ),
                budget=budget,
                targets=job.targets,
                corpus=job.corpus,
                gates=Gates(plan.providers),
                changes=changes,
                busy=self._busy,
                environ=self._environ,
            )
            async with asyncio.TaskGroup() as group:
                helpers = [
                    group.create_task(follow_person(evaluator, shared), name="person"),
                    group.create_task(keep_sampling(evaluator, shared), name="samples"),
                ]
                if isinstance(evaluator, LocalEvaluator):
                    verification = note_verification(evaluator, recorder, self._home)
                    helpers.append(group.create_task(verification, name="verification"))
                later = (
                    record_tests(
                        job.unrecorded,
                        recorder=recorder,
                        budget=budget,
                        pool=evaluator.pool,
                        target=job.targets[0],
                        registry=self._home.suites,
                    )
                    if job.unrecorded and isinstance(evaluator, LocalEvaluator)
                    else ()
                )
                curable = await run_instances(shared, job.method, job.tasks, later)
                for helper in helpers:
                    helper.cancel()
            return curable

    def _why_stopped(
        self, recorder: Recorder, failure: ExceptionGroup[Exception] | None, curable: Sequence[str]
    ) -> tuple[str, int]:
        """Returns the reason of an `EngineStopped`, and the exit code."""
        if failure is None:
            shown = ", ".join(curable[:4]) + (", ..." if len(curable) > 4 else "")
            lost = "1 instance lost its" if len(curable) == 1 else f"{len(curable)} instances lost their"
            return f"{lost} model or judge: {shown}", MACHINERY_FAILED
        errors = list(flatten_errors(failure))
        bugs = [error for error in errors if not isinstance(error, (StopAsked, *KNOWN))]
        if bugs:
            log.error("bug in the engine", exc_info=failure)
            words = f"{type(bugs[0]).__name__}: {one_line(bugs[0])}"
            message = f"bug in the engine ({words}); the traceback is in {self._live.log}"
            recorder.record(Notice(level="error", message=message))
            return f"bug in the engine: {words}", MACHINERY_FAILED
        expected = [error for error in errors if isinstance(error, KNOWN)]
        if expected:
            message = one_line(expected[0])
            log.error("%s", message)
            recorder.record(Notice(level="error", message=message))
            return message, MACHINERY_FAILED
        return one_line(errors[0]), 0

    # Watching and being reached

    async def _tick(self, recorder: Recorder, control: ControlServer) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            await recorder.keep_summary()
            await self._keep_reachable(recorder, control)

    async def _keep_reachable(self, recorder: Recorder, control: ControlServer) -> None:
        """Create the socket and `engine.json` again if they were removed.

        If that fails, the session still continues.
        """
        try:
            if await control.listen() or not self._live.engine.exists():
                await self._announce(control)
        except (EngineError, OSError) as error:
            words = f"the engine cannot receive commands: {one_line(error)}"
            note_once(recorder, "warning", words)

    async def _announce(self, control: ControlServer) -> None:
        """Write `engine.json`: from now on viewers can find the engine."""
        assert control.path is not None
        info = EngineInfo(
            session=self._live.session,
            pid=os.getpid(),
            process_started=psutil.Process().create_time(),
            boot_id=boot_id(),
            pid_namespace=pid_namespace(),
            host=socket.gethostname(),
            socket=str(control.path),
            token_file=str(self._live.token),
        )
        await asyncio.to_thread(write_engine_info, self._live, info)

    async def _obey(self, command: Command, recorder: Recorder, changes: Changes) -> int:
        """Execute a command; returns the number of the event that it became, else of the last event."""
        if isinstance(command, Stop):
            self._ask_to_stop(command.reason or f"stopped by {command.by or 'a person'}")
        if isinstance(command, Stop | Ping):
            return recorder.state.last_seq
        is_decision = isinstance(command, DecisionMade | DecisionUndone)
        if changes.closed and not is_decision:
            raise CommandRefused(ENDING)
        event = await recorder.record_durable(checked(command, recorder.state))
        # Durable now, so instances act on it, even if git fails below.
        changes.announce()
        if is_decision:
            await recorder.sync_accepted()
        return event.seq


def has_open_instances(state: SessionState) -> bool:
    """True if an instance of the session has work left, so that a model may be asked."""
    instances = (state.instances.get(key) for key in state.instance_keys())
    return any(instance is None or instance.finished is None or instance.curable for instance in instances)


def remaining_plan(plan: SessionPlan, state: SessionState) -> SessionPlan:
    """Returns the plan of a resumed session, without tasks that were left out and without tests that were recorded."""
    tasks = state.started.tasks if state.started is not None else plan.tasks
    begun = {instance.task for instance in state.instances.values()}
    unrecorded = tuple(task for task in plan.to_record if task in tasks and task not in begun)
    return msgspec.structs.replace(plan, tasks=tasks, to_record=unrecorded)


def case_bytes(job: Job) -> int | None:
    """Returns the size of the largest case if tests are not recorded yet; `None`: the tasks say it."""
    if not job.unrecorded:
        return None
    return max(RECORDED_CASE_BYTES, largest_case_bytes(job.tasks) if job.tasks else 0)


def putting_away(session: str) -> Callable[[], str]:
    """Returns a function that says for how long the engine has been putting the session away."""
    began = time.monotonic()
    return lambda: (
        f"the engine is putting the session away, for {time.monotonic() - began:.0f} s so far; "
        f"give the command again when that is done: wavedeck status {session} --wait end"
    )


async def keep_sampling(evaluator: Evaluator, shared: Shared) -> None:
    """Record samples of the devices every second, until cancelled. The nodes of a cluster sample theirs."""
    telemetry: dict[str, ReadState] = {}
    async with AsyncExitStack() as watched:
        for device in evaluator.devices:
            if isinstance(evaluator, ClusterPool):
                telemetry[device.name] = partial(state_on_node, evaluator, device.name)
            elif device.address:
                watch = await watched.enter_async_context(Telemetry(device.address, device.kind))
                telemetry[device.name] = watch.state
        sampler = DeviceSampler(evaluator.devices, shared.busy, telemetry)
        while True:
            await asyncio.sleep(TICK_S)
            for sample in await sampler.changed():
                shared.recorder.record(sample)


async def follow_person(evaluator: Evaluator, shared: Shared) -> None:
    """Lend the GPUs that a person lent, and raise the budget in USD by what a person adds, until cancelled."""
    state = shared.recorder.state
    lent: set[str] = set()
    while True:
        if state.lent != lent:
            lent = set(state.lent)
            evaluator.lend(lent)
        shared.raise_budget()
        await shared.changes.next()


async def note_verification(evaluator: Evaluator, recorder: Recorder, home: Home) -> None:
    """Record whether this machine's GPUs were verified on this node, if that is new to the session."""
    standings = {}
    for device in evaluator.devices:
        if device.kind != "cpu":
            provenance = await evaluator.provenance(device)
            verification = await asyncio.to_thread(
                newest_verification, home, host=socket.gethostname(), provenance=provenance
            )
            standings[provenance.product] = standing_of(verification, device.kind)
    if standings != recorder.state.verification:
        recorder.record(VerificationRead(standings=standings))


def flatten_errors(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    """Returns all errors in a nested exception group."""
    errors: list[BaseException] = []
    for error in group.exceptions:
        errors += flatten_errors(error) if isinstance(error, BaseExceptionGroup) else [error]
    return errors


def solved(recorder: Recorder) -> tuple[str, ...]:
    """Returns the tasks with a correct attempt, in the session's order."""
    correct = {instance.task for instance in recorder.state.instances.values() if instance.solved}
    tasks = recorder.state.started.tasks if recorder.state.started else ()
    return tuple(task for task in tasks if task in correct)


def report_changes(recorder: Recorder, job: Job) -> None:
    """Record notices about skipped examples, and about prompt templates that changed.

    The templates are compared with those of the first part of this session and of the recording.
    """
    shown = recorder.state.started.references_shown if recorder.state.started else ()
    if shown:
        words = f"prompts quote the reference kernel of {len(shown)} tasks, so results are not their benchmark's score"
        note_once(recorder, "warning", words)
    for words in job.corpus.remarks():
        note_once(recorder, "info", words)
    now = template_hashes()
    before = recorder.state.started.templates if recorder.state.started else {}
    changed = changed_templates(before, now)
    if changed:
        words = f"prompt templates changed since the session began: {', '.join(changed)}"
        recorder.record(Notice(level="warning", message=words))
    for client in job.clients.values():
        changed = (
            changed_templates(client.recording.facts.templates, now)
            if isinstance(client, RecordedClient)
            else ()
        )
        if changed:
            words = f"{job.plan.model} was recorded with other prompt templates: {', '.join(changed)}"
            note_once(recorder, "warning", words)
