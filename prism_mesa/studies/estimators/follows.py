"""Who is followed by whom: degrees at both ends of follows, and the friendship paradox."""

from typing import Any

import numpy as np
import numpy.typing as npt

type Ints = npt.NDArray[np.integer[Any]]


def degree_assortativity(src: Ints, dst: Ints, n: int) -> float:
    """Return the correlation over follows of the followers of who is followed with the followees of who follows.

    It is one of the four degree correlations of a directed network (Foster et al. 2010, doi:10.1073/pnas.0912671107):
    in networkx the one that is meant if nothing is said, with edges from `src` to `dst`. NaN where degrees do not vary.

    Args:
        src: Who is followed, rows from 0.
        dst: Who follows.
        n: How many agents there are.
    """
    followers, followees = _degrees(src, dst, n)
    edges = max(1, len(src))
    mean_followers, mean_followees = followers @ followers / edges, followees @ followees / edges
    one, other = followers - mean_followers, followees - mean_followees
    together = float(np.bincount(dst, one[src], n) @ other)  # the sum over follows
    norm = float(np.sqrt((followers @ one**2) * (followees @ other**2)))
    return together / norm if norm > 0 else float("nan")


def _degrees(src: Ints, dst: Ints, n: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return followers and followees of each."""
    return np.bincount(src, minlength=n).astype(np.float64), np.bincount(dst, minlength=n).astype(np.float64)


def friendship_paradox(src: Ints, dst: Ints, n: int) -> float:
    """Return the share of those who follow anybody whose followees have on average more followers than they have.

    Feld 1991, doi:10.1086/229693; on Twitter Hodas, Kooti and Lerman 2013 (ICWSM). NaN where nobody follows.

    Args:
        src: Who is followed, rows from 0.
        dst: Who follows.
        n: How many agents there are.
    """
    followers, followees = _degrees(src, dst, n)
    some = followees > 0
    if not some.any():
        return float("nan")
    theirs = np.bincount(dst, followers[src], n)[some] / followees[some]
    return float((theirs > followers[some]).mean())
