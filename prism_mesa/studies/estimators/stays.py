"""How long something lasts, where much of it has not ended yet."""

from typing import Any

import numpy as np
import numpy.typing as npt


def survival(
    lengths: npt.NDArray[np.integer[Any]], ended: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    """Return lengths at which something ended, ascending, and the share of all that lasts longer.

    Kaplan and Meier 1958, doi:10.1080/01621459.1958.10501452: what has not ended counts up to its length so far.

    >>> [column.tolist() for column in survival(np.array([1, 2, 2, 5]), np.array([True, True, False, False]))]
    [[1, 2], [0.75, 0.5]]

    Args:
        lengths: How long each has lasted.
        ended: Whether it has ended then.
    """
    at, ends = np.unique(lengths[ended], return_counts=True)
    lasted = len(lengths) - np.searchsorted(np.sort(lengths), at)
    return at, np.cumprod(1 - ends / lasted)
