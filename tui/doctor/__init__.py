"""Checks of `wavedeck doctor`: what this machine can run, and what to change.

Sections of the report, in order, and their files (`examination.py` puts them together):

machine, GPUs, judge, sandbox    machine.py
models                           model_checks.py
agents                           agent_checks.py
configuration                    examination.py
store, detached engine           store_checks.py
terminal                         terminal_checks.py

`verify_gpu/` is `wavedeck doctor --verify-gpu`.
`doctor_findings.py` has the findings that each section yields, and their layout as text.
"""
