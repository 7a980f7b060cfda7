"""Attributes, and expressions that name agents, of which some can be and some cannot."""

import random

from damaged_runs import VALUES

EXPRESSIONS = (
    *("agent.leaning > 0", "agent.party == 'left' or not agent.scripted", "agent.leaning / 0 > 1", "agent.party > 1"),
    *(
        "agent.leaning > " + "9" * 400,
        "agent.leaning" + " + 1" * 90,
        "~" * 900 + "agent.row",
        "post.likes > 1",
        "x",
        "",
    ),
    *("agent.row == 1 == 1", "agent.party", "'a' + 1", "agent.\u0440arty == 'left'", "agent.leaning > 1 & 2", "\0"),
)
"""Of agents whom an intervention names: some that can be, and some that cannot."""

_PARTS = {
    "of": ("agent", "post"),
    "values": ([True, False], ["left", "right"], [1, 2, 3], [0.1, 1], [10**400, 1], [2**53, 2**53 + 1], ["a", " a"]),
    "range": ([-1, 1], [0, 1e-300], [1, 1], [1e12, -1e12], [1.7e9, 1.7e9 + 1]),
    "share": ([1, 1], [0.8, 0.2], [0, 0], [5e-324, 5e-324], [1e308, 1e308], [1, 2, 3]),
    "mean": (0, 0.5, 1e300),
    "sd": (1, 1e-300, 1e12),
    "inherits": ("leaning", "party", "x"),
    "noise": (0, 0.5, 1e12),
    "column": ("c", "text"),
    "function": ("no_such_module:f", "f", ":"),
    "told": (True, False),
}


def attributes(draws: random.Random) -> dict[object, object]:
    """Return declared attributes, of which some contradict themselves or each other."""
    found: dict[object, object] = {}
    for _ in range(draws.choice((1, 1, 2, 4))):
        name = draws.choice(("leaning", "party", "veracity", "slant", "age", "text", "author_leaning", "x", *VALUES))
        keys = ["of", draws.choice(("values", "range")), *draws.sample(list(_PARTS), draws.choice((0, 0, 1, 1, 3)))]
        own = {key: draws.choice((*_PARTS[key], *VALUES) if draws.randrange(8) == 0 else _PARTS[key]) for key in keys}
        found[name if isinstance(name, str | int | float | None) else "y"] = own
    return found
