"""Figures of a calibration: profiles of its parameters, and how far each measure is from its target."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.errors import shortened
from prism_mesa.figure import NotebookFigure
from prism_mesa.studies.calibration.profiles import Profiles
from prism_mesa.studies.calibration.result import CalibrationResult
from prism_mesa.view.plots.style import GREY, INK, SMALL, WIDTH, color_of, marker_of, panels, tidy, tidy_legend

_LONGEST = 34


def profile_figure(result: CalibrationResult, profiles: Profiles) -> Figure:
    """Return a panel for each parameter: how low the objective can be at each of its values."""
    axes = result.plan.space.axes
    figure, grid = panels(len(axes), height=2.5)
    most = profiles.least + result.plan.params.rise
    for panel, axis in zip(grid, axes, strict=True):
        curve = profiles.curves[profiles.curves["parameter"] == axis.key]
        found = profiles.intervals[profiles.intervals["parameter"] == axis.key].iloc[0]
        value = curve["value"]
        panel.axvspan(found["low"], found["high"], color=color_of(0), alpha=0.1, linewidth=0)
        panel.axhline(most, color=GREY, linewidth=0.8, linestyle="--")
        panel.fill_between(value, curve["possible"], curve["objective"], color=color_of(0), alpha=0.25, linewidth=0)
        panel.plot(value, curve["objective"], color=color_of(0), linewidth=1.5)
        panel.plot(value, curve["tried"], "o", color=INK, markersize=2.5)
        panel.axvline(found["fitted"], color=color_of(1), linewidth=1)
        _upwards(panel, max(most, 1.0), float(np.nanmax(curve[["objective", "tried"]].to_numpy())))
        if axis.log:
            panel.set_xscale("log")
        panel.set_xlim(axis.low, axis.high)
        panel.set_ylabel("objective")
        tidy(panel, shortened(axis.key, _LONGEST))
    return figure


def distance_figure(result: CalibrationResult) -> Figure:
    """Return how many tolerances each measure of the fitted world is from its target, with its interval."""
    rows = result.measures
    figure = NotebookFigure(figsize=(WIDTH, 0.9 + 0.3 * len(rows)), layout="constrained")
    panel: Axes = figure.subplots()
    panel.axvspan(-1, 1, color=GREY, alpha=0.2, linewidth=0)
    panel.axvline(0, color=GREY, linewidth=0.8)
    for place, row in enumerate(rows.to_dict("records")):
        color = color_of(0 if row["set"] == "fit" else 1)
        ends = [(row[end] - row["target"]) / row["tolerance"] for end in ("low", "high")]
        panel.plot(ends, [place, place], color=color, linewidth=1.5)
        panel.plot(row["distance"], place, "o" if row["set"] == "fit" else "D", color=color, markersize=5)
    names = [f"{row['measure']} ({'fitted' if row['set'] == 'fit' else 'held out'})" for row in rows.to_dict("records")]
    panel.set_yticks(range(len(names)), [shortened(name, 2 * _LONGEST) for name in names])
    panel.set_xscale("asinh", linear_width=3)
    ends_of_all = (rows[["low", "high"]].sub(rows["target"], axis=0)).div(rows["tolerance"], axis=0)
    furthest = 1.1 * float(np.nanmax([2.0, *rows["distance"].abs(), *ends_of_all.abs().to_numpy().ravel()]))
    panel.set_xlim(-furthest, furthest)
    panel.set_xticks([tick for tick in (-100, -30, -10, -3, -1, 0, 1, 3, 10, 30, 100) if abs(tick) <= furthest])
    panel.minorticks_off()
    panel.xaxis.set_major_formatter("{x:g}")
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.set_xlabel("distance from the target, in tolerances")
    tidy(panel, grid="x")
    return figure


def objective_figure(result: CalibrationResult) -> Figure:
    """Return the objective of each trial in the order in which they were tried, and the least so far."""
    done = result.trials[result.trials["status"] == "done"]
    figure, [panel] = panels(1, height=2.4)
    for place, how in enumerate(("spread", "likely", "probe", "guess")):
        own = done[done["how"] == how]
        panel.plot(own["trial"], own["objective"], marker_of(place), color=color_of(place), markersize=3, label=how)
    panel.step(done["trial"], done["objective"].cummin(), where="post", color=INK, linewidth=1)
    _upwards(panel, 1.0, float(done["objective"].max()))
    panel.set_xlabel("trial")
    panel.set_ylabel("objective")
    tidy_legend(panel.legend(frameon=False, fontsize=SMALL))
    tidy(panel)
    return figure


def _upwards(panel: Axes, linear: float, most: float) -> None:
    """Let a panel begin at 0, and rise by factors above `linear`; its ticks stand apart."""
    panel.set_yscale("asinh", linear_width=linear)
    panel.set_ylim(0, 1.3 * most)
    panel.minorticks_off()
    tens = [10.0**power for power in range(8) if 10.0**power > linear / 2]
    panel.set_yticks([0.0, *(tick for tick in tens if tick <= 1.3 * most)])
    panel.yaxis.set_major_formatter("{x:,.0f}")
