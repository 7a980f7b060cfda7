"""The view of a cascade: a tree that grows from left to right, round by round."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from reacton.ipyvuetify import Html
from solara.core import component
from solara.hooks.use_reactive import use_reactive

from prism_mesa.domain import POST_KINDS
from prism_mesa.errors import format_count, shorten
from prism_mesa.view.page.source import Source
from prism_mesa.view.page.trees import Tree, cascade_tree, largest_cascades
from prism_mesa.view.page.widgets import PALETTE, Json, encoded, pack_nodes, show_graph, show_inputs, view_card

_LARGEST_LABEL: Final = "the largest so far"
_MAX_CHOICES: Final = 6


@component
def cascade_view(source: Source, round_: int, selected: int, select: Callable[[int, int], None], name: str) -> None:
    """Show a cascade, by default the largest, as a tree; a click calls `select` with the author and the post."""
    requested_root = use_reactive(-1)
    posts = source.posts()
    under_posts, under_replies = (largest_cascades(posts, _MAX_CHOICES, kind=kind) for kind in ("post", "reply"))
    choices = {f"{index}: {size:,} posts, root {root}": root for index, (root, size) in enumerate(under_posts, 1)}
    choices |= {f"under a reply: {size:,} posts, root {root}": root for root, size in under_replies}
    roots = [*choices.values()]
    root = requested_root.value if requested_root.value in roots else roots[0] if roots else -1
    with view_card("Cascades: who reshared whose post", "view-cascade tall"):
        if root < 0:
            Html(tag="p", class_="prism-hint", children=["Nobody has reshared a post yet."])
            return
        names = [_LARGEST_LABEL, *choices]
        value = names[1 + roots.index(root)] if requested_root.value == root else _LARGEST_LABEL
        item = {"group": "", "key": "cascade", "label": "cascade", "kind": "select", "choices": names, "value": value}
        show_inputs(
            name=f"{name}-cascade",
            items=[item],
            inline=True,
            event_change=lambda change: requested_root.set(choices.get(change["value"], -1)),
        )
        tree = cascade_tree(posts, root)
        rounds = posts.round[tree.posts]
        verb = "replied" if POST_KINDS[posts.kind[root]] == "reply" else "wrote"
        author = source.agent_name(int(posts.author[root]))
        text = f"{author} {verb} in round {int(rounds[0])}: “{shorten(source.post_text(root), 160)}”"
        Html(tag="p", class_="prism-note", children=[text])
        first, last = int(rounds[0]), max(int(rounds[0]) + 1, int(rounds.max()))
        x = _round_x(rounds, first, last)
        depth = np.minimum(tree.depth, len(PALETTE) - 1)
        ticks = [{"at": float(_round_x(n, first, last)), "text": str(n)} for n in range(first, last + 1)]
        n_new = int((rounds == round_).sum())
        note = (
            f"{format_count(len(tree.posts) - 1, 'reshare')}, {int(tree.depth.max())} deep, {n_new:,} new in round "
            f"{round_}; each dot is a post at its round, linked to the post it reshares. Click one to see its author."
        )
        with Html(tag="div", class_="prism-grow"):
            show_graph(
                label=f"A cascade of {format_count(len(tree.posts), 'post')} as a tree, from round {first} to {round_}",
                nodes=_tree_nodes(source, tree, x, posts.author[tree.posts], rounds),
                links=encoded(np.stack([tree.parent[1:], np.arange(1, len(tree.posts))], axis=1), np.int32),
                colors=encoded(depth, np.uint8),
                faint=0,
                legend=[
                    {"name": f"depth {d}{' or more' if d == len(PALETTE) - 1 else ''}", "color": PALETTE[-1 - d]}
                    for d in range(int(depth.max()) + 1)
                ],
                note=note,
                selected=selected,
                axis={"name": "round in which it was written (square-root scale)", "ticks": ticks},
                curved=True,
                event_pick=lambda picked: select(int(picked["id"]), int(tree.posts[int(picked["node"])])),
            )


def _round_x(rounds: Any, first: int, last: int) -> Any:
    """Return the position of each round in -1..1, on a square-root scale because most reshares come early."""
    return 2 * np.sqrt((rounds - first) / (last - first)) - 1


def _tree_nodes(source: Source, tree: Tree, x: Any, authors: Any, rounds: Any) -> Json:
    height = max(1.0, float(tree.row.max()))
    y = 1 - 2 * tree.row / height if len(tree.posts) > 1 else np.zeros(len(tree.posts))
    size = np.full(len(tree.posts), np.clip(150 / height, 1.6, 4.5))
    size[0] = 7.5
    pairs = zip(authors.tolist(), rounds.tolist(), strict=True)
    names = [f"{source.agent_name(row)} ({row}), round {round_}" for row, round_ in pairs]
    return pack_nodes(f"cascade {int(tree.posts[0])}", x, y, size, authors, names)
