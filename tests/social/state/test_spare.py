"""Columns that lie side by side in one piece of memory, or, when they are long, each in its own."""

import numpy as np
import pytest

from prism_mesa.social.state.chunks import zeroed_columns

KINDS = {"a": np.int32, "b": np.uint8, "c": np.float64}


@pytest.mark.parametrize("n", [0, 5, 1000, (1 << 20) + 1])
def test_columns_have_their_kinds_and_do_not_share_a_byte(n):
    columns = zeroed_columns(KINDS, n, {"c": 2})
    assert {name: (column.shape, column.dtype) for name, column in columns.items()} == {
        "a": ((n,), np.int32),
        "b": ((n,), np.uint8),
        "c": ((n, 2), np.float64),
    }
    for name, column in columns.items():
        assert not column.any()
        column[:] = 1
        assert all(not other.any() for later, other in columns.items() if later > name)
