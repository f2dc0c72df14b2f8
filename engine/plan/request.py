"""A run as a person requests it: the settings, and what the command that starts it adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from engine.models import Limits, Pace
from sessions.settings import Sampling

from .prices import Price
from .settings import RequestedSettings

Prices = Annotated[
    Mapping[str, Price],
    Meta(
        description='a table for each model: [prices."anthropic:NAME"] with input, output and optionally cached_input, '
        "cache_write and date"
    ),
]
Timeouts = Annotated[
    Limits,
    Meta(
        description=f"a table with any of {', '.join(Limits.__struct_fields__)}, in seconds above 0 (tries: a whole number)"
    ),
]
Paces = Annotated[
    Mapping[str, Pace],
    Meta(
        description="a table for each provider: [providers.anthropic] with concurrency, a whole number above 0"
    ),
]

Samplings = Annotated[
    Mapping[str, Sampling],
    Meta(
        description="a table for each role, or for all: [sampling.generator] with any of temperature (0 to 2), top_p (above 0, "
        'to 1) and effort (a word, for example "high")'
    ),
]
Label = Annotated[str, Meta(max_length=40, description="a text of at most 40 characters")]


class RunPlan(RequestedSettings, frozen=True, kw_only=True, rename="kebab"):
    """A run as a person requests it; `None` and empty values select the default."""

    prices: Prices = msgspec.field(default_factory=dict)
    """A person's own prices by model, as people name it, without roles; they replace shipped prices."""
    limits: Timeouts = Limits()
    """Time limits of model calls, and the number of tries."""
    providers: Paces = msgspec.field(default_factory=dict)
    """Limits by provider (`engine.models.pacing.provider_of`)."""
    sampling: Samplings = msgspec.field(default_factory=dict)
    """Values by role; `all` gives those that a role does not set."""
    label: Label = ""
    tasks: tuple[str, ...] = ()
    to_record: tuple[str, ...] = ()
    """Full names of further tasks, of public benchmarks: the engine records their tests while the others are worked on."""
    left_out: Mapping[str, str] = {}
    """Why other named tasks cannot be judged, by full name; the journal gets a warning for each."""
    stop_rules: bool = True
    """False switches all stop rules off."""
    first_chain: int = 1
    """The chain of a recording that instance 1 plays."""
    series: str = ""
    cells: int = 0
    model_label: str = ""
    python: str = ""
    title: str = ""
    """For `cells`, `label`, `model_label`, `python`, `series` and `title` see `RunSettings`."""
