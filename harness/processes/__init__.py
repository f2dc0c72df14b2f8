"""The processes of the judge: who is started where, how each ends, and which GPUs are fit to judge on. No torch.

Enters: the devices of a run. Leaves: a `DevicePool` whose slots hold a judge, guests, compilers and timers.
"""
