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
from prism_mesa.errors import BadInputError, quote_path, shorten
from prism_mesa.llm.text import clean_text
from prism_mesa.runs.recorded import is_economy
from prism_mesa.view.page.source import Source
from prism_mesa.view.page.trees import largest_cascades
from prism_mesa.view.page.views import show_views
from prism_mesa.view.page.widgets import page_frame, time_bar
from prism_mesa.view.playback.nations import nations_page, read_nations
from prism_mesa.view.playback.recorded import RecordedSource, open_recorded


def runs_view(paths: Sequence[Path]) -> Callable[[], Element[Any]]:
    """Return the page for one finished run, or for two runs of a platform; other runs raise a PrismError."""
    economies = [path for path in paths if is_economy(path)]
    if economies and len(paths) > 1:
        raise BadInputError(f"{quote_path(economies[0])} is a run of nations; two runs must be of platforms")
    if economies:
        run = read_nations(paths[0])
        return lambda: nations_page(run)
    sources = [open_recorded(path) for path in paths]
    return lambda: playback_page(sources)


@component
def playback_page(sources: Sequence[RecordedSource]) -> None:
    """Show finished runs side by side at the same round."""
    rounds = max(source.rounds for source in sources)
    page_round = use_reactive(rounds - 1)
    moments = use_memo(lambda: [source.at_round(page_round.value) for source in sources], [page_round.value])
    bar = time_bar(at=page_round.value, lowest=-1, rounds=rounds, unit="round", names=[], event_choose=page_round.set)
    content = [bar, "Press play (▶) to see the run round by round."] if page_round.value < 0 else [bar]
    card = Html(tag="section", class_="prism-card prism-moment", attributes={"aria-label": "Round"}, children=content)
    titles = [item.title for item in moments]
    if len(moments) == 1:
        facts, views = [*moments[0].facts], [show_views(moments[0], moments[0].round, "run", page_round.set)]
    else:
        if len(set(titles)) < len(titles):
            titles = [f"{title} ({n})" for n, title in enumerate(titles, 1)]
        columns = [
            Html(
                tag="section",
                attributes={"aria-label": title},
                children=[_facts(title, run.facts), show_views(run, run.round, f"run{index}", page_round.set, moments)],
            )
            for index, (title, run) in enumerate(zip(titles, moments, strict=True))
        ]
        pair = Html(tag="div", class_="prism-pair", children=columns)
        facts, views = differing_settings(sources), [differences_table(titles, moments), pair]
    page_frame(" and ".join(titles), [card, *views], rounds=rounds, done=page_round.value + 1, facts=facts)


def differing_settings(sources: Sequence[RecordedSource]) -> list[tuple[str, str]]:
    """Return the keys whose values differ between two configurations, with both values."""
    base, other = (source.tables.run.manifest.config or {} for source in sources)
    values = {setting.key: (setting.base, setting.other) for setting in settings_that_differ(base, other)}
    if base.get("seed") != other.get("seed"):
        values = {"seed": (base.get("seed"), other.get("seed")), **values}
    texts = {key: " | ".join(shorten(str(value), 60) for value in pair) for key, pair in values.items()}
    facts = [(clean_text(key, 80), clean_text(text, 130)) for key, text in texts.items()]
    return facts or [("settings", "the same in both")]


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
def differences_table(titles: Sequence[str], sources: Sequence[Source]) -> None:
    """Show the counts of two runs up to the displayed round, and their difference."""
    first, second = (counts_so_far(source) for source in sources)
    rows = [_row(["up to this round", *titles, "difference"], "col", n_headers=4)]
    for name in (name for name in first if name in second):
        difference = second[name] - first[name]
        signed = f"{difference:+,.0f}" if difference else "0"
        rows.append(_row([name, f"{first[name]:,.0f}", f"{second[name]:,.0f}", signed], "row", n_headers=1))
    parts = [Html(tag="thead", children=rows[:1]), Html(tag="tbody", children=rows[1:])]
    table = Html(tag="table", class_="prism-differences", children=parts)
    Html(tag="section", class_="prism-card", attributes={"aria-label": "Differences"}, children=[table])


def _row(texts: Sequence[str], scope: str, n_headers: int) -> Element[Any]:
    headers = [Html(tag="th", attributes={"scope": scope}, children=[text]) for text in texts[:n_headers]]
    return Html(tag="tr", children=[*headers, *(Html(tag="td", children=[text]) for text in texts[n_headers:])])
