"""Runs as users get them: their tables and figures, and the pictures that are drawn when a run ends."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from prism_mesa.errors import DataError, PrismError
from prism_mesa.markup import html_or_repr
from prism_mesa.runs.lifecycle import RunBrokenError, RunInterruptedError
from prism_mesa.runs.lifecycle import RunResult as KeptRun
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.process.stopping import ended_by_signals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from prism_mesa.statechart import AgentState
    from prism_mesa.studies.result import StudyResult
    from prism_mesa.view.plots.cascades import Real
    from prism_mesa.view.plots.engagement import Kind, Per
    from prism_mesa.view.plots.network import Tied
    from prism_mesa.view.plots.outcomes import Shared

WIDE = 17.0
"""Centimetres: the width of a page; a column has 8.5."""
_NATIONS_FIGURES = ("indicators", "policies", "responses")

# matplotlib takes as long to load as a small run, so it is loaded when there is something to draw


class Plots:
    """Figures of a run or a study, each a matplotlib Figure of `width` centimetres, or drawn into the axes `ax`."""

    def __init__(self, source: "KeptRun | StudyResult") -> None:
        self._source = source

    def __repr__(self) -> str:
        return f"<figures: {', '.join(name for name in dir(self) if not name.startswith('_'))}>"

    def states(
        self, *, state: "AgentState | str | None" = None, ax: "Axes | None" = None, width: float = WIDE
    ) -> "Figure":
        """Return the shares of agents in each state by round; see `view.plots.states.states_figure`."""
        from prism_mesa.view.plots.states import states_figure

        return states_figure(self._source, state=state, ax=ax, width=width)

    def cascades(self, *, real: "Real" = False, ax: "Axes | None" = None, width: float = WIDE) -> "Figure":
        """Return how far posts spread, next to `real` data; see `view.plots.cascades.cascades_figure`."""
        from prism_mesa.view.plots.cascades import cascades_figure

        return cascades_figure(self._source, real=real, ax=ax, width=width)

    def engagement(
        self,
        *,
        per: "Per" = "impression",
        kind: "Kind | None" = None,
        ax: "Axes | None" = None,
        width: float = WIDE,
    ) -> "Figure":
        """Return likes, replies and reshares per impression or round; see `view.plots.engagement.engagement_figure`."""
        from prism_mesa.view.plots.engagement import engagement_figure

        return engagement_figure(self._source, per=per, kind=kind, ax=ax, width=width)

    def lorenz(self, *, what: "Shared" = "impressions", ax: "Axes | None" = None, width: float = WIDE) -> "Figure":
        """Return the inequality of a quantity between agents; see `view.plots.outcomes.lorenz_figure`."""
        from prism_mesa.view.plots.outcomes import lorenz_figure

        return lorenz_figure(self._source, what=what, ax=ax, width=width)


class RunPlots(Plots):
    """Figures of a run, see `Plots`; runs of nations have `indicators`, `policies` and `responses`."""

    _source: KeptRun

    def __dir__(self) -> list[str]:
        of_nations = False
        with suppress(DataError):
            of_nations = read_run(self._source.run_dir).manifest.of_nations
        return [name for name in super().__dir__() if (name in _NATIONS_FIGURES) is of_nations or name[0] == "_"]

    def chart(self, *, ax: "Axes | None" = None, width: float = WIDE) -> "Figure":
        """Return the chart with the number of times each transition was taken; see `view.plots.chart.chart_figure`."""
        from prism_mesa.view.plots.chart import chart_figure

        return chart_figure(self._source, ax=ax, width=width)

    def cascade_tree(self, root: int | None = None, *, ax: "Axes | None" = None, width: float = WIDE) -> "Figure":
        """Return the largest cascade, or a post's, as a tree; see `view.plots.cascades.cascade_tree_figure`."""
        from prism_mesa.view.plots.cascades import cascade_tree_figure

        return cascade_tree_figure(self._source, root=root, ax=ax, width=width)

    def timeline(
        self,
        agent: int | str,
        *,
        rounds: tuple[int, int] | None = None,
        ax: "Axes | None" = None,
        width: float = WIDE,
    ) -> "Figure":
        """Return the states of one agent by tick; see `view.plots.chart.timeline_figure`."""
        from prism_mesa.view.plots.chart import timeline_figure

        return timeline_figure(self._source.run_dir, agent, rounds=rounds, ax=ax, width=width)

    def homophily(self, *, what: "Tied" = "follows", ax: "Axes | None" = None, width: float = WIDE) -> "Figure":
        """Return ties between groups of agents; see `view.plots.network.homophily_figure`."""
        from prism_mesa.view.plots.network import homophily_figure

        return homophily_figure(self._source.run_dir, what=what, ax=ax, width=width)

    def network(self, *, by: str | None = None, ax: "Axes | None" = None, width: float = WIDE) -> "Figure":
        """Return the follow graph by an attribute; see `view.plots.network.network_by_attribute_figure`."""
        from prism_mesa.view.plots.network import network_by_attribute_figure

        return network_by_attribute_figure(self._source.run_dir, by=by, ax=ax, width=width)

    def oracle(self, *, ax: "Axes | None" = None, width: float = WIDE) -> "Figure":
        """Return the calibration of an LLM's probabilities; see `view.plots.answers.oracle_figure`."""
        from prism_mesa.view.plots.answers import oracle_figure

        return oracle_figure(self._source.run_dir, ax=ax, width=width)

    def opinions(self, *, ax: "Axes | None" = None, width: float = WIDE) -> "Figure":
        """Return the distribution of stances by round; see `view.plots.states.opinions_figure`."""
        from prism_mesa.view.plots.states import opinions_figure

        return opinions_figure(self._source, ax=ax, width=width)

    def indicators(self, *, width: float = WIDE) -> "Figure":
        """Return the economies of nations over time; see `view.plots.economy.indicators_figure`."""
        from prism_mesa.view.plots.economy import indicators_figure

        return indicators_figure(self._source, width=width)

    def policies(self, *, ax: "Axes | None" = None, width: float = WIDE) -> "Figure":
        """Return a timeline of nations' policies; see `view.plots.economy.policies_figure`."""
        from prism_mesa.view.plots.economy import policies_figure

        return policies_figure(self._source, ax=ax, width=width)

    def responses(self, *, width: float = WIDE) -> "Figure":
        """Return responses to a higher policy rate; see `view.plots.economy.responses_figure`."""
        from prism_mesa.view.plots.economy import responses_figure

        return responses_figure(self._source, width=width)


class StudyPlots(Plots):
    """Figures of the runs of a study; see `Plots`."""

    def feeds(self, *, outcome: str | None = None, ax: "Axes | None" = None, width: float = WIDE) -> "Figure":
        """Return outcomes by condition, with differences paired by seed; see `view.plots.outcomes.feeds_figure`."""
        from prism_mesa.view.plots.outcomes import feeds_figure

        return feeds_figure(self._source, outcome=outcome, ax=ax, width=width)


class RunResult(KeptRun):
    """A run, its folder and its figures; `runs.lifecycle.RunResult` has its attributes."""

    @property
    def plot(self) -> RunPlots:
        """Its figures: ``result.plot.cascades()``."""
        return RunPlots(self)

    @html_or_repr
    def _repr_html_(self) -> str:
        from prism_mesa.view.summaries import run_html

        return run_html(self)


def with_figures(kept: KeptRun) -> RunResult:
    """Return a run as users get it."""
    return RunResult(**{field.name: getattr(kept, field.name) for field in fields(kept)})


type Draw = Callable[[Path, bool], list[Path]]
"""Draws the pictures of a run into its folder; the second argument: only those that can be drawn."""


@ended_by_signals()
def run_and_draw(go: Callable[[], KeptRun], draw: Draw) -> RunResult:
    """Run, then draw; if the run ended early, draw what can be drawn."""
    try:
        result = with_figures(go())
    except (RunBrokenError, RunInterruptedError) as stop:
        if stop.result is not None:
            stop.result = with_figures(stop.result)
            with suppress(PrismError, OSError, KeyboardInterrupt):  # report how the run ended
                stop.result = _with_pictures(stop.result, draw(stop.result.run_dir, True))
        raise
    try:
        return _with_pictures(result, draw(result.run_dir, False))
    except KeyboardInterrupt as stop:
        kept = f"{result.run_dir}: interrupted while its pictures were drawn (the run itself is kept there)"
        raise RunInterruptedError(kept, result) from stop


def _with_pictures(result: RunResult, drawn: list[Path]) -> RunResult:
    pictures = {"pictures": [str(path) for path in drawn]}
    return replace(result, pictures=tuple(drawn), summary=result.summary | pictures)


def draw_platform(run_dir: Path, partly: bool) -> list[Path]:
    """Draw a run of a platform into its folder."""
    from prism_mesa.view.plots.drawing import draw_run

    return draw_run(run_dir, partly=partly)


def draw_nations(run_dir: Path, partly: bool) -> list[Path]:
    """Draw a run of nations into its folder."""
    from prism_mesa.view.plots.economy import draw_economy

    return draw_economy(run_dir, partly=partly)


def draw_nothing(run_dir: Path, partly: bool) -> list[Path]:
    """Draw nothing."""
    return []
