"""The floor that all rooms of the harness share: types that cross processes or are kept on disk, and limits. No torch.

Enters: nothing; it imports only `suites` and `cases`. Leaves: `Evaluation`, `Latency` and the other results with their JSON
(`results/`); channels, and the messages of each pair of processes; calls as data; devices, errors and limits.
"""
