"""Requests to a profiled process in a folder of its caller, and its answer in its scratch folder. Torch-free."""

from __future__ import annotations

import msgspec

from harness.wire.calls.tensors import Arguments
from harness.wire.channels.channel import text_to_path
from harness.wire.device import Device
from suites.source.package import PackageView
from suites.task import Task

MARK = "wavedeck_mark"
"""Kernel that the profiled process launches before and after the call."""
SCOPE = "wavedeck_call"
"""Proton's scope around the call."""
DRAW, DRAWN, MEMORY, REQUEST, ENDED = "draw", "drawn", "inputs", "request", "ended"
"""Names of the files: `DrawInputs`, the `Arguments` as they lie in the file of the bytes of the inputs, these bytes,
`ProfileRequest`; in the scratch folder `ProfileEnded`."""


class DrawInputs(msgspec.Struct, frozen=True):
    """Draw the inputs of one case, from a seed that no candidate knows."""

    task: Task
    """Resolved for the device."""
    case: str
    seed: int
    device: Device


class ProfileRequest(msgspec.Struct, frozen=True):
    """Call the entry point of a source under the tool that started this process."""

    source: str
    entry_point: str
    device: Device
    tool: str
    """`ncu`, `rocprofv3` or `proton`."""
    folders: tuple[str, ...]
    """Folders that the tool reads."""
    flush_bytes: int
    """Bytes to read before the call, so that it finds cold caches; 0 if the tool empties the caches."""
    configs: dict[str, str]
    """Configs of autotuned kernels that the judge timed, by kernel; other kernels are tuned again."""
    package: PackageView | None = None


class ProfileEnded(msgspec.Struct, frozen=True):
    """The process came to its end."""

    problem: str = ""
    """Why there is no profile; empty if the call ran."""
    opened: tuple[str, ...] = ()
    """See `Profile.opened`."""


DRAW_INPUTS: msgspec.msgpack.Decoder[DrawInputs] = msgspec.msgpack.Decoder(DrawInputs, dec_hook=text_to_path)
DRAWN_INPUTS: msgspec.msgpack.Decoder[Arguments] = msgspec.msgpack.Decoder(Arguments)
PROFILE_REQUEST: msgspec.msgpack.Decoder[ProfileRequest] = msgspec.msgpack.Decoder(
    ProfileRequest, dec_hook=text_to_path
)
PROFILE_ENDED: msgspec.msgpack.Decoder[ProfileEnded] = msgspec.msgpack.Decoder(ProfileEnded)
