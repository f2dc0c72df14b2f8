"""What crosses between the engine and a sampling worker. Torch-free."""

from __future__ import annotations

import msgspec


class Sample(msgspec.Struct, frozen=True, tag="sample"):
    """Run a few programs of every launch that the entry point makes of each case."""

    nonce: str
    source: str
    entry_point: str
    cases: msgspec.Raw
    """`tuple[CaseSpec, ...]`, at `gpu` sizes."""
    target: str


class Flow(msgspec.Struct, frozen=True):
    """Bytes of launches, as their sampled programs tell. Distinct bytes are those of each launch, added up."""

    launches: int
    programs: int
    sampled: int
    requested_read_bytes: int
    requested_write_bytes: int
    requested_low_bytes: int
    requested_high_bytes: int
    """Reads and writes, had all unsampled programs asked for as little or as much as the sampled ones of their kind."""
    unique_low_bytes: int
    unique_high_bytes: int
    die_bytes: int
    """At most: distinct bytes of each die, all dies together, where neighbours on a die share what they load."""
    dies: int
    group: int
    """Neighbours on one die that were sampled together, of the launch with the fewest."""
    dot_flops: int


class CaseSampled(msgspec.Struct, frozen=True, tag="case_sampled"):
    """The sample of one case; these come in the order of the cases."""

    nonce: str
    case: str
    seconds: float
    flow: Flow | None = None
    why: str = ""
    """Why there is no flow."""
    out_of_bounds: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    moved_bytes: int = 0
    """Results of copies that the host made."""


SAMPLE_REQUESTS: msgspec.msgpack.Decoder[Sample] = msgspec.msgpack.Decoder(Sample)
SAMPLE_REPORTS: msgspec.msgpack.Decoder[CaseSampled] = msgspec.msgpack.Decoder(CaseSampled)


def together(flows: list[Flow]) -> Flow | None:
    """All launches of a case; `None` when there was none."""
    if not flows:
        return None
    sums = {
        name: sum(getattr(flow, name) for flow in flows)
        for name in Flow.__struct_fields__
        if name not in ("dies", "group")
    }
    return Flow(**sums, dies=flows[0].dies, group=min(flow.group for flow in flows))
