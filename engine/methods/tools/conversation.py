"""The method `tools`: a conversation in which a model calls the tools that other agents have over MCP.

Each `eval` is an attempt and uses one iteration. Its base is the latest attempt with a verdict that the model had read. All calls
of the model until the next `eval` belong to that attempt. If they bring no `eval`, the attempt ends as `no_code`.

A conversation that grows long, or that does not fit the model's context, is followed by a new one. It starts from the
history in short, and from the best attempt in full.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import Any

import msgspec

from engine.corpus.retrieval import Corpus
from engine.errors import CommandRefused, ContextTooLong
from engine.methods.context import Context
from engine.methods.proposing import examples_of, judge_candidate, judge_start, setting_of
from engine.models import Reply, ToolCall, calls_in
from engine.prompting.agent_prompt import best_of, task_parts
from engine.prompting.judged import JudgedCandidate
from engine.prompting.markdown import fenced
from engine.prompting.prompting import REQUEST, Setting
from engine.reply.candidate import STRATEGY_LIMIT, Candidate
from harness import Verdict
from harness.assembly.code_texts import NoText
from sessions.events import EndReason, Message, Origin, Role

from .tool_answers import (
    answer_about,
    answer_asm,
    answer_best,
    answer_history,
    answer_measured,
    answer_profiled,
    encoded,
)
from .toolbox import ON_GPUS, TOOLBOX, misfit

MOST_REPLIES = 12
"""Replies for one attempt: a model may ask about its attempts, but not for ever."""
MOST_SILENT = 2
"""Replies without a tool call in one attempt; the first one is answered with a reminder."""
MOST_CALLS = 64
"""Calls of one reply that are carried out."""
LONGEST_NAME = 60
"""Characters of a wrong name that an answer repeats."""
LONGEST = 200_000
"""Characters of a conversation after which a new one begins: every call sends all of it."""
WORK = """# How to work

You work with tools. `eval` judges one complete module; its answer is what the next module builds on. Each `eval` uses one \
evaluation. Your last evaluation ends your work, without an answer. End before with `submit` when you expect no further gain: \
the best correct attempt is your result. Only the verdict of `eval` counts. Follow what `person` says. Text beside tool calls \
is shown to people and not judged."""
FIRST = "Write the module. Correctness in every case comes first, then speed. Evaluations left: {left}."
NEXT = (
    "Go on with the work. Evaluations left: {left}. Your attempts so far, as the tool `history` shows them:"
)
LATEST = "The best attempt, or if none is correct the latest:"
REMINDER = "That was no tool call. Call `eval` with a module, another tool, or `submit`."


class Tools:
    """The method `tools`."""

    name = "tools"
    asks_model = True
    takes = frozenset({"without", "show_reference", "corpus", "start"})
    roles = frozenset({Role.GENERATOR})
    modules = frozenset({"knowledge", "one-shot", "examples"})
    iterations: int | None = None

    async def run(self, context: Context) -> EndReason:
        """See `Method`."""
        start = await judge_start(context)
        setting, examples = await setting_of(context), await examples_of(context)
        return await Conversation(context, setting, examples, start).run()


class Conversation:
    """One instance's conversations, one after the other."""

    def __init__(
        self, context: Context, setting: Setting, examples: Corpus, start: JudgedCandidate | None
    ) -> None:
        self._context = context
        self._setting = setting
        self._examples = examples
        self._judged = [start] if start is not None else []
        self._base = start
        """The latest attempt with a verdict that the model read."""
        self._used = 0
        """Iterations that are used."""
        self._attempt = ""
        """The attempt that waits for its candidate; empty if there is none."""
        self._replies = self._silent = 0
        """Replies for this attempt, and those of them without a tool call."""
        self._messages: list[Message] = []
        self._news: list[str] = []
        """A person's words since the last request."""
        self._tools = {
            name: tool for name, tool in TOOLBOX.items() if name not in ON_GPUS or context.device != "cpu"
        }

    @property
    def _left(self) -> int:
        """Iterations left in the current phase: an extension by a person changes no earlier message."""
        ends = accumulate(self._context.phases)
        return next((end - self._used for end in ends if end > self._used), 0)

    async def run(self) -> EndReason:
        """Run until all iterations are used, or the model submits."""
        while self._left:
            await self._begin()
            reply = await self._ask()
            answers = []
            for place, call in enumerate(calls_in(reply.turn)):
                if call.name == "submit" and self._judged:
                    return EndReason.SUBMITTED
                answers.append((call, await self._answer(call, place)))
                if not self._left:
                    return EndReason.ITERATIONS
            self._base = self._judged[-1] if self._judged else None
            self._take_in(reply, answers)
            await self._end_idle(reply.stop_reason if reply.is_cut else "")
        return EndReason.ITERATIONS

    async def _begin(self) -> None:
        """Begin the next attempt, unless one waits for its candidate."""
        if self._attempt:
            return
        orders = await self._context.orders()
        for judged in self._judged:
            judged.rejection = "" if judged.attempt in orders.rejected else None
        base = self._base
        origin = Origin.FRESH if base is None else Origin.OPTIMIZE if base.passed else Origin.REPAIR
        self._attempt = await self._context.attempt(origin, base.attempt if base is not None else None)
        self._news += self._context.words
        self._replies = self._silent = 0

    async def _end_idle(self, cut: str) -> None:
        """End an attempt for which the model brings no candidate. `cut` is the stop reason of a reply that was cut."""
        if self._attempt and (cut or self._replies >= MOST_REPLIES or self._silent >= MOST_SILENT):
            await self._context.judge("", "", unusable=cut or "no_eval")
            self._attempt = ""
            self._used += 1

    # The model

    async def _ask(self) -> Reply:
        """Returns the model's next reply; `ContextTooLong` if not even a new, shorter conversation fits."""
        if not self._messages or sum(map(length, self._messages)) > LONGEST:
            self._messages = self._opening(self._setting)
        elif self._news:
            self._messages[-1] = with_news(self._messages[-1], self._news)
        tools = tuple(self._tools.values())
        try:
            reply = await self._context.ask(Role.GENERATOR, self._messages, tools)
        except ContextTooLong:
            self._setting = replace(self._setting, short=True)
            shorter = self._opening(self._setting)
            if shorter == self._messages:
                raise
            self._messages = shorter
            reply = await self._context.ask(Role.GENERATOR, self._messages, tools)
        self._news = []
        self._replies += 1
        return reply

    def _opening(self, setting: Setting) -> list[Message]:
        """Returns the first messages of a conversation: the task, and the attempts so far."""
        example = None if setting.short else self._examples.by_instruction(setting.task)
        rules, facts = task_parts(replace(setting, words=tuple(self._news)), example)
        request = FIRST.format(left=self._left)
        shown = best_of(self._judged) or (self._judged[-1] if self._judged else None)
        if shown is not None:
            history = encoded(answer_history(self._judged, remaining=self._left))
            verdict = encoded(self._about(shown))
            parts = (NEXT.format(left=self._left), history, LATEST, verdict, fenced(shown.source, "python"))
            request = "\n\n".join(parts)
        return [Message("system", f"{rules}\n\n{WORK}"), Message("user", f"{facts}\n{REQUEST}\n{request}")]

    def _take_in(self, reply: Reply, answers: list[tuple[ToolCall, object]]) -> None:
        """Add a reply and the answers to its calls to the conversation."""
        self._messages.append(Message("assistant", reply.text.strip() or "(no text)", turn=reply.turn))
        self._messages += [Message("tool", encoded(answer), answers=call.id) for call, answer in answers]
        if not answers:
            self._silent += 1
            self._messages.append(Message("user", REMINDER))

    # The tools

    async def _answer(self, call: ToolCall, place: int) -> object:
        """Carry out a call, which is the n-th of its reply from 0; returns the answer for the model."""
        tool = self._tools.get(call.name)
        if tool is None:
            return {
                "error": f"there is no tool {call.name[:LONGEST_NAME]!r}; there are {', '.join(self._tools)}"
            }
        if place >= MOST_CALLS:
            return {"error": f"a reply may have {MOST_CALLS} calls; this one was not carried out"}
        problem = misfit(tool, call.arguments)
        if problem:
            return {"error": problem}
        assert isinstance(call.arguments, dict)
        arguments = {name: value or "" for name, value in call.arguments.items()}
        match call.name:
            case "eval":
                return await self._evaluate(arguments["code"], arguments.get("note", ""))
            case "history":
                return answer_history(self._judged, remaining=self._left)
            case "best":
                return answer_best(self._judged)
            case "submit":
                return {"error": "no candidate was judged; call eval first"}
            case _:
                return await self._answer_about(call.name, arguments)

    async def _answer_about(self, tool: str, arguments: dict[str, str]) -> object:
        """Carry out a call about an earlier attempt."""
        name = arguments["attempt"]
        judged = next((candidate for candidate in self._judged if candidate.attempt == name), None)
        if judged is None:
            return {"error": f"there is no attempt {name[:LONGEST_NAME]!r}; `history` lists them"}
        if tool == "explain":
            return self._about(judged)
        if tool == "asm":
            kernel, case = arguments.get("kernel", ""), arguments.get("case", "")
            try:
                return answer_asm(judged, self._context.compiler_text, kernel=kernel, case=case)
            except NoText as why:
                return {"error": f"{name}: {why}"}
        if judged.evaluation.verdict is not Verdict.CORRECT:
            return {"error": f"{name} is not correct; choose a correct attempt"}
        if tool == "profile":
            try:
                case, profile = await self._context.take_profile(name, arguments.get("case", ""))
            except CommandRefused as why:
                return {"error": str(why)}
            return answer_profiled(name, case, profile)
        measured = await self._context.measure(name)
        return answer_measured(name, judged.evaluation.device, measured)

    async def _evaluate(self, code: str, note: str) -> object:
        await self._begin()
        candidate = Candidate(code, note[:STRATEGY_LIMIT])
        judged = await judge_candidate(
            self._context, self._attempt, candidate, base=self._base, best=best_of(self._judged)
        )
        if judged.rejection is not None:
            self._news.append(f'a person rejected {judged.attempt}: "{judged.rejection}"')
        self._judged.append(judged)
        self._attempt = ""
        self._used += 1
        return self._about(judged)

    def _about(self, judged: JudgedCandidate) -> object:
        same = next(earlier for earlier in self._judged if earlier.source == judged.source)
        same_as = "" if same is judged else same.attempt
        step = "send the next candidate, or submit"
        return answer_about(
            judged, best_of(self._judged), same_as=same_as, next_step=step, remaining=self._left
        )


def with_news(message: Message, news: list[str]) -> Message:
    """Returns a message with a person's words: in the field `person` of a tool's answer, else after the text."""
    if message.role != "tool":
        return msgspec.structs.replace(message, content="\n\n".join([message.content, *news]))
    answer: dict[str, Any] = msgspec.json.decode(message.content)
    return msgspec.structs.replace(message, content=encoded(answer | {"person": news}))


def length(message: Message) -> int:
    """Returns the characters of a message as it is sent."""
    return len(msgspec.json.encode(message.turn)) if message.turn else len(message.content)
