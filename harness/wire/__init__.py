"""The floor that all rooms of the harness share: the types that cross processes or are kept on disk, and the limits.

Enters: nothing; it imports only `suites`. Leaves: `Evaluation`, `Latency` and the other results with their JSON, the
messages between engine, judge and guests, channels for them, devices, errors and limits. No torch.
"""
