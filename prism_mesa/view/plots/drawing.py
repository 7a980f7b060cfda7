"""The figures that a run of a platform saves in its folder."""

from pathlib import Path

from prism_mesa.runs.run_files import has_table, run_folder
from prism_mesa.view.plots.cascades import cascades_figure
from prism_mesa.view.plots.engagement import engagement_figure
from prism_mesa.view.plots.files import save_figures
from prism_mesa.view.plots.network import network_figure
from prism_mesa.view.plots.states import opinions_figure, states_figure


def draw_run(run_dir: str | Path, *, skip_missing: bool = False) -> list[Path]:
    """Draw states, cascades, engagement and opinions as PNG files into a run's folder; return the paths.

    network.png is also drawn if the network changes and can be rebuilt. A missing or empty table raises a
    DataError; with `skip_missing`, its picture is left out.
    """
    folder = run_folder(run_dir)
    figures = {
        "states": lambda: states_figure(folder),
        "cascades": lambda: cascades_figure(folder),
        "engagement": lambda: engagement_figure(folder, per="round"),
    }
    if has_table(folder, "opinions"):
        figures["opinions"] = lambda: opinions_figure(folder)
    paths = save_figures(folder, figures, skip_missing=skip_missing)
    return paths + save_figures(folder, {"network": lambda: network_figure(folder)}, skip_missing=True)
