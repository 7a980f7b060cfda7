"""Fit a distilled model with scikit-learn (extra `distill`), and return it as plain numbers.

Each answer of the LLM becomes one row per option, weighted by the option's probability.
"""

from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import ConfigError, PrismError
from prism_mesa.extras import how_to_install
from prism_mesa.reasoner.distilled import Linear, Trees
from prism_mesa.reasoner.features import with_products

type Floats = npt.NDArray[np.float64]
type Kind = Literal["logistic", "boosting"]
type Scores = list[Linear | Trees]

SMOOTHING: Final = 0.001
"""Share of each answer that is spread over all options, to keep log-odds finite."""

_PENALTY: Final = 1.0
_TREES: Final[dict[str, Any]] = {
    "max_iter": 60,
    "learning_rate": 0.1,
    "max_leaf_nodes": 8,
    "min_samples_leaf": 40,
    "l2_regularization": 5.0,
    "early_stopping": False,
    "random_state": 0,
}


def _sklearn() -> tuple[Any, Any]:
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise ConfigError(
            f"prism distill: scikit-learn is not installed: {how_to_install('distill', 'scikit-learn')}"
        ) from None
    return LogisticRegression, HistGradientBoostingClassifier


def check_installed() -> None:
    """Raise ConfigError if scikit-learn is not installed."""
    _sklearn()


def fit_scores(kind: Kind, columns: Floats, observed: Floats) -> Scores:
    """Return scores of options, fitted to an LLM's probabilities.

    Args:
        kind: `logistic`: multinomial logistic regression on standardised features and their products, with a ridge
            penalty. `boosting`: gradient boosting of small trees on the features.
        columns: Features, shape (features, n).
        observed: The LLM's probabilities, shape (n, options).
    """
    check_installed()
    from threadpoolctl import threadpool_limits  # installed with scikit-learn

    with threadpool_limits(1):  # more threads would slow down such small fits
        return _logistic(columns, observed) if kind == "logistic" else _boosting(columns, observed)


def _weighted(rows: Floats, observed: Floats) -> tuple[Floats, npt.NDArray[np.int64], Floats]:
    """Repeat the rows for each option, and return rows, options and weights."""
    n, k = observed.shape
    weights = (1 - SMOOTHING) * observed + SMOOTHING / k
    return np.tile(rows, (k, 1)), np.repeat(np.arange(k), n), weights.T.reshape(-1)


def _logistic(columns: Floats, observed: Floats) -> Scores:
    regression, _ = _sklearn()
    features = with_products(columns)
    means, spreads = features.mean(axis=1), features.std(axis=1)
    is_varying = spreads > 1e-9 * np.maximum(np.abs(means), 1.0)
    if not is_varying.any():  # all questions were the same
        is_varying[0], spreads[0] = True, 1.0
    rows, options, weights = _weighted(((features[is_varying].T - means[is_varying]) / spreads[is_varying]), observed)
    model = regression(C=_PENALTY, max_iter=2000, tol=1e-6).fit(rows, options, sample_weight=weights)
    k, coefficients, intercepts = observed.shape[1], model.coef_, model.intercept_
    if k == 2:  # scikit-learn scores the second option only
        coefficients = np.stack([-coefficients[0], 0 * coefficients[0]])
        intercepts = np.array([-intercepts[0], 0.0])
    scores: Scores = []
    for option in range(k - 1):
        slopes = np.zeros(len(features))
        slopes[is_varying] = (coefficients[option] - coefficients[-1]) / spreads[is_varying]
        intercept = intercepts[option] - intercepts[-1] - float((slopes * means).sum())
        scores.append(Linear(intercept=float(intercept), weights=slopes.tolist()))
    return scores


def _boosting(columns: Floats, observed: Floats) -> Scores:
    _, boosting = _sklearn()
    rows, options, weights = _weighted(columns.T, observed)
    model = boosting(**_TREES).fit(rows, options, sample_weight=weights)
    # scikit-learn's trees are private, so the scores are compared with its own below
    rounds, base = model._predictors, np.ravel(model._baseline_prediction)
    sign = -1.0 if observed.shape[1] == 2 else 1.0  # of two options, scikit-learn scores the second
    scores = [_forest([trees[k].nodes for trees in rounds], float(base[k]), sign) for k in range(len(rounds[0]))]
    decisions = np.stack([sign * score.sums(columns) for score in scores], axis=1)
    if not np.allclose(decisions, model.decision_function(columns.T).reshape(decisions.shape), atol=1e-6):
        raise PrismError("prism distill: cannot read the trees of this scikit-learn; use --kind logistic")
    return list(scores)


def _forest(trees: list[Any], base: float, sign: float) -> Trees:
    starts = np.cumsum([0, *(len(nodes) for nodes in trees)])[:-1]
    nodes = np.concatenate(trees)
    shift = np.repeat(starts, [len(tree) for tree in trees])
    leaf = nodes["is_leaf"].astype(bool)
    return Trees(
        base=sign * base,
        roots=starts.tolist(),
        feature=np.where(leaf, -1, nodes["feature_idx"]).tolist(),
        threshold=np.where(leaf, 0.0, nodes["num_threshold"]).tolist(),
        left=np.where(leaf, 0, nodes["left"] + shift).tolist(),
        right=np.where(leaf, 0, nodes["right"] + shift).tolist(),
        value=np.where(leaf, sign * nodes["value"], 0.0).tolist(),
    )
