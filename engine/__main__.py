"""`python -m engine <session folder>`: the engine process of one session; `engine.process.launch` starts it."""

import sys
from pathlib import Path

from engine.process.process import main

if len(sys.argv) != 2:
    sys.exit("usage: python -m engine <session folder>; `wavedeck run` and `wavedeck resume` start engines")
sys.exit(main(Path(sys.argv[1])))
