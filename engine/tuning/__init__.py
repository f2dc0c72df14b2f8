"""Sweeps of launch parameters: found in a kernel's text, tried by compiling alone, proposed best first."""
