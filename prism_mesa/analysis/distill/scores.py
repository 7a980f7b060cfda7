"""Scores of a model of an LLM's choices.

They compare the LLM's probabilities, `observed`, with the model's, `predicted`. Both have shape (n, options), and rows
add up to 1. The LLM itself is uncertain, so no model can beat its log loss and AUC.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

type Floats = npt.NDArray[np.float64]

MIN_PROBABILITY: Final = 1e-6  # floor for predicted probabilities in log loss


def log_loss(observed: Floats, predicted: Floats) -> float:
    """Return the mean of ``-sum(observed * ln(predicted))``, in nats: the entropy of `observed` if both are equal.

    >>> round(log_loss(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]])), 3)
    0.693
    """
    return float(-(observed * np.log(np.maximum(predicted, MIN_PROBABILITY))).sum(axis=1).mean())


def auc(observed: Floats, predicted: Floats) -> float:
    """Return the area under the ROC curve of the first option, for probabilities instead of outcomes.

    A row counts as chosen with weight `observed[:, 0]`, and as not chosen with the rest. The area is the probability
    that `predicted` is larger for a chosen row than for another; ties count half. With more than two options it is the
    mean over options, weighted by their probability. It is 0.5 if all rows are alike.
    """
    shares = observed.mean(axis=0)
    columns = range(1 if observed.shape[1] == 2 else observed.shape[1])
    parts = [(_auc(observed[:, k], predicted[:, k]), shares[k]) for k in columns]
    total = sum(share for _, share in parts)
    return float(sum(area * share for area, share in parts) / total) if total > 0 else 0.5


def _auc(chosen: Floats, score: Floats) -> float:
    _, rank = np.unique(score, return_inverse=True)
    positives, negatives = np.bincount(rank, chosen), np.bincount(rank, 1 - chosen)
    below = np.concatenate([[0.0], negatives.cumsum()[:-1]])
    pairs = positives.sum() * negatives.sum()
    return float((positives * (below + negatives / 2)).sum() / pairs) if pairs > 0 else 0.5


def js_divergence(observed: Floats, predicted: Floats) -> float:
    """Return the mean over rows of the Jensen-Shannon divergence, in bits: 0 if equal, 1 at most.

    Lin 1991, doi:10.1109/18.61115.
    """
    middle = (observed + predicted) / 2
    return float((_kl(observed, middle) + _kl(predicted, middle)).mean() / 2)


def _kl(p: Floats, q: Floats) -> Floats:
    ratio = np.where(p > 0, p, 1.0) / np.where(p > 0, q, 1.0)
    return np.asarray((p * np.log2(ratio)).sum(axis=1))


def js_totals(observed: Floats, predicted: Floats) -> float:
    """Return the Jensen-Shannon divergence, in bits, of the mean probabilities of all rows."""
    return js_divergence(observed.mean(axis=0)[None], predicted.mean(axis=0)[None])


def calibration(observed: Floats, predicted: Floats, bins: int = 10) -> list[dict[str, float]]:
    """Return the means of the first option in up to `bins` groups of equal size, by ascending `predicted`."""
    order = np.argsort(predicted[:, 0], kind="stable")
    groups = [group for group in np.array_split(order, bins) if len(group)]
    return [
        {"said": float(predicted[group, 0].mean()), "true": float(observed[group, 0].mean()), "n": len(group)}
        for group in groups
    ]


def calibration_error(observed: Floats, predicted: Floats) -> float:
    """Return the mean distance of `predicted` and `observed` over the groups of `calibration`, weighted by size."""
    groups = calibration(observed, predicted)
    return sum(abs(g["said"] - g["true"]) * g["n"] for g in groups) / sum(g["n"] for g in groups)
