"""
The command that starts this Python with its heap above 4 GiB, as device memory is.

The heap follows the program in memory, and an interpreter that is not position-independent, as Debian's and Ubuntu's, lies near
zero: addresses of small tensors would be numbers of 32 bits there, which kernels take for others than addresses. Where the dynamic
loader is the program, Linux puts the heap behind where position-independent programs lie (`fs/binfmt_elf.c`). Before glibc 2.33
a loader cannot be told the name that a virtual environment is found by: there the heap stays where it is.
"""

from __future__ import annotations

import functools
import os
import struct
import sys
from pathlib import Path

_HEADER = struct.Struct("<4sBB10xHHIQQQIHHH")
"""Magic, class, byte order, type, machine, version, entry, program headers at, section headers at, flags, and the sizes of this and one program header, and how many."""
_PROGRAM_HEADER = struct.Struct("<IIQQQQ")
"""Type, flags, offset, virtual and physical address, size in the file."""
_SIXTY_FOUR_BITS, _LITTLE_ENDIAN = 2, 1
_FIXED_ADDRESSES = 2
_NAME_OF_LOADER = 3


_NAMED_SINCE = (2, 33)


@functools.cache
def python_command(python: str = sys.executable) -> tuple[str, ...]:
    """Words that start this Python; by way of its dynamic loader where it has fixed addresses."""
    program = Path(python).resolve()  # the loader takes what lies beside a link for beside the program
    loader = loader_of_fixed(program)
    if loader is None or _glibc() < _NAMED_SINCE:
        return (python,)
    return (loader, "--argv0", python, str(program))


def _glibc() -> tuple[int, ...]:
    try:
        found = os.confstr("CS_GNU_LIBC_VERSION") or ""
        return tuple(int(part) for part in found.removeprefix("glibc ").split("."))
    except (ValueError, OSError):
        return ()


def loader_of_fixed(program: Path) -> str | None:
    """The dynamic loader of an ELF program with fixed addresses; `None` for any other file."""
    try:
        with program.open("rb") as file:
            magic, width, order, kind, *_, at, _, _, _, size, count = _HEADER.unpack(file.read(_HEADER.size))
            if (magic, width, order, kind) != (
                b"\x7fELF",
                _SIXTY_FOUR_BITS,
                _LITTLE_ENDIAN,
                _FIXED_ADDRESSES,
            ):
                return None
            for number in range(count):
                file.seek(at + number * size)
                named, _, offset, _, _, length = _PROGRAM_HEADER.unpack(file.read(_PROGRAM_HEADER.size))
                if named == _NAME_OF_LOADER:
                    file.seek(offset)
                    return file.read(length).rstrip(b"\0").decode()
    except (OSError, struct.error, UnicodeDecodeError):
        pass
    return None
