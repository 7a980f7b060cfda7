"""The page for finished runs: one run, or two side by side."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from reacton.core import Element, use_memo
from reacton.ipyvuetify import Html
from solara.core import component
from solara.hooks.use_reactive import use_reactive

from prism_mesa.analysis.compare.settings import settings_that_differ
from prism_mesa.errors import BadInputError, in_command, shortened
from prism_mesa.llm.text import plain
from prism_mesa.runs.recorded import is_economy
from prism_mesa.view.page.source import Source
from prism_mesa.view.page.trees import largest_cascades
from prism_mesa.view.page.views import show_views
from prism_mesa.view.page.widgets import page_frame, transport
from prism_mesa.view.playback.nations import nations_page, read_nations
from prism_mesa.view.playback.recorded import RecordedSource, open_recorded


def runs_view(paths: Sequence[Path]) -> Callable[[], Element[Any]]:
    """Return the page for one finished run, or for two runs of a platform.

    Raises:
        PrismError: If a run is missing or damaged, or one of two does not simulate a platform.
    """
    economies = [path for path in paths if is_economy(path)]
    if economies and len(paths) > 1:
        raise BadInputError(f"{in_command(economies[0])}: is a run of nations; two runs must be of platforms")
    if economies:
        run = read_nations(paths[0])
        return lambda: nations_page(run)
    sources = [open_recorded(path) for path in paths]
    return lambda: playback(sources)


@component
def playback(sources: Sequence[RecordedSource]) -> None:
    """Show finished runs side by side at the same round."""
    rounds = max(source.rounds for source in sources)
    page_round = use_reactive(rounds - 1)
    moments = use_memo(lambda: [source.at_round(page_round.value) for source in sources], [page_round.value])
    bar = transport(at=page_round.value, lowest=-1, rounds=rounds, unit="round", names=[], event_choose=page_round.set)
    parts = [bar, "Press play (▶) to see the run round by round."] if page_round.value < 0 else [bar]
    bars = Html(tag="section", class_="prism-card prism-moment", attributes={"aria-label": "Round"}, children=parts)
    titles = [item.title for item in moments]
    if len(moments) == 1:
        facts, views = [*moments[0].facts], [show_views(moments[0], moments[0].at, "run", page_round.set)]
    else:
        if len(set(titles)) < len(titles):
            titles = [f"{title} ({n})" for n, title in enumerate(titles, 1)]
        columns = [
            Html(
                tag="section",
                attributes={"aria-label": title},
                children=[_facts(title, item.facts), show_views(item, item.at, f"run{index}", page_round.set, moments)],
            )
            for index, (title, item) in enumerate(zip(titles, moments, strict=True))
        ]
        pair = Html(tag="div", class_="prism-pair", children=columns)
        facts, views = differing_settings(sources), [differences(titles, moments), pair]
    page_frame(" and ".join(titles), [bars, *views], rounds=rounds, done=page_round.value + 1, facts=facts)


def differing_settings(sources: Sequence[RecordedSource]) -> list[tuple[str, str]]:
    """Return the keys in which two configurations differ, with both values."""
    base, other = (source.tables.run.manifest.config or {} for source in sources)
    values = {setting.key: (setting.base, setting.other) for setting in settings_that_differ(base, other)}
    if base.get("seed") != other.get("seed"):
        values = {"seed": (base.get("seed"), other.get("seed")), **values}
    texts = {key: " | ".join(shortened(str(value), 60) for value in pair) for key, pair in values.items()}
    return [(plain(key, 80), plain(text, 130)) for key, text in texts.items()] or [("settings", "the same in both")]


def _facts(title: str, facts: Sequence[tuple[str, str]]) -> Element[Any]:
    spans = [Html(tag="span", children=[f"{label} ", Html(tag="b", children=[value])]) for label, value in facts]
    line = Html(tag="p", class_="prism-run-facts", children=spans)
    return Html(tag="div", class_="prism-card", children=[Html(tag="h2", children=[title]), line])


_COUNT_COLUMNS: Final = ("online", "posts", "impressions", "likes", "replies", "reshares", "open", "fallback")
_LABELS: Final = {"online": "came online", "open": "open choices", "fallback": "fallbacks"}


def counts_so_far(source: Source) -> dict[str, float]:
    """Return a run's counts up to the displayed round, by label."""
    columns, posts = source.round_columns(), source.posts()
    counts = {_LABELS.get(name, name): float(columns[name].sum()) for name in _COUNT_COLUMNS if name in columns}
    largest = largest_cascades(posts, 1)
    counts["largest cascade, posts"] = float(largest[0][1] if largest else len(posts) > 0)
    return counts


@component
def differences(titles: Sequence[str], sources: Sequence[Source]) -> None:
    """Show the counts of two runs up to the displayed round, and their difference."""
    first, second = (counts_so_far(source) for source in sources)
    rows = [_row(["up to this round", *titles, "difference"], "col", n_heads=4)]
    for name in (name for name in first if name in second):
        difference = second[name] - first[name]
        signed = f"{difference:+,.0f}" if difference else "0"
        rows.append(_row([name, f"{first[name]:,.0f}", f"{second[name]:,.0f}", signed], "row", n_heads=1))
    parts = [Html(tag="thead", children=rows[:1]), Html(tag="tbody", children=rows[1:])]
    table = Html(tag="table", class_="prism-differences", children=parts)
    Html(tag="section", class_="prism-card", attributes={"aria-label": "Differences"}, children=[table])


def _row(texts: Sequence[str], scope: str, n_heads: int) -> Element[Any]:
    heads = [Html(tag="th", attributes={"scope": scope}, children=[text]) for text in texts[:n_heads]]
    return Html(tag="tr", children=[*heads, *(Html(tag="td", children=[text]) for text in texts[n_heads:])])
