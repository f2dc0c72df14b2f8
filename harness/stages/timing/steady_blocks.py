"""Which blocks of samples count: those that both sides of a case took at one clock, while no other process used the device."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

import msgspec

from harness.node.telemetry.samples import Watched
from harness.node.telemetry.window_summary import SpanState, is_same_clock, span_states
from harness.wire.messages.clock import Block, ProcessTimes

States = list[tuple[Block, SpanState]]


def drop_disturbed_blocks(
    times: Sequence[ProcessTimes], watched: Watched
) -> tuple[tuple[ProcessTimes, ...], Counter[tuple[str, str]]]:
    """Return the times with their clock, without disturbed blocks; and the number of samples left out, by case and side.

    A block is left out if others used the device, or if its clock is not the clock of its case. That clock is the median over
    the blocks of both sides. So a kernel that lowers the clock is compared with its baseline at the lower clock. A process is
    left out if all its blocks are.
    """
    by_process: list[States] = [
        list(
            zip(
                process.blocks,
                span_states(watched.points, [(block.began_s, block.ended_s) for block in process.blocks]),
                strict=True,
            )
        )
        for process in times
    ]
    clocks = _case_clocks(times, by_process)
    kept, left_out = [], Counter[tuple[str, str]]()
    for process, states in zip(times, by_process, strict=True):
        steady = [(block, state) for block, state in states if _counts(state, clocks.get(process.case))]
        lost = sum(len(block.samples_ms) for block in process.blocks)
        lost -= sum(len(block.samples_ms) for block, _ in steady)
        if lost:
            left_out[process.case, process.side] += lost
        if steady:
            clocks_mhz = [state.clock_mhz for _, state in steady if state.clock_mhz is not None]
            clock = statistics.median_low(clocks_mhz) if clocks_mhz else None
            blocks = tuple(block for block, _ in steady)
            kept.append(msgspec.structs.replace(process, blocks=blocks, clock_mhz=clock))
    return tuple(kept), left_out


def _case_clocks(times: Sequence[ProcessTimes], by_process: Sequence[States]) -> dict[str, int]:
    """The median clock of each case in MHz; a case without a known clock has none."""
    clocks: dict[str, list[int]] = {}
    for process, states in zip(times, by_process, strict=True):
        clocks.setdefault(process.case, []).extend(
            state.clock_mhz for _, state in states if state.clock_mhz is not None and not state.disturbed
        )
    return {case: statistics.median_low(clocks_mhz) for case, clocks_mhz in clocks.items() if clocks_mhz}


def _counts(state: SpanState, case_mhz: int | None) -> bool:
    if state.disturbed:
        return False
    return state.clock_mhz is None or case_mhz is None or is_same_clock(state.clock_mhz, case_mhz)
