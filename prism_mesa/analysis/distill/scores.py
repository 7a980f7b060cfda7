"""How near one set of probabilities comes to another: measures for a model of an LLM's choices.

All take `true`, what the LLM gave each option, and `said`, what is compared with it: shape (n, options), rows adding up
to 1. An LLM that gives probabilities is itself not certain: its own log loss and AUC are what no model can pass.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

type Floats = npt.NDArray[np.float64]

LEAST: Final = 1e-6
"""What log loss counts a probability as that is less."""


def log_loss(true: Floats, said: Floats) -> float:
    """Return the mean of ``-sum(true * ln(said))``, in nats: against the entropy of `true` if they are equal.

    >>> round(log_loss(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]])), 3)
    0.693
    """
    return float(-(true * np.log(np.maximum(said, LEAST))).sum(axis=1).mean())


def auc(true: Floats, said: Floats) -> float:
    """Return the area under the ROC curve of the first option, for chances instead of outcomes.

    A row counts as chosen with weight `true[:, 0]` and as not chosen with the rest: it is the probability that, of a
    row drawn from the chosen and one from the others, the first was given more by `said`; ties count half. With more
    than two options it is the mean over them, weighted by how often each is chosen. 0.5 where all rows are alike.
    """
    shares = true.mean(axis=0)
    columns = range(1 if true.shape[1] == 2 else true.shape[1])
    parts = [(_auc(true[:, k], said[:, k]), shares[k]) for k in columns]
    total = sum(share for _, share in parts)
    return float(sum(area * share for area, share in parts) / total) if total > 0 else 0.5


def _auc(chosen: Floats, score: Floats) -> float:
    _, place = np.unique(score, return_inverse=True)
    yes, no = np.bincount(place, chosen), np.bincount(place, 1 - chosen)
    below = np.concatenate([[0.0], no.cumsum()[:-1]])
    pairs = yes.sum() * no.sum()
    return float((yes * (below + no / 2)).sum() / pairs) if pairs > 0 else 0.5


def js_divergence(true: Floats, said: Floats) -> float:
    """Return the mean over rows of the Jensen-Shannon divergence, in bits: 0 if equal, 1 at most.

    Lin 1991, doi:10.1109/18.61115.
    """
    middle = (true + said) / 2
    return float((_kl(true, middle) + _kl(said, middle)).mean() / 2)


def _kl(p: Floats, q: Floats) -> Floats:
    ratio = np.where(p > 0, p, 1.0) / np.where(p > 0, q, 1.0)
    return np.asarray((p * np.log2(ratio)).sum(axis=1))


def js_of_totals(true: Floats, said: Floats) -> float:
    """Return the Jensen-Shannon divergence, in bits, of how often each option is taken in all rows together."""
    return js_divergence(true.mean(axis=0)[None], said.mean(axis=0)[None])


def calibration(true: Floats, said: Floats, bins: int = 10) -> list[dict[str, float]]:
    """Return how often the first option is chosen where `said` gives it about as much.

    Rows are cut into up to `bins` equal groups, ascending; each has `said` and `true`, which are means, and `n`.
    """
    order = np.argsort(said[:, 0], kind="stable")
    groups = [group for group in np.array_split(order, bins) if len(group)]
    return [
        {"said": float(said[group, 0].mean()), "true": float(true[group, 0].mean()), "n": len(group)}
        for group in groups
    ]


def calibration_error(true: Floats, said: Floats) -> float:
    """Return the mean distance of `said` and `true` over the groups of `calibration`, weighted by their rows."""
    groups = calibration(true, said)
    return sum(abs(g["said"] - g["true"]) * g["n"] for g in groups) / sum(g["n"] for g in groups)
