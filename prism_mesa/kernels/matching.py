"""How near posts are to the interests that are told of agents. Whole numbers only: no order of adding matters."""

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel


@kernel
def best_matches(
    names: npt.NDArray[np.int16],
    texts: npt.NDArray[np.int64],
    name_vectors: npt.NDArray[np.int8],
    text_vectors: npt.NDArray[np.int8],
    out: npt.NDArray[np.int32],
) -> None:
    """Write into `out`, for each row, the greatest product of its text's vector and one of its names' vectors.

    Args:
        names: Rows of `name_vectors`, -1 none; shape (n, most).
        texts: Rows of `text_vectors`, -1 none; shape (n,).
        name_vectors: Shape (n names, dimensions); so `text_vectors`.
        text_vectors: Texts.
        out: What comes out, shape (n,); 0 where there is no name or no text.
    """
    for i in range(len(texts)):
        best, some = np.int64(0), False
        if texts[i] >= 0:
            for k in range(names.shape[1]):
                if names[i, k] >= 0:
                    total = np.int64(0)
                    for d in range(name_vectors.shape[1]):
                        total += np.int64(name_vectors[names[i, k], d]) * np.int64(text_vectors[texts[i], d])
                    if not some or total > best:
                        best, some = total, True
        out[i] = best
