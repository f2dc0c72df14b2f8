"""The only room that imports Triton's internals, besides `interpreter/`, which changes Triton's interpreter.

`launches` hands each launch to a handler. `autotuning` says how autotuned kernels run. `versions` lists what differs between
Triton 3.5 and 3.7. The others simulate a driver, warm Triton up, and read its options, settings, cache and errors.
"""
