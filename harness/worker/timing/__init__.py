"""The clock: kernels timed in processes of their own, one active at a time, driven and checked by the judge."""
