"""Fit a distilled model with scikit-learn (extra `distill`), and convert it to plain numbers.

The training data have one row per answer and option, weighted by the LLM's probability of the option.
"""

from typing import Any, Final, Literal

import numpy as np

from prism_mesa.arrays import Floats, Ints
from prism_mesa.errors import ConfigError, PrismError
from prism_mesa.extras import install_hint
from prism_mesa.reasoner.distilled import LinearScore, TreeScore
from prism_mesa.reasoner.features import with_products

type Kind = Literal["logistic", "boosting"]
type Scores = list[LinearScore | TreeScore]

SMOOTHING: Final = 0.001
"""The share of each answer's weight that is spread evenly over the options, to keep log-odds finite."""

_INVERSE_PENALTY: Final = 1.0
_BOOSTING_PARAMS: Final[dict[str, Any]] = {
    "max_iter": 60,
    "learning_rate": 0.1,
    "max_leaf_nodes": 8,
    "min_samples_leaf": 40,
    "l2_regularization": 5.0,
    "early_stopping": False,
    "random_state": 0,
}


def _import_sklearn() -> tuple[Any, Any]:
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise ConfigError(
            f"prism distill: scikit-learn is not installed: {install_hint('distill', 'scikit-learn')}"
        ) from None
    return LogisticRegression, HistGradientBoostingClassifier


def check_installed() -> None:
    """Raise ConfigError if scikit-learn is not installed."""
    _import_sklearn()


def fit_scores(kind: Kind, columns: Floats, observed: Floats) -> Scores:
    """Return a score function for each option, fitted to an LLM's probabilities.

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


def _repeat_rows(rows: Floats, observed: Floats) -> tuple[Floats, Ints, Floats]:
    """Repeat all rows for each option; return the rows, their options and their weights."""
    n, k = observed.shape
    weights = (1 - SMOOTHING) * observed + SMOOTHING / k
    return np.tile(rows, (k, 1)), np.repeat(np.arange(k), n), weights.T.reshape(-1)


def _logistic(columns: Floats, observed: Floats) -> Scores:
    regression, _ = _import_sklearn()
    features = with_products(columns)
    means, sds = features.mean(axis=1), features.std(axis=1)
    is_varying = sds > 1e-9 * np.maximum(np.abs(means), 1.0)
    if not is_varying.any():  # all questions were the same
        is_varying[0], sds[0] = True, 1.0
    rows, options, weights = _repeat_rows(((features[is_varying].T - means[is_varying]) / sds[is_varying]), observed)
    model = regression(C=_INVERSE_PENALTY, max_iter=2000, tol=1e-6).fit(rows, options, sample_weight=weights)
    k, coefficients, intercepts = observed.shape[1], model.coef_, model.intercept_
    if k == 2:  # scikit-learn scores the second option only
        coefficients = np.stack([-coefficients[0], 0 * coefficients[0]])
        intercepts = np.array([-intercepts[0], 0.0])
    scores: Scores = []
    for option in range(k - 1):
        slopes = np.zeros(len(features))
        slopes[is_varying] = (coefficients[option] - coefficients[-1]) / sds[is_varying]
        intercept = intercepts[option] - intercepts[-1] - float((slopes * means).sum())
        scores.append(LinearScore(intercept=float(intercept), weights=slopes.tolist()))
    return scores


def _boosting(columns: Floats, observed: Floats) -> Scores:
    _, boosting = _import_sklearn()
    rows, options, weights = _repeat_rows(columns.T, observed)
    model = boosting(**_BOOSTING_PARAMS).fit(rows, options, sample_weight=weights)
    # scikit-learn's trees are private, so the scores are compared with its decision function below
    rounds, base = model._predictors, np.ravel(model._baseline_prediction)
    sign = -1.0 if observed.shape[1] == 2 else 1.0  # with two options, scikit-learn scores the second
    scores = [_join_trees([trees[k].nodes for trees in rounds], float(base[k]), sign) for k in range(len(rounds[0]))]
    decisions = np.stack([sign * score.compute(columns) for score in scores], axis=1)
    if not np.allclose(decisions, model.decision_function(columns.T).reshape(decisions.shape), atol=1e-6):
        raise PrismError("prism distill: cannot read the trees of this scikit-learn; use --kind logistic")
    return list(scores)


def _join_trees(trees: list[Any], intercept: float, sign: float) -> TreeScore:
    root_indices = np.cumsum([0, *(len(nodes) for nodes in trees)])[:-1]
    nodes = np.concatenate(trees)
    offsets = np.repeat(root_indices, [len(tree) for tree in trees])
    is_leaf = nodes["is_leaf"].astype(bool)
    return TreeScore(
        base=sign * intercept,
        roots=root_indices.tolist(),
        feature=np.where(is_leaf, -1, nodes["feature_idx"]).tolist(),
        threshold=np.where(is_leaf, 0.0, nodes["num_threshold"]).tolist(),
        left=np.where(is_leaf, 0, nodes["left"] + offsets).tolist(),
        right=np.where(is_leaf, 0, nodes["right"] + offsets).tolist(),
        value=np.where(is_leaf, sign * nodes["value"], 0.0).tolist(),
    )
