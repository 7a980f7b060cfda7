"""Memory that threads write to lies apart from other memory."""

import numpy as np
import pytest

from prism_mesa.kernels.lanes import aligned_zeros


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.uint64, np.float64])
@pytest.mark.parametrize("shape", [1, 5, (3, 7), 4096])
def test_an_array_of_zeros_has_its_lines_of_the_caches_to_itself(shape, kind):
    for _ in range(20):
        found = aligned_zeros(shape, kind)
        memory = found
        while memory.base is not None:
            memory = memory.base
        first, behind = found.ctypes.data, found.ctypes.data + found.nbytes
        assert found.dtype == kind
        assert found.shape == np.zeros(shape).shape
        assert found.flags.c_contiguous
        assert not found.any()
        assert first % 128 == 0
        assert memory.ctypes.data <= first
        assert behind + -behind % 128 <= memory.ctypes.data + memory.nbytes


def test_an_array_without_entries_has_its_shape():
    assert aligned_zeros((4, 0), np.int32).shape == (4, 0)
