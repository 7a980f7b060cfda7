"""Types of NumPy arrays in annotations."""

from typing import Any

import numpy as np
import numpy.typing as npt

type Floats = npt.NDArray[np.float64]
type Ints = npt.NDArray[np.int64]
type Int32 = npt.NDArray[np.int32]
type UInt8 = npt.NDArray[np.uint8]
type UInt16 = npt.NDArray[np.uint16]
type UInt32 = npt.NDArray[np.uint32]
type UInt64 = npt.NDArray[np.uint64]
type Mask = npt.NDArray[np.bool_]
type Rows = npt.NDArray[np.integer[Any]]
"""Row numbers, ids or codes, in any integer type."""
type Keys = npt.NDArray[np.int64]
"""Pairs of numbers, each pair as one number."""
