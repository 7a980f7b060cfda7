"""Results of runs for users, with their figures, and the pictures that are drawn when a run ends."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING

from prism_mesa.errors import DataError, PrismError
from prism_mesa.markup import html_or_repr
from prism_mesa.runs.lifecycle import RunBrokenError, RunInterruptedError
from prism_mesa.runs.lifecycle import RunResult as PlainResult
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.process.stopping import handle_signals
from prism_mesa.runs.recorded import is_economy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from prism_mesa.studies.result import StudyResult

_NATIONS_FIGURES = ("indicators", "policies", "responses")


class _Figure:
    """A descriptor that makes a function of `view.plots` a method of a result, with the same arguments."""

    def __init__(self, function: str) -> None:
        self._function = function

    def __get__(self, plots: "Plots", owner: type) -> Callable[..., "Figure"]:
        from prism_mesa.view import plots as figures  # matplotlib takes as long to load as a small run

        draw: Callable[..., Figure] = getattr(figures, self._function)
        return draw if plots is None else MethodType(draw, plots._source)


class Plots:
    """Figures of a run or a study; each returns a matplotlib Figure of `width` centimetres, or draws into `ax`.

    `help(result.plot.cascades)` shows the arguments of a figure; docs/figures.md shows all figures.
    """

    def __init__(self, source: "PlainResult | StudyResult") -> None:
        self._source = source

    def __repr__(self) -> str:
        return f"<figures: {', '.join(name for name in dir(self) if not name.startswith('_'))}>"

    states = _Figure("states_figure")
    cascades = _Figure("cascades_figure")
    engagement = _Figure("engagement_figure")
    lorenz = _Figure("lorenz_figure")


class RunPlots(Plots):
    """Figures of a run, see `Plots`; runs of nations have `indicators`, `policies` and `responses`."""

    _source: PlainResult

    def __dir__(self) -> list[str]:
        is_nations = False
        with suppress(DataError):
            is_nations = read_run(self._source.run_dir).manifest.is_economy
        return [name for name in super().__dir__() if (name in _NATIONS_FIGURES) is is_nations or name[0] == "_"]

    chart = _Figure("chart_figure")
    cascade_tree = _Figure("cascade_tree_figure")
    timeline = _Figure("timeline_figure")
    homophily = _Figure("homophily_figure")
    network = _Figure("network_by_attribute_figure")
    oracle = _Figure("oracle_figure")
    opinions = _Figure("opinions_figure")
    indicators = _Figure("indicators_figure")
    policies = _Figure("policies_figure")
    responses = _Figure("responses_figure")


class StudyPlots(Plots):
    """Figures of the runs of a study; see `Plots`."""

    feeds = _Figure("feeds_figure")


class RunResult(PlainResult):
    """A run, its folder and its figures; see `runs.lifecycle.RunResult` for its attributes."""

    @property
    def plot(self) -> RunPlots:
        """The figures of the run: ``result.plot.cascades()``."""
        return RunPlots(self)

    @html_or_repr
    def _repr_html_(self) -> str:
        from prism_mesa.view.summaries import run_html

        return run_html(self)


@handle_signals()
def run_and_draw(run: Callable[[], PlainResult], *, pictures: bool) -> RunResult:
    """Run, then draw the pictures of the run; if the run ended early, draw as many as possible."""
    try:
        result = RunResult(**vars(run()))
    except (RunBrokenError, RunInterruptedError) as stop:
        if stop.result is not None:
            stop.result = RunResult(**vars(stop.result))
            with suppress(PrismError, OSError, KeyboardInterrupt):  # the error of the run matters more
                paths = _draw(stop.result.run_dir, skip_missing=True) if pictures else []
                stop.result = _with_pictures(stop.result, paths)
        raise
    try:
        return _with_pictures(result, _draw(result.run_dir, skip_missing=False) if pictures else [])
    except KeyboardInterrupt as stop:
        message = f"{result.run_dir}: interrupted while its pictures were drawn (the run itself is kept there)"
        raise RunInterruptedError(message, result) from stop


def _draw(run_dir: Path, *, skip_missing: bool) -> list[Path]:
    """Draw the pictures of a run into its folder; `skip_missing` skips pictures that cannot be drawn."""
    if is_economy(run_dir):
        from prism_mesa.view.plots.economy import draw_economy

        return draw_economy(run_dir, skip_missing=skip_missing)
    from prism_mesa.view.plots.drawing import draw_run

    return draw_run(run_dir, skip_missing=skip_missing)


def _with_pictures(result: RunResult, paths: list[Path]) -> RunResult:
    pictures = {"pictures": [str(path) for path in paths]}
    return replace(result, pictures=tuple(paths), summary=result.summary | pictures)
