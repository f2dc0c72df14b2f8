"""The cases and calls of an evaluation, drawn from the session's secret seed before the candidate is loaded.

Enters: a task, the seed, the candidate's source. Leaves: a plan of calls over declared and hidden cases. No torch.
"""
