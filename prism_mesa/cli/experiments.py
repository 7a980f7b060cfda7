"""The command that simulates field experiments."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from prism_mesa.cli.arguments import OutOption
from prism_mesa.cli.console import progress_bar
from prism_mesa.cli.studies import Workers, replace_nonfinite
from prism_mesa.terminal import show, show_json

_FILE = Path("configs/studies/experiments/outcomes.yaml")


def experiments(
    names: Annotated[list[str] | None, Argument(metavar="NAME", help="experiments in the file; by default all")] = None,
    file: Annotated[
        Path, Option(metavar="OUTCOMES.yaml", help="the file of outcomes; studies and measures lie beside it")
    ] = _FILE,
    seeds: Annotated[
        int | None, Option(min=1, max=10_000, help="number of seeds; by default as in the studies")
    ] = None,
    scale: Annotated[Literal["full", "small"], Option(help="small: smaller worlds, for a quick look")] = "full",
    workers: Workers = None,
    out: OutOption = Path("results"),
    as_json: Annotated[
        bool, Option("--json", help="print the table as one JSON list on stdout, and nothing else")
    ] = False,
) -> None:
    """Compare simulated field experiments with published ones.

    It prints what was put in, published and simulated, with intervals, and whether it is inside.
    """
    from prism_mesa.api.experiments import Experiments
    from prism_mesa.view.experiments import experiment_lines

    planned = Experiments(names or (), file=file, seeds=seeds, scale=scale, out=out)
    with progress_bar(planned.n_runs, "runs", "tables and figures") as update_bar:
        results = planned.run(workers=workers, on_run=update_bar)
    if as_json:
        show_json(replace_nonfinite([row.facts() for row in results.rows]))
    else:
        show("\n".join(experiment_lines(results)))
