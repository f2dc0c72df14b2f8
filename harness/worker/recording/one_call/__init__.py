"""One recorded call: its results and gradients, the bytes that it moves, its launches and host operators, its guard zones."""
