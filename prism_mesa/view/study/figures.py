"""The figures of a report: which there are, of which measures, and what their captions say."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from prism_mesa.studies.result import StudyResult
from prism_mesa.view.study.blocks import Block, Code, Paragraph, Part, Picture, Section, Words
from prism_mesa.view.study.comparisons import SHARES
from prism_mesa.view.study.contents import condition_columns, in_words, measures_in_order, short_key

MOST_MEASURES: Final = 6
_MOST_NAMED: Final = 12


def figures_section(result: StudyResult) -> Section:
    """Return the figures that the study has runs for: of the measures of its expectations, then of the first others."""
    runs = result.table.runs
    known = [name for name in measures_in_order(result) if runs[name].notna().any()]
    if not known:
        return Section("figures", "Figures", (Paragraph("There is nothing to draw yet."),))
    shown, left_out = known[:MOST_MEASURES], known[MOST_MEASURES:]
    blocks: list[Block] = [*_differences(result, shown), *_distributions(result, shown), *_interactions(result, shown)]
    blocks += [*_precision(result, shown), *_sensitivity(result, shown)]
    if left_out:
        blocks.append(Paragraph(_left_out(left_out)))
    return Section("figures", "Figures", tuple(blocks))


def _left_out(measures: Sequence[str]) -> Words:
    parts: list[Part] = ["Not drawn: "]
    for name in measures[:_MOST_NAMED]:
        parts += [Code(name), ", "]
    more = len(measures) - _MOST_NAMED
    return (*parts[:-1], f" and {more:,} more." if more > 0 else ".")


def _distributions(result: StudyResult, measures: Sequence[str]) -> list[Block]:
    from prism_mesa.view.study.distributions import distribution_caption, distribution_figure

    return [
        Picture(
            f"distribution-{measure}",
            (Code(measure), f" {_by(result)}. ", distribution_caption(result, measure)),
            partial(distribution_figure, result, measure),
        )
        for measure in measures
    ]


def _by(result: StudyResult) -> str:
    terms = [short_key(name) for name in condition_columns(result.table)]
    return f"by {in_words(terms[:2] if len(terms) < 3 else [*terms[:2], 'others'])}" if terms else "in all runs"


def _with_rows(measures: Sequence[str], having: Sequence[str]) -> list[str]:
    found = set(having)
    return [name for name in measures if name in found]


def _differences(result: StudyResult, measures: Sequence[str]) -> list[Block]:
    from prism_mesa.view.study.relations import difference_figure, difference_rows

    shown = [name for name in measures if any(row[1] == row[1] for row in difference_rows(result, name))]
    caption = (
        "Differences with Student's 95 % intervals: for expectations, the left side minus the right; for other "
        "measures, each arm or level minus the first."
    )
    caption += " The shaded bands are the margins of equalities." if len(result.analysis.equivalence) else ""
    return [Picture("differences", caption, partial(difference_figure, result, shown))] if shown else []


def _interactions(result: StudyResult, measures: Sequence[str]) -> list[Block]:
    from prism_mesa.view.study.relations import interaction_figure, interaction_terms

    terms = interaction_terms(result.table)
    if not terms:
        return []
    axis, lines, *panel = terms
    own = result.analysis.answers
    n_panels = own[panel[0]].nunique(dropna=False) if panel else 1
    shown = _with_rows(measures, own.loc[own["mean"].notna(), "measure"])[: MOST_MEASURES // n_panels]
    each = f", a panel for each {short_key(panel[0])}" if panel else ""
    n = own.loc[own["measure"].isin(shown), "n"]
    least, most = n.min(), n.max()
    of = f"{least:,.0f}" if least == most else f"{least:,.0f} to {most:,.0f}"
    caption = (
        f"Means by {short_key(axis)}, a line for each {short_key(lines)}{each}, with 95 % intervals. Lines that "
        f"are not parallel are an interaction (n = {of} runs a point)."
    )
    draw = partial(interaction_figure, result, shown, terms)
    return [Picture("interaction", caption, draw)] if shown else []


def _precision(result: StudyResult, measures: Sequence[str]) -> list[Block]:
    from prism_mesa.view.study.relations import MOST_PAIRS, precision_figure

    found = result.analysis.precision
    shown = _with_rows(measures, found["measure"])
    if not shown:
        return []
    n_pairs = found.groupby(["term", "left", "right"], dropna=False).ngroups
    cut = f"; the first {MOST_PAIRS} of {n_pairs} comparisons" if n_pairs > MOST_PAIRS else ""
    caption = (
        f"Half the width of the 95 % interval of a difference, had the study had fewer seeds{cut} "
        f"(up to {found['seeds'].max():,} seeds). Where a line is flat, more seeds tell little more."
    )
    return [Picture("precision", caption, partial(precision_figure, result, shown))]


def _sensitivity(result: StudyResult, measures: Sequence[str]) -> list[Block]:
    from prism_mesa.view.study.relations import morris_figure, share_figure

    found = result.analysis.sensitivity
    n = int((result.table.runs["status"] == "done").sum())
    if shares := _with_rows(measures, found.loc[found["index"] == "share", "measure"]):
        caption = f"Where the variance between runs comes from, with 95 % intervals (n = {n:,} runs). {SHARES}"
        return [Picture("variance", caption, partial(share_figure, result, shares))]
    if sobol := _with_rows(measures, found.loc[found["index"] == "st", "measure"]):
        caption = f"Sobol indices with 95 % intervals: the share of a measure's variance (n = {n:,} runs)."
        return [Picture("sobol", caption, partial(share_figure, result, sobol))]
    if morris := _with_rows(measures, found.loc[found["index"] == "mu_star", "measure"]):
        caption = (
            "Elementary effects (Morris): right, factors that matter; high, factors whose effect depends on the "
            f"others or is not linear; bars are 95 % intervals of \u03bc* (n = {n:,} runs)."
        )
        return [Picture("morris", caption, partial(morris_figure, result, morris))]
    return []
