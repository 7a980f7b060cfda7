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
from prism_mesa.errors import counted, shortened
from prism_mesa.view.page.source import Source
from prism_mesa.view.page.trees import Tree, cascade_tree, largest_cascades
from prism_mesa.view.page.widgets import SCALE, Json, pack_nodes, packed, show_graph, show_inputs, view_card

_LARGEST: Final = "the largest so far"
_CHOICES: Final = 6


@component
def cascade_view(source: Source, round_: int, chosen: int, choose: Callable[[int, int], None], name: str) -> None:
    """Show a cascade, by default the largest, as a tree; a click calls `choose` with the author and the post."""
    requested = use_reactive(-1)
    posts = source.posts()
    best, replies = (largest_cascades(posts, _CHOICES, kind=kind) for kind in ("post", "reply"))
    choices = {f"{index}: {size:,} posts, root {root}": root for index, (root, size) in enumerate(best, 1)}
    choices |= {f"under a reply: {size:,} posts, root {root}": root for root, size in replies}
    roots = [*choices.values()]
    root = requested.value if requested.value in roots else roots[0] if roots else -1
    with view_card("Cascades: who reshared whose post", "view-cascade tall"):
        if root < 0:
            Html(tag="p", class_="prism-hint", children=["Nobody has reshared a post yet."])
            return
        names = [_LARGEST, *choices]
        value = names[1 + roots.index(root)] if requested.value == root else _LARGEST
        item = {"group": "", "key": "cascade", "label": "cascade", "kind": "select", "choices": names, "value": value}
        show_inputs(
            name=f"{name}-cascade",
            items=[item],
            inline=True,
            event_change=lambda change: requested.set(choices.get(change["value"], -1)),
        )
        tree = cascade_tree(posts, root)
        rounds = posts.round[tree.posts]
        wrote = "replied" if POST_KINDS[posts.kind[root]] == "reply" else "wrote"
        author = source.agent_name(int(posts.author[root]))
        text = f"{author} {wrote} in round {int(rounds[0])}: “{shortened(source.post_text(root), 160)}”"
        Html(tag="p", class_="prism-note", children=[text])
        first, last = int(rounds[0]), max(int(rounds[0]) + 1, int(rounds.max()))
        x = _round_x(rounds, first, last)
        depth = np.minimum(tree.depth, len(SCALE) - 1)
        ticks = [{"at": float(_round_x(n, first, last)), "text": str(n)} for n in range(first, last + 1)]
        new = int((rounds == round_).sum())
        note = (
            f"{counted(len(tree.posts) - 1, 'reshare')}, {int(tree.depth.max())} deep, {new:,} new in round {round_}; "
            "each dot is a post at its round, below the post that it reshares. Click it for its author."
        )
        with Html(tag="div", class_="prism-grow"):
            show_graph(
                label=f"A cascade of {counted(len(tree.posts), 'post')} as a tree, from round {first} to {round_}",
                nodes=_tree_nodes(source, tree, x, posts.author[tree.posts], rounds),
                links=packed(np.stack([tree.parent[1:], np.arange(1, len(tree.posts))], axis=1), np.int32),
                colors=packed(depth, np.uint8),
                faint=0,
                legend=[
                    {"name": f"depth {d}{' or more' if d == len(SCALE) - 1 else ''}", "color": SCALE[-1 - d]}
                    for d in range(int(depth.max()) + 1)
                ],
                note=note,
                selected=chosen,
                axis={"name": "round in which it was written (square-root scale)", "ticks": ticks},
                curved=True,
                event_pick=lambda picked: choose(int(picked["id"]), int(tree.posts[int(picked["node"])])),
            )


def _round_x(rounds: Any, first: int, last: int) -> Any:
    """Return the horizontal position of each round, -1 to 1, on a square-root scale: most of a cascade comes early."""
    return 2 * np.sqrt((rounds - first) / (last - first)) - 1


def _tree_nodes(source: Source, tree: Tree, x: Any, authors: Any, rounds: Any) -> Json:
    height = max(1.0, float(tree.row.max()))
    y = 1 - 2 * tree.row / height if len(tree.posts) > 1 else np.zeros(len(tree.posts))
    size = np.full(len(tree.posts), np.clip(150 / height, 1.6, 4.5))
    size[0] = 7.5
    names = [
        f"{source.agent_name(row)} ({row}), round {round_}"
        for row, round_ in zip(authors.tolist(), rounds.tolist(), strict=True)
    ]
    return pack_nodes(f"cascade {int(tree.posts[0])}", x, y, size, authors, names)
