"""One instance of the generated session in `eighty_instances`. No figure here was measured."""

from __future__ import annotations

import hashlib
import random
from typing import NamedTuple

import msgspec

from benchmarks.generated_session.verdicts import STRATEGIES, correct, kernel, refused
from harness import STAGES, Evaluation, Verdict
from sessions import events as ev
from sessions.names import attempt_name, call_name, instance_key

SESSION = "20261121-110000-geak-80a1"
MODEL = "anthropic:claude-x"
TASKS = (
    "softmax", "layer_norm", "rms_norm", "swiglu", "rope", "matmul", "matmul_w8a8", "cross_entropy", "flip", "vector_add",
    "rms_norm_residual", "paged_attention", "gelu", "top_k", "cumsum", "transpose", "moe_gate", "conv1d", "dropout",
    "quantize_fp8",
)  # fmt: skip
STATES = (
    ("generate", "performance", "review", "reflect"),
    ("stuck", "review", "generate", "optimize"),
    ("confirmed", "not resolved", "done", "done"),
    ("generate", "paused", "limited", "generate"),
    ("performance", "call", "execution", "failed"),
    ("generate", "accepted", "integrity", "queued"),
    ("generate", "compile", "performance", "tune"),
    ("static", "exam failed", "reflect", "generate"),
)
"""State of each task's instances at the end of the recording; further tasks and instances repeat the states."""
UNTIMED = 3
"""Row of `STATES` whose baseline does not compile, so that nothing of these tasks is timed."""
FINISHED = frozenset({"confirmed", "not resolved", "done", "exam failed"})
CALLING = {
    "generate": ev.Role.GENERATOR,
    "stuck": ev.Role.GENERATOR,
    "limited": ev.Role.GENERATOR,
    "optimize": ev.Role.OPTIMIZER,
    "reflect": ev.Role.REFLECTOR,
}
FAILURES = (
    Verdict.WRONG, Verdict.COMPILE_ERROR, Verdict.CALL_ERROR, Verdict.TIMEOUT, Verdict.REJECTED, Verdict.WRONG,
    Verdict.CRASH, Verdict.NO_CODE, Verdict.INFRA_ERROR, Verdict.UNSUPPORTED, Verdict.CANCELLED,
)  # fmt: skip
SHORTEST_RUN_S = 6127.0
STEP_S = 190.0
"""An attempt with its call and its judging takes less."""
THOUGHTS = (
    "The rows are read twice. One pass with the row in registers should halve the time.\n",
    "At 4097 columns the last block is ragged, so the mask must cover the load and the store.\n",
    "exp overflows for the outlier rows. The maximum has to be subtracted first, in fp32.\n",
    "Eight waves a row hide the latency of the loads. More waves need too many registers.\n",
)
REPLY = "{strategy}\n\n```python\n{source}```\n"


class Plan:
    """Names and limits of the session."""

    def __init__(self, *, tasks: int, instances: int, gpus: int, attempts: int, pieces: int) -> None:
        names = [TASKS[place] if place < len(TASKS) else f"kernel_{place + 1}" for place in range(tasks)]
        self.tasks = tuple(f"starter/{name}" for name in names)
        self.instances = instances
        self.attempts = max(4, attempts)
        self.pieces = pieces
        self.run_s = max(SHORTEST_RUN_S, 2.5 * STEP_S * self.attempts)
        self.measures = gpus > 0
        self.devices = tuple(map(str, range(gpus))) or ("cpu",)
        troubled = gpus >= 4
        self.throttled, self.awaited, self.quarantined = self.devices[-3:] if troubled else ("", "", "")
        self.usable = self.devices[:-2] if troubled else self.devices
        self.free = list(self.usable[:-1])
        """GPUs on which nothing is timed at the end; the last GPU judges everything else."""

    def is_timed(self, place: int) -> bool:
        """Return whether the candidates of the task at `place` are timed."""
        return self.measures and place % len(STATES) != UNTIMED


class Step(NamedTuple):
    """The result of one attempt; `speedup` is `None` if it is not correct or was not timed."""

    verdict: Verdict
    speedup: float | None = None


class Chain:
    """One instance: its attempts, and its state at the end of the recording."""

    def __init__(self, plan: Plan, place: int, instance: int) -> None:
        self.plan, self.task, self.instance = plan, plan.tasks[place], instance
        self.key = instance_key(self.task, instance)
        self.index = place * plan.instances + instance - 1
        row = STATES[place % len(STATES)]
        self.state = row[(instance - 1) % len(row)]
        self.random = random.Random(self.index)
        self.device = plan.usable[self.index % len(plan.usable)]
        self.is_timed = plan.is_timed(place)
        self.is_bounded = self.index % 20 == 2
        self.entries: list[tuple[float, ev.AnyEvent]] = []
        self.now = 4.0 + self.index * 0.05
        self.best: str | None = None
        self.started = 0
        self.steps = self._steps()
        lasts_until = plan.run_s * (self.random.uniform(0.6, 0.95) if self.state in FINISHED else 0.96)
        self.idle_s = max(0.0, (lasts_until - self.now) / max(1, len(self.steps)) - STEP_S)
        self._play()

    def name(self, number: int) -> str:
        """Return the name of an attempt."""
        return attempt_name(self.key, number)

    @property
    def latest(self) -> str:
        """Name of the latest attempt."""
        return self.name(self.started)

    def _steps(self) -> list[Step]:
        limit, draw = self.plan.attempts, self.random
        count = limit if self.state in FINISHED else draw.randint(max(3, limit // 2), limit - 1)
        if self.state == "queued":
            return []
        if self.state == "stuck":
            return [Step(Verdict.COMPILE_ERROR), *[Step(Verdict.WRONG)] * (count - 1)]
        speedup = 0.96 + 0.07 * (self.index % 4)
        steps = []
        for number in range(1, count + 1):
            if number < count and draw.random() < (0.75 if number <= 2 else 0.3):
                steps.append(Step(FAILURES[(self.index * 3 + number) % len(FAILURES)]))
                continue
            speedup *= draw.uniform(1.0, 1.16) if speedup < 1.9 else draw.uniform(0.97, 1.02)
            if self.state == "not resolved":
                speedup = 1.0 + 0.004 * number
            steps.append(Step(Verdict.CORRECT, round(speedup, 3) if self.is_timed else None))
        return steps

    def _play(self) -> None:
        self._add(0.0, ev.InstanceStarted(task=self.task, instance=self.instance))
        highest = -1.0
        for number, step in enumerate(self.steps, start=1):
            self._attempt(number, step)
            if step.verdict is Verdict.CORRECT and (step.speedup or 0.0) > highest:
                highest, self.best = step.speedup or 0.0, self.name(number)
        if self.state in FINISHED:
            self._finish()
            return
        self.now = self.plan.run_s - self.random.uniform(125.0, 240.0)
        self._last_state()

    def _last_state(self) -> None:
        """Append the work in progress."""
        if self.state in CALLING:
            self.now = self.plan.run_s - self.random.uniform(16.0, 100.0)
            self._begin()
            self._call(CALLING[self.state], finished=False)
            if self.state == "limited":
                retried = ev.CallRetried(
                    call=call_name(self.latest, "generator", 1), reason="rate_limited",
                    message="429: rate limit of 400,000 input tokens per minute", wait_s=20.0, retry=3,
                )  # fmt: skip
                self._add(2.0, retried)
        elif self.state in STAGES:
            self._begin()
            self._call(ev.Role.GENERATOR)
            self._propose()
            if self.state == "performance" and self.plan.free:
                stages, self.device = STAGES, self.plan.free.pop(0)
            else:
                stages, self.device = STAGES[: min(4, STAGES.index(self.state)) + 1], self.plan.usable[-1]
            for stage in stages:
                self._add(0.2, ev.StageStarted(attempt=self.latest, stage=stage, device=self.device))
        elif self.state == "tune":
            self._add(1.0, ev.SweepStarted(attempt=self.latest))
        elif self.state == "review":
            self._add(1.0, ev.WaitingForPerson(attempt=self.latest))
        elif self.state == "paused":
            self._add(1.0, ev.Paused(instance=self.key, by="kim"))
        elif self.state == "failed":
            message = "401: the key was refused; set ANTHROPIC_API_KEY and resume"
            self._end(ev.EndReason.MODEL_FAILED, message)

    def _finish(self) -> None:
        if self.best is not None:
            self._add(1.0, ev.StageStarted(attempt=self.best, stage="call", device=self.device, exam=True))
            examined = ev.WinnerExamined(attempt=self.best, evaluation=self._exam(self.best), device_s=31.0)
            self._add(34.0, examined)
        self._end(ev.EndReason.ITERATIONS)

    def _exam(self, attempt: str) -> Evaluation:
        if self.state == "exam failed":
            failed = refused(self.task, self.device, Verdict.WRONG, case="exam ragged")
            return _in_exam(failed)
        speedup = self.steps[int(attempt.rpartition("/")[2]) - 1].speedup
        half_width = 0.05 if self.state == "not resolved" else 0.025
        again = None if speedup is None else round(speedup * 0.985, 3)
        return _in_exam(
            correct(self.task, self.device, again, half_width=half_width, bounded=self.is_bounded)
        )

    def _end(self, reason: ev.EndReason, message: str = "") -> None:
        ended = ev.InstanceFinished(
            task=self.task, instance=self.instance, reason=reason, best=self.best, message=message
        )
        self._add(0.5, ended)

    def _begin(self) -> int:
        """Append the start of the next attempt and return its number."""
        self.started += 1
        number = self.started
        last = self.steps[number - 2] if number > 1 else None
        if last is None:
            origin, base = ev.Origin.FRESH, None
        elif last.verdict is not Verdict.CORRECT:
            origin, base = ev.Origin.REPAIR, self.name(number - 1)
        else:
            origin, base = ev.Origin.OPTIMIZE, self.best
        self._add(0.5, ev.AttemptStarted(attempt=self.name(number), origin=origin, base=base))
        return number

    def _attempt(self, number: int, step: Step) -> None:
        self.now += self.idle_s
        self._begin()
        name = self.name(number)
        self._call(ev.Role.OPTIMIZER if number > 3 else ev.Role.GENERATOR)
        evaluation = self._evaluation(number, step)
        self._propose(code=step.verdict is not Verdict.NO_CODE)
        for stage in evaluation.stages:
            if stage.ok is not None:
                self._add(0.2, ev.StageStarted(attempt=name, stage=stage.name, device=self.device))
                self._add(stage.seconds, ev.StageFinished(attempt=name, stage=stage))
        held = sum(stage.seconds for stage in evaluation.stages)
        self._add(0.2, ev.AttemptJudged(attempt=name, evaluation=evaluation, device_s=held))
        commit = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
        branch = f"{SESSION}/{self.task}/{self.instance}"
        self._add(0.1, ev.AttemptCommitted(attempt=name, commit=commit, branch=branch))

    def _evaluation(self, number: int, step: Step) -> Evaluation:
        if step.verdict is not Verdict.CORRECT:
            return refused(self.task, self.device, step.verdict)
        return correct(
            self.task,
            self.device,
            step.speedup,
            half_width=0.05 if self.state == "not resolved" else 0.025,
            bounded=self.is_bounded,
            throttled=self.device == self.plan.throttled and number == len(self.steps),
            version=number - 1,
        )

    def _propose(self, *, code: bool = True) -> None:
        version = self.started - 1
        proposed = ev.CandidateProposed(
            attempt=self.latest,
            source=kernel(self.task, version, variant=self.index) if code else "",
            strategy=STRATEGIES[version % len(STRATEGIES)],
            unusable="" if code else "no_code_block",
        )
        self._add(0.3, proposed)

    def _call(self, role: ev.Role, *, finished: bool = True) -> None:
        """Append a call; the reply of an unfinished call has reasoning and no text."""
        version, seconds = self.started - 1, self.random.uniform(35.0, 110.0)
        call = call_name(self.latest, role, 1)
        strategy = STRATEGIES[version % len(STRATEGIES)]
        text = REPLY.format(strategy=strategy, source=kernel(self.task, version, variant=self.index))
        thoughts = "".join(THOUGHTS[(version + place) % len(THOUGHTS)] for place in range(4))
        messages = (
            ev.Message("system", "You write Triton kernels that are correct and fast on AMD GPUs."),
            ev.Message("user", self._prompt(version)),
        )
        begun = ev.CallStarted(call=call, attempt=self.latest, role=role, model=MODEL, messages=messages)
        self._add(0.3, begun)
        if not finished:
            seconds = self.plan.run_s - self.now - 5.0
            thoughts = thoughts[: len(thoughts) * 2 // 3]
        kinds = (("reasoning", thoughts), ("text", text)) if finished else (("reasoning", thoughts),)
        for kind, words in kinds:
            for piece in _cut(words, self.plan.pieces):
                self._add(
                    seconds / (len(kinds) * self.plan.pieces), ev.ReplyPiece(call=call, kind=kind, text=piece)
                )
        if finished:
            asked, answered = 5200 + 900 * (version % 10), 2100 + self.index
            usage = ev.Usage(input_tokens=asked, output_tokens=answered, cached_tokens=4096)
            cost = asked * 3e-6 + answered * 15e-6
            self._add(
                0.1,
                ev.CallFinished(
                    call=call, text=text, reasoning=thoughts, stop_reason="end", usage=usage, cost_usd=cost,
                    seconds=seconds, temperature=1.0,
                ),
            )  # fmt: skip

    def _prompt(self, version: int) -> str:
        baseline = kernel(self.task, 0)
        request = (
            f"Write the kernel {self.task} for gfx942. It must be faster than:\n\n```python\n{baseline}```\n"
        )
        if not version:
            return request
        last, verdict = kernel(self.task, version - 1, variant=self.index), self.steps[version - 1].verdict
        return f"{request}\nThe last attempt is {verdict.value}:\n\n```python\n{last}```\n"

    def _add(self, after_s: float, event: ev.AnyEvent) -> None:
        self.now += after_s
        self.entries.append((self.now, event))


def _in_exam(evaluation: Evaluation) -> Evaluation:
    return msgspec.structs.replace(evaluation, exam=True)


def _cut(words: str, pieces: int) -> list[str]:
    size = max(1, -(-len(words) // pieces))
    return [words[start : start + size] for start in range(0, len(words), size)]
