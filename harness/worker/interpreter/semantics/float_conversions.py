"""Conversions between numpy's floats and the bits of bfloat16 and 8-bit floats, as GPUs convert.

The builder (`arithmetic`), `reductions` and the arguments of launches (`constants`) use them. ml_dtypes rounds; numpy's
errors must be ignored (`np.seterr`), as in a process that interprets kernels.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Wide = NDArray[np.float32]


def bfloat16_rounded(values: Any) -> Wide:
    """The nearest bfloat16 values as float32, ties to even; each NaN becomes the positive quiet NaN."""
    near: Wide = np.asarray(values, dtype=np.float32, order="C").astype(ml_dtypes.bfloat16).astype(np.float32)
    near[np.isnan(near)] = np.nan
    return near


def bfloat16_bits(wide: Any) -> NDArray[np.uint16]:
    """The upper 16 bits of float32 values: exact for bfloat16 values, truncated for all other values."""
    bits = np.asarray(wide, dtype=np.float32, order="C").view(np.uint32) >> np.uint32(16)
    return np.asarray(bits, dtype=np.uint16)


def bfloat16_values(bits: Any) -> Wide:
    """The bfloat16 values of 16-bit patterns, as float32."""
    values: Wide = np.asarray(bits, order="C").view(ml_dtypes.bfloat16).astype(np.float32)
    return values


class Float8:
    """Converts between the 8-bit codes of one format and numpy's floats.

    Values out of range, infinity included, become the largest finite value, as a GPU's conversion instructions do.
    """

    def __init__(self, dtype: Any, *, nan: int) -> None:
        self._dtype, self._nan = np.dtype(dtype), nan
        # A table is four times as fast as ml_dtypes.
        self._values: Wide = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
        self._values[nan] = np.nan
        self._largest = float(self._values[np.isfinite(self._values)].max())

    def decode(self, codes: NDArray[Any]) -> Wide:
        """The values of the codes."""
        return self._values[codes.view(np.uint8)]

    def encode(self, values: NDArray[Any], *, to_zero: bool = False) -> NDArray[np.uint8]:
        """Codes of the nearest values, ties to even, or of the next values towards zero."""
        wide: NDArray[Any] = np.clip(values, -self._largest, self._largest)
        if wide.dtype == np.float64:
            wide = _rounded_to_odd(wide)
        near = wide.astype(self._dtype)
        if to_zero:
            grew = np.abs(self.decode(near)) > np.abs(wide)
            near = np.where(grew, np.nextafter(near, self._dtype.type(0)), near)
        codes: NDArray[np.uint8] = near.view(np.uint8)
        codes[np.isnan(wide)] = self._nan
        return codes


def _rounded_to_odd(wide: NDArray[np.float64]) -> Wide:
    """float32 values that round to 8 bits as the float64 values do: ml_dtypes alone would round twice."""
    near = wide.astype(np.float32)
    near = np.where(np.abs(near) > np.abs(wide), np.nextafter(near, np.float32(0)), near)
    odd: Wide = (near.view(np.uint32) | (near != wide)).view(np.float32)
    return odd


FLOAT8 = {
    "fp8e4nv": Float8(ml_dtypes.float8_e4m3fn, nan=0x7F),
    "fp8e4b8": Float8(ml_dtypes.float8_e4m3fnuz, nan=0x80),
    "fp8e5": Float8(ml_dtypes.float8_e5m2, nan=0x7F),
    "fp8e5b16": Float8(ml_dtypes.float8_e5m2fnuz, nan=0x80),
}
"""8-bit formats by Triton's names: OCP's e4m3fn and e5m2, and AMD's e4m3fnuz and e5m2fnuz."""
