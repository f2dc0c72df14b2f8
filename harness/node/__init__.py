"""The GPUs of this machine: which exist, which a run uses, who holds their leases, and their telemetry. No torch.

Enters: what drivers report, the user's `--devices`, Slurm's variables. Leaves: devices, leases, loads, telemetry.
"""
