"""Run a scenario several times, with different shares of the choices for the LLM and the rest for a distilled model.

The runs use the same keyed draws: an agent that asks the LLM at a small share also asks it at a larger share. The runs
share one ledger, which starts with the answers of the original run. The folder of the original run does not change.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa

from prism_mesa.analysis.distill.dataset import completed_rounds
from prism_mesa.errors import RunError
from prism_mesa.llm import Ledger
from prism_mesa.llm.params import STAND_INS
from prism_mesa.params import merge_values
from prism_mesa.runs.config import make_config
from prism_mesa.runs.recorded import config_for_new_run, recorded_rounds
from prism_mesa.runs.records.folder import make_folder
from prism_mesa.runs.records.table_checks import check_schema, write_csv
from prism_mesa.runs.rounds import without_repeated_warnings
from prism_mesa.runs.run_files import LEDGER
from prism_mesa.runs.social import run
from prism_mesa.tables import Column, make_schema

SHARES: Final = (0.0, 0.25, 0.5, 1.0)
DRIFT: Final = make_schema(
    "drift",
    "an outcome of a run with one share of the LLM and one seed",
    Column("share", "float64", "share of open choices that the LLM answers", "share"),
    Column("seed", "int", "seed of the run"),
    Column("outcome", "text", "name of the outcome"),
    Column("value", "float64", "value of the outcome: a count, a mean or a share"),
    Column("relative", "float64", "the value, relative to that with the largest share and this seed", blank=True),
)


@dataclass(frozen=True)
class Drift:
    """The result of `drift`.

    Attributes:
        table: See `DRIFT`; the relative value is blank if the value at the largest share is 0.
        folder: The folder with `drift.parquet` and the runs.
    """

    table: pd.DataFrame
    folder: Path


@without_repeated_warnings()
def drift(
    run_dir: str | Path,
    distilled: str | Path,
    out: str | Path,
    *,
    shares: Sequence[float] = SHARES,
    n_seeds: int = 1,
    on_round: Callable[[], None] = lambda: None,
    trust: bool = False,
) -> Drift:
    """Run the scenario of a run with several shares for its LLM, and write a table of outcomes to `out`.

    Args:
        run_dir: The original run, with the configuration, the LLM and its answers.
        distilled: The file of the distilled model.
        out: Folder for the table and the runs.
        shares: Shares of open choices for the LLM, ascending.
        n_seeds: The number of seeds: the run's seed and the following ones.
        on_round: Called after each round of each run.
        trust: As for `replay`.

    Raises:
        DataError: If the run does not exist, cannot be repeated from its folder, or is not trusted.
        ConfigError: If the LLM is not available for new questions.
    """
    folder = Path(out)
    make_folder(folder)
    ledger = folder / "answers.sqlite"
    reasoner = {"distilled": str(distilled), "ledger": "cache", "ledger_path": str(ledger)}
    recorded = config_for_new_run(Path(run_dir), trust=trust)
    base = make_config(merge_values(recorded.model_dump(), {"reasoner": reasoner}), str(run_dir))
    with Ledger(ledger) as shared_ledger, Ledger(Path(run_dir) / LEDGER, read_only=True) as run_ledger:
        shared_ledger.write(run_ledger.answers(), [])
    rows: list[dict[str, Any]] = []
    for seed in range(base.seed, base.seed + n_seeds):
        for share in shares:
            changes = {"seed": seed, "name": f"share-{share:g}", "reasoner": {"llm_share": share}}
            config = make_config(merge_values(base.model_dump(), changes))
            result = run(config, out=folder / "runs", on_round=lambda done: on_round())
            if result.status != "done":
                raise RunError(f"{result.run_dir}: {result.summary['error']}; nothing is compared")
            values = outcomes(result.summary).items()
            rows += [{"share": share, "seed": seed, "outcome": name, "value": value} for name, value in values]
    table = pd.DataFrame(rows)
    reference_values = table[table["share"] == max(shares)].set_index(["seed", "outcome"])["value"].rename("largest")
    reference = table.join(reference_values, on=["seed", "outcome"])["largest"]
    table["relative"] = (table["value"] / reference.where(reference != 0)).astype(float)
    check_schema(DRIFT, pa.Schema.from_pandas(table, preserve_index=False))
    table.to_parquet(folder / f"{DRIFT.name}.parquet", index=False)
    write_csv(table, folder / f"{DRIFT.name}.csv")
    return Drift(table, folder)


def drift_rounds(run_dir: str | Path, n_seeds: int = 1) -> int:
    """Return the total number of rounds that `drift` runs."""
    completed_rounds(Path(run_dir))
    return recorded_rounds(Path(run_dir)) * len(SHARES) * n_seeds


def outcomes(summary: dict[str, Any]) -> dict[str, float]:
    """Return the outcomes to compare, from the summary of a run."""
    cascades, decisions = summary["cascades"], summary["decisions"]
    return {
        **{name: float(n) for name, n in summary["engagement"].items()},
        "open choices": float(decisions["open"]),
        **{f"by {source}": float(decisions["by_source"].get(source, 0)) for source in STAND_INS},
        **{f"cascade {name}": float(cascades.get(name, 0)) for name in ("mean_size", "max_size", "max_depth")},
        "cascades reshared": 1.0 - float(cascades.get("share_never_reshared", 1.0)),
        **{f"share {state}": float(share) for state, share in summary["state_shares"].items()},
    }
