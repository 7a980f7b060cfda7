"""Scores that compare an LLM's probabilities (`observed`) with a model's (`predicted`).

Both have shape (n, options), and each row adds up to 1. The LLM itself is uncertain, so no model can have a better log
loss or AUC than the LLM.
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

    A row counts as positive with weight `observed[:, 0]`, and as negative with the remaining weight. The area is the
    probability that `predicted` is larger for a positive row than for a negative row; ties count half. With more than
    two options it is the mean over options, weighted by their probability. It is 0.5 if all rows are equal.
    """
    shares = observed.mean(axis=0)
    columns = range(1 if observed.shape[1] == 2 else observed.shape[1])
    areas = [(_auc(observed[:, k], predicted[:, k]), shares[k]) for k in columns]
    total = sum(share for _, share in areas)
    return float(sum(area * share for area, share in areas) / total) if total > 0 else 0.5


def _auc(chosen: Floats, score: Floats) -> float:
    _, rank = np.unique(score, return_inverse=True)
    positives, negatives = np.bincount(rank, chosen), np.bincount(rank, 1 - chosen)
    below = np.concatenate([[0.0], negatives.cumsum()[:-1]])
    pairs = positives.sum() * negatives.sum()
    return float((positives * (below + negatives / 2)).sum() / pairs) if pairs > 0 else 0.5


def js_divergence(observed: Floats, predicted: Floats) -> float:
    """Return the mean Jensen-Shannon divergence of the rows, in bits, from 0 (equal) to 1.

    Lin 1991, doi:10.1109/18.61115.
    """
    middle = (observed + predicted) / 2
    return float((_kl(observed, middle) + _kl(predicted, middle)).mean() / 2)


def _kl(p: Floats, q: Floats) -> Floats:
    ratio = np.where(p > 0, p, 1.0) / np.where(p > 0, q, 1.0)
    return np.asarray((p * np.log2(ratio)).sum(axis=1))


def js_totals(observed: Floats, predicted: Floats) -> float:
    """Return the Jensen-Shannon divergence of the mean probabilities over all rows, in bits."""
    return js_divergence(observed.mean(axis=0)[None], predicted.mean(axis=0)[None])


def calibration(observed: Floats, predicted: Floats, bins: int = 10) -> list[dict[str, float]]:
    """Return the mean probabilities of the first option in up to `bins` equal groups, ordered by `predicted`."""
    order = np.argsort(predicted[:, 0], kind="stable")
    groups = [group for group in np.array_split(order, bins) if len(group)]
    return [
        {"said": float(predicted[group, 0].mean()), "true": float(observed[group, 0].mean()), "n": len(group)}
        for group in groups
    ]


def calibration_error(observed: Floats, predicted: Floats) -> float:
    """Return the mean distance between prediction and observation over the groups of `calibration`, by size."""
    groups = calibration(observed, predicted)
    return sum(abs(row["said"] - row["true"]) * row["n"] for row in groups) / sum(row["n"] for row in groups)
