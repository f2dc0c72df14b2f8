"""The sandbox of processes that run a candidate: identity, Landlock, seccomp and limits, each layer reported.

Enters: the folder that a process may write to, and its limits. Leaves: the layers, each active, absent or failed.
It protects the machine from damage; it does not find cheats. No torch.
"""
