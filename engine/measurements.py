"""All figures on a correct candidate's performance, as a prompt shows them."""

from __future__ import annotations

from dataclasses import dataclass

from harness import Evaluation

from .figures import (
    FitFacts,
    ResourceFacts,
    RooflineFacts,
    TrafficFacts,
    achieved,
    grid_fits,
    group_resources,
    roofline,
    traffic_facts,
)
from .standouts import standouts

RESOURCE_ROWS = 12


@dataclass(frozen=True, slots=True)
class Measurements:
    """All figures on a correct candidate's performance."""

    summary: str
    """One line."""
    evaluation: Evaluation
    roofline: tuple[RooflineFacts, ...]
    traffic: tuple[TrafficFacts, ...]
    sampled: bool
    """True if `traffic` was sampled at `gpu` sizes."""
    resources: tuple[ResourceFacts, ...]
    resources_left_out: int
    fits: tuple[FitFacts, ...]
    fits_left_out: int
    standouts: tuple[str, ...]
    """The figures that are worth acting on, one sentence each."""


def measurements(evaluation: Evaluation) -> Measurements:
    """Returns the figures on a correct candidate's performance."""
    traffic = traffic_facts(evaluation)
    resources, fits = group_resources(evaluation), grid_fits(evaluation)
    return Measurements(
        summary=achieved(evaluation),
        evaluation=evaluation,
        roofline=roofline(evaluation),
        traffic=traffic,
        sampled=bool(evaluation.sampled),
        resources=resources[:RESOURCE_ROWS],
        resources_left_out=max(0, len(resources) - RESOURCE_ROWS),
        fits=fits[:RESOURCE_ROWS],
        fits_left_out=max(0, len(fits) - RESOURCE_ROWS),
        standouts=tuple(standouts(evaluation, traffic)),
    )
