"""The world that the benchmarks measure. All that could change the work is said here or in configs/plain.yaml."""

from pathlib import Path
from typing import Any, Final

from prism_mesa import load_config
from prism_mesa.params import explicit_values
from prism_mesa.social.model import SocialModel
from prism_mesa.statechart import Statechart

TICKS: Final = 10
DEGREE: Final = 20
SEED: Final = 42
PLAIN_FILE: Final = Path(__file__).parents[1] / "configs" / "plain.yaml"
PLAIN: Final = {key: value for key, value in explicit_values(load_config(PLAIN_FILE)).items() if key != "name"}
"""In what the plain world, in which speeds have always been measured, differs from the default one, by dotted key."""
PLAIN_KEYWORDS: Final = {key.replace(".", "_"): value for key, value in PLAIN.items()}
"""The same by the names of a model's keywords."""


def columns_model(n: int, *, chart: Statechart | None = None, **other: Any) -> SocialModel:
    """Return the model that is measured, of `n` agents; `other` are parameters that differ."""
    usual: dict[str, Any] = PLAIN_KEYWORDS | {
        "rng": SEED,
        "agents_n": n,
        "network_kind": "configuration",
        "network_mean_degree": DEGREE,
        "ticks_per_round": TICKS,
        "threads": 1,
        "feed_size": 10,
        "feed_mode": "chronological",
        "reasoner_kind": "rule",
        "statechart_max_history_depth": 0,
    }
    return SocialModel(chart=chart, **usual | other)


def warm_up() -> None:
    """Let a small world run, so that compiled kernels are loaded (or, the first time, compiled)."""
    model = columns_model(1000)
    for _ in range(4):
        model.step()
