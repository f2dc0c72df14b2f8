"""Attempts judged and timed a minute on a Ray cluster, against the local pool with the same GPUs. Needs the extra `ray`.

    .venv/bin/python -m benchmarks.cluster --gpus 4 --raylets 2 [--sessions 1] [--instances 18] [--attempts 3]
    .venv/bin/python -m benchmarks.cluster --gpus 0 --raylets 2        on the cores of a machine without GPU

First the local pool of all GPUs judges, then as many raylets share the machine's GPUs and cores. Each session is a process of its
own with its own actors. Tasks, kernels and figures are those of `benchmarks.throughput`. With two sessions each one's cases show
whether its times are as good as alone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time

from rich.console import Console

from benchmarks.throughput import ATTEMPTS, SEED, TASKS, judge_really, load_tasks, report_cases, run_instances
from harness import DevicePool, Evaluation, Verdict
from harness.cluster.choice import select_in_cluster
from harness.cluster.cluster_pool import ClusterPool
from harness.cluster.ray_cluster import connect
from harness.node.selection import targets_for
from harness.processes.gpus.capacity import own_cores
from suites import Task

STORE_BYTES = 200 << 20


async def measure_local(devices: list[str], tasks: list[Task], attempts: int, console: Console) -> float:
    """Return the attempts a minute of the local pool."""
    async with DevicePool(devices, tasks=tasks) as pool:
        began = time.perf_counter()
        judged = await run_instances(pool, tasks, attempts, judge_really, think_s=0.0)
        minutes = (time.perf_counter() - began) / 60
        console.print(f"local pool: {pool.slots} slots, {len(judged) / minutes:.1f} attempts a minute")
        console.print(report_cases(judged))
    return len(judged) / minutes


async def measure_cluster(
    address: str, session: str, tasks: list[Task], attempts: int, console: Console
) -> int:
    """Measure one session on a cluster; returns 1 if an attempt is not correct."""
    chosen = select_in_cluster([f"ray:{address}"])
    console.print(f"{session}: {', '.join(device.name for device in chosen.devices)}", *chosen.warnings)
    opening = time.perf_counter()
    async with ClusterPool(
        await connect(address, session),
        [device.name for device in chosen.devices],
        tasks=tasks,
        session=session,
        on_device=console.print,
        on_warning=console.print,
    ) as cluster:
        opened_s = time.perf_counter() - opening

        async def judge(_: object, task: Task, source: str) -> Evaluation:
            return await cluster.evaluate(source, task, targets=targets_for(cluster.devices), seed=SEED)

        began = time.perf_counter()
        judged = await run_instances(None, tasks, attempts, judge, think_s=0.0)  # type: ignore[arg-type]
        minutes = (time.perf_counter() - began) / 60
    console.print(report_cases(judged))
    wrong = [attempt.verdict for attempt in judged if attempt.verdict != Verdict.CORRECT]
    console.print(f"{session}: opened in {opened_s:.1f} s, lost {wrong or 'none'}")
    console.print(f"{session}: {len(judged) / minutes:.1f} attempts a minute")
    return int(bool(wrong))


def start_raylets(gpus: int, raylets: int) -> str:
    """Start a cluster on this machine and return its address. Its raylets share the GPUs and cores of the machine."""
    from ray.cluster_utils import Cluster

    share, cores = gpus // raylets, max(own_cores() // raylets, 1)
    cluster = Cluster()
    for number in range(raylets):
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(
            str(gpu) for gpu in range(number * share, (number + 1) * share)
        )
        cluster.add_node(
            node_name=f"node{number + 1}",
            num_cpus=cores,
            num_gpus=share,
            object_store_memory=STORE_BYTES,
            include_dashboard=False,
        )
    del os.environ["CUDA_VISIBLE_DEVICES"]
    return str(cluster.address)


def main() -> int:
    """Measure as the options say."""
    parser = argparse.ArgumentParser(description="Attempts judged and timed a minute on a Ray cluster.")
    parser.add_argument("--gpus", type=int, default=4, help="GPUs of this machine; 0: its cores")
    parser.add_argument("--raylets", type=int, default=2)
    parser.add_argument("--sessions", type=int, default=1, help="side by side on the cluster")
    parser.add_argument("--instances", type=int, default=2 * len(TASKS))
    parser.add_argument("--attempts", type=int, default=ATTEMPTS, help="of each instance")
    parser.add_argument("--address", help="measure one session on this cluster")
    parser.add_argument("--session", default="session-1")
    options = parser.parse_args()
    console = Console(width=140)
    tasks = load_tasks(options.instances)
    if options.address:
        return asyncio.run(
            measure_cluster(options.address, options.session, tasks, options.attempts, console)
        )
    devices = [str(number) for number in range(options.gpus)] or ["cpu"]
    local = asyncio.run(measure_local(devices, tasks, options.attempts, console))
    address = start_raylets(options.gpus, options.raylets)
    size = ("--instances", str(options.instances), "--attempts", str(options.attempts))
    sessions = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.cluster",
                "--address",
                address,
                "--session",
                f"session-{number}",
                *size,
            ],
            text=True,
            stdout=subprocess.PIPE,
        )
        for number in range(1, options.sessions + 1)
    ]
    total = 0.0
    for session in sessions:
        printed, _ = session.communicate()
        console.print(printed)
        total += float(printed.strip().rpartition(": ")[2].partition(" ")[0])
    console.print(f"local {local:.1f}, cluster {total:.1f} attempts a minute: {total / local - 1:+.1%}")
    return int(any(session.returncode for session in sessions))


if __name__ == "__main__":
    sys.exit(main())
