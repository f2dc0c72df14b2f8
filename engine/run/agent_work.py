"""The work of an agent's program for one instance: its processes from start to end, and its output as calls of attempts."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

import msgspec

from engine.agent_programs import guard
from engine.agent_programs.output import AgentOutput
from engine.agent_programs.presets import (
    GEMINI_SETTINGS,
    PRESETS,
    TOKEN,
    AgentProgram,
    agent_environment,
    program_of,
    server_settings,
)
from engine.agent_programs.stated import TOKENS, USD, Stated, late_budgets, unstated_budgets
from engine.errors import ModelError
from engine.models import Piece
from engine.prompting.agent_prompt import BEST_FILE
from engine.prompting.judged import JudgedCandidate
from engine.reply.streaming import PieceBatches
from engine.run.shared import Shared, note_once
from harness.linux import syscalls
from harness.linux.foreign_files import remove
from harness.sandbox import landlock
from sessions.errors import SessionsError
from sessions.events import AGENT_PROGRAM, CallFinished, CallStarted, Message, Role, ServedModel
from sessions.home import Home
from sessions.names import call_name, split_instance

SERVER_START_S = 60.0
DRAIN_S = 0.2
"""Time to read the output that the agent wrote before it sent a candidate."""
CHUNK_BYTES = 1 << 16
SHOWN_CHARACTERS = 1 << 18
"""Output of one call that is kept."""
READ_WAIT_S = 0.01
"""Wait between two reads: a program that floods its output waits too, and the engine stays free."""
END_S = 5.0
"""Time for a process tree to end before the engine kills it."""


class AgentWork:
    """The program of one instance's agent. It does nothing if a person starts the agent."""

    def __init__(self, shared: Shared, key: str) -> None:
        self.program = program_of(shared.plan.options)
        self._shared = shared
        self._key = key
        self._model = shared.plan.model.partition(" ")[2]
        self._folder = shared.recorder.files.folder / "agents" / re.sub(r"[/#]", "-", key)
        self._server: Process | None = None
        self._guard: Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._output = AgentOutput("")
        self._counted = Stated()
        """The counts that the budget has."""
        self._prompt: tuple[Message, ...] = ()
        """The prompt, until a call has it."""
        self._waiting: list[str] = []
        """Output that no call has yet."""
        self._listener: Callable[[Piece], None] | None = None
        self._room = SHOWN_CHARACTERS

    @property
    def runs(self) -> bool:
        """True from the start of the program until all its output is read."""
        return self._reading is not None and not self._reading.done()

    @property
    def has_ended(self) -> bool:
        """True if the program was started and has ended."""
        return self._reading is not None and self._reading.done()

    @property
    def has_output(self) -> bool:
        """True if there is output that no call has."""
        return bool(self._waiting)

    @property
    def has_spending(self) -> bool:
        """True if the program stated tokens or cost that no call has."""
        return self._output.untaken != Stated()

    async def begin(self, prompt: str, best: JudgedCandidate | None) -> None:
        """Start the program in an empty work folder, with the MCP server of this instance. `ModelError` if one does not start."""
        assert self.program is not None
        self._prompt = (Message("user", prompt),)
        self._output, self._counted = AgentOutput(self.program.output), Stated()
        for words in late_budgets(self.program.name, self.program.output, self._budgets):
            note_once(self._shared.recorder, "warning", words)
        try:
            await asyncio.to_thread(self._make_folder, prompt, best)
            token = secrets.token_urlsafe(32)
            self._shared.recorder.masks.hide([token])
            url = await self._start_server(token)
            await asyncio.to_thread(self._write_configuration, url, token)
            await self._start_program(prompt, url, token)
        except OSError as error:
            raise ModelError("agent_failed", f"{self.program.name} cannot be started: {error}") from error
        self._reading = asyncio.create_task(self._read(), name=f"agent/{self._key}")
        self._reading.add_done_callback(lambda _: self._shared.changes.announce())

    async def report(self, attempt: str, until: Callable[[], bool], *, limit_s: float) -> None:
        """Record the output as a call of an attempt, until the condition holds, the program has ended, or the time is over."""
        recorder = self._shared.recorder
        call = self._start_call(attempt)
        began, kept = time.monotonic(), list[str]()
        batches = PieceBatches(call, recorder.record, self._shared.streams, recorder.masks)

        def listen(piece: Piece) -> None:
            kept.append(piece.text)
            batches.add(piece)

        try:
            for text in self._waiting:
                listen(Piece("reasoning", text))
            self._waiting.clear()
            self._listener = listen
            with suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    await self._shared.changes.until(lambda: until() or not self.runs)
            if self.runs:
                await asyncio.sleep(DRAIN_S)
            batches.flush()
        finally:
            batches.close()
            self._listener, self._room = None, SHOWN_CHARACTERS
        await recorder.record_durable(self._finish_call(call, "".join(kept), time.monotonic() - began))
        self._prompt = ()

    def record_spending(self, attempt: str) -> None:
        """Record what the program stated and no call has, because its work is cut off."""
        if self.has_spending:
            calls = self._shared.recorder.state.attempt(attempt).calls
            live = next((call for call in calls if call.live), None)
            call = live.call if live is not None else self._start_call(attempt)
            words = live.reasoning if live is not None else ""
            self._shared.recorder.record(self._finish_call(call, words))

    def _start_call(self, attempt: str) -> str:
        """Begin the next call of an attempt, with the prompt if no call had it; returns its name."""
        recorder = self._shared.recorder
        finished = sum(call.finished for call in recorder.state.attempt(attempt).calls)
        call = call_name(attempt, Role.GENERATOR, finished + 1)
        model = self._shared.plan.model
        recorder.record(
            CallStarted(call=call, attempt=attempt, role=Role.GENERATOR, model=model, messages=self._prompt)
        )
        return call

    def _finish_call(self, call: str, words: str, seconds: float = 0.0) -> CallFinished:
        """Returns the end of a call, with what the program stated and no call has."""
        spending = self._output.take_spending()
        return CallFinished(
            call=call,
            text="",
            reasoning=words,
            stop_reason="end",
            usage=spending.usage,
            cost_usd=spending.cost_usd,
            seconds=seconds,
            served=ServedModel(endpoint=AGENT_PROGRAM),
        )

    def check_end(self) -> None:
        """Raise `ModelError` if the program ended by itself with an error."""
        code = self._guard.returncode if self._guard is not None else None
        if self.has_ended and code:
            assert self.program is not None
            words = f": {self._output.last_line[:300]}" if self._output.last_line else ""
            raise ModelError("agent_failed", f"{self.program.name} ended with exit code {code}{words}")

    async def close(self) -> None:
        """End the program with its process tree, and its server; remove the work folder."""
        processes = [process for process in (self._guard, self._server) if process is not None]
        for process in processes:
            with suppress(ProcessLookupError):
                process.terminate()
        for process in processes:
            try:
                await asyncio.wait_for(process.wait(), END_S)
            except TimeoutError:
                for pid in (*syscalls.descendants(process.pid), process.pid):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                await process.wait()
        if self._reading is not None:
            self._reading.cancel()
            # An error of the journal ends the engine elsewhere.
            with suppress(asyncio.CancelledError, SessionsError):
                await self._reading
        if self.program is not None:
            await asyncio.to_thread(remove, self._folder)

    async def _read(self) -> None:
        """Read the output to its end; returns when the guard has ended too."""
        assert self._guard is not None
        assert self._guard.stdout is not None
        while data := await self._guard.stdout.read(CHUNK_BYTES):
            self._keep(self._output.read(data))
            self._count_stated()
            await asyncio.sleep(READ_WAIT_S)
        self._keep(self._output.read(b"", last=True))
        self._count_stated()
        await self._guard.wait()
        assert self.program is not None
        for words in unstated_budgets(self.program.name, self._budgets, self._output.stated):
            note_once(self._shared.recorder, "warning", words)

    def _count_stated(self) -> None:
        """Count in the budget what the program stated since the last count; a reached budget ends all instances."""
        stated = self._output.stated
        if stated != self._counted:
            self._shared.budget.count_stated(*stated.since(self._counted))
            self._counted = stated
            self._shared.changes.announce()

    @property
    def _budgets(self) -> dict[str, float | None]:
        return {USD: self._shared.plan.budget_usd, TOKENS: self._shared.plan.budget_tokens}

    def _keep(self, text: str) -> None:
        """Hand output to the present call, or keep it for the next one; too much of it is dropped with a note."""
        if not text or self._room <= 0:
            return
        self._room -= len(text)
        if self._room <= 0:
            text = (
                f"{text[: self._room or None]}\n[output beyond {SHOWN_CHARACTERS:,} characters is not kept]\n"
            )
        if self._listener is not None:
            self._listener(Piece("reasoning", text))
            return
        self._waiting.append(text)
        self._shared.changes.announce()

    # Starting

    def _make_folder(self, prompt: str, best: JudgedCandidate | None) -> None:
        remove(self._folder)
        for folder in (self._folder / "bin", self._folder / "tmp"):
            folder.mkdir(parents=True, mode=0o700)
        (self._folder / "PROMPT.md").write_text(prompt, encoding="utf-8")
        if best is not None:
            (self._folder / BEST_FILE).write_text(best.source, encoding="utf-8")
        # OpenHands takes a shell of a tmux server that runs already, which is not confined, unless tmux fails.
        commands = {"wavedeck": f'exec {quote(sys.executable)} -P -m tui "$@"', "tmux": "exit 1"}
        for name, line in commands.items():
            command = self._folder / "bin" / name
            command.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
            command.chmod(0o700)

    def _write_configuration(self, url: str, token: str) -> None:
        """Write the MCP server into the files from which agents read it."""
        claude, gemini = server_settings(url, token)
        for file, settings in (("mcp.json", claude), (GEMINI_SETTINGS, gemini)):
            path = self._folder / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(settings, encoding="utf-8")

    async def _start_server(self, token: str) -> str:
        """Start the MCP server of this instance, which is not confined; returns its address.

        It is a command, because the server belongs to the face. It ends with the engine.
        """
        live = self._shared.recorder.files
        self._server = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "tui", "mcp", "--session", live.session, "--instance", self._key),
            *("--engine", str(os.getpid()), "--http", "0"),
            env={**os.environ, "WAVEDECK_HOME": str(self._home.root), TOKEN: token},
            cwd=live.folder.parent,
            stdin=DEVNULL,
            stdout=PIPE,
        )  # fmt: skip
        assert self._server.stdout is not None
        try:
            line = await asyncio.wait_for(self._server.stdout.readline(), SERVER_START_S)
        except TimeoutError:
            line = b""
        if not line.startswith(b"http://"):
            raise ModelError("agent_failed", f"the MCP server for the agent did not start; see {live.log}")
        return line.decode().strip()

    async def _start_program(self, prompt: str, url: str, token: str) -> None:
        program, environ = self.program, self._shared.environ
        assert program is not None
        task = split_instance(self._key).task
        is_confined = landlock.version() > 0
        if not is_confined:
            words = "this kernel cannot confine agents (no Landlock): they can read this home and all files that you can"
            note_once(self._shared.recorder, "warning", words)
        values = {"prompt": prompt, "mcp": str(self._folder / "mcp.json"), "url": url}
        confinement = guard.Confinement(
            engine=os.getpid(),
            folder=str(self._folder.resolve()),
            write=tuple(map(str, own_files(program))),
            hidden=tuple(map(str, self._hidden(program))),
            shared=tempfile.gettempdir(),
            terminals=program.has_terminals,
        )
        self._guard = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", guard.__name__, msgspec.json.encode(confinement).decode()),
            *program.words(model=self._model, is_confined=is_confined, values=values),
            env=agent_environment(
                program, self._model, environ, self._folder, task=task, url=url, token=token
            ),
            cwd=self._folder,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
        )

    def _hidden(self, program: AgentProgram) -> Sequence[Path]:
        """Wavedeck's home, and the files of other agents, which may have keys."""
        foreign = [name for preset in PRESETS.values() if preset.name != program.name for name in preset.own]
        return [self._home.root.resolve(), *(Path(name).expanduser().resolve() for name in foreign)]

    @property
    def _home(self) -> Home:
        return Home(self._shared.recorder.files.folder.parents[1])


def own_files(program: AgentProgram) -> list[Path]:
    """Returns the agent's own files and folders; creates missing folders, because it may not create them itself."""
    paths = [Path(name).expanduser().resolve() for name in program.own]
    for path in paths:
        if not path.suffix:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return paths
