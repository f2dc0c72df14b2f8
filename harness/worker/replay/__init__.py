"""
Records a call and runs it again, without its host code.

| | a call of the source | a call of its binaries |
| --- | --- | --- |
| record | `wire.calls.records.Record`: operators, launches, reads by Python | `wire.calls.launch_tape.Tape`: fills and launches |
| recorder | `call_recorder`, in a guest | `taping`, in a timer with the source |
| second run | `verifier` and `replayer`: kernels made from their text, interpreted | `player`: driver calls on a GPU |
"""
