"""How the outcomes of a scenario move with the share of open choices that an LLM answers, a distilled model the rest.

The same configuration is run with several shares and the same keyed draws; who asks the LLM with a small share also
does with a larger one. Answers that are known are taken from the ledger of the run, and new ones are shared between the
runs. The run's folder is not changed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa

from prism_mesa.analysis.distill.dataset import rounds_of
from prism_mesa.errors import RunError
from prism_mesa.llm import Ledger
from prism_mesa.llm.params import STAND_INS
from prism_mesa.params import merged
from prism_mesa.runs.config import Config, make_config
from prism_mesa.runs.lifecycle import RunResult
from prism_mesa.runs.recorded import config_to_run_anew, recorded_rounds
from prism_mesa.runs.records.folder import make_folder
from prism_mesa.runs.records.table_checks import check_written, write_csv
from prism_mesa.runs.rounds import as_before
from prism_mesa.runs.run_files import LEDGER
from prism_mesa.runs.social import run
from prism_mesa.tables import Column, TableSchema

SHARES: Final = (0.0, 0.25, 0.5, 1.0)
DRIFT: Final = TableSchema(
    "drift",
    "an outcome with one share of the LLM and one seed",
    (
        Column("share", "float64", "open choices that go to the LLM", "share"),
        Column("seed", "int", "seed of the run"),
        Column("outcome", "text", "what is compared"),
        Column("value", "float64", "what it came to; a count, but for means and shares"),
        Column("relative", "float64", "the value over that with the largest share and the same seed", blank=True),
    ),
)


@dataclass(frozen=True)
class Drift:
    """What came of it.

    Attributes:
        table: As `DRIFT` says; there is no relative value where that with the largest share is 0.
        folder: Where `drift.parquet` and the runs are.
    """

    table: pd.DataFrame
    folder: Path


@as_before()
def drift(
    run_dir: str | Path,
    distilled: str | Path,
    out: str | Path,
    *,
    shares: Sequence[float] = SHARES,
    n_seeds: int = 1,
    on_round: Callable[[], object] = lambda: None,
    trust: bool = False,
) -> Drift:
    """Run the scenario of a run with several shares of its LLM, and keep the table of outcomes in `out`.

    Args:
        run_dir: The run: its configuration, LLM and known answers are taken.
        distilled: The file of the distilled model.
        out: Folder of the table and of the runs.
        shares: Shares of open choices that go to the LLM, ascending.
        n_seeds: The run's seed and the next ones.
        on_round: Called after each round of each run.
        trust: Whether a server, a module, and files outside of the folder, that only the folder names may be used;
            those of runs made here may be.

    Raises:
        DataError: If there is no such run, it cannot be repeated from its folder, or is not trusted.
        ConfigError: If its LLM is not there to answer what is new.
    """
    folder = Path(out)
    make_folder(folder)
    ledger = folder / "answers.sqlite"
    base = _scenario(Path(run_dir), Path(distilled), ledger, trust=trust)
    with Ledger(ledger) as known, Ledger(Path(run_dir) / LEDGER, read_only=True) as own:
        known.write(own.answers(), [])
    rows: list[dict[str, Any]] = []

    def advance(done: int) -> None:
        on_round()

    for seed in range(base.seed, base.seed + n_seeds):
        for share in shares:
            changed = {"seed": seed, "name": f"share-{share:g}", "reasoner": {"llm_share": share}}
            config = make_config(merged(base.model_dump(), changed))
            found = outcomes(_summary_of(run(config, out=folder / "runs", on_round=advance)))
            rows += [{"share": share, "seed": seed, "outcome": name, "value": found[name]} for name in found]
    table = _relative(pd.DataFrame(rows), max(shares))
    check_written(DRIFT, pa.Schema.from_pandas(table, preserve_index=False))
    table.to_parquet(folder / f"{DRIFT.name}.parquet", index=False)
    write_csv(table, folder / f"{DRIFT.name}.csv")
    return Drift(table, folder)


def _summary_of(result: RunResult) -> dict[str, Any]:
    if result.status != "done":
        raise RunError(f"{result.run_dir}: {result.summary['error']}; nothing is compared")
    return result.summary


def rounds_of_drift(run_dir: str | Path, n_seeds: int = 1) -> int:
    """Return how many rounds `drift` runs in all."""
    rounds_of(Path(run_dir))
    return recorded_rounds(Path(run_dir)) * len(SHARES) * n_seeds


def _scenario(run_dir: Path, distilled: Path, ledger: Path, *, trust: bool) -> Config:
    """Return the configuration of a run with its LLM to be asked anew."""
    own = {"distilled": str(distilled), "ledger": "cache", "ledger_path": str(ledger)}
    base = config_to_run_anew(run_dir, trust=trust)
    return make_config(merged(base.model_dump(), {"reasoner": own}), str(run_dir))


def outcomes(summary: dict[str, Any]) -> dict[str, float]:
    """Return what is compared, from the summary of a run."""
    trees, shares = summary["cascades"], summary["state_shares"]
    found = {name: float(n) for name, n in summary["engagement"].items()}
    found["open choices"] = float(summary["decisions"]["open"])
    found |= {f"by {source}": float(summary["decisions"]["by_source"].get(source, 0)) for source in STAND_INS}
    found |= {f"cascade {name}": float(trees.get(name, 0)) for name in ("mean_size", "max_size", "max_depth")}
    found["cascades reshared"] = 1.0 - float(trees.get("share_never_reshared", 1.0))
    return found | {f"share {state}": float(share) for state, share in shares.items()}


def _relative(table: pd.DataFrame, full: float) -> pd.DataFrame:
    whole = table[table["share"] == full].set_index(["seed", "outcome"])["value"]
    reference = table.join(whole.rename("whole"), on=["seed", "outcome"])["whole"]
    return table.assign(relative=(table["value"] / reference.where(reference != 0)).astype(float))
