"""The six stages of one evaluation, in the parent: ask a worker, check its answer, return what the stage found.

Enters: a candidate's source and a task (`cascade.evaluate`). Leaves: an `Evaluation`. No torch: workers compute.
"""
