"""The performance stage on a GPU: starts timers for the clock in the judge's process, and concludes latencies from their samples.

Input: a candidate that was just judged correct. Output: `conclusions.Timing`.
"""
