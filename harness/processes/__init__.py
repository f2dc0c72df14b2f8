"""The processes of the judge: which run where, how each ends, and which GPUs are fit to judge on. No torch.

Enters: the devices of a run. Leaves: a `DevicePool` of slots, each with a judge, guests, compilers and timers.
"""
