"""Prints the nodes of a Ray cluster as JSON: `python -m harness.cluster.look [ADDRESS]`."""

from __future__ import annotations

import asyncio
import os
import sys

import msgspec

from harness.wire.errors import HarnessError

from .choice import Look
from .ray_cluster import connect


async def look(address: str) -> Look:
    """Return the nodes of a cluster, or the error of reading it."""
    try:
        cluster = await connect(address, session="look")
        facts = tuple(sorted(await cluster.facts(), key=lambda facts: facts.node.name))
        return Look(cluster.address, facts)
    except HarnessError as error:
        return Look(address, error=str(error))


def main(arguments: list[str]) -> None:
    """Print the nodes to standard output. Text that Ray prints goes to standard error."""
    answer = os.dup(1)
    os.dup2(2, 1)
    result = asyncio.Runner().run(look(arguments[0] if arguments else ""))
    with os.fdopen(answer, "wb") as printed:
        printed.write(msgspec.json.encode(result))
    os._exit(0)  # without waiting for a thread in which Ray still looks for a cluster


if __name__ == "__main__":
    main(sys.argv[1:])
