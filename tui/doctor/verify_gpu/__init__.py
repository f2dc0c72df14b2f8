"""`wavedeck doctor --verify-gpu`: shows in at most ten minutes that the judge works on this machine's GPUs.

subject.py      the GPUs of one product, and what a check may ask of them
checks.py       the checks, in order
cheats/         candidates that cheat at GPU sizes or while they are timed: refused, or without a gain
verifying.py    runs the checks, keeps the file that people send
"""
