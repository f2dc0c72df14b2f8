"""Time and size limits of the judge; `docs/formats.md` has the table."""

from __future__ import annotations

SERVER_START_S = 60.0
SELF_TEST_S = 20.0
GUEST_START_S = 30.0

CALL_WALL_S = 60.0
CALL_CPU_S = 30.0
CASE_WALL_S = 120.0
CASE_CPU_S = 30.0
COMPILE_WALL_S = 120.0
FAREWELL_S = 10.0
"""To answer what was left behind; the candidate's code no longer runs by then."""
JUDGE_SILENCE_S = 180.0
"""Longer than a case may take and its oracle needs; after this the judge is replaced."""
END_S = 5.0
"""For a killed tree to be gone before its warden is killed too."""

ADDRESS_SPACE_BYTES = 8 << 30
COMPILE_ADDRESS_SPACE_BYTES = 32 << 30
"""Arguments at `gpu` sizes are mapped, not touched."""
FILE_BYTES = 64 << 20
OPEN_FILES = 256
PRINTED_BYTES = 64 << 10
SOURCE_BYTES = 1 << 20
HOST_READ_ELEMENTS = 1024
"""Elements a candidate may read to the host in one call: sizes and offsets, not the work."""
OUR_FAULT_EXIT = 70
"""Exit code of a worker whose own code, not the candidate's, raised (EX_SOFTWARE)."""
