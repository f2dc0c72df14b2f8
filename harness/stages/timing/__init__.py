"""The performance stage on a GPU: timers for the clock, and what their times mean.

Enters: a candidate that was just judged correct. Leaves: latencies with intervals, outcomes, efficiency and energy.
"""
