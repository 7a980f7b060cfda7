"""Compare two runs, or two groups of runs with several seeds each."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_mesa.errors import format_count, one_line
from prism_mesa.studies.comparison.comparison import RunComparison, as_json, compare_runs
from prism_mesa.studies.comparison.pairs import Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Comparison", "compare"]


class Comparison(RunComparison):
    """The result of comparing runs; see `RunComparison` for its tables."""

    def draw(self) -> "Figure":
        """Return a figure, 17 cm wide, of both sides and their differences in each round."""
        from prism_mesa.view.comparison.report import comparison_figure

        return comparison_figure(self)

    def write(self, out: str | Path = "results") -> Path:
        """Write report.md, comparison.json, rounds.png and rounds.pdf, and return their folder.

        Args:
            out: Parent of that folder, ``out/compare-<base>-<other>``; made if missing.

        Raises:
            DataError: If that folder lies in a run, or holds anything but a comparison.
        """
        from prism_mesa.view.comparison.report import write_comparison

        return write_comparison(self, out)[0].parent

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as plain values, as ``prism compare --json`` prints it."""
        return as_json(self)

    def __str__(self) -> str:
        from prism_mesa.view.comparison.words import comparison_lines

        return "\n".join(comparison_lines(self))

    @one_line
    def __repr__(self) -> str:
        first = self.first_divergence
        outcome = "equal in every table" if self.equal else "no diverging table found"
        outcome = outcome if first is None else f"diverged in {first.location}"
        return (
            f"<Comparison of {' and '.join(self.names)}: {format_count(len(self.pairs.base), 'pair')}, {outcome}, "
            f"{self.n_differ} of {format_count(len(self.measures), 'measure')} differ>"
        )


def compare(
    run: Runs, other: Runs, *, measures: str | Sequence[str] | None = None, why: bool = True, trust: bool = False
) -> Comparison:
    """Compare two runs, or runs of several seeds, like ``prism compare``; differences are `other` minus `run`.

    Args:
        run: One side: a result, the folder of a run or of runs, or several of these.
        other: The other side. Runs are paired by seed, unless each side is a single run.
        measures: Names from the catalogue (``prism study measures``), or ``module:function`` for your own; None: the
            whole catalogue.
        why: Whether to repeat both runs up to where they diverge, to explain why.
        trust: As for `replay`.

    Returns:
        Tables `measures`, `rounds` and `settings`, and `first_divergence` with `reasons`; `draw` and `write` make the
        figure and the report.

    Raises:
        BadInputError: If there is no such run or measure, a run has no rounds, or you compare a platform with nations
            or a run with itself.
    """
    names = [measures] if isinstance(measures, str) else measures
    result = compare_runs(run, other, measures=names, why=why, trust=trust)
    return Comparison(**vars(result))
