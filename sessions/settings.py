"""Settings of a run: one struct that plans, the first event, `session.json` and lists of sessions share."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from .names import SessionKey, TaskName

MOST = (1 << 63) - 1
"""The largest integer that an event can hold."""
SCHEMA = 1
"""Version of events and of the store's files."""
Schema = Annotated[int, msgspec.Meta(ge=0, le=SCHEMA)]
"""A version that this program can read."""
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=250e9)]
"""A time that a calendar has: until the year 9892."""
MOST_COUNT = 1_000_000
Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_COUNT)]
AGENT = "agent"
"""Method of a session in which an agent that is not Wavedeck's own sends the candidates."""
ALL_ROLES = "all"
"""Key of `RunSettings.sampling` for the values of all roles."""

MODULES = ("knowledge", "one-shot", "examples", "optimizer", "reflection")
"""Modules that `--without` can switch off in the methods that have them."""


class MethodOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a method besides its counts; each method takes some of them."""

    without: tuple[str, ...] = ()
    """Modules that are off, of `MODULES`."""
    show_reference: bool = False
    """Prompts show the reference of a benchmark that hides it."""
    tune: bool = False
    """Sweep the launch parameters of each correct attempt."""
    by: str = "all"
    """`tune` keeps variants that are best over `all` cases, or each `case`'s best."""
    start: str = ""
    """File of the start kernel; empty: the task's timing baseline."""
    workers: int = 4
    """Parallel workers in one instance of `kernelagent`."""
    descendants: int = 8
    """Candidates of one round of `geak-evolve`."""
    prompt_style: str = "chat"
    """Prompt format of the model (`engine.prompting.profiles`)."""
    corpus: str = ""
    """Folder of kernels that may be shown as examples, besides baselines of tasks that are not under test."""
    predictions: str = ""
    """Digest of the predictions that are judged; empty if a method made the candidates."""
    rejudges: str = ""
    """Name of the session that is judged again; empty if the candidates are new."""
    agent: str = ""
    """Agent that the engine starts in the method `agent` (`engine.agent_programs.presets`); empty: a person starts it."""
    agent_command: str = ""
    """Command line of that agent, with `{prompt}`; empty: the preset's."""


class Sampling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a model draws the tokens of its replies; `None` and empty: the client's own value."""

    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    effort: Annotated[str, msgspec.Meta(pattern=r"\A[a-z]{0,20}\Z")] = ""
    """Effort of reasoning in the provider's words, for example `low` or `high`."""


class StopRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules that end an instance before its iterations are spent (`engine.run.stop_rules`); by default all are off."""

    speedup: float | None = None
    """End at this speedup."""
    without_gain: int = 0
    """End after so many rounds of correct attempts without a gain; 0: never."""
    at_roof: bool = False
    """End if each case is at the practical roof of the device, or hardly longer than an empty kernel."""


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a session is run, with every default filled in."""

    method: str
    model: str
    """One model, or one for each role (`engine.models.spec`); of the method `agent`, name and version of the agent."""
    tasks: tuple[TaskName, ...]
    """Full names, `suite/task`."""
    instances: Count
    iterations: Count
    seed: int
    devices: tuple[str, ...]
    """Names; in a cluster `node1/0`, `node1/cpu`."""
    targets: tuple[str, ...]
    review: str
    """`auto` or `manual`."""
    budget_usd: float | None = None
    budget_tokens: int | None = None
    budget_device_s: float | None = None
    """Seconds in which the judge held devices, in all instances together."""
    budget_wall_s: float | None = None
    """Seconds in which an engine of the session ran."""
    first_chain: int = 1
    """The chain of a recording that instance 1 plays; instance n plays `first_chain + n - 1`."""
    series: str = ""
    """Study and cell that the session belongs to, for example `ablation-3f2a91/4` (`sessions.names.split_series`); empty if
    none."""
    title: str = ""
    """Title by a person at the start; empty if none. `SessionTitled` replaces it."""
    options: MethodOptions = MethodOptions()
    stop: StopRules = StopRules()
    against: str = ""
    """Name of the timing baseline: `eager`, `compile`, or a kernel's file; empty: the task's own baseline."""
    against_source: str = ""
    """Source of that kernel file, so that a resume uses the same baseline."""
    python: str = ""
    """Path of the judge's interpreter; empty: Wavedeck's own."""
    cluster: str = ""
    """Address of the Ray cluster that judges; empty: this machine judges."""
    cells: Count = 0
    """Number of cells of its study; 0: unknown."""
    label: str = ""
    """How reports print the method; empty: its name and options."""
    model_label: str = ""
    """How reports print the model; empty: its name."""
    sampling: dict[str, Sampling] = {}
    """Values by role; `all` gives those that a role does not set."""
    references_shown: tuple[TaskName, ...] = ()
    """Tasks with prompts that quote the reference kernel that their benchmark asks for, and does not show itself."""

    def shows_reference(self, task: str) -> bool:
        """True if prompts of this task quote the reference where its benchmark hides it. Older sessions have the option alone."""
        return self.options.show_reference or task in self.references_shown

    def settings(self) -> dict[str, Any]:
        """Returns the settings by name, without what a subclass adds."""
        return {name: getattr(self, name) for name in RunSettings.__struct_fields__}


class SessionDescription(RunSettings, frozen=True, kw_only=True):
    """`session.json`: how a session was started."""

    schema: Schema = SCHEMA
    session: SessionKey
    started: Seconds
    """Seconds since the epoch, UTC."""
    versions: dict[str, str] = {}
    templates: dict[str, str] = {}
