"""The GPUs of this machine: which there are, which of them a run uses, who holds them, and how they fare. No torch.

Enters: what drivers report, the user's `--devices`, Slurm's variables. Leaves: devices, leases, loads, telemetry.
"""
