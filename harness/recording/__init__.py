"""Public benchmarks: makes tasks of the calls that their tests make, and judges by their own definitions. Uses the judge."""
