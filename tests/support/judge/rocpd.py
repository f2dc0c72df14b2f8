"""Writes databases as rocprofv3 does (rocpd, schema 3): its tables as far as the views need them. Never compared with a real one.

Source: the documented tables and views of ROCm's rocprofiler-sdk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

_TABLES = """
CREATE TABLE rocpd_event_0 (id INTEGER PRIMARY KEY, guid TEXT);
CREATE TABLE rocpd_info_kernel_symbol_0 (
    id INTEGER PRIMARY KEY, guid TEXT, display_name TEXT, arch_vgpr_count INT, accum_vgpr_count INT, sgpr_count INT);
CREATE TABLE rocpd_kernel_dispatch_0 (
    id INTEGER PRIMARY KEY, guid TEXT, kernel_id INT, dispatch_id INT, start BIGINT, "end" BIGINT, event_id INT);
CREATE TABLE rocpd_info_pmc_0 (id INTEGER PRIMARY KEY, guid TEXT, name TEXT);
CREATE TABLE rocpd_pmc_event_0 (id INTEGER PRIMARY KEY, guid TEXT, event_id INT, pmc_id INT, value REAL);
CREATE VIEW kernels AS
    SELECT d.id, d.guid, s.display_name AS name, d.dispatch_id, d.start, d."end", d."end" - d.start AS duration,
        s.arch_vgpr_count AS vgpr_count, s.accum_vgpr_count, s.sgpr_count
    FROM rocpd_kernel_dispatch_0 d JOIN rocpd_info_kernel_symbol_0 s ON s.id = d.kernel_id;
CREATE VIEW pmc_events AS
    SELECT e.id, s.display_name AS name, d.dispatch_id, p.name AS counter_name, e.value AS counter_value
    FROM rocpd_pmc_event_0 e
    JOIN rocpd_info_pmc_0 p ON p.id = e.pmc_id
    JOIN rocpd_kernel_dispatch_0 d ON d.event_id = e.event_id
    JOIN rocpd_info_kernel_symbol_0 s ON s.id = d.kernel_id;
"""


def write_rocpd(file: Path, launches: Sequence[tuple[str, int, Mapping[str, float]]]) -> Path:
    """Write launches as (kernel, nanoseconds, counters), in this order; every kernel has 64 + 16 registers."""
    with closing(sqlite3.connect(file)) as database, database:
        database.executescript(_TABLES)
        start = 1_000
        for number, (name, ns, counters) in enumerate(launches, start=1):
            database.execute("INSERT INTO rocpd_event_0 VALUES (?, 'g')", (number,))
            database.execute(
                "INSERT INTO rocpd_info_kernel_symbol_0 VALUES (?, 'g', ?, 64, 16, 32)",
                (number, f"{name}.kd"),
            )
            row = (number, number, number, start, start + ns, number)
            database.execute("INSERT INTO rocpd_kernel_dispatch_0 VALUES (?, 'g', ?, ?, ?, ?, ?)", row)
            for counter, value in counters.items():
                cursor = database.execute("INSERT INTO rocpd_info_pmc_0 VALUES (NULL, 'g', ?)", (counter,))
                values = (number, cursor.lastrowid, value)
                database.execute("INSERT INTO rocpd_pmc_event_0 VALUES (NULL, 'g', ?, ?, ?)", values)
            start += ns + 500
    return file
