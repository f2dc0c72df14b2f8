"""Run `wavedeck` as `python -m tui`, for a PATH without the script."""

from __future__ import annotations

import sys

from .cli import main

sys.exit(main())
