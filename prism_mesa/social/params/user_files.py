"""Columns of users' files, alternative names for them, and Python lines that convert graph files."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from prism_mesa.domain import ACTIONS, BIG_FIVE
from prism_mesa.social.state.agent_fields import AGENT_FIELDS

EDGES: Final = "network.edges"
POSTS: Final = "posts.file"
PROFILES: Final = "agents.profiles"
COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    EDGES: {"src": "", "dst": ""},
    POSTS: {
        "text": "body content full_text message post status title tweet",
        "author": "account author_display author_handle created_by from_user handle poster posted_by screen_name "
        "user user_screen_name",
        "round": "",
        "created_at": "created created_time created_utc date datetime posted_at published published_at time timestamp",
        "topic": "category",
        "media_type": "",
        "media_description": "alt_text",
    },
    PROFILES: {
        "agent": "account author handle id screen_name user",
        **dict.fromkeys(("name", "interests", *AGENT_FIELDS, *ACTIONS, *BIG_FIVE), ""),
    },
}
"""Configuration key of a file -> column -> alternative names, separated by spaces (see `_core_name`)."""
ALTERNATIVE_NAMES: Final = {column: others for columns in COLUMNS.values() for column, others in columns.items()}
REQUIRED_COLUMNS: Final = ("src", "dst", "text", "agent")

FOLLOW_COLUMNS: Final = (("followee", "follower"), ("followed", "follower"), ("friend", "user"), ("user", "follower"))
"""Pairs of names for the columns of edges: the followed agent and the follower."""
AMBIGUOUS_COLUMNS: Final = (("source", "target"), ("from", "to"))
"""Pairs of names that are read as src and dst only if network.direction is set."""
_ALL_PAIRS: Final = FOLLOW_COLUMNS + AMBIGUOUS_COLUMNS
_GRAPHS: Final = {
    ".graphml": "read_graphml({})",
    ".gexf": "read_gexf({})",
    ".gml": "read_gml({})",
    ".net": "read_pajek({})",
    ".edgelist": "read_edgelist({}, data=False, create_using=nx.DiGraph)",
}
_MAX_NAME: Final = 100
_MAX_PATH: Final = 150


def _core_name(name: str) -> str:
    """Return the core of a column's name: "user" for "User_ID", "user name" and "user"."""
    return re.sub(r"(?<=.)(?:id|name|user|node)+$", "", re.sub(r"[\W_]+", "", name.casefold()))


def most_similar_column(column: str, names: Sequence[str], cutoff: float) -> str | None:
    """Return the name in a file that is most similar to `column`, by alternative names or spelling."""
    by_core = {_core_name(name): name for name in reversed(names) if len(name) <= _MAX_NAME}  # time is quadratic
    exact = [name for name in map(_core_name, (column, *ALTERNATIVE_NAMES.get(column, "").split())) if name in by_core]
    matches = exact or get_close_matches(_core_name(column), by_core, n=1, cutoff=cutoff)
    return by_core[matches[0]] if matches else None


def follow_columns(names: Sequence[str], pairs: Sequence[tuple[str, str]] = _ALL_PAIRS) -> tuple[str, ...]:
    """Return the first of `pairs` whose columns are among a file's `names`, or an empty tuple."""
    by_core = {_core_name(name): name for name in reversed(names)}
    return next(((by_core[src], by_core[dst]) for src, dst in pairs if {src, dst} <= by_core.keys()), ())


def conversion(file: Path, first_line: str = "") -> str | None:
    """Return Python lines that convert a graph file or a list of edges without a header; None for other files."""
    suffix = Path(file.name.lower().removesuffix(".gz")).suffix
    path = str(file) if len(str(file)) <= _MAX_PATH else file.name  # long messages are cut in the middle
    argument, csv_file = repr(path), repr(f"{path}.csv")
    if suffix in _GRAPHS:
        if suffix == ".gml" and b"label" not in file.read_bytes():
            argument += ", label='id'"
        reason, imports = f"PRISM does not read {suffix}", "networkx as nx, pandas as pd"
        frame = f"pd.DataFrame(nx.{_GRAPHS[suffix].format(argument)}.edges(), columns=['source', 'target'])"
    elif re.fullmatch(r"[#%].*|[-+.\d\s,;|\"]+", first_line):
        comment = first_line[0] if first_line[0] in "#%" else None
        delimiter = next((mark for mark in ",;|" if mark in first_line and not comment), r"\s+")
        options = f"sep=r'{delimiter}', comment={comment!r}, header=None, usecols=[0, 1], names=['source', 'target']"
        reason, imports = "it has no header with src and dst", "pandas as pd"
        frame = f"pd.read_csv({argument}, {options}, dtype=str)"
    else:
        return None
    code = f"`import {imports}` and `{frame}.to_csv({csv_file}, index=False)`"
    return f"{reason}. Two lines of Python convert it: {code} (then set network.direction; both: undirected)"
