"""The page for finished runs: one run, or two side by side."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from reacton.core import Element, use_memo
from reacton.ipyvuetify import Html
from solara.core import component
from solara.hooks.use_reactive import use_reactive

from prism_mesa.analysis.compare.settings import settings_that_differ
from prism_mesa.errors import BadInputError, format_error, in_command, shortened
from prism_mesa.llm.text import plain
from prism_mesa.runs.recorded import is_economy
from prism_mesa.view.page.source import Source
from prism_mesa.view.page.trees import largest_cascades
from prism_mesa.view.page.views import show_views
from prism_mesa.view.page.widgets import page_frame, page_head, transport
from prism_mesa.view.playback.nations import nations_page, read_nations
from prism_mesa.view.playback.recorded import RecordedSource, open_recorded

_BETWEEN_S = 0.5
"""Seconds between two words on how far a run has been repeated."""


def runs_view(paths: Sequence[Path]) -> Callable[[], Element[Any]]:
    """Return the page for one finished run, or for two runs of a platform.

    Raises:
        PrismError: If a run is missing or damaged, or one of two does not simulate a platform.
    """
    of_nations = [is_economy(path) for path in paths]
    if len(paths) > 1 and any(of_nations):
        command = in_command(paths[of_nations.index(True)])
        raise BadInputError(f"{command}: is a run of nations: side by side the page shows runs of platforms")
    if of_nations[0]:
        tables = read_nations(paths[0])
        return lambda: nations_page(tables)
    sources = [open_recorded(path) for path in paths]
    return lambda: playback(sources)


@component
def playback(sources: Sequence[RecordedSource]) -> None:
    """Show finished runs side by side at the same round."""
    rounds = max(source.rounds for source in sources)
    at = use_reactive(rounds - 1)
    shown = use_memo(lambda: [source.at_round(at.value) for source in sources], [at.value])
    bar = transport(at=at.value, least=-1, rounds=rounds, unit="round", names=[], event_choose=at.set)
    parts = [bar, "Press play (▶) to see the run round by round."] if at.value < 0 else [bar]
    bars = Html(tag="section", class_="prism-card prism-moment", attributes={"aria-label": "Round"}, children=parts)
    if len(shown) == 1:
        [only] = shown
        head = page_head(only.title, rounds=only.rounds, done=only.at + 1, facts=only.facts)
        page_frame(only.title, [head, bars, moment_views(only, "run", at.set)])
        return
    titles = [item.title for item in shown]
    if len(set(titles)) < len(titles):
        titles = [f"{title} ({n})" for n, title in enumerate(titles, 1)]
    head = page_head(" and ".join(titles), rounds=rounds, done=at.value + 1, facts=what_differs(sources))
    columns = [
        Html(
            tag="section",
            attributes={"aria-label": title},
            children=[_facts(title, item.facts), moment_views(item, f"run{place}", at.set, beside=shown)],
        )
        for place, (title, item) in enumerate(zip(titles, shown, strict=True))
    ]
    pair = Html(tag="div", class_="prism-pair", children=columns)
    page_frame(" and ".join(titles), [head, bars, differences(titles, shown), pair])


def what_differs(sources: Sequence[RecordedSource]) -> list[tuple[str, str]]:
    """Return the keys in which two configurations differ, with both values."""
    base, other = (source.tables.run.manifest.config or {} for source in sources)
    keys = [(difference.key, difference.base, difference.other) for difference in settings_that_differ(base, other)]
    keys = [("seed", base.get("seed"), other.get("seed")), *keys]
    differ = [
        (key, f"{shortened(f'{left}', 60)} | {shortened(f'{right}', 60)}") for key, left, right in keys if left != right
    ]
    return [(plain(key, 80), plain(values, 130)) for key, values in differ] or [("settings", "the same in both")]


def _facts(title: str, facts: Sequence[tuple[str, str]]) -> Element[Any]:
    spans = [Html(tag="span", children=[f"{label} ", Html(tag="b", children=[value])]) for label, value in facts]
    line = Html(tag="p", class_="prism-run-facts", children=spans)
    return Html(tag="div", class_="prism-card", children=[Html(tag="h2", children=[title]), line])


@component
def moment_views(
    source: RecordedSource, name: str, go: Callable[[int], None], beside: Sequence[RecordedSource] = ()
) -> None:
    """Show all views of a moment; an agent chosen by a post is shown in the round in which it wrote the post.

    `go` moves the page to another round; `beside` holds runs that share the axes.
    """
    tables = source.tables
    wrote, version = use_reactive((source.at, -1)), use_reactive(0)
    looked_at, round_ = wrote.value
    in_round = round_ if looked_at == source.at and round_ >= 0 else source.at
    of_agent = use_memo(lambda: source.at_round(in_round), [source.at, in_round, version.value])

    def choose(post: int) -> None:
        wrote.value = source.at, int(tables.posts.written[post]) if post >= 0 else -1

    def ask(row: int) -> None:
        key = row, of_agent.at
        if key in tables.told or tables.telling:  # one at a time, because it keeps a core busy
            return
        tables.telling[key] = "The run is being repeated ..."
        version.value += 1
        threading.Thread(
            target=_tell, args=(of_agent, row, lambda: version.set(version.peek() + 1)), daemon=True
        ).start()

    show_views(source, source.at, name, of_agent=of_agent, on_choose=choose, on_ask=ask, on_go=go, beside=beside)


def _tell(source: RecordedSource, row: int, on_change: Callable[[], None]) -> None:
    """Explain what an agent did in a round, and keep the explanation with the run's tables."""
    tables, key, said_at = source.tables, (row, source.at), time.monotonic()

    def on_round(done: int) -> None:
        nonlocal said_at
        if time.monotonic() - said_at > _BETWEEN_S:
            said_at = time.monotonic()
            tables.telling[key] = f"The run is being repeated: round {done - 1} of {source.at} ..."
            on_change()

    try:
        tables.told[key] = source.explain(row, on_round)
        tables.untold.pop(key, None)
    except Exception as error:  # a user's guard or action may raise anything; the page must survive it
        tables.untold[key] = f"Why is not known: {format_error(error)}"
    finally:
        tables.telling.pop(key, None)
        on_change()


_SUMS: Final = {
    "online": "came online",
    "posts": "posts",
    "impressions": "impressions",
    "likes": "likes",
    "replies": "replies",
    "reshares": "reshares",
    "open": "open choices",
    "fallback": "fallbacks",
}


def counts_so_far(source: Source) -> dict[str, float]:
    """Return a run's counts up to the displayed round, by label."""
    columns, posts = source.round_columns(), source.posts()
    counts = {text: float(columns[name].sum()) for name, text in _SUMS.items() if name in columns}
    largest = largest_cascades(posts, 1)
    counts["largest cascade, posts"] = float(largest[0][1] if largest else len(posts) > 0)
    return counts


@component
def differences(titles: Sequence[str], sources: Sequence[Source]) -> None:
    """Show the counts of two runs up to the displayed round, and their difference."""
    first, second = (counts_so_far(source) for source in sources)
    heads = ["up to this round", *titles, "difference"]
    rows = []
    for name in (name for name in first if name in second):
        difference = second[name] - first[name]
        signed = f"{difference:+,.0f}" if difference else "0"
        rows.append([name, f"{first[name]:,.0f}", f"{second[name]:,.0f}", signed])
    head = Html(tag="thead", children=[_row(heads, ["th"] * 4, "col")])
    body = Html(tag="tbody", children=[_row(row, ["th", "td", "td", "td"], "row") for row in rows])
    table = Html(tag="table", class_="prism-differences", children=[head, body])
    Html(tag="section", class_="prism-card", attributes={"aria-label": "Differences"}, children=[table])


def _row(cells: Sequence[str], tags: Sequence[str], scope: str) -> Element:  # type: ignore[type-arg]
    pairs = zip(tags, cells, strict=True)
    attributes = {"th": {"scope": scope}, "td": {}}
    return Html(tag="tr", children=[Html(tag=tag, attributes=attributes[tag], children=[cell]) for tag, cell in pairs])
