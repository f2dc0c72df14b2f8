"""The compile stage's worker: launches captured, compiled for a target, and what the binaries need of a device.

Enters: a source, argument specifications, a target. Leaves: a compile report with a table of resources.
"""
