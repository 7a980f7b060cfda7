"""One thread for each library in the process of a run: several processes share the cores already."""

from typing import Final

ONE_THREAD: Final = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
"""Variables of the environment that say how many threads libraries start; they read them when they are imported."""
