"""The session that comes with Wavedeck: kernels that a model wrote, judged and timed on a GPU.

It is read where it lies: nothing of it is copied into a home, and no engine can go on with it.
"""

from __future__ import annotations

from pathlib import Path

NAME = "20261129-124908-geak-7c28"
"""Its name in the home where it ran."""
WORD = "example"
"""Names it in commands."""
READ_ONLY = "the example can be read only; start a run of your own with: wavedeck run"
SPEED = 10.0
"""Speed at which the app plays it: 13 minutes in 80 s."""
JOURNAL = Path(__file__).parent / "journal.jsonl"
"""Its journal, which is there in the compressed form only (`sessions.journal.file`)."""
