"""`python -m tui` is `wavedeck`, where the script is not on the path."""

from __future__ import annotations

import sys

from .cli import main

sys.exit(main())
