"""Events of a large session in the middle of its run, for pictures, tests and benchmarks of the cockpit.

By default 20 tasks with 4 instances each on eight GPUs: instances in every state, every verdict, a GPU that is lost, one in
use by another person, one that throttles, a model that refuses calls, attempts that wait for a person. Everything is
deterministic, and no figure in it was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from benchmarks import eighty_verdicts as verdicts
from harness import Verdict
from sessions import events as ev

SESSION = "20261123-214500-geak-8080"
STARTED_WALL = 1_795_470_300.0
MODEL = "anthropic:claude-x"
BUDGET_USD = 50.0
SPENT_SHARE = 0.91
NAMES = (
    "softmax", "layer_norm", "rms_norm", "swiglu", "rope", "paged_attention", "matmul_w8a8", "cross_entropy",
    "embedding", "gelu", "quantize_rows", "moe_gating", "flash_decode", "kv_cache_copy", "int4_matmul",
    "group_norm", "argmax", "cumsum", "masked_select", "batched_gemm",
)  # fmt: skip
STATES = (
    "generate", "timing", "review", "reflect", "compile", "stuck", "generate", "execution",
    "confirmed", "accepted", "paused", "generate", "failed", "no model", "queued", "timing",
    "not confirmed", "generate", "execution", "done",
)  # fmt: skip
"""Last state of each instance, in turns."""
COMMON = (
    Verdict.WRONG, Verdict.CORRECT, Verdict.COMPILE_ERROR, Verdict.CORRECT, Verdict.CALL_ERROR, Verdict.CORRECT,
    Verdict.CORRECT,
)  # fmt: skip
RARE = (
    Verdict.REJECTED, Verdict.TIMEOUT, Verdict.CRASH, Verdict.NO_CODE, Verdict.UNSUPPORTED, Verdict.INFRA_ERROR,
)  # fmt: skip
"""Verdicts of consecutive attempts come from `COMMON` in turns; each 17th is a rare one."""
REASONING = (
    "The rows are read twice; 8192 x 8192 fp32 is 537 MB a pass, so one pass with the row in registers should halve the time. ",
    "At 4097 columns the tail needs a mask, and the masked lanes must load -inf so that they do not count in the maximum. ",
    "Eight waves a row keep more loads in flight. The occupancy falls to five, which is enough for a copy. ",
)


@dataclass(slots=True)
class Instance:
    """The events of one instance with their times, in seconds from the session's start."""

    task: str
    number: int
    place: int
    """Position among all instances; every choice below follows from it."""
    devices: tuple[str, ...]
    now: float = 0.0
    events: list[tuple[float, ev.AnyEvent]] = field(default_factory=list)

    @property
    def key(self) -> str:
        """`softmax#2`."""
        return f"{self.task.rpartition('/')[2]}#{self.number}"

    @property
    def device(self) -> str:
        """The GPU that judges it."""
        return self.devices[self.place % len(self.devices)]

    def add(self, event: ev.AnyEvent, *, after_s: float = 0.0) -> None:
        """Append an event, `after_s` seconds after the last."""
        self.now += after_s
        self.events.append((self.now, event))

    def call(self, attempt: str, role: ev.Role, *, live: bool = False, pieces: int = 3) -> str:
        """Append a call with its streamed reply; a live call is not finished. Returns the call's name."""
        call = f"{attempt}/{role.value}/1"
        messages = (
            ev.Message("system", "You write Triton kernels."),
            ev.Message("user", f"Write {self.task}."),
        )
        self.add(ev.CallStarted(call=call, attempt=attempt, role=role, model=MODEL, messages=messages))
        for piece in range(pieces):
            text = REASONING[(self.place + piece) % len(REASONING)]
            self.add(ev.ReplyPiece(call=call, kind="reasoning", text=text), after_s=4.0)
        if live:
            self.add(ev.ReplyPiece(call=call, kind="text", text="One pass, row in registers."), after_s=1.0)
        return call

    def attempt(self, number: int, verdict: Verdict, *, speedup: float | None, base: int | None) -> str:
        """Append a whole attempt, from its call to its commit; returns its name."""
        name = f"{self.key}/{number}"
        origin = (
            ev.Origin.FRESH
            if base is None
            else ev.Origin.OPTIMIZE
            if verdict is Verdict.CORRECT
            else ev.Origin.REPAIR
        )
        self.add(
            ev.AttemptStarted(attempt=name, origin=origin, base=f"{self.key}/{base}" if base else None),
            after_s=1.0,
        )
        call = self.call(name, ev.Role.GENERATOR)
        source = verdicts.kernel(self.task, number - 1, variant=self.place)
        strategy = verdicts.STRATEGIES[(number - 1) % len(verdicts.STRATEGIES)]
        usage = ev.Usage(
            input_tokens=5200 + 310 * number, output_tokens=1900 + 17 * self.place, cached_tokens=3100
        )
        text = f"{strategy}\n\n```python\n{source}```\n"
        self.add(
            ev.CallFinished(call=call, text=text, stop_reason="end", usage=usage, cost_usd=1.0, seconds=13.0),
            after_s=1.0,
        )
        code = "" if verdict is Verdict.NO_CODE else source
        self.add(ev.CandidateProposed(attempt=name, source=code, strategy=strategy))
        evaluation = self.evaluation(verdict, number, speedup)
        for stage in evaluation.stages:
            if stage.ok is not None:
                self.add(
                    ev.StageStarted(attempt=name, stage=stage.name, device=self.device),
                    after_s=stage.seconds,
                )
                self.add(ev.StageFinished(attempt=name, stage=stage))
        self.add(ev.AttemptJudged(attempt=name, evaluation=evaluation, device_s=6.0), after_s=0.5)
        self.add(
            ev.AttemptCommitted(
                attempt=name,
                commit=f"{self.place * 100 + number:040x}",
                branch=f"{SESSION}/{self.task}/{self.number}",
            )
        )
        return name

    def evaluation(self, verdict: Verdict, number: int, speedup: float | None) -> verdicts.Evaluation:
        """Return the evaluation of an attempt of this instance."""
        if verdict is not Verdict.CORRECT:
            case = "ragged" if self.place % 3 else "outliers"
            return verdicts.refused(self.task, self.device, verdict, case=case)
        return verdicts.correct(
            self.task,
            self.device,
            speedup,
            half_width=0.04 if self.place % 7 == 2 else 0.02,
            bounded=self.place % 5 == 0,
            throttled=self.device == "5" and number % 3 == 0,
            version=number - 1,
        )


def session(tasks: int = 20, instances: int = 4, devices: int = 8, attempts: int = 10) -> list[ev.AnyEvent]:
    """Return the events of a session; without `devices` it runs on `cpu`, where nothing is timed.

    `attempts` is the most iterations of an instance. At most `len(NAMES)` tasks have different names; more get a number.
    """
    gpus = tuple(map(str, range(devices)))
    names = tuple(f"starter/{NAMES[place % len(NAMES)]}{place // len(NAMES) or ''}" for place in range(tasks))
    chains = [
        _chain(
            Instance(task, number, (number - 1) + instances * place, gpus or ("cpu",)),
            attempts,
            timed=bool(gpus),
        )
        for place, task in enumerate(names)
        for number in range(1, instances + 1)
    ]
    end = max(chain.now for chain in chains)
    timed = [(0.0, event) for event in _opening(names, instances, attempts, gpus)]
    for chain in chains:
        # All instances are busy up to the end: what happens now is the newest.
        late = end - chain.now
        timed += [(time + late, event) for time, event in chain.events]
    timed += _devices(gpus, chains, end)
    timed.sort(key=lambda entry: entry[0])
    return list(_numbered(_priced(event for _, event in timed), [time for time, _ in timed]))


def _opening(
    names: tuple[str, ...], instances: int, attempts: int, gpus: tuple[str, ...]
) -> Iterator[ev.AnyEvent]:
    yield ev.SessionStarted(
        session=SESSION,
        method="geak",
        model=MODEL,
        tasks=names,
        instances=instances,
        iterations=attempts,
        seed=7,
        devices=gpus or ("cpu",),
        targets=("gfx942",),
        review="manual",
        budget_usd=BUDGET_USD,
        versions=verdicts.VERSIONS,
    )
    yield ev.EngineStarted(host="node17", pid=4242)
    yield ev.Notice(level="warning", message="GPU 5 reaches its power cap: timings there are repeated")


def _chain(chain: Instance, attempts: int, *, timed: bool) -> Instance:
    """Append an instance's life up to its last state."""
    place = chain.place
    state = STATES[place % len(STATES)]
    chain.add(ev.InstanceStarted(task=chain.task, instance=chain.number))
    if state == "queued":
        return chain
    ended = state in ("confirmed", "accepted", "not confirmed", "failed", "done")
    count = attempts if ended else max(2, 1 + (place * 7) % max(attempts - 1, 1))
    best: tuple[float, int] | None = None
    for number in range(1, count + 1):
        turn = place * 11 + number
        verdict = RARE[turn // 17 % len(RARE)] if turn % 17 == 0 else COMMON[turn % len(COMMON)]
        if state == "stuck" and number > count - 3:
            verdict = Verdict.WRONG
        elif number == 2 or (number == count and state in ("review", "reflect")):
            verdict = Verdict.CORRECT
        speedup = round(0.93 + 0.09 * number + 0.04 * (place % 6), 3) if timed else None
        name = chain.attempt(number, verdict, speedup=speedup, base=number - 1 if number > 1 else None)
        if verdict is Verdict.CORRECT and (best is None or (speedup or 0.0) > best[0]):
            best = (speedup or 0.0, number)
        elif verdict is Verdict.WRONG and number < count:
            call = chain.call(name, ev.Role.REFLECTOR, pieces=1)
            usage = ev.Usage(input_tokens=2400, output_tokens=310)
            text = "The tail of the row is not masked."
            chain.add(
                ev.CallFinished(call=call, text=text, usage=usage, cost_usd=0.4, seconds=5.0), after_s=1.0
            )
    _last_state(chain, state, count, f"{chain.key}/{best[1]}" if best else None, best[0] if best else 0.0)
    return chain


def _last_state(chain: Instance, state: str, count: int, best: str | None, speedup: float) -> None:
    following = f"{chain.key}/{count + 1}"
    start = ev.AttemptStarted(
        attempt=following, origin=ev.Origin.OPTIMIZE if best else ev.Origin.REPAIR, base=best
    )
    finished = ev.InstanceFinished(
        task=chain.task, instance=chain.number, reason=ev.EndReason.ITERATIONS, best=best
    )
    match state:
        case "generate" | "stuck" | "no model":
            chain.add(start)
            call = chain.call(
                following, ev.Role.GENERATOR, live=state != "no model", pieces=2 * (state != "no model")
            )
            if state == "no model":
                reason, message = "rate_limited", "429: too many requests"
                chain.add(
                    ev.CallRetried(call=call, reason=reason, message=message, wait_s=20.0, retry=1),
                    after_s=1.0,
                )
        case "timing" | "compile" | "execution":
            chain.add(start)
            call = chain.call(following, ev.Role.GENERATOR)
            source = verdicts.kernel(chain.task, count, variant=chain.place)
            chain.add(ev.CallFinished(call=call, text=f"```python\n{source}```", cost_usd=1.0, seconds=12.0))
            chain.add(ev.CandidateProposed(attempt=following, source=source, strategy=verdicts.STRATEGIES[2]))
            stage = "performance" if state == "timing" else state
            chain.add(ev.StageStarted(attempt=following, stage=stage, device=chain.device), after_s=9.0)
        case "reflect":
            chain.call(f"{chain.key}/{count}", ev.Role.REFLECTOR, live=True, pieces=1)
        case "review":
            chain.add(ev.WaitingForPerson(attempt=f"{chain.key}/{count}"))
        case "paused":
            chain.add(ev.Paused(instance=chain.key, by="kim"))
        case "failed":
            chain.add(
                msgspec.structs.replace(
                    finished, reason=ev.EndReason.MODEL_FAILED, message="401: key refused"
                )
            )
        case _:
            _end(chain, state, finished, best, speedup)


def _end(
    chain: Instance, state: str, finished: ev.InstanceFinished, best: str | None, speedup: float
) -> None:
    if best is None or state == "done":
        chain.add(finished, after_s=1.0)
        return
    timed = speedup or None
    exam = (
        verdicts.refused(chain.task, chain.device, Verdict.WRONG)
        if state == "not confirmed"
        else verdicts.correct(chain.task, chain.device, timed and timed - 0.03)
    )
    chain.add(
        ev.WinnerExamined(attempt=best, evaluation=msgspec.structs.replace(exam, exam=True)), after_s=7.0
    )
    chain.add(finished, after_s=0.2)
    if state == "accepted":
        chain.add(ev.DecisionMade(attempt=best, accepted=True, why="one pass, reads coalesce", by="kim"))
        for gpu in chain.devices[:6] if timed else ():
            again = verdicts.correct(
                chain.task, gpu, speedup + 0.004 * int(gpu), bounded=True, throttled=gpu == "5"
            )
            chain.add(ev.WinnerMeasured(attempt=best, device=gpu, evaluation=again), after_s=2.0)


def _devices(
    gpus: tuple[str, ...], chains: Iterable[Instance], end: float
) -> Iterator[tuple[float, ev.AnyEvent]]:
    """Yield the samples of the last minute, and what happened to two of the GPUs."""
    busy = {gpu: [chain.key for chain in chains if chain.device == gpu] for gpu in gpus}
    for step in range(12):
        for place, gpu in enumerate(gpus):
            used = (0.95, 0.38, 0.0, 0.71, 1.0)[(place + step // 4) % 5]
            yield (
                end - 60.0 + 5.0 * step,
                ev.DeviceSampled(
                    device=gpu,
                    description="MI300X gfx942",
                    busy_with=tuple(f"{key}/4" for key in busy[gpu][:1]) if used else (),
                    utilisation=used,
                    memory_used_bytes=(9 + 3 * place) << 30,
                    memory_total_bytes=192 << 30,
                    temperature_c=51.0 + 4 * place,
                    power_w=140.0 + 500 * used,
                    clock_mhz=1610.0 if gpu == "5" else 2100.0,
                ),
            )
    if len(gpus) >= 8:
        yield end - 1.0, ev.DeviceAwaited(device=gpus[6], holders=("kim: python, 141 GiB",))
        yield end - 0.5, ev.DeviceQuarantined(device=gpus[7], why="hang: no reply to a probe for 30 s")


def _priced(events: Iterable[ev.AnyEvent]) -> Iterator[ev.AnyEvent]:
    """Scale the costs of the calls to the wanted share of the budget."""
    known = list(events)
    total = sum(event.cost_usd or 0.0 for event in known if isinstance(event, ev.CallFinished))
    for event in known:
        if isinstance(event, ev.CallFinished) and event.cost_usd is not None:
            cost = event.cost_usd * BUDGET_USD * SPENT_SHARE / total
            yield msgspec.structs.replace(event, cost_usd=cost)
        else:
            yield event


def _numbered(events: Iterable[ev.AnyEvent], times: list[float]) -> Iterator[ev.AnyEvent]:
    for number, (event, time) in enumerate(zip(events, times, strict=True), start=1):
        yield msgspec.structs.replace(event, seq=number, wall=STARTED_WALL + time, mono=time)
