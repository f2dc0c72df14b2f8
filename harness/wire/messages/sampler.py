"""The request to a sampling worker, which runs a few programs of each launch, and its answer. Torch-free."""

from __future__ import annotations

import msgspec


class SampleCases(msgspec.Struct, frozen=True, tag="sample_cases"):
    """Run a few programs of every launch that the entry point makes in each case."""

    source: str
    entry_point: str
    cases: msgspec.Raw
    target: str


class Flow(msgspec.Struct, frozen=True):
    """Bytes of launches, estimated from sampled programs; the fields are those of `evaluation.SampledTraffic`."""

    launches: int
    programs: int
    sampled: int
    requested_read_bytes: int
    requested_write_bytes: int
    requested_low_bytes: int
    requested_high_bytes: int
    unique_low_bytes: int
    unique_high_bytes: int
    die_bytes: int
    dies: int
    group: int
    """The fewest of any launch."""
    dot_flops: int


class CaseSampled(msgspec.Struct, frozen=True, tag="case_sampled"):
    """The sample of one case; the reports come in the order of the cases."""

    case: str
    seconds: float
    flow: Flow | None = None
    why: str = ""
    out_of_bounds: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    moved_bytes: int = 0


def add_flows(flows: list[Flow]) -> Flow | None:
    """Return the sum over all launches of a case; `None` if there was no launch."""
    if not flows:
        return None
    sums = {
        name: sum(getattr(flow, name) for flow in flows)
        for name in Flow.__struct_fields__
        if name not in ("dies", "group")
    }
    return Flow(**sums, dies=flows[0].dies, group=min(flow.group for flow in flows))
