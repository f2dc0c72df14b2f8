"""Compiles a candidate's launches for a target without a device, and reads from the binaries what each kernel needs."""
